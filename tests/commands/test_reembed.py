"""``cpersona-cli reembed`` through the installed script, case by case."""

from __future__ import annotations

import io
import json
import os
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pytest_console_scripts import ScriptRunner
from support import runs
from support.endpoints_small import Answer, Request, SmallEndpoint, embed, serving
from support.rebuilds import Oracle, blob, fill, sent, texts, vectors
from support.stores import Other, run_sql

from cpersona_cli.commands import workplace

pytestmark = [pytest.mark.script_launch_mode("inprocess"), pytest.mark.server]

WIDTH = 96


class Run(runs.Run):
    """What one run of ``reembed`` said."""

    command = "reembed"


Reembed = Callable[..., Run]
Register = Callable[..., Path]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return runs.empty_home(tmp_path, monkeypatch)


@pytest.fixture
def reembed(home: Path, script_runner: ScriptRunner) -> Reembed:
    def run(*words: str, env: Mapping[str, str] | None = None, typed: str = "") -> Run:
        result = script_runner.run(
            ["cpersona-cli", "reembed", *words], cwd=home, env={**os.environ, **(env or {})}, stdin=io.StringIO(typed)
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


@pytest.fixture
def db(store: Path) -> Path:
    """A store of 20 memories and an episode, with the vectors of a model 64 wide."""
    return fill(store, rows=20, width=64)


def about(database: Path, server: SmallEndpoint, *words: str) -> list[str]:
    """The options that mean this database and this endpoint."""
    return ["--db", str(database), "--url", server.url(), "--sample", "0", *words]


def beside(database: Path) -> set[str]:
    """What this tool keeps beside a database, by the end of its name."""
    return {file.name.removeprefix(database.name) for file in database.parent.iterdir() if "reembed" in file.name}


# --- the way through


def test_all_of_it(reembed: Reembed, db: Path) -> None:
    oracle = Oracle(db, WIDTH)
    with serving(width=WIDTH) as server:
        run = reembed(*about(db, server, "--yes", "--json", "--progress", "none"))
        assert set(texts(db).values()) == set(sent(server.requests, texts(db).values()))
    found = run.json
    assert (run.code, run.err, oracle.state()) == (0, "", "new")
    assert {name: found[name] for name in ("planned", "done", "failed", "nothing", "unchanged", "left", "held")} == {
        "planned": 21, "done": 21, "failed": 0, "nothing": 0, "unchanged": 0, "left": 0, "held": 21,
    }  # fmt: skip
    assert (found["state"], found["switched"], found["complete"], found["reason"]) == ("cut", True, True, None)
    assert found["verification"]["ok"]
    assert found["cutover"]["rows"] == 21
    assert found["target"]["dimensions"] == WIDTH
    assert (found["plan"]["old_dimensions"], found["plan"]["rows"]) == (64, {"mem": 20, "ep": 1})


def test_what_the_registration_calls_is_what_makes_the_vectors(reembed: Reembed, register: Register, db: Path) -> None:
    oracle = Oracle(db, WIDTH)
    with serving(width=WIDTH) as server:
        register(CPERSONA_DB_PATH=str(db), CPERSONA_EMBEDDING_MODE="http", CPERSONA_EMBEDDING_URL=server.url())
        run = reembed("--yes", "--sample", "0")
    assert (run.code, oracle.state()) == (0, "new")
    assert run.last == "PASS   21 of 21 re-embedded"
    assert "restart Claude Code" in run.out
    assert "add to its environment" not in run.out


def test_no_client_is_to_be_restarted_where_the_environment_is_meant(reembed: Reembed, db: Path) -> None:
    with serving(width=WIDTH) as server:
        env = {"CPERSONA_DB_PATH": str(db), "CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": server.url()}
        run = reembed("--env", "--yes", "--sample", "0", "--json", env=env)
    assert run.json["next_steps"][0]["sentence"].startswith("restart every server that uses this database: ")


def test_an_endpoint_that_no_registration_names_yet_brings_the_exact_edit(
    reembed: Reembed, register: Register, db: Path
) -> None:
    with serving(width=64) as old, serving(width=WIDTH) as new:
        register(CPERSONA_DB_PATH=str(db), CPERSONA_EMBEDDING_MODE="http", CPERSONA_EMBEDDING_URL=old.url())
        run = reembed("--url", new.url(), "--yes", "--sample", "0", "--json")
        (first, *_) = run.json["next_steps"]
        assert first["sentence"].startswith("Claude Code (user): in ")
        assert f'"CPERSONA_EMBEDDING_URL": "{new.url()}"' in first["edit"]
        assert first["place"]["file"].endswith(".claude.json")


def test_undo_puts_every_vector_and_label_back(reembed: Reembed, db: Path) -> None:
    oracle = Oracle(db, WIDTH)
    with serving(width=WIDTH) as server:
        assert reembed(*about(db, server, "--yes")).code == 0
        following = reembed("status", "--db", str(db), "--json").json["next_command"]
    assert following == f"cpersona-cli dimension --db {db} --url {server.url()}", "not the way back, unasked"
    assert oracle.state() == "new"
    run = reembed("undo", "--db", str(db), "--yes", "--json")
    assert (run.code, oracle.state()) == (0, "old")
    assert run.json["job"]["undone"]["restored"] == 21
    status = reembed("status", "--db", str(db), "--json").json
    assert (status["job"]["state"], status["job"]["undo_possible"]) == ("undone", False)


def test_forget_removes_the_way_back_and_nothing_else(reembed: Reembed, db: Path) -> None:
    oracle = Oracle(db, WIDTH)
    with serving(width=WIDTH) as server:
        assert reembed(*about(db, server, "--yes")).code == 0
    assert beside(db) == {".reembed", ".reembed-undo", ".reembed-backup", ".reembed.json"}
    run = reembed("forget", "--db", str(db), "--yes")
    assert (run.code, oracle.state()) == (0, "new")
    assert beside(db) == {".reembed.json"}
    assert reembed("undo", "--db", str(db), "--yes").code == 1
    assert reembed("forget", "--db", str(db), "--yes").code == 0


# --- consent and confirmation


def test_without_a_word_nothing_is_done(reembed: Reembed, db: Path) -> None:
    oracle = Oracle(db, WIDTH)
    with serving(width=WIDTH) as server:
        run = reembed(*about(db, server, "--json"))
        assert sent(server.requests, texts(db).values()) == []
    assert (run.code, oracle.state()) == (2, "old")
    assert run.json["error"].startswith("nobody is here to confirm the plan; look at it with --dry-run, then add --yes")
    assert beside(db) == set()


@pytest.mark.parametrize(("typed", "code", "state"), [("yes\n", 0, "new"), ("no\n", 2, "old"), ("", 2, "old")])
def test_the_plan_is_confirmed_at_a_terminal(
    reembed: Reembed, db: Path, monkeypatch: pytest.MonkeyPatch, *, typed: str, code: int, state: str
) -> None:
    monkeypatch.setattr(workplace, "terminal", lambda _stream: True)
    oracle = Oracle(db, WIDTH)
    with serving(width=WIDTH) as server:
        run = reembed(*about(db, server), typed=typed)
    assert (run.code, oracle.state()) == (code, state)
    assert "Rebuild? Nothing is lost, and it can be undone. Type yes:" in run.err
    assert "from    64 dimensions" in run.err


@pytest.mark.parametrize("action", ["undo", "forget", "abandon"])
def test_what_changes_files_is_confirmed(reembed: Reembed, db: Path, action: str) -> None:
    everything = texts(db).values()
    with serving(width=WIDTH) as server:
        if action == "abandon":
            server.behaviour.before = lambda _request, _: (
                Answer(401, "") if sent(server.requests[:-1], everything) else None
            )
        reembed(*about(db, server, "--yes", "--batch-size", "4"))
    run = reembed(action, "--db", str(db), "--json")
    assert run.code == 2
    assert run.json["error"].endswith("and nobody is here to confirm it; add --yes")


def test_the_plan_alone(reembed: Reembed, db: Path) -> None:
    """R16: before anything is spent."""
    with serving(width=WIDTH) as server:
        run = reembed(*about(db, server, "--dry-run", "--json"))
        assert sent(server.requests, texts(db).values()) == []
    plan = run.json["plan"]
    assert run.code == 0
    assert (plan["rows"], plan["distinct_texts"], plan["sends_texts_to"]) == ({"mem": 20, "ep": 1}, 21, None)
    assert plan["characters"] == sum(len(text) for text in texts(db).values())
    assert plan["tokens_estimated"] > 200
    assert plan["requests_estimated"] >= 1
    assert plan["seconds_estimated"] > 0
    assert run.json["next_command"].startswith("cpersona-cli reembed --db ")
    assert beside(db) == set()


# --- the cases


def test_killed_half_way(reembed: Reembed, db: Path) -> None:
    """R01: the second run sends what is left."""
    fill(db, rows=99, width=64)
    oracle = Oracle(db, WIDTH)
    everything = texts(db).values()
    with serving(width=WIDTH) as server:

        def dies(_request: Request, _number: int) -> Answer | None:
            gone = len(set(sent(server.requests[:-1], everything))) >= 37
            return Answer(401, {"error": "the key is no longer valid"}) if gone else None

        server.behaviour.before = dies
        first = reembed(*about(db, server, "--yes", "--json", "--batch-size", "4", "--concurrency", "1"))
        assert (first.code, oracle.state()) == (1, "old")
        done = first.json["done"]
        assert 36 <= done <= 44
        assert (first.json["planned"], first.json["left"]) == (100, 100 - done)
        assert first.json["next_command"].startswith("cpersona-cli reembed --db ")
        server.behaviour.before = lambda _request, _number: None
        server.requests.clear()
        plan = reembed(*about(db, server, "--dry-run"))
        assert f"continues  {done} of 100 are done, {100 - done} are left" in plan.out
        second = reembed(*about(db, server, "--yes", "--json", "--batch-size", "4"))
        again = len(sent(server.requests, everything))
    assert (second.code, oracle.state()) == (0, "new")
    assert (second.json["done"], second.json["done_by_earlier_runs"]) == (100, done)
    assert again - (100 - done) <= 32 + 8, "besides what was left, only those that are checked are sent"


def test_one_poison_text(reembed: Reembed, db: Path) -> None:
    """R02: the row is singled out, left without a vector, and listed."""
    poison = texts(db)["mem", 7]
    with serving(width=WIDTH) as server:
        server.behaviour.before = lambda request, _: (
            Answer(500, {"error": "failed to encode response: json: unsupported value: NaN"})
            if poison in request.texts
            else None
        )
        run = reembed(*about(db, server, "--yes", "--json"))
    found = run.json
    assert (run.code, found["done"], found["failed"], found["ids"]) == (1, 20, 1, ["mem:7"])
    assert found["failures"][0]["reason"] in {"nan_for_input", "server_error"}
    held = vectors(db)
    assert held["mem", 7] == (None, "")
    assert sum(vector is not None for vector, _ in held.values()) == 20


def test_an_endpoint_that_fails_changes_nothing(reembed: Reembed, db: Path) -> None:
    """R03: nothing is cleared first."""
    oracle = Oracle(db, WIDTH)
    with serving(width=WIDTH, loading=10**6) as server:
        run = reembed(*about(db, server, "--yes", "--json"))
    assert (run.code, run.json["verdict"], oracle.state()) == (3, "unknown", "old")
    assert beside(db) == set()


def test_success_is_not_claimed(reembed: Reembed, store: Path) -> None:
    """R04: two of ten fail for good."""
    run_sql(store, "DELETE FROM memories WHERE id > 9")
    fill(store, rows=9, width=64)
    bad = [texts(store)["mem", 3], texts(store)["mem", 9]]
    with serving(width=WIDTH) as server:
        server.behaviour.before = lambda request, _: (
            Answer(400, {"error": {"message": "cannot be embedded"}}) if set(bad) & set(request.texts) else None
        )
        run = reembed(*about(store, server, "--yes"))
        assert (run.code, run.last) == (1, "FAIL   8 of 10 re-embedded, 2 failed")
        again = reembed(
            "--db", str(store), "--url", server.url(), "--only", "missing", "--yes", "--json", "--sample", "0"
        )
    assert (again.code, again.json["done"], again.json["ids"]) == (1, 0, ["mem:3", "mem:9"])


@pytest.mark.parametrize("change", ["width", "model"])
def test_another_model_in_the_middle(reembed: Reembed, db: Path, change: str) -> None:
    """R06: its batch is not written, and the run stops."""
    fill(db, rows=60, width=64)
    oracle = Oracle(db, WIDTH)
    everything = texts(db).values()
    with serving(width=WIDTH) as server:

        def after(request: Request, made: list[list[float]]) -> list[Any]:
            if len(set(sent(server.requests, everything))) < 20:
                return made
            if change == "width":
                return [embed(text, 384) for text in request.texts]
            return [embed(f"another {text[::-1]}", WIDTH) for text in request.texts]

        server.behaviour.after = after
        run = reembed(*about(db, server, "--yes", "--json", "--batch-size", "4", "--concurrency", "1"))
    assert (run.code, oracle.state(), run.json["switched"]) == (1, "old", False)
    assert run.json["reason"] in {"changed_mid_run", "not_verified"}


def test_a_stated_wait_is_kept(reembed: Reembed, db: Path) -> None:
    """R07: every third call is told to wait."""
    oracle = Oracle(db, WIDTH)
    with serving(width=WIDTH) as server:
        server.behaviour.before = lambda request, number: (
            Answer(429, {"error": {"message": "Please try again in 0.02s"}}, {"Retry-After": "0"})
            if number % 3 == 0 and sent([request], texts(db).values())
            else None
        )
        run = reembed(*about(db, server, "--yes", "--json", "--batch-size", "4"))
    assert (run.code, oracle.state(), run.json["failed"]) == (0, "new", 0)
    assert run.json["retries"] > 0


def test_a_limit_of_texts_is_learned(reembed: Reembed, db: Path) -> None:
    """R08: the number is read from the refusal, and shown."""
    fill(db, rows=60, width=64)
    oracle = Oracle(db, WIDTH)
    message = "<400> InternalError.Algo.InvalidParameter: Value error, batch size is invalid, it should not be larger"
    with serving(width=WIDTH) as server:
        server.behaviour.before = lambda request, _: (
            Answer(400, {"error": {"message": f"{message} than 5.: input.contents", "code": "InvalidParameter"}})
            if len(request.texts) > 5 and sent([request], texts(db).values())
            else None
        )
        run = reembed(*about(db, server, "--yes"))
    assert (run.code, oracle.state()) == (0, "new")
    assert "5 texts in a request" in run.out


@pytest.mark.parametrize("cut", [False, True])
def test_a_text_longer_than_the_window(reembed: Reembed, db: Path, *, cut: bool) -> None:
    """R10: it is left, and reported; cut only when told to."""
    run_sql(db, f"UPDATE memories SET content = '{'word ' * 400}' WHERE id = 5")
    with serving(width=WIDTH, refuses_over=200) as server:
        run = reembed(*about(db, server, "--yes", "--json", *(["--cut-long"] if cut else [])))
    found = run.json
    if cut:
        assert (run.code, found["done"], found["texts_cut"]) == (0, 21, 1)
    else:
        assert (run.code, found["done"], found["unchanged"], found["ids"]) == (0, 20, 1, ["mem:5"])
        assert found["failures"][0]["reason"] == "too_long"


def test_blank_rows_are_never_sent(reembed: Reembed, db: Path) -> None:
    run_sql(db, "UPDATE memories SET content = ' ' || char(10) WHERE id = 5")
    with serving(width=WIDTH) as server:
        run = reembed(*about(db, server, "--yes", "--json"))
        assert all(text.strip() for request in server.requests for text in request.texts)
    assert (run.code, run.json["done"], run.json["nothing"], run.json["planned"]) == (0, 20, 1, 21)


def test_equal_texts_are_embedded_once(reembed: Reembed, db: Path) -> None:
    run_sql(
        db,
        "DROP INDEX IF EXISTS idx_memories_dedup_content",
        "UPDATE memories SET content = 'The same again.' WHERE id BETWEEN 3 AND 12",
    )
    fill(db, rows=20, width=64)
    with serving(width=WIDTH) as server:
        run = reembed(*about(db, server, "--yes", "--json", "--batch-size", "4"))
    assert (run.code, run.json["done"], run.json["equal_texts"], run.json["plan"]["distinct_texts"]) == (0, 21, 9, 12)


def test_unchanged_texts_are_embedded_anew(reembed: Reembed, db: Path) -> None:
    """R17: that a text is unchanged is no reason to keep its vector."""
    oracle = Oracle(db, 64)
    run_sql(db, "UPDATE memories SET embedding = zeroblob(256)")
    with serving(width=64) as server:
        run = reembed(*about(db, server, "--yes", "--json"))
    assert (run.code, run.json["done"]) == (0, 21)
    assert vectors(db) == oracle.new


def test_another_process_holds_the_lock(reembed: Reembed, db: Path) -> None:
    """R18: a server that has the database open is asked to go, or is worked around with --live."""
    oracle = Oracle(db, WIDTH)
    with serving(width=WIDTH) as server, Other(db, "SELECT count(*) FROM memories", "BEGIN IMMEDIATE") as other:
        run = reembed(*about(db, server, "--yes", "--json"))
        assert (run.code, run.json["reason"], run.json["state"]) == (1, "in_use", "staged")
        assert f"process {other.process.pid}" in run.json["detail"]
        held = threading.Timer(1.0, lambda: other.say("ROLLBACK"))
        held.start()
        run = reembed(*about(db, server, "--yes", "--json", "--live"))
        held.join()
        assert (run.code, oracle.state()) == (0, "new")
        assert run.json["next_command"] == f"cpersona-cli reembed finish --db {db} --url {server.url()}"


def test_rows_that_come_and_change_meanwhile(reembed: Reembed, db: Path) -> None:
    """R18: an edited row never gets the vector of its old text; new rows are picked up."""
    everything = texts(db).values()
    changed: list[bool] = []
    with serving(width=WIDTH) as server:

        def before(request: Request, _number: int) -> Answer | None:
            if sent([request], everything) and not changed:
                changed.append(True)
                run_sql(
                    db,
                    "UPDATE memories SET content = 'Edited between reading and writing.' WHERE id = 4",
                    "INSERT INTO memories(agent_id, content, timestamp) VALUES ('atlas', 'New.', '2025-05-01')",
                    "DELETE FROM memories WHERE id = 9",
                )
            return None

        server.behaviour.before = before
        run = reembed(*about(db, server, "--yes", "--json", "--batch-size", "4"))
    assert (run.code, run.json["done"], run.json["held"]) == (0, 21, 21)
    assert vectors(db) == Oracle(db, WIDTH).new


# --- some rows only


def test_only_missing(reembed: Reembed, db: Path) -> None:
    run_sql(db, "UPDATE memories SET embedding = NULL WHERE id IN (2, 3)")
    oracle = Oracle(db, 64)
    with serving(width=64) as server:
        run = reembed(*about(db, server, "--only", "missing", "--yes", "--json"))
        assert (run.code, run.json["planned"], run.json["done"]) == (0, 2, 2)
        assert vectors(db) == oracle.new
        again = reembed(*about(db, server, "--only", "missing", "--yes", "--json"))
    assert (again.code, again.json["planned"], again.json["exit_code"]) == (0, None, 0)


def test_only_mismatched(reembed: Reembed, db: Path) -> None:
    run_sql(db, "UPDATE memories SET embedding = zeroblob(96) WHERE id IN (2, 3)")
    oracle = Oracle(db, 64)
    with serving(width=64) as server:
        run = reembed(*about(db, server, "--only", "mismatched", "--yes", "--json"))
    assert (run.code, run.json["done"]) == (0, 2)
    assert vectors(db) == oracle.new


def test_only_foreign(reembed: Reembed, db: Path) -> None:
    """Rows of another model of the same width are told by measuring."""
    fill(db, rows=60, width=64)
    oracle = Oracle(db, 64)
    for number in range(31, 61):
        vector = blob(f"other {number}", 64).hex()
        run_sql(db, f"UPDATE memories SET embedding = x'{vector}' WHERE id = {number}")
    with serving(width=64) as server:
        run = reembed(*about(db, server, "--only", "foreign", "--yes", "--json"))
    assert run.code == 0
    assert 30 <= run.json["done"] <= 32
    assert vectors(db) == oracle.new


# --- refusals


def test_nothing_known_of_an_endpoint(reembed: Reembed, db: Path) -> None:
    run = reembed("--db", str(db), "--yes", "--json")
    assert (run.code, run.json["error"]) == (
        2,
        f"no registration opens {db}, so nothing says where its vectors come from; add --url",
    )


def test_clients_that_disagree(reembed: Reembed, register: Register, db: Path) -> None:
    oracle = Oracle(db, WIDTH)
    for file, port in ((".claude.json", 9), (".cursor/mcp.json", 10)):
        register(
            file,
            CPERSONA_DB_PATH=str(db),
            CPERSONA_EMBEDDING_MODE="http",
            CPERSONA_EMBEDDING_URL=f"http://127.0.0.1:{port}/embed",
        )
    run = reembed("--yes", "--json")
    assert (run.code, [finding["trap"] for finding in run.json["findings"]]) == (1, ["database.urls-differ"])
    assert oracle.state() == "old"


def test_another_job_is_under_way(reembed: Reembed, db: Path) -> None:
    everything = texts(db).values()
    with serving(width=WIDTH) as server, serving(width=32) as other:
        server.behaviour.before = lambda request, _: Answer(401, "") if sent([request], everything) else None
        assert reembed(*about(db, server, "--yes")).code == 1
        run = reembed(*about(db, other, "--yes", "--json"))
        assert run.code == 1
        assert "abandon" in json.dumps(run.json["plan"]["refusals"])
        assert reembed("abandon", "--db", str(db), "--yes").code == 0
        assert reembed(*about(db, other, "--yes")).code == 0


def test_mode_none(reembed: Reembed, register: Register, db: Path) -> None:
    register(CPERSONA_DB_PATH=str(db), CPERSONA_EMBEDDING_MODE="none")
    run = reembed("--yes", "--json")
    assert run.code == 1
    assert run.json["switched"] is None


# --- progress


def test_events_end_with_a_word(reembed: Reembed, db: Path) -> None:
    with serving(width=WIDTH) as server:
        run = reembed(*about(db, server, "--yes", "--progress", "json"))
        events = [json.loads(line) for line in run.err.splitlines()]
        assert events[-1] == {"event": "done", "exit_code": 0}
        assert {event["event"] for event in events} == {"progress", "done"}
        assert "switching" in [event.get("phase") for event in events]
        run = reembed("--db", "absent.db", "--url", server.url(), "--progress", "json")
    events = [json.loads(line) for line in run.err.splitlines() if line.startswith("{")]
    assert [event["event"] for event in events] == ["error", "done"]
    assert events[1]["exit_code"] == run.code == 3


def test_quiet_is_one_line(reembed: Reembed, db: Path) -> None:
    with serving(width=WIDTH) as server:
        run = reembed(*about(db, server, "--yes", "-q"))
    assert (run.code, run.err) == (0, "")
    assert run.out.startswith("PASS   21 of 21 re-embedded")
    assert run.out.count("\n") == 1


# --- search


def test_compare_only(reembed: Reembed, db: Path, register: Register) -> None:
    oracle = Oracle(db, WIDTH)
    with serving(width=64) as old, serving(width=WIDTH) as new:
        register(CPERSONA_DB_PATH=str(db), CPERSONA_EMBEDDING_MODE="http", CPERSONA_EMBEDDING_URL=old.url())
        run = reembed("--url", new.url(), "--compare-only", "--json")
    assert (run.code, run.json["search"]["verdict"]) == (0, "same")
    assert run.json["search"]["known_item_old"]["asked"] == run.json["search"]["known_item_new"]["asked"]
    assert oracle.state() == "old"
    assert beside(db) == set()


def test_status_of_nothing(reembed: Reembed, db: Path) -> None:
    run = reembed("status", "--db", str(db))
    assert (run.code, run.last) == (0, "PASS   no re-embedding of this database is on record")


# --- afterwards


def test_the_edit_for_an_endpoint_in_mode_api(reembed: Reembed, register: Register, db: Path, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("sk-0123456789abcdef\n")
    with serving(width=WIDTH, key="sk-0123456789abcdef") as server:
        register(CPERSONA_DB_PATH=str(db), CPERSONA_EMBEDDING_MODE="none")
        words = ["--url", server.url("/v1/embeddings"), "--model", "m-1", "--api-key-file", str(key), "--sample", "0"]
        run = reembed(*words, "--yes", "--json")
    assert run.code == 0
    step = run.json["next_steps"][0]
    assert '"CPERSONA_EMBEDDING_MODE": "api"' in step["edit"]
    assert '"CPERSONA_EMBEDDING_MODEL": "m-1"' in step["edit"]
    assert step["sentence"].endswith("; CPERSONA_EMBEDDING_API_KEY goes there too")
    assert "sk-0123456789abcdef" not in run.out
    assert {label for _, label in vectors(db).values()} == {"m-1"}


def test_another_client_with_another_endpoint_is_named(reembed: Reembed, register: Register, db: Path) -> None:
    with serving(width=WIDTH) as server:
        for file, url in ((".claude.json", server.url()), (".cursor/mcp.json", "http://127.0.0.1:9/embed")):
            register(file, CPERSONA_DB_PATH=str(db), CPERSONA_EMBEDDING_MODE="http", CPERSONA_EMBEDDING_URL=url)
        plan = reembed("--client", "claude-code", "--dry-run")
        assert "Cursor (user) opens this database too, and calls another endpoint" in plan.out
        run = reembed("--client", "claude-code", "--yes", "--json", "--sample", "0")
    assert run.code == 0
    assert run.json["next_steps"][0]["sentence"].startswith("Cursor (user): in ")


def test_a_second_rebuild_says_what_it_gives_up(reembed: Reembed, db: Path) -> None:
    with serving(width=WIDTH) as server:
        assert reembed(*about(db, server, "--yes")).code == 0
        plan = reembed(*about(db, server, "--dry-run", "--json")).json["plan"]
    said = " ".join(plan["warnings"])
    assert "an earlier rebuild with this model is on record" in said
    assert "are given up at the switch" in said


def test_what_changed_since_is_left_alone_by_undo(reembed: Reembed, db: Path) -> None:
    oracle = Oracle(db, WIDTH)
    with serving(width=WIDTH) as server:
        assert reembed(*about(db, server, "--yes")).code == 0
    vector = blob("another text", WIDTH).hex()
    run_sql(
        db,
        f"UPDATE memories SET content = 'another text', embedding = x'{vector}' WHERE id = 3",
        "DELETE FROM memories WHERE id = 4",
        "INSERT INTO memories(agent_id, content, timestamp, embedding)"
        f" VALUES ('atlas', 'newer', '2025-05-01', x'{vector}')",
    )
    run = reembed("undo", "--db", str(db), "--yes")
    assert (run.code, run.last) == (1, "FAIL   19 rows as before, 2 left as they are")
    for words in ("1 row that changed since", "1 row that came since", "1 row that are no more", "--only foreign"):
        assert words in run.out
    held = vectors(db)
    assert all(held[row] == old for row, old in oracle.old.items() if row in held and row != ("mem", 3))
    again = reembed("undo", "--db", str(db), "--yes", "--json").json["job"]["undone"]
    assert (again["restored"], again["already"]) == (0, 19)


def test_undo_asks_for_the_database_too(reembed: Reembed, db: Path) -> None:
    with serving(width=WIDTH) as server:
        assert reembed(*about(db, server, "--yes")).code == 0
    with Other(db, "SELECT count(*) FROM memories") as other:
        run = reembed("undo", "--db", str(db), "--yes", "--json")
        assert run.code == 1
        assert f"process {other.process.pid}" in run.json["refusals"][0]
        assert run.json["next_command"] == f"cpersona-cli reembed undo --db {db}"


def test_finish_without_anything_to_finish(reembed: Reembed, db: Path) -> None:
    with serving(width=WIDTH) as server:
        assert reembed("finish", "--db", str(db), "--url", server.url()).code == 1
        assert reembed(*about(db, server, "--yes", "--live")).code == 0
        run = reembed("finish", "--db", str(db), "--url", server.url(), "--json")
        assert (run.code, run.json["planned"], run.json["done"]) == (0, 0, 0)
    assert reembed("finish", "--db", str(db), "--url", server.url(), "--json").code == 3


def test_a_run_that_was_killed_before_its_last_word(
    reembed: Reembed, db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(width=WIDTH) as server:
        with monkeypatch.context() as patch:
            patch.setattr("cpersona_cli.commands.rebuilding.told", lambda _path: None)
            assert reembed(*about(db, server, "--yes")).code == 0
        server.requests.clear()
        run = reembed(*about(db, server, "--yes"))
        assert server.requests == []
    assert (run.code, run.last) == (0, "PASS   21 of 21 re-embedded")
    assert "by the earlier run, which ended before it could say so" in run.out


def test_what_keeps_a_run_from_going_on_leaves_what_was_kept(
    reembed: Reembed, db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R14: a full disk ends it, and the next run goes on."""
    oracle = Oracle(db, WIDTH)
    from cpersona_cli.store.model import StoreError  # noqa: PLC0415
    from cpersona_cli.store.writing.staging import Staging  # noqa: PLC0415

    real, kept = Staging.add, []

    def full(self: Staging, *args: Any) -> None:
        kept.append(True)
        if len(kept) > 3:
            raise StoreError("the disk is full: make room, then run the same command again")
        real(self, *args)

    with serving(width=WIDTH) as server:
        with monkeypatch.context() as patch:
            patch.setattr(Staging, "add", full)
            run = reembed(*about(db, server, "--yes", "--json", "--batch-size", "4", "--concurrency", "1"))
        assert (run.code, run.json["unsettled"]) == (
            1, ["the disk is full: make room, then run the same command again"],
        )  # fmt: skip
        assert oracle.state() == "old"
        run = reembed(*about(db, server, "--yes", "--json"))
    assert (run.code, oracle.state()) == (0, "new")
    assert run.json["done_by_earlier_runs"] > 0


def test_a_bug_of_ours_hides_nothing(reembed: Reembed, db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = Oracle(db, WIDTH)

    def broken(*_args: object, **_fields: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("cpersona_cli.rebuild.job.cut_over", broken)
    with serving(width=WIDTH) as server:
        run = reembed(*about(db, server, "--yes", "--json"))
    assert (run.code, oracle.state()) == (1, "old")
    (sentence,) = run.json["unsettled"]
    assert "ZeroDivisionError" in sentence
    assert "The database is all old or all new." in sentence


# --- how things stand, and the commands that are printed


@pytest.mark.parametrize("only", ["missing", "mismatched", "damaged"])
def test_vectors_of_another_model_do_not_get_company(reembed: Reembed, db: Path, only: str) -> None:
    """M05: the width tells nothing. Rows that stay are compared before some get vectors of this endpoint."""
    run_sql(
        db, "UPDATE memories SET embedding = NULL WHERE id = 3", "UPDATE memories SET embedding = x'00' WHERE id = 4"
    )
    before = vectors(db)
    with serving(width=64, after=lambda _request, found: [vector[::-1] for vector in found]) as server:
        run = reembed(*about(db, server, "--yes", "--json", "--only", only))
        dry = reembed(*about(db, server, "--dry-run", "--only", only))
    assert (run.code, dry.code, vectors(db), beside(db)) == (1, 1, before, set())
    assert run.json["refusals"][0].startswith("about 19 of 19 stored vectors of this width are another model’s (median")
    with serving(width=64) as server:
        assert reembed(*about(db, server, "--yes", "--only", only)).code == 0
    assert vectors(db) != before


def test_some_vectors_of_another_model_are_mentioned(reembed: Reembed, db: Path) -> None:
    other = blob("no text of this store", 64).hex()
    run_sql(
        db,
        f"UPDATE memories SET embedding = x'{other}' WHERE id > 15",
        "UPDATE memories SET embedding = NULL WHERE id = 1",
    )
    with serving(width=64) as server:
        run = reembed(*about(db, server, "--dry-run", "--json", "--only", "missing"))
    assert run.code == 0
    (warning,) = run.json["plan"]["warnings"]
    assert warning.startswith("about 5 of 20 stored vectors of this width are another model’s (median cosine 1.00)")
    assert warning.endswith("and stay: --only foreign takes them")


def test_a_job_about_other_rows_is_told_before_anything_is_asked(reembed: Reembed, db: Path) -> None:
    run_sql(db, "UPDATE memories SET embedding = NULL WHERE id = 3")
    with serving(width=64) as server, Other(db, "SELECT count(*) FROM memories"):
        assert reembed(*about(db, server, "--yes", "--only", "missing", "--cut-long")).code == 1
    with serving(width=64) as server:
        server.requests.clear()
        run = reembed(*about(db, server, "--dry-run", "--json"))
        assert run.json["refusals"][0].startswith(
            "a job about other rows is under way here (--only missing, not --only all)"
        )
        assert run.json["next_command"] == f"cpersona-cli reembed status --db {db}"
        run = reembed(*about(db, server, "--yes", "--json", "--only", "missing"))
        assert run.json["refusals"][0].startswith("the job under way here was begun with --cut-long")
        assert sent(server.requests, ["The parser must accept a missing final newline."]) == []


def test_status_prints_the_command_that_goes_on(reembed: Reembed, db: Path) -> None:
    """A job whose endpoint no registration names is continued by naming it again."""
    run_sql(db, "UPDATE memories SET embedding = NULL WHERE id = 3")
    with serving(width=64) as server:
        with Other(db, "SELECT count(*) FROM memories"):
            assert reembed(*about(db, server, "--yes", "--only", "missing", "--cut-long")).code == 1
        command = reembed("status", "--db", str(db), "--json").json["next_command"]
        assert command == f"cpersona-cli reembed --db {db} --url {server.url()} --only missing --cut-long"
        assert reembed(*command.split()[2:], "--yes").last == "PASS   1 of 1 re-embedded"


def test_what_failed_is_tried_again_at_the_endpoint_that_was_named(
    reembed: Reembed, register: Register, db: Path
) -> None:
    """The registration still names the former endpoint, whose vectors must not come in."""

    def before(request: Request, _number: int) -> Answer | None:
        return Answer(400, {"error": "no"}) if any("hazelnuts" in text for text in request.texts) else None

    with serving(width=64) as former, serving(width=64, before=before) as server:
        register(CPERSONA_DB_PATH=str(db), CPERSONA_EMBEDDING_MODE="http", CPERSONA_EMBEDDING_URL=former.url())
        run = reembed(*about(db, server, "--yes", "--json"))
    assert run.code == 1
    assert run.json["next_command"] == f"cpersona-cli reembed --only missing --db {db} --url {server.url()}"


def test_old_vectors_that_hold_no_numbers(reembed: Reembed, db: Path) -> None:
    """M07: infinite, and of both signs."""
    run_sql(db, f"UPDATE memories SET embedding = x'{'0000807f000080ff' * 32}' WHERE id IN (2, 5)")
    with serving(width=64) as server:
        run = reembed(*about(db, server, "--yes", "--only", "damaged"))
    assert (run.code, run.last) == (0, "PASS   2 of 2 re-embedded")


def test_finishing_twice_leaves_the_calibration_of_the_server(reembed: Reembed, db: Path) -> None:
    """The server has measured its thresholds again after the switch: they are right."""
    calibration = db.with_name(db.name + ".calibration.json")
    with serving(width=WIDTH) as server:
        assert reembed(*about(db, server, "--yes", "--live")).code == 0
        calibration.write_text('{"embedding_dim": 96, "global_threshold": 0.41}')
        run = reembed("finish", "--db", str(db), "--url", server.url())
    assert (run.code, run.last) == (0, "PASS   nothing was left to do; every row has its vector")
    assert calibration.read_text() == '{"embedding_dim": 96, "global_threshold": 0.41}'
