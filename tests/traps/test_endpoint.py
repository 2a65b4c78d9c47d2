"""What is said of a measured endpoint: the finding, where the setting stands, and what to write there."""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections.abc import Sequence
from typing import Any

import pytest
from support.scripted import Script, Time, ended
from support.traps import docker, facts, reading

from cpersona_cli.embedding.endpoints import configured
from cpersona_cli.embedding.kinds import MEANINGS, Kind, Stage
from cpersona_cli.embedding.measured import Experiment, Measured, Plan, Refinement, Remark, Sampled, Solution, Window
from cpersona_cli.embedding.model import Endpoint, Mode, Outcome, ServerView
from cpersona_cli.embedding.probe import measure
from cpersona_cli.record import replace
from cpersona_cli.traps.endpoint import UNDECIDED, findings, trap_id, unsettled
from cpersona_cli.traps.endpoint_remarks import REMARKS
from cpersona_cli.traps.model import Finding, Severity, Subject

URL = "http://127.0.0.1:8401/embed"
HTTP = {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": URL}
OLLAMA = "http://127.0.0.1:11434/v1/embeddings"
API = {
    "CPERSONA_EMBEDDING_MODE": "api",
    "CPERSONA_EMBEDDING_API_URL": OLLAMA,
    "CPERSONA_EMBEDDING_API_KEY": "sk-12345678",
    "CPERSONA_EMBEDDING_MODEL": "bge-m3",
}


def subject(env: dict[str, Any], outcome: Outcome, *, client: str = "claude-code", **fields: Any) -> Subject:
    target = facts(env, client=client).targets[0]
    endpoint = configured(target.settings, target.environment)
    reading_ = fields.pop("reading", None)
    measured = Measured(endpoint=endpoint, outcome=outcome, **fields)
    return Subject(label=target.registration.label, measured=measured, target=target, reading=reading_)


def decisive(made: Subject) -> Finding:
    (found,) = findings(made)
    return found


FATAL = [kind for kind in Kind if MEANINGS[kind].fatal and kind not in UNDECIDED | {Kind.DISABLED}]


@pytest.mark.parametrize("kind", FATAL)
@pytest.mark.parametrize("env", [HTTP, API], ids=["http", "api"])
def test_every_kind_has_a_finding_that_names_a_setting_and_its_line(kind: Kind, env: dict[str, Any]) -> None:
    found = decisive(subject(env, ended(kind)))
    assert found.trap == trap_id(kind)
    assert re.fullmatch(r"endpoint\.[a-z0-9-]+", found.trap)
    assert found.severity is (Severity.WARNING if kind is Kind.BASE64 else Severity.FAULT)
    assert found.subject == "Claude Code (user)"
    assert found.place is not None
    assert found.place.line is not None
    assert found.about.startswith("CPERSONA_EMBEDDING_")
    assert MEANINGS[kind].sentence in found.measured
    assert found.repair.prose
    assert found.costs


@pytest.mark.parametrize("kind", sorted(UNDECIDED))
def test_what_is_undecided_is_no_finding(kind: Kind) -> None:
    made = subject(HTTP, ended(kind))
    assert list(findings(made)) == []
    (sentence,) = unsettled(made)
    assert trap_id(kind) in sentence


def test_no_backend_is_neither() -> None:
    made = subject({"CPERSONA_EMBEDDING_MODE": "none"}, ended(Kind.DISABLED))
    assert (list(findings(made)), list(unsettled(made))) == ([], [])


@pytest.mark.parametrize(
    ("env", "kind", "name", "line"),
    [
        (HTTP, Kind.REFUSED, "CPERSONA_EMBEDDING_URL", 12),
        (HTTP, Kind.ROUTE_NOT_FOUND, "CPERSONA_EMBEDDING_URL", 12),
        (API, Kind.ROUTE_NOT_FOUND, "CPERSONA_EMBEDDING_API_URL", 12),
        (API, Kind.AUTH, "CPERSONA_EMBEDDING_API_KEY", 13),
        (API, Kind.QUOTA, "CPERSONA_EMBEDDING_API_KEY", 13),
        (API, Kind.MODEL_NOT_FOUND, "CPERSONA_EMBEDDING_MODEL", 14),
        (API, Kind.ZERO_VECTOR, "CPERSONA_EMBEDDING_MODEL", 14),
        (HTTP, Kind.ZERO_VECTOR, "CPERSONA_EMBEDDING_URL", 12),
        ({"CPERSONA_EMBEDDING_MODE": "Http"}, Kind.CONFIG_MODE, "CPERSONA_EMBEDDING_MODE", 11),
        ({**HTTP, "CPERSONA_EMBEDDING_TIMEOUT_SECS": "0"}, Kind.CONFIG_CLIENT, "CPERSONA_EMBEDDING_TIMEOUT_SECS", 13),
        (
            {"EMBEDDING_MODE": "http", "EMBEDDING_HTTP_URL": URL},
            Kind.REFUSED,
            "CPERSONA_EMBEDDING_URL",
            12,
        ),
        ({"CPERSONA_EMBEDDING_MODE": "api"}, Kind.AUTH, "CPERSONA_EMBEDDING_API_KEY", 10),
    ],
)
def test_the_setting_and_its_line(env: dict[str, Any], kind: Kind, name: str, line: int) -> None:
    found = decisive(subject(env, ended(kind)))
    assert found.about == name
    assert found.place is not None
    assert found.place.line == line


def refined(solution: Solution | None, *experiments: Experiment) -> Refinement:
    return Refinement(experiments=experiments, solution=solution)


SOLUTIONS: list[tuple[str, dict[str, Any], Solution, list[str]]] = [
    (
        "the URL alone",
        HTTP,
        Solution(mode="http", url="http://127.0.0.1:8401/other"),
        ['"CPERSONA_EMBEDDING_URL": "http://127.0.0.1:8401/other"'],
    ),
    (
        "another mode, with a key",
        HTTP,
        Solution(mode="api", url=OLLAMA, key=True),
        [
            '"CPERSONA_EMBEDDING_MODE": "api"',
            f'"CPERSONA_EMBEDDING_API_URL": "{OLLAMA}"',
            '"CPERSONA_EMBEDDING_API_KEY": "any-text"',
        ],
    ),
    (
        "another model",
        API,
        Solution(mode="api", url=OLLAMA, model="bge-m3:latest"),
        ['"CPERSONA_EMBEDDING_MODEL": "bge-m3:latest"'],
    ),
    (
        "without a proxy",
        HTTP,
        Solution(mode="http", url=URL, no_proxy="127.0.0.1"),
        ['"NO_PROXY": "localhost,127.0.0.1,::1"'],
    ),
]


@pytest.mark.parametrize(
    ("env", "solution", "lines"), [row[1:] for row in SOLUTIONS], ids=[row[0] for row in SOLUTIONS]
)
def test_a_solution_is_written_as_it_stands_in_the_file(
    env: dict[str, Any], solution: Solution, lines: list[str]
) -> None:
    found = decisive(subject(env, ended(Kind.WRONG_CONTRACT), refinement=refined(solution)))
    assert [line.rstrip(",") for line in found.repair.edit.splitlines()] == lines
    assert "the call was answered" in found.repair.prose or "with these settings was answered" in found.repair.prose
    assert "/home/u/.claude.json" in found.repair.prose
    assert "restart Claude Code" in found.repair.prose


def test_other_files_are_written_in_their_own_spelling() -> None:
    solution = Solution(mode="http", url="http://127.0.0.1:8401/other")
    found = decisive(subject(HTTP, ended(Kind.ROUTE_NOT_FOUND), refinement=refined(solution), client="codex"))
    assert found.repair.edit == 'CPERSONA_EMBEDDING_URL = "http://127.0.0.1:8401/other"'


def test_a_key_is_described_and_not_shown() -> None:
    solution = Solution(mode="api", url=OLLAMA, trim_key=True)
    found = decisive(subject(API, ended(Kind.CONFIG_CREDENTIAL), refinement=refined(solution)))
    assert "white space" in found.repair.prose
    found = decisive(subject(API, ended(Kind.AUTH)))
    assert "a key of 11 characters was sent" in found.repair.prose
    assert "sk-12345678" not in repr(found)
    found = decisive(subject({"CPERSONA_EMBEDDING_MODE": "api"}, ended(Kind.AUTH)))
    assert "no key was sent" in found.repair.prose


def test_a_token_in_mode_http_cannot_be_sent() -> None:
    found = decisive(subject(HTTP, ended(Kind.AUTH)))
    assert "sends no key in mode http" in found.repair.prose
    assert found.repair.edit == ""


def test_a_missing_model_is_to_be_fetched() -> None:
    listed = Experiment(
        changed="asked for the list of models", mode="api", url=OLLAMA, kind=Kind.OK, message="llama3, all-minilm"
    )
    found = decisive(subject(API, ended(Kind.MODEL_NOT_FOUND), refinement=refined(None, listed)))
    assert found.repair.commands == ("ollama pull bge-m3",)
    assert "the server has llama3, all-minilm" in found.repair.prose
    assert "CPERSONA_EMBEDDING_MODEL in /home/u/.claude.json:14" in found.repair.prose
    elsewhere = {**API, "CPERSONA_EMBEDDING_API_URL": "http://127.0.0.1:8000/v1/embeddings"}
    assert decisive(subject(elsewhere, ended(Kind.MODEL_NOT_FOUND))).repair.commands == ()


def test_the_reference_server_ends_with_its_stdin() -> None:
    found = decisive(subject(HTTP, ended(Kind.REFUSED)))
    assert found.repair.commands == ("sleep infinity | cembedding",)
    assert decisive(subject(API, ended(Kind.REFUSED))).repair.commands == ()


def test_the_servers_words_are_a_quotation() -> None:
    outcome = ended(Kind.REJECTED, status=400, server_message="no such thing", via_proxy="HTTP_PROXY=http://p:1")
    found = decisive(subject(HTTP, outcome))
    assert f"POST {URL} in mode http is answered with 400" in found.measured
    assert "“no such thing”" in found.measured
    assert "by way of the proxy HTTP_PROXY=http://p:1" in found.measured


def test_a_corrected_url_is_offered() -> None:
    outcome = ended(Kind.CONFIG_URL, attempted=False, evidence=(("objection", "no scheme"), ("suggestion", URL)))
    found = decisive(subject({**HTTP, "CPERSONA_EMBEDDING_URL": "127.0.0.1:8401/embed"}, outcome))
    assert found.repair.edit == f'"CPERSONA_EMBEDDING_URL": "{URL}"'
    assert "no scheme" in found.measured


def test_what_the_server_takes_for_healthy_is_said_to_be_silent() -> None:
    assert "healthy" in decisive(subject(HTTP, ended(Kind.ZERO_VECTOR))).costs
    assert "healthy" not in decisive(subject(HTTP, ended(Kind.REFUSED))).costs


# ---- remarks


@pytest.mark.parametrize("name", sorted(REMARKS))
@pytest.mark.parametrize("fatal", [True, False])
def test_every_remark_has_advice(name: str, *, fatal: bool) -> None:
    remark = Remark(name=name, measured="seen", fatal=fatal)
    found = decisive(subject(API, ended(Kind.OK), remarks=[remark]))
    assert found.trap == f"endpoint.{name}"
    assert (found.severity is Severity.FAULT) is fatal
    assert found.measured == "seen"
    assert found.expected
    assert found.costs
    assert found.repair.prose
    assert found.place is not None


def test_the_value_to_write_is_there_to_copy() -> None:
    remark = Remark(name="loopback-name", measured="seen", evidence=(("write", URL),))
    assert decisive(subject(HTTP, ended(Kind.OK), remarks=[remark])).repair.edit == f'"CPERSONA_EMBEDDING_URL": "{URL}"'
    remark = Remark(name="key-needed", measured="seen")
    found = decisive(subject({"CPERSONA_EMBEDDING_MODE": "api"}, ended(Kind.OK), remarks=[remark]))
    assert found.repair.edit == '"CPERSONA_EMBEDDING_API_KEY": "any-text"'


@pytest.mark.parametrize(("longest", "severity"), [(900, Severity.HINT), (9000, Severity.WARNING)])
def test_a_window_against_what_is_stored(longest: int, severity: Severity) -> None:
    made = subject(
        HTTP,
        ended(Kind.OK),
        remarks=[Remark(name="truncating", measured="cut", kind=Kind.TRUNCATING)],
        window=Window(words=300, characters=1800, cut=True),
        reading=reading(longest_content=longest),
    )
    found = decisive(made)
    assert found.severity is severity
    assert ("9000 characters" in found.measured) is (longest == 9000)


@pytest.mark.parametrize(
    ("widths", "found"), [({768: 40}, True), ({768: 40, 384: 1}, False), ({}, False), ({384: 9}, False)]
)
def test_the_width_of_what_is_stored(widths: dict[int, int], *, found: bool) -> None:
    outcome = ended(Kind.OK, dim=384)
    made = list(findings(subject(HTTP, outcome, reading=reading(widths=widths))))
    assert [finding.trap for finding in made] == (["endpoint.dimension-mismatch"] if found else [])


@pytest.mark.parametrize(
    ("failed", "name"),
    [
        ((("7", Kind.NAN_FOR_INPUT), ("9", Kind.BAD_VALUES)), "endpoint.nan-for-some-inputs"),
        ((("7", Kind.INPUT_TOO_LARGE),), "endpoint.some-texts-fail"),
    ],
)
def test_stored_texts_that_fail(failed: Sequence[tuple[str, Kind]], name: str) -> None:
    found = decisive(subject(HTTP, ended(Kind.OK), sampled=Sampled(tried=20, failed=tuple(failed))))
    assert (found.trap, found.severity) == (name, Severity.WARNING)
    assert "the endpoint is up" in found.measured
    assert f"memories {', '.join(identifier for identifier, _ in failed)}" in found.measured


def test_many_failing_texts_are_counted() -> None:
    failed = tuple((str(number), Kind.REJECTED) for number in range(50))
    found = decisive(subject(HTTP, ended(Kind.OK), sampled=Sampled(tried=60, failed=failed)))
    assert "19 and 30 more" in found.measured


@pytest.mark.parametrize(
    ("agreement", "differing", "severity"),
    [
        (0.21, ("1", "2"), Severity.FAULT),
        (0.49, ("1", "2"), Severity.FAULT),
        (0.50, ("1", "2"), Severity.WARNING),
        (0.85, ("1", "2", "3"), Severity.WARNING),
        (1.0, ("1",), Severity.WARNING),
    ],
)
def test_vectors_of_another_model_of_the_same_width(
    agreement: float, differing: tuple[str, ...], severity: Severity
) -> None:
    sampled = Sampled(tried=3, compared=3, agreement=agreement, differing=differing)
    found = decisive(subject(API, ended(Kind.OK, dim=3), sampled=sampled, reading=reading(widths={3: 3})))
    assert (found.trap, found.severity) == ("endpoint.model-mismatch", severity)
    assert f"{len(differing)} of 3 stored texts" in found.measured
    assert "CPERSONA_EMBEDDING_MODEL in /home/u/.claude.json:14" in found.repair.prose


def test_a_key_that_is_set_is_not_written_over() -> None:
    solution = Solution(mode="api", url=OLLAMA, key=True)
    env = {**HTTP, "CPERSONA_EMBEDDING_API_KEY": "sk-12345678"}
    found = decisive(subject(env, ended(Kind.WRONG_CONTRACT), refinement=refined(solution)))
    assert "API_KEY" not in found.repair.edit


def test_no_failing_texts_are_no_finding() -> None:
    assert list(findings(subject(HTTP, ended(Kind.OK), sampled=Sampled(tried=9)))) == []


# ---- no verdict


def test_a_measurement_that_could_not_be_made() -> None:
    time = Time()
    script = Script(time, *[(0.1, ended(Kind.OK))] * 4, (0.1, ended(Kind.THROTTLED)))
    endpoint = Endpoint(mode=Mode.HTTP, url=URL)
    measured = asyncio.run(measure(endpoint, Plan(), script, clock=time.clock))
    sentences = list(unsettled(Subject(label="x", measured=measured)))
    assert sentences[0] == "x: long could not be measured: the server asks to slow down"


@pytest.mark.parametrize("kind", [kind for kind in Kind if MEANINGS[kind].stage is Stage.NETWORK])
def test_a_server_in_a_container_is_not_judged_from_outside(kind: Kind) -> None:
    target = facts({}, launch=docker(HTTP)).targets[0]
    measured = Measured(endpoint=configured(target.settings, target.environment), outcome=ended(kind))
    made = Subject(label="in a box", measured=measured, target=target)
    assert list(findings(made)) == []
    (sentence,) = unsettled(made)
    assert "runs in a container, on another network" in sentence


def test_an_endpoint_of_the_command_line_has_no_file() -> None:
    measured = Measured(
        endpoint=Endpoint(mode=Mode.HTTP, url=URL),
        outcome=ended(Kind.ROUTE_NOT_FOUND),
        refinement=refined(Solution(mode="api", url=OLLAMA, key=True)),
    )
    found = decisive(Subject(label="--url", measured=measured))
    assert found.place is None
    assert found.repair.edit.splitlines() == [
        "CPERSONA_EMBEDDING_MODE=api",
        f"CPERSONA_EMBEDDING_API_URL={OLLAMA}",
        "CPERSONA_EMBEDDING_API_KEY=any-text",
    ]
    bare = dataclasses.replace(measured, outcome=ended(Kind.TLS), refinement=Refinement())
    found = decisive(Subject(label="--url", measured=bare))
    assert found.repair.prose.endswith("(CPERSONA_EMBEDDING_URL)")


def test_a_secret_in_the_url_is_not_shown() -> None:
    env = {**HTTP, "CPERSONA_EMBEDDING_URL": "http://aya:hunter22@127.0.0.1:8401/v1?token=s3cr3tvalue"}
    solution = Solution(mode="http", url="http://aya:hunter22@127.0.0.1:8401/embed?token=s3cr3tvalue")
    outcome = ended(Kind.ROUTE_NOT_FOUND, status=404)
    found = decisive(subject(env, outcome, refinement=refined(solution)))
    for secret in ("hunter22", "s3cr3tvalue"):
        assert secret not in repr(found)
    assert "keep the user name" in found.repair.prose


def test_a_view_that_differs_is_a_fault() -> None:
    time = Time()
    odd = replace(ended(Kind.OK), server_view=ServerView(attempted=True, ok=False, error="because"))
    endpoint = Endpoint(mode=Mode.HTTP, url=URL)
    measured = asyncio.run(measure(endpoint, Plan(), Script(time, (0.1, odd)), clock=time.clock))
    found = decisive(Subject(label="x", measured=measured))
    assert (found.trap, found.severity) == ("endpoint.server-differs", Severity.FAULT)
    assert "would record: because" in found.measured
