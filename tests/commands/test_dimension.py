"""``cpersona-cli dimension`` through the installed script: every case from the store to the exit code."""

from __future__ import annotations

import io
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from pytest_console_scripts import ScriptRunner
from support import runs
from support.endpoints_small import Answer, Request, SmallEndpoint, embed, serving
from support.fit_stores import Written, store_of
from support.stores import snapshot

from cpersona_cli.commands import fitting
from cpersona_cli.commands.chosen import Chosen
from cpersona_cli.commands.fitting import examine
from cpersona_cli.fit.model import State
from cpersona_cli.install.machine import Machine
from cpersona_cli.report.output import FORMATS
from cpersona_cli.store.model import Kind
from cpersona_cli.traps.gather import Selection

#: Without a process of its own: the process is not what is tested.
pytestmark = pytest.mark.script_launch_mode("inprocess")

AWAY = "http://embeddings.invalid/embed"
SECRET = "sk-live-0123456789abcdef"
WIDTH = 64


class Run(runs.Run):
    """What one run of ``dimension`` said."""

    command = "dimension"


Dimension = Callable[..., Run]
Register = Callable[..., Path]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return runs.empty_home(tmp_path, monkeypatch, columns=120)


@pytest.fixture
def dimension(home: Path, script_runner: ScriptRunner) -> Dimension:
    def run(*words: str, env: Mapping[str, str] | None = None, typed: str = "") -> Run:
        before = snapshot(home)
        result = script_runner.run(
            ["cpersona-cli", "dimension", *words],
            cwd=home,
            env={**os.environ, **(env or {})},
            stdin=io.StringIO(typed),
        )
        assert snapshot(home) == before, "something was written"
        return Run(result.returncode, result.stdout, result.stderr)

    return run


@pytest.fixture
def register(home: Path) -> Register:
    def write(url: str, database: Path, file: str = ".claude.json", **env: str) -> Path:
        path = home / file
        path.parent.mkdir(parents=True, exist_ok=True)
        settings = {
            "CPERSONA_EMBEDDING_MODE": "http",
            "CPERSONA_EMBEDDING_URL": url,
            "CPERSONA_DB_PATH": str(database),
            **env,
        }
        entry = {"command": sys.executable, "args": ["-m", "cpersona"], "env": settings}
        path.write_text(json.dumps({"mcpServers": {"cpersona": entry}}, indent=2))
        return path

    return write


def rows(
    count: int,
    make: Callable[[str], Sequence[float] | bytes | str | None],
    *,
    first: int = 0,
    day: int = 1,
    kind: Kind = Kind.MEMORY,
    label: str = "",
    agent: str = "atlas",
) -> list[Written]:
    """Rows of one writer, one an hour from ``day`` of March on."""
    texts = [f"note {number} about {_THINGS[number % len(_THINGS)]}" for number in range(first, first + count)]
    return [
        Written(
            text=text, vector=make(text), label=label, agent=agent, kind=kind,
            created=f"2026-03-{day + number // 24:02d} {number % 24:02d}:20:30",
        )
        for number, text in enumerate(texts)
    ]  # fmt: skip


_THINGS = ("ferries", "lamps", "invoices", "the garden", "backups", "a cake", "trains", "winter tyres", "a choir")


def here(text: str) -> Sequence[float]:
    """A vector as the small endpoint makes it."""
    return embed(text, WIDTH)


def other(text: str) -> Sequence[float]:
    """Of the same width, and another model's."""
    return embed(f"of another model {text[::-1]} {hash_free(text)}", WIDTH)


def hash_free(text: str) -> str:
    return " ".join(f"w{(len(text) * 7 + ord(char)) % 61}" for char in text)


def wide(width: int) -> Callable[[str], Sequence[float]]:
    return lambda text: embed(text, width)


@pytest.fixture
def server() -> Iterator[SmallEndpoint]:
    with serving(width=WIDTH) as running:
        yield running


def sent(server: SmallEndpoint) -> set[str]:
    return {text for request in server.calls for text in request.texts}


# ---- the cases


def test_what_fits(dimension: Dimension, register: Register, home: Path, server: SmallEndpoint) -> None:
    database = store_of(home, rows(40, here) + rows(5, here, kind=Kind.EPISODE, agent="borealis"))
    register(server.url(), database)
    run = dimension("--json")
    found = run.json
    assert (run.code, run.err) == (0, "")
    assert (found["status"], found["stored_dim"], found["expected_dim"]) == ("ok", WIDTH, WIDTH)
    assert found["basis"] == "vectors"
    assert (found["findings"], found["unsettled"], found["next_command"]) == ([], [], None)
    assert found["compared"]["same"] == found["compared"]["rows"] > 20
    assert 20 < found["texts_sent"] <= found["compared"]["rows"], "equal texts once"
    assert {entry["agent"]: (entry["rows"], entry["lost"]) for entry in found["agents"]} == {
        "atlas": (40, 0),
        "borealis": (5, 0),
    }
    assert found["database"] == str(database)
    assert found["label"] == "Claude Code (user)"
    assert not [text for text in sent(server) if text in run.out], "a stored text was shown"


def test_two_widths_in_one_table(dimension: Dimension, register: Register, home: Path, server: SmallEndpoint) -> None:
    """M01"""
    table = rows(40, here) + rows(10, wide(32), first=40, day=4, agent="borealis") + rows(3, lambda _: None, first=50)
    database = store_of(home, table + rows(5, here, kind=Kind.EPISODE))
    register(server.url(), database)
    run = dimension("--json")
    found = run.json
    assert (run.code, found["status"], found["stored_dim"], found["expected_dim"]) == (1, "mixed", WIDTH, WIDTH)
    assert found["widths"] == {"64": 45, "32": 10}
    assert [finding["trap"] for finding in found["findings"]] == ["vectors.mixed-widths", "vectors.backlog"]
    costs = found["findings"][0]["costs"]
    assert "check_health(fix=true) would set 10 vectors to NULL" in costs
    assert "13 of 58 memories and episodes" in costs
    nulls = [entry for entry in found["groups"] if entry["form"] == "null"]
    assert [(entry["rows"], entry["width"]) for entry in nulls] == [(3, None)]
    text = dimension().out
    for line in ("memories     64  -        40", "memories     32  -        10", "memories   none  -         3"):
        assert line in text
    assert "reembed" in text


def test_a_fallback_model_wrote_the_rows(
    dimension: Dimension, register: Register, home: Path, server: SmallEndpoint
) -> None:
    """M03"""
    late = rows(30, wide(32), first=60, day=4, label="fallback-minilm")
    register(server.url(), store_of(home, rows(60, here, day=1) + late))
    run = dimension("--json")
    assert (run.code, run.json["status"]) == (1, "mixed")
    (change,) = run.json["breaks"]
    assert (change["before"]["id"], change["after"]["id"], change["exact"]) == (60, 61, True)
    assert (change["before"]["created"], change["after"]["created"]) == ("2026-03-03 11:20:30", "2026-03-04 00:20:30")
    finding = run.json["findings"][0]
    assert (
        "up to 2026-03-03 11:20:30 (id 60) have 64, from 2026-03-04 00:20:30 (id 61) on have 32"
        in (finding["measured"])
    )
    assert "look at what the endpoint was at that time" in finding["repair"]["prose"]
    assert "when they were written" in dimension().out


def test_stated_numbers_are_not_believed(dimension: Dimension, register: Register, home: Path) -> None:
    """M04"""

    def lie(request: Request, _number: int) -> Answer:
        return Answer(200, {"embeddings": [here(text) for text in request.texts], "dimensions": 1536})

    with serving(before=lie) as server:
        register(server.url(), store_of(home, rows(20, here)), EMBEDDING_DIMENSIONS="1536")
        run = dimension("--json")
    assert (run.code, run.json["status"], run.json["expected_dim"]) == (0, "ok", WIDTH)
    assert "endpoint.dimensions-misstated" in run.traps
    measured = next(f for f in run.json["findings"] if f["trap"] == "endpoint.dimensions-misstated")["measured"]
    assert measured.startswith("64 dimensions were measured; EMBEDDING_DIMENSIONS in ")
    assert measured.endswith("says 1536, its own reply says 1536")


def test_the_same_width_and_another_model(
    dimension: Dimension, register: Register, home: Path, server: SmallEndpoint
) -> None:
    """M05, M08"""
    register(server.url(), store_of(home, rows(50, other)))
    run = dimension("--json")
    assert (run.code, run.json["status"], run.traps) == (1, "swapped", ["endpoint.model-mismatch"])
    assert run.json["compared"]["median"] < 0.5
    costs = run.json["findings"][0]["costs"]
    assert "the server calls this healthy" in costs
    assert "50 of 50" in costs


def test_the_same_width_and_nothing_to_tell_the_model(
    dimension: Dimension, register: Register, home: Path, server: SmallEndpoint
) -> None:
    """M05: no labels, no comparison."""
    register(server.url(), store_of(home, rows(50, here)))
    run = dimension("--json", "--sample", "0")
    assert (run.code, run.json["status"], run.json["basis"]) == (3, "unknown", "width")
    assert run.json["next_command"] == "cpersona-cli dimension --sample 24"
    assert run.json["compared"]["not_made_because"] == "not asked for (--sample 0)"
    assert not any(text.startswith("note ") for text in sent(server))
    (why,) = run.json["unsettled"]
    assert "cannot be told" in why


def test_the_model_by_its_label(dimension: Dimension, home: Path) -> None:
    """M05: labels, no comparison."""
    database = store_of(home, rows(50, here, label="jina-embeddings-v5-text-nano"))
    with serving(width=WIDTH) as server:
        words = ("--url", server.url("/v1/embeddings"), "--model", "nomic-embed-text", "--db", str(database))
        run = dimension(*words, "--sample", "0", "--json")
    assert (run.code, run.json["status"], run.json["basis"]) == (1, "swapped", "label")
    assert "labelled with another model" in run.json["findings"][0]["measured"]


def test_zero_vectors(dimension: Dimension, register: Register, home: Path, server: SmallEndpoint) -> None:
    """M07"""
    register(server.url(), store_of(home, rows(45, here) + rows(5, lambda _: [0.0] * WIDTH, first=45)))
    run = dimension("--json")
    assert run.code == 1
    finding = next(finding for finding in run.json["findings"] if finding["trap"] == "vectors.zero")
    assert finding["measured"] == "5 memories have a vector of nothing but zeros: id 46, 47, 48, 49, 50"
    assert run.json["damaged"] == 5
    last = dimension().last
    assert last.startswith(f"FAIL   the model fits, stored {WIDTH}, expected {WIDTH}; 1 fault"), last


def mild(text: str) -> Sequence[float]:
    """What another build might give: cosine 0.85 with ``here``."""
    straight, strange = here(text), other(text)
    along = sum(a * b for a, b in zip(straight, strange, strict=True))
    across = [b - along * a for a, b in zip(straight, strange, strict=True)]
    length = sum(value * value for value in across) ** 0.5
    return [0.85 * a + (1 - 0.85**2) ** 0.5 * b / length for a, b in zip(straight, across, strict=True)]


def test_the_mild_variant_is_a_warning(
    dimension: Dimension, register: Register, home: Path, server: SmallEndpoint
) -> None:
    """M08"""
    register(server.url(), store_of(home, rows(50, mild)))
    run = dimension("--json")
    assert (run.code, run.json["status"], run.traps) == (0, "drifted", ["vectors.drifted"])
    assert run.json["compared"]["median"] == pytest.approx(0.85, abs=0.001)
    assert run.json["compared"]["lowest"] == pytest.approx(0.85, abs=0.001)


def test_half_a_table_of_another_model(
    dimension: Dimension, register: Register, home: Path, server: SmallEndpoint
) -> None:
    register(server.url(), store_of(home, rows(500, other) + rows(500, here, first=500, day=1)))
    run = dimension("--json")
    assert (run.code, run.json["status"], run.traps) == (1, "mixed", ["vectors.foreign-rows"])
    (change,) = run.json["breaks"]
    assert (change["before"]["id"], change["after"]["id"]) == (500, 501)
    assert run.json["foreign"] == {"memories": 500}
    assert "500 memories have the right width and are another model’s" in run.json["findings"][0]["measured"]


def test_a_proxy_that_adds_dimensions(dimension: Dimension, register: Register, home: Path) -> None:
    """M09"""
    message = 'Model "bge-m3" does not support matryoshka representation, changing output dimensions will lead to poor'

    def refuse(request: Request, _number: int) -> Answer:
        assert "dimensions" not in request.document
        return Answer(
            400, {"object": "error", "message": f"{message} results.", "type": "BadRequestError", "code": 400}
        )

    with serving(before=refuse) as server:
        register(server.url(), store_of(home, rows(20, here)))
        run = dimension("--json")
    assert (run.code, run.json["status"], run.json["findings"]) == (3, "unknown", [])
    (why,) = run.json["unsettled"]
    assert "matryoshka" in why
    assert why.endswith("CPersona sends no `dimensions`: something between adds it")


def test_the_endpoint_is_down(dimension: Dimension, register: Register, home: Path) -> None:
    """M10"""
    with serving() as gone:
        url = gone.url()
    register(url, store_of(home, rows(40, here)))
    run = dimension("--json")
    assert (run.code, run.json["status"], run.json["findings"]) == (3, "unknown", [])
    assert (run.json["stored_dim"], run.json["expected_dim"]) == (WIDTH, None)
    assert run.json["live"]["kind"] == "refused"
    assert run.json["groups"][0]["rows"] == 40
    assert run.json["next_command"] == "cpersona-cli probe"
    text = dimension().out
    assert "mismatch" not in text
    assert text.endswith("Next: cpersona-cli probe\n")


def test_a_faulty_store_is_a_fault_also_without_an_endpoint(
    dimension: Dimension, register: Register, home: Path
) -> None:
    register("http://127.0.0.1:9/embed", store_of(home, rows(20, here) + rows(9, wide(32), first=20)))
    run = dimension("--json", "--offline")
    assert (run.code, run.json["status"], run.traps) == (1, "mixed", ["vectors.mixed-widths"])


# ---- the way in


def test_nothing_is_called_offline(dimension: Dimension, register: Register, home: Path, server: SmallEndpoint) -> None:
    register(server.url(), store_of(home, rows(20, here)))
    run = dimension("--json", "--offline")
    assert (run.code, run.json["status"], run.json["live"]) == (3, "unknown", None)
    assert run.json["next_command"] == "cpersona-cli dimension"
    assert server.requests == []


def test_a_database_alone_is_looked_up_among_the_registrations(
    dimension: Dimension, register: Register, home: Path, server: SmallEndpoint
) -> None:
    database = store_of(home, rows(20, here))
    register(server.url(), database)
    run = dimension("--db", str(database), "--json")
    assert (run.code, run.json["status"], run.json["label"]) == (0, "ok", "Claude Code (user)")


def test_a_database_that_nobody_opens(dimension: Dimension, home: Path) -> None:
    database = store_of(home, rows(20, here))
    run = dimension("--db", str(database), "--json")
    assert (run.code, run.json["status"]) == (3, "unknown")
    assert "no registration opens it" in run.json["unsettled"][0]
    assert run.json["next_command"] == f"cpersona-cli dimension --db {database} --url URL"


def test_another_endpoint_for_every_database(
    dimension: Dimension, register: Register, home: Path, server: SmallEndpoint
) -> None:
    """Would it fit?"""
    register("http://127.0.0.1:9/embed", store_of(home, rows(20, wide(32))))
    run = dimension("--url", server.url(), "--json")
    assert (run.code, run.json["status"], run.json["label"]) == (1, "changed", "--url")


def test_two_endpoints_of_one_database_and_another_database(
    dimension: Dimension, register: Register, home: Path, server: SmallEndpoint
) -> None:
    (home / "two").mkdir()
    shared = store_of(home, rows(30, here))
    alone = store_of(home / "two", rows(30, wide(32)))
    with serving(width=32) as narrow:
        register(server.url(), shared)
        register(narrow.url(), shared, ".cursor/mcp.json")
        register(narrow.url(), alone, ".gemini/settings.json")
        run = dimension("--json")
    assert run.code == 1
    told = {(entry["database"], entry["label"], entry["status"]) for entry in run.json["targets"]}
    assert told == {
        (str(shared), "Claude Code (user)", "ok"),
        (str(shared), "Cursor (user)", "changed"),
        (str(alone), "Gemini CLI (user)", "ok"),
    }
    assert run.traps == ["endpoint.dimension-mismatch"]


def test_this_environment(dimension: Dimension, home: Path, server: SmallEndpoint) -> None:
    env = {
        "CPERSONA_EMBEDDING_MODE": "http",
        "CPERSONA_EMBEDDING_URL": server.url(),
        "CPERSONA_DB_PATH": str(store_of(home, rows(20, here))),
    }
    run = dimension("--env", "--json", env=env)
    assert (run.code, run.json["status"]) == (0, "ok")


def test_no_database(dimension: Dimension, home: Path) -> None:
    run = dimension("--db", str(home / "absent.db"), "--json")
    assert (run.code, run.json["targets"]) == (3, [])
    assert run.json["unsettled"] == [f"{home}/absent.db: there is no such database"]
    assert run.json["next_command"] == "cpersona-cli doctor"
    (home / "odd.db").write_bytes(b"no database at all")
    run = dimension("--db", "odd.db", "--json")
    assert run.code == 3
    (why,) = run.json["unsettled"]
    assert why.startswith(f"{home}/odd.db cannot be read: ")


def test_nothing_registered(dimension: Dimension) -> None:
    run = dimension("--json")
    assert (run.code, run.json["verdict"], run.json["targets"]) == (3, "unknown", [])
    assert run.json["unsettled"] == [
        "no registration of CPersona was found; name a database with --db and an endpoint with --url"
    ]


def test_a_server_elsewhere(dimension: Dimension, home: Path) -> None:
    entry = {"type": "http", "url": "http://127.0.0.1:9/mcp"}
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"cpersona": entry}}))
    run = dimension("--registration", ".claude.json:cpersona", "--json")
    assert run.code == 3
    assert run.json["unsettled"] == [
        "1 registration found, whose server runs elsewhere; run this command there, on its database"
    ]


def test_nothing_stored_yet(dimension: Dimension, register: Register, home: Path, server: SmallEndpoint) -> None:
    register(server.url(), store_of(home, []))
    run = dimension("--json")
    assert (run.code, run.json["status"], run.traps) == (0, "empty", ["vectors.none"])
    assert run.json["counts"]["hint"] == 1


def test_no_backend(dimension: Dimension, register: Register, home: Path) -> None:
    register("", store_of(home, rows(20, here)), CPERSONA_EMBEDDING_MODE="none")
    run = dimension("--json")
    assert (run.code, run.json["status"], run.json["live"]["kind"]) == (3, "unknown", "disabled")


USAGE = [
    (["--mode", "http"], "--mode goes with --url"),
    (["--api-key-file", "f"], "--api-key-file goes with --url"),
    (["--url", "http://h/embed", "--mode", "none"], "--mode takes http or api, not 'none'"),
    (["--url", "http://h/embed", "--offline"], "--offline calls nothing"),
    (["--sample", "-1"], "--sample takes a number from 0 to 1000, not -1"),
    (["--sample", "1001"], "--sample takes a number from 0 to 1000, not 1001"),
    (["--timeout", "0"], "--timeout takes a number of seconds above 0"),
    (["--timeout", "nan"], "--timeout takes a number of seconds above 0"),
    (["--registration", "absent.json"], "absent.json"),
    (["--client", "nobody"], "nobody"),
    (["--db", "a", "--db", "b"], "--db is given 2 times"),
]


@pytest.mark.parametrize(("words", "said"), USAGE, ids=[" ".join(row[0]) for row in USAGE])
def test_usage_errors(dimension: Dimension, words: list[str], said: str) -> None:
    run = dimension(*words, "--json")
    assert run.code == 2
    assert said in run.json["error"]


# ---- stored texts and secrets


def test_stored_texts_do_not_leave_this_computer_unasked(dimension: Dimension, home: Path) -> None:
    database = store_of(home, rows(20, here))
    words = ("--url", AWAY, "--db", str(database), "--json", "--timeout", "20")
    run = dimension(*words, typed="yes\n")
    assert (run.code, run.json["status"], run.json["texts_sent"]) == (3, "unknown", 0)
    assert "another computer, and that was not allowed (--yes)" in run.json["compared"]["not_made_because"]
    assert run.err == "", "nobody is asked where nobody sits"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("typed", ["yes\n", "no\n", ""])
def test_consent_is_typed_at_a_terminal(home: Path, monkeypatch: pytest.MonkeyPatch, typed: str) -> None:
    """The endpoint of this machine stands in for another computer's."""
    database = store_of(home, rows(20, here))
    shown = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(fitting, "is_loopback", lambda _url: False)
    with serving(width=WIDTH) as server:
        request = fitting.Request(selection=Selection(db=database), chosen=Chosen(url=server.url(), mode="http"))
        report = examine(request)
        went = [text for text in sent(server) if text.startswith("note ")]
    assert bool(went) == (typed == "yes\n")
    assert report.payload["status"] == ("ok" if went else "unknown")
    assert shown.getvalue().startswith(f"24 stored texts would be sent to {server.url()}, to compare their vectors.\n")
    assert bool(report.next_command.endswith("--yes")) == (not went)


def test_consent_by_option(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "is_loopback", lambda _url: False)
    with serving(width=WIDTH) as server:
        chosen = Chosen(url=server.url(), mode="http")
        selection = Selection(db=store_of(home, rows(20, here)))
        report = examine(fitting.Request(selection=selection, chosen=chosen, yes=True))
    assert report.payload["status"] == "ok"


def test_a_secret_in_the_url_never_leaves(
    dimension: Dimension, register: Register, home: Path, server: SmallEndpoint
) -> None:
    url = f"http://aya:hunter22@127.0.0.1:{server.port}/embed?token=s3cr3tvalue"
    database = store_of(home, rows(20, wide(32)))
    register(url, database)
    for words in ([], ["--json"], ["-vv"], ["--url", url, "--db", str(database)], ["--url", url, "--json"]):
        run = dimension(*words)
        assert "hunter22" not in run.out + run.err
        assert "s3cr3tvalue" not in run.out + run.err


def test_no_stored_text_is_shown(dimension: Dimension, register: Register, home: Path) -> None:
    def refuse(request: Request, _number: int) -> Answer | None:
        bad = any("ferries" in text for text in request.texts)
        return Answer(500, {"error": f"cannot embed {request.texts[0]}"}) if bad else None

    with serving(width=WIDTH, before=refuse) as server:
        register(server.url(), store_of(home, rows(20, here) + rows(9, other, first=20)))
        for words in (["--json"], ["-vv"]):
            run = dimension(*words)
            assert "note " not in run.out.replace("note     ", "")
            assert "ferries" not in run.out + run.err


# ---- text


def test_the_last_line_is_the_verdict(
    dimension: Dimension, register: Register, home: Path, server: SmallEndpoint
) -> None:
    register(server.url(), store_of(home, rows(20, here)))
    assert dimension("-q").out == "PASS   ok, stored 64, expected 64; 0 faults, 0 warnings.\n"
    run = dimension("-q", "--sample", "0")
    assert run.out == (
        "UNKNOWN   unknown, stored 64, expected 64; 0 faults, 0 warnings.   Next: cpersona-cli dimension --sample 24\n"
    )


def test_every_format_carries_the_same_exit_code(
    dimension: Dimension, register: Register, home: Path, server: SmallEndpoint
) -> None:
    register(server.url(), store_of(home, rows(20, wide(32))))
    for form in FORMATS:
        run = dimension("--format", form)
        assert (run.code, run.err) == (1, ""), form
        assert "dimension-mismatch" in run.out, form


def test_characters_a_terminal_cannot_show(home: Path, server: SmallEndpoint) -> None:
    """A stream of plain ASCII gets plain marks."""
    database = store_of(home, rows(40, here) + rows(40, other, first=40))
    done = subprocess.run(
        [Path(sys.executable).with_name("cpersona-cli"), "dimension", "--url", server.url(), "--db", str(database)],
        env={"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    text = done.stdout.decode("ascii")
    assert done.returncode == 1
    assert "# same as a new vector    - another model" in text
    assert "\\u" not in text


def test_what_a_deadline_leaves_out_is_no_verdict(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = store_of(home, rows(20, here))
    monkeypatch.setattr(fitting, "_GRACE", 0.0)

    def late(*_args: object, **_named: object) -> None:
        raise AssertionError("never reached in time")

    monkeypatch.setattr(fitting, "_one", late)
    request = fitting.Request(selection=Selection(db=database), chosen=Chosen(url="http://127.0.0.1:9/embed"))
    report = examine(request)
    assert int(report.exit_code) == 3
    assert "could not be examined (AssertionError)" in report.unsettled[0]


def test_a_store_that_refuses_says_why(dimension: Dimension, home: Path) -> None:
    database = store_of(home, rows(3, here))
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE schema_version SET version = 12")
    run = dimension("--db", str(database), "--url", "http://127.0.0.1:9/embed", "--json")
    assert (run.code, run.json["targets"]) == (3, [])
    assert str(database) in run.json["unsettled"][0]


def test_a_container_on_another_network(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = store_of(home, rows(5, here))
    machine = Machine(system="linux", home=home, cwd=home, env={"PATH": "/usr/bin"}, root=home / "root")
    entry = {
        "command": "docker",
        "args": [
            "run", "-i", "--rm", "-v", f"{home}:/data", "-e", f"CPERSONA_DB_PATH=/data/{database.name}",
            "-e", "CPERSONA_EMBEDDING_MODE=http", "-e", "CPERSONA_EMBEDDING_URL=http://embedder:8401/embed",
            "ghcr.io/cloto-dev/cpersona:2.6.14",
        ],
    }  # fmt: skip
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"cpersona": entry}}))
    report = examine(fitting.Request(selection=Selection(), yes=True, timeout=30.0), machine)
    assert int(report.exit_code) == 3
    assert report.payload["status"] == State.UNKNOWN
    assert any("runs in a container, on another network" in sentence for sentence in report.unsettled)


def test_an_endpoint_that_embeds_no_stored_text(dimension: Dimension, register: Register, home: Path) -> None:
    def refuse(request: Request, _number: int) -> Answer | None:
        return Answer(500, {"error": "no"}) if any(text.startswith("note ") for text in request.texts) else None

    with serving(width=WIDTH, before=refuse) as server:
        register(server.url(), store_of(home, rows(20, here)))
        run = dimension("--json")
    assert (run.code, run.json["status"]) == (3, "unknown")
    assert run.json["next_command"] == "cpersona-cli probe --sample-from-db 24"
    assert sum(run.json["compared"]["unjudged_because"].values()) == 20


def test_a_folder_is_no_database(dimension: Dimension, home: Path) -> None:
    (home / "folder.db").mkdir()
    run = dimension("--db", "folder.db", "--json")
    assert run.code == 3
    assert run.json["unsettled"][0].startswith(f"{home}/folder.db cannot be read (is-folder)")


def test_a_path_that_leads_in_circles(dimension: Dimension, home: Path) -> None:
    (home / "loop.db").symlink_to("loop.db")
    run = dimension("--db", "loop.db", "--json")
    assert run.code == 3
    assert "loop.db" in run.json["unsettled"][0]


def test_this_environment_beside_a_client_of_the_same_database(
    dimension: Dimension, register: Register, home: Path, server: SmallEndpoint
) -> None:
    """Each repair chooses the endpoint that it is for."""
    database = store_of(home, rows(20, here))
    register(server.url(), database)
    with serving(width=32) as narrow:
        env = {
            "CPERSONA_EMBEDDING_MODE": "http",
            "CPERSONA_EMBEDDING_URL": narrow.url(),
            "CPERSONA_DB_PATH": str(database),
        }
        run = dimension("--env", "--client", "claude-code", "--json", env=env)
    assert [entry["status"] for entry in run.json["targets"]] == ["changed", "ok"]
    (finding,) = run.json["findings"]
    assert all(" --env" in command for command in finding["repair"]["commands"])


def test_a_registration_that_keeps_nothing(
    dimension: Dimension, register: Register, home: Path, server: SmallEndpoint
) -> None:
    register(server.url(), Path(":memory:"))
    run = dimension("--json")
    assert run.code == 3
    assert len(run.json["unsettled"]) == 1


def test_what_an_embedding_server_was_told(
    dimension: Dimension, register: Register, home: Path, server: SmallEndpoint
) -> None:
    register(server.url(), store_of(home, rows(20, here)))
    units = home / ".config" / "systemd" / "user"
    units.mkdir(parents=True)
    (units / "cembedding.service").write_text(
        "[Service]\nExecStart=/usr/bin/cembedding\n"
        f"Environment=EMBEDDING_HTTP_PORT={server.port}\nEnvironment=EMBEDDING_DIMENSIONS=many\n"
    )
    assert dimension("--json").traps == []
    unit = units / "cembedding.service"
    unit.write_text(unit.read_text().replace("=many", "=1536"))
    run = dimension("--json")
    assert (run.code, run.traps) == (0, ["endpoint.dimensions-misstated"])
    assert "EMBEDDING_DIMENSIONS of the " in run.json["findings"][0]["measured"]
