"""``cpersona-cli probe`` through the installed script: what it prints, and how it exits."""

from __future__ import annotations

import io
import json
import os
import re
import sqlite3
import struct
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pytest_console_scripts import ScriptRunner
from support import runs
from support.endpoints_small import Answer, Request, embed, serving

from cpersona_cli.commands.chosen import Chosen
from cpersona_cli.commands.errors import UsageError
from cpersona_cli.commands.probing import Request as Request_
from cpersona_cli.commands.probing import examine
from cpersona_cli.traps.gather import Selection

DATA = Path(__file__).parent.parent / "data" / "probe"
SECRET = "sk-live-0123456789abcdef"

#: Without a process of its own: the process is not what is tested.
pytestmark = pytest.mark.script_launch_mode("inprocess")


class Run(runs.Run):
    """What one run of ``probe`` said."""

    command = "probe"


Probe = Callable[..., Run]
Register = Callable[..., Path]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return runs.empty_home(tmp_path, monkeypatch)


@pytest.fixture
def probe(home: Path, script_runner: ScriptRunner) -> Probe:
    def run(*words: str, env: Mapping[str, str] | None = None, typed: str = "") -> Run:
        result = script_runner.run(
            ["cpersona-cli", "probe", *words], cwd=home, env={**os.environ, **(env or {})}, stdin=io.StringIO(typed)
        )
        return Run(result.returncode, result.stdout, result.stderr)

    return run


@pytest.fixture
def register(home: Path) -> Register:
    def write(file: str = ".claude.json", **env: str) -> Path:
        path = home / file
        path.parent.mkdir(parents=True, exist_ok=True)
        entry = {"command": sys.executable, "args": ["-m", "cpersona"], "env": env}
        path.write_text(json.dumps({"mcpServers": {"cpersona": entry}}, indent=2))
        return path

    return write


# ---- the way in


def test_a_registration_in_order(probe: Probe, register: Register) -> None:
    with serving() as server:
        register(CPERSONA_EMBEDDING_MODE="http", CPERSONA_EMBEDDING_URL=server.url())
        run = probe("--json")
    found = run.json
    assert (run.code, run.err) == (0, "")
    assert (found["verdict"], found["kind"], found["dimensions"]) == ("pass", "ok", 64)
    assert found["server_view"] == {"attempted": True, "ok": True, "error": None, "leaks": False, "crash": None}
    assert found["label"] == "Claude Code (user)"
    assert found["checks_run"] == 9
    assert (found["findings"], found["next_command"]) == ([], None)
    assert found["largest_batch"] == 64


def test_nothing_registered(probe: Probe) -> None:
    run = probe("--json")
    assert (run.code, run.json["verdict"], run.json["targets"]) == (3, "unknown", [])
    assert run.json["unsettled"] == ["no registration of CPersona was found; name an endpoint with --url"]


def test_no_backend(probe: Probe, register: Register) -> None:
    register()
    run = probe("--json", "--count", "2")
    assert (run.code, run.json["kind"], run.json["checks_run"]) == (3, "disabled", 0)
    assert run.json["health"]["state"] == "hint"
    assert run.json["unsettled"] == ["no embedding backend is configured (mode none)"]


def test_two_clients_of_one_endpoint_are_measured_once(probe: Probe, register: Register) -> None:
    with serving() as server:
        for file in (".claude.json", ".cursor/mcp.json"):
            register(file, CPERSONA_EMBEDDING_MODE="http", CPERSONA_EMBEDDING_URL=server.url())
        found = probe("--json").json
        assert len(server.requests) == found["calls"] == 8
    assert found["label"] == "Claude Code (user), Cursor (user)"


def test_several_endpoints_are_targets(probe: Probe, register: Register) -> None:
    with serving() as good, serving(loading=99) as loading:
        register(".claude.json", CPERSONA_EMBEDDING_MODE="http", CPERSONA_EMBEDDING_URL=good.url())
        register(".cursor/mcp.json", CPERSONA_EMBEDDING_MODE="http", CPERSONA_EMBEDDING_URL=loading.url())
        run = probe("--json")
        assert [target["kind"] for target in run.json["targets"]] == ["ok", "loading"]
        assert run.code == 3
        run = probe("--json", "--client", "claude-code")
        assert (run.code, run.json["kind"]) == (0, "ok")


def test_this_environment(probe: Probe) -> None:
    with serving() as server:
        env = {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": server.url()}
        run = probe("--env", "--json", env=env)
    assert (run.code, run.json["kind"]) == (0, "ok")


@pytest.mark.parametrize(
    ("path", "mode", "sent"),
    [("/embed", None, "texts"), ("/v1/embeddings", None, "input"), ("/v1/embeddings/?a=b", None, "input")],
)
def test_the_mode_of_a_url_is_told_by_its_path(probe: Probe, path: str, mode: None, sent: str) -> None:
    with serving() as server:
        probe("--url", server.url(path), "--model", "m")
        assert sent in server.requests[0].document


def test_a_key_in_a_file(probe: Probe, home: Path) -> None:
    (home / "key").write_bytes(b"sk-12345678\r\n")
    with serving(key="sk-12345678") as server:
        words = ("--url", server.url("/v1/embeddings"), "--api-key-file", "key", "--model", "m", "--json")
        run = probe(*words)
        assert (run.code, run.json["kind"], run.traps) == (0, "ok", [])
        assert server.requests[0].headers["authorization"] == "Bearer sk-12345678"
    assert "sk-12345678" not in run.out
    assert run.json["endpoint"]["key"] == "set (11 characters)"


def test_a_secret_in_the_url_never_leaves(probe: Probe, register: Register) -> None:
    with serving() as server:
        url = f"http://aya:hunter22@127.0.0.1:{server.port}/v1?token=s3cr3tvalue"
        register(CPERSONA_EMBEDDING_MODE="http", CPERSONA_EMBEDDING_URL=url)
        for words in (("--json",), ("-vv",), ("--url", url), ("--url", url, "--json")):
            run = probe(*words)
            assert "hunter22" not in run.out + run.err
            assert "s3cr3tvalue" not in run.out + run.err


USAGE = [
    (["--mode", "http"], "--mode goes with --url"),
    (["--model", "m"], "--model goes with --url"),
    (["--api-key-file", "f"], "--api-key-file goes with --url"),
    (["--url", "http://h/embed", "--client", "cursor"], "does not go with --client"),
    (["--url", "http://h/embed", "--env"], "does not go with --client"),
    (["--url", "http://h/embed", "--mode", "none"], "--mode takes http or api, not 'none'"),
    (["--role", "both"], "--role takes chat or embedding, not 'both'"),
    (["--wait", "-1"], "--wait takes a number from 0 to 86400, not -1"),
    (["--wait", "nan"], "--wait takes a number from 0"),
    (["--count", "101"], "--count takes a number from 0 to 100, not 101"),
    (["--sample-from-db", "-5"], "--sample-from-db takes a number from 0 to 1000, not -5"),
    (["--timeout", "0"], "--timeout takes a number of seconds above 0"),
    (["--show-text"], "--show-text goes with --sample-from-db"),
    (["--url", "http://h/embed", "--api-key-file", "absent"], "cannot read --api-key-file absent: No such file"),
    (["--url", "http://h/embed", "--api-key-file", "."], "cannot read --api-key-file .: Is a directory"),
    (["--url", "http://h/embed", "--api-key-file", "empty"], "--api-key-file empty is empty"),
    (["--url", "http://h/embed", "--api-key-file", "binary"], "--api-key-file binary is not UTF-8 text"),
    (["--url", "http://h/embed", "--api-key-file", "huge"], "--api-key-file huge is too large"),
    (["--registration", "absent.json"], "absent.json"),
    (["--sample-from-db", "3"], "--sample-from-db: no database is known; name one with --db"),
    (["--sample-from-db", "3", "--url", "http://127.0.0.1:9/embed"], "no database is known"),
]


@pytest.mark.parametrize(("words", "said"), USAGE, ids=[" ".join(row[0]) for row in USAGE])
def test_usage_errors(probe: Probe, home: Path, words: list[str], said: str) -> None:
    (home / "empty").write_bytes(b"\n")
    (home / "binary").write_bytes(b"\xff\xfe\x00")
    (home / "huge").write_bytes(b"k" * 70_000)
    run = probe(*words, "--json")
    assert run.code == 2
    assert said in run.json["error"]


# ---- stored texts


@pytest.fixture
def poisoned(store: Path) -> Path:
    connection = sqlite3.connect(store)
    with connection:
        connection.execute("DELETE FROM memories")
        connection.executemany(
            "INSERT INTO memories (id, agent_id, content, timestamp) VALUES (?, 'a', ?, '2026-01-01T00:00:00Z')",
            [(1, "the ferry leaves at nine"), (2, "poison in a private sentence"), (3, "the lamp is out")],
        )
    connection.close()
    return store


def refuses_poison(request: Request, _number: int) -> Answer | None:
    bad = any("poison" in text for text in request.texts)
    return Answer(500, {"error": "failed to encode response: json: unsupported value: NaN"}) if bad else None


def test_stored_texts_that_fail_are_named_by_their_ids(probe: Probe, poisoned: Path) -> None:
    with serving(before=refuses_poison) as server:
        words = ("--url", server.url(), "--db", str(poisoned))
        assert probe(*words, "--json").json["kind"] == "ok"
        assert not any("poison" in text for request in server.calls for text in request.texts)
        run = probe(*words, "--sample-from-db", "3", "--json")
        assert (run.code, run.traps) == (0, ["endpoint.nan-for-some-inputs"])
        samples = run.json["samples"]
        assert (samples["tried"], samples["unfinished"], samples["compared"]) == (3, 0, 0)
        assert samples["failed"] == [{"id": "2", "kind": "nan_for_input"}]
        assert "private sentence" not in run.out
        assert "memories 2" in run.json["findings"][0]["measured"]
        run = probe(*words, "--sample-from-db", "3", "--show-text")
        assert "poison in a private sentence" in run.out


@pytest.mark.parametrize(("stored", "code", "found"), [(64, 0, []), (63, 1, ["endpoint.model-mismatch"])])
def test_another_model_of_the_same_width(
    probe: Probe, poisoned: Path, stored: int, code: int, found: list[str]
) -> None:
    connection = sqlite3.connect(poisoned)
    with connection:
        for number, text in connection.execute("SELECT id, content FROM memories").fetchall():
            vector = [*embed(text, stored), 0.0][:64]
            connection.execute("UPDATE memories SET embedding = ? WHERE id = ?", (struct.pack("<64f", *vector), number))
    connection.close()
    with serving() as server:
        run = probe("--url", server.url(), "--db", str(poisoned), "--sample-from-db", "3", "--json")
    assert (run.code, run.traps) == (code, found)
    assert run.json["samples"]["compared"] == 3


def test_what_was_found_to_work_is_what_to_verify(probe: Probe) -> None:
    with serving(routes={"/v1/embeddings": "api"}) as server:
        run = probe("--url", server.url(), "--mode", "http", "--model", "m", "--json")
        assert run.code == 1
        words = run.json["next_command"].split()
        assert words[:2] == ["cpersona-cli", "probe"]
        again = probe(*words[2:], "--json")
        assert (again.code, again.json["kind"]) == (0, "ok")
    slipped = probe("--url", "127.0.0.1:9/embed", "--json").json
    assert slipped["findings"][0]["trap"] == "endpoint.config-url"
    assert slipped["next_command"] == "cpersona-cli probe --url http://127.0.0.1:9/embed"


@pytest.mark.parametrize("answer", ["yes\n", "no\n", ""])
def test_consent_is_typed_at_a_terminal(
    poisoned: Path, monkeypatch: pytest.MonkeyPatch, answer: str, home: Path
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    shown = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", shown)
    request = Request_(
        selection=Selection(db=poisoned, before_first_start=True), chosen=Chosen(url=AWAY, mode="http"), samples=2
    )
    if answer == "yes\n":
        assert examine(request).payload["kind"] == "dns"
    else:
        with pytest.raises(UsageError, match="add --yes"):
            examine(request)
    assert shown.getvalue() == f"2 stored texts would be sent to {AWAY}. Type yes to allow it:\n"


def test_entries_that_start_no_server_here(probe: Probe, home: Path) -> None:
    entry = {"type": "http", "url": "http://127.0.0.1:9/mcp"}
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"cpersona": entry}}))
    run = probe("--json")
    assert run.code == 3
    assert len(run.json["unsettled"]) == 1


def test_identity_and_health_in_text(probe: Probe) -> None:
    gets = {"/info": {"model_id": "bge", "model_type": {"embedding": {}}, "max_client_batch_size": 32}}
    models = {"/v1/models": {"data": [{"id": f"model-{number}"} for number in range(12)]}}
    with serving(gets={**gets, **models}) as server:
        run = probe("--url", server.url(), "--identify", "--count", "2", "--role", "embedding")
    assert "Text Embeddings Inference, bge, at most 32 texts at once" in run.out
    assert "model-9 and 2 more" in run.out
    assert "state healthy after 2 calls: ok → healthy, ok → healthy" in run.out
    assert "embedding (--role)" in run.out


AWAY = "http://embeddings.invalid/embed"


def test_stored_texts_do_not_leave_this_computer_unasked(probe: Probe, poisoned: Path) -> None:
    words = ("--url", AWAY, "--db", str(poisoned), "--sample-from-db", "2", "--json")
    run = probe(*words, typed="yes\n")
    assert run.code == 2
    assert "would send stored texts to http://embeddings.invalid/embed" in run.json["error"]
    assert "add --yes" in run.json["error"]
    run = probe(*words, "--yes")
    assert (run.code, run.json["kind"]) == (1, "dns")


def test_a_database_that_cannot_be_read_is_no_verdict(probe: Probe, home: Path) -> None:
    (home / "odd.db").write_bytes(b"no database")
    run = probe("--url", "http://127.0.0.1:9/embed", "--db", "odd.db", "--sample-from-db", "2", "--json")
    assert run.code == 3
    assert "odd.db cannot be read (not-sqlite)" in run.json["error"]


def test_the_width_of_what_is_stored(probe: Probe, register: Register, store: Path) -> None:
    connection = sqlite3.connect(store)
    with connection:
        connection.execute("UPDATE memories SET embedding = zeroblob(3072)")
    connection.close()
    with serving() as server:
        register(CPERSONA_EMBEDDING_MODE="http", CPERSONA_EMBEDDING_URL=server.url(), CPERSONA_DB_PATH=str(store))
        run = probe("--json")
    assert (run.code, run.traps) == (1, ["endpoint.dimension-mismatch"])
    assert "the endpoint makes 64 dimensions" in run.json["findings"][0]["measured"]


# ---- text


def golden(text: str, port: int) -> str:
    """``text`` without what differs from run to run: times, the port (five digits as well), rates."""
    text = text.replace(str(port), "PORT!"[: len(str(port))])
    text = re.sub(r"\d+\.\d+ s\b", "0.00 s", text)
    text = re.sub(r"\b\d+ ms\b", "9 ms", text)
    return re.sub(r"\b\d+ texts a second", "999 texts a second", text)


GOLDEN: dict[str, tuple[dict[str, Any], str, str]] = {
    "in-order": ({}, "http", "/embed"),
    "wrong-contract": ({"routes": {"/embed": "tei", "/v1/embeddings": "api"}}, "http", "/embed"),
    "warnings": ({"batch_limit": 20, "window": 300}, "http", "/embed"),
    "loading": ({"loading": 99}, "api", "/v1/embeddings"),
}


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", list(GOLDEN))
def test_golden_text(probe: Probe, register: Register, name: str, width: int) -> None:
    options, mode, path = GOLDEN[name]
    with serving(**options) as server:
        url = "CPERSONA_EMBEDDING_URL" if mode == "http" else "CPERSONA_EMBEDDING_API_URL"
        register(CPERSONA_EMBEDDING_MODE=mode, CPERSONA_EMBEDDING_API_KEY=SECRET, **{url: server.url(path)})
        run = probe(env={"COLUMNS": str(width)})
        shown = golden(run.out, server.port)
    file = DATA / f"{name}-{width}.txt"
    if os.environ.get("UPDATE_GOLDEN") == "1":
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(shown, encoding="utf-8")
    assert shown == file.read_text(encoding="utf-8")
    copied = ("http", "CPERSONA", "Next", "export")
    long = [line for line in shown.splitlines() if len(line) > width and not any(word in line for word in copied)]
    assert long == []
    assert SECRET not in shown


def test_quiet_is_one_line(probe: Probe) -> None:
    with serving() as server:
        run = probe("--url", server.url(), "-q")
    assert run.out == "PASS   9 checks, 0 faults, 0 warnings.\n"


def test_help_names_every_option(probe: Probe) -> None:
    run = probe("--help")
    for option in ("--wait", "--count", "--sample-from-db", "--timeout", "--identify", "--role", "--full", "--url"):
        assert option in run.out
