"""What the traps make of a start."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.starts import registered
from support.traps import MACHINE, all_traps, everything

from cpersona_cli.install.model import Discovery
from cpersona_cli.record import replace
from cpersona_cli.start.model import TOOLS, Failure, Limit, Noise, Recalled, Run, Start, Stored
from cpersona_cli.traps.model import Facts, Needs
from cpersona_cli.traps.run import Check, check
from cpersona_cli.traps.start import TRAPS

RUN = Run(ready=1.0, tools=TOOLS, ended=0.2, code=0)
GOOD = Start(
    registration=registered(MACHINE, "claude-code", "cpersona"),
    limit=Limit(seconds=30, origin="its default"),
    command="/usr/bin/cpersona",
    mode="http",
    first=RUN,
    second=RUN,
    stored=Stored(embedded=True),
    recalled=Recalled(found=True, listed=True),
)


def start(client: str = "", **changes: object) -> Start:
    entry = registered(MACHINE, client or "claude-code", "cpersona")
    return replace(GOOD, **{"registration": entry, **changes})


def dead(failure: Failure, **more: object) -> dict[str, object]:
    run = Run(failure=failure, **more)  # type: ignore[arg-type]
    return {"first": run, "second": None, "stored": None, "recalled": None}


def ended(*starts: Start) -> dict[str, Check]:
    facts = Facts(machine=MACHINE, discovery=Discovery((), ()), starts=starts)
    return {trap.id.removeprefix("start."): check(trap, facts) for trap in TRAPS}


def test_a_good_start_passes_every_check() -> None:
    assert {name: (str(made.state), made.reason) for name, made in ended(GOOD).items()} == dict.fromkeys(
        [trap.id.removeprefix("start.") for trap in TRAPS], ("pass", "")
    )
    assert set(TRAPS) <= set(all_traps().values())
    assert {trap.needs for trap in TRAPS} == {Needs.START}


def test_nothing_started_is_no_pass() -> None:
    assert {(str(made.state), made.reason) for made in ended().values()} == {
        ("skipped", "no server was started (--start does)")
    }


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (start(refusal="it runs in WSL", first=None, second=None), "not started, because it runs in WSL"),
        (start(late="no answer to tools/call within 2 seconds"), "no answer to tools/call"),
        (start(astray="it opened another", stored=None, second=None, recalled=None), "it opened another"),
    ],
)
def test_what_could_not_be_told(one: Start, reason: str) -> None:
    made = ended(one)
    assert str(made["undecided"].state) == "unknown"
    assert made["undecided"].reason.startswith(f"Claude Code (user), /client/file.json:7: {reason}")
    assert {str(each.state) for name, each in made.items() if name != "undecided"} <= {"skipped", "pass"}
    if one.refusal:
        assert made["stdout-noise"].reason == "the server was not started"


NOISY = replace(RUN, lines=3, noise=(Noise(text="Welcome", before=True),))
QUOTED = (
    "“Welcome” on stdout before the first message, and 2 more lines",
    "command: /usr/bin/cpersona",
    "stdout: Welcome",
)

CASES = [
    (
        "no-handshake",
        dead(Failure.ABSENT, detail="/x does not exist"),
        "fault",
        ("cannot be started: /x does not", "write a command"),
    ),
    (
        "no-handshake",
        dead(Failure.DIED, code=3, said=("a", "no model")),
        "fault",
        ("exit code 3", "“no model”", "stderr: a"),
    ),
    ("no-handshake", dead(Failure.DIED), "fault", ("it ended before the handshake",)),
    ("no-handshake", dead(Failure.SILENT, waited=60.0), "fault", ("no answer within 60 seconds",)),
    ("no-handshake", dead(Failure.SILENT, waited=60.0, lines=1, noise=NOISY.noise), "fault", ("nothing but messages",)),
    ("no-handshake", dead(Failure.REFUSED, detail="an error: out of order"), "fault", ("out of order",)),
    ("no-handshake", {"second": Run(failure=Failure.DIED), "recalled": None}, "fault", ("when started a second time",)),
    ("stdout-noise", {"first": NOISY}, "fault", QUOTED),
    (
        "stdout-noise",
        {"second": replace(RUN, lines=1, noise=(Noise(text="", before=False),))},
        "fault",
        ("an empty line on stdout between",),
    ),
    (
        "slow",
        {"first": replace(RUN, ready=31.2)},
        "warning",
        (
            "after 31.2 s; Claude Code waits 30 s (its default)",
            "the second time after 1.0 s",
            "MCP_TIMEOUT=70000 claude",
        ),
    ),
    ("slow", {"first": replace(RUN, ready=31.2), "second": replace(RUN, ready=33.0)}, "fault", ("after 33.0 s",)),
    (
        "slow",
        {"client": "codex", "second": replace(RUN, ready=33.0)},
        "fault",
        ("startup_timeout_sec = 70", '[mcp_servers."memory"]'),
    ),
    (
        "slow",
        {"client": "gemini-cli", "first": replace(RUN, ready=99.0), "second": None, "recalled": None},
        "fault",
        ('"timeout": 200000',),
    ),
    (
        "slow",
        {"client": "cursor", "first": replace(RUN, ready=99.0), "second": None, "recalled": None},
        "fault",
        ("not one that is fetched",),
    ),
    (
        "tools-missing",
        {"first": replace(RUN, tools=("echo",))},
        "fault",
        ("1 tool, without store, recall, check_health",),
    ),
    ("tools-missing", {"first": replace(RUN, tools=None)}, "fault", ("does not say which",)),
    (
        "not-stored",
        {"stored": Stored(problem="store failed: no"), "recalled": None, "second": None},
        "fault",
        ("store failed: no",),
    ),
    ("not-embedded", {"stored": Stored(embedded=False)}, "fault", ("embedded: false",)),
    ("not-embedded", {"stored": Stored(), "mode": "api"}, "fault", ("nothing about a vector",)),
    ("not-recalled", {"recalled": Recalled(problem="recall failed")}, "fault", ("recall failed",)),
    ("not-recalled", {"recalled": Recalled()}, "fault", ("does not have it",)),
    ("not-recalled", {"recalled": Recalled(listed=True)}, "fault", ("does not find it by its own words",)),
    ("not-recalled", {"recalled": Recalled(listed=True), "mode": "none"}, "warning", ("without vectors",)),
    (
        "advisory",
        {"recalled": Recalled(found=True, advisory={"severity": "fault", "reason": "down"})},
        "fault",
        ("“down”",),
    ),
    (
        "advisory",
        {"recalled": Recalled(found=True, advisory={"severity": "hint", "reason": "so"})},
        "warning",
        ("“so”",),
    ),
    (
        "not-ended",
        {"first": replace(RUN, ended=None, code=-15)},
        "warning",
        ("went on when its stdin was closed, and was killed",),
    ),
    ("not-ended", {"second": replace(RUN, left=(41, 42))}, "warning", ("left process 41, process 42 behind",)),
]


@pytest.mark.parametrize(("name", "changes", "severity", "says"), CASES)
def test_what_is_found(name: str, changes: dict[str, object], severity: str, says: tuple[str, ...]) -> None:
    one = start(**changes)  # type: ignore[arg-type]
    if "client" in changes:
        one = replace(one, limit=Limit(seconds=30, origin="its default"))
    made = ended(one)
    found = {key for key, each in made.items() if each.findings}
    assert found - {"stdout-noise"} == {name} - {"stdout-noise"}
    (finding,) = made[name].findings
    told = everything(finding)
    for words in says:
        assert words in told, told
    assert str(finding.severity) == severity
    assert finding.place is not None
    assert finding.place.file == Path("/client/file.json")
    assert not any(each.state == "unknown" for each in made.values())


@pytest.mark.parametrize(
    ("changes", "name", "reason"),
    [
        ({"mode": "none", "stored": Stored(embedded=False)}, "not-embedded", "none was expected (mode none)"),
        ({"mode": "none", "recalled": Recalled(found=True, advisory={"severity": "hint"})}, "advisory", "(mode none)"),
        (dead(Failure.DIED), "tools-missing", "the server did not answer"),
        (dead(Failure.DIED), "stdout-noise", "the server did not answer"),
        ({"stored": None, "recalled": None, "second": None}, "not-stored", "nothing was stored"),
        ({"recalled": None}, "not-recalled", "no second process answered"),
    ],
)
def test_what_there_is_nothing_to_look_at(changes: dict[str, object], name: str, reason: str) -> None:
    made = ended(start(**changes))[name]  # type: ignore[arg-type]
    assert str(made.state) == "skipped"
    assert reason in made.reason


def test_one_of_two_that_was_not_started_is_no_pass() -> None:
    refused = start(refusal="it runs in WSL", first=None, second=None)
    made = ended(GOOD, refused)
    assert str(made["undecided"].state) == "unknown"
    assert (str(made["stdout-noise"].state), made["stdout-noise"].subjects) == ("pass", 1)
