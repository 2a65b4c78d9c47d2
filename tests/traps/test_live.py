"""The doctor asks the endpoints of a machine: real sockets, a real store, the traps of the registry."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest
from support.endpoints_small import Answer, Behaviour, Request, SmallEndpoint
from support.stores import run_sql, schema_13
from support.traps import facts, registration, targets

from cpersona_cli.embedding.kinds import MEANINGS, Kind
from cpersona_cli.install.machine import Machine
from cpersona_cli.record import replace
from cpersona_cli.traps import live
from cpersona_cli.traps.endpoint import UNDECIDED, trap_id
from cpersona_cli.traps.endpoint_remarks import REMARKS
from cpersona_cli.traps.gather import Selection, gather
from cpersona_cli.traps.model import Facts, Needs
from cpersona_cli.traps.registry import ALL
from cpersona_cli.traps.run import Check, State, check

TRAPS = {trap.id: trap for trap in ALL if trap.needs is Needs.ENDPOINT}


def asked(
    tmp_path: Path, url: str, database: Path | None = None, *, deadline: float = 20.0, mode: str = "http"
) -> Facts:
    """The facts of one registration of Claude Code whose endpoint is ``url``."""
    settings = {
        "CPERSONA_DB_PATH": str(database or tmp_path / "memory.db"),
        "CPERSONA_EMBEDDING_MODE": mode,
        "CPERSONA_EMBEDDING_URL": url,
    }
    entry = {"command": "cpersona", "args": [], "env": settings}
    (tmp_path / ".claude.json").write_text(json.dumps({"mcpServers": {"cpersona": entry}}, indent=2))
    machine = Machine(system="linux", home=tmp_path, cwd=tmp_path, env={"PATH": "/usr/bin"}, root=tmp_path / "root")
    return gather(Selection(online=True), machine, deadline)


def ended(known: Facts) -> dict[str, Check]:
    """Every endpoint check that did not simply pass."""
    checks = [check(trap, known) for trap in TRAPS.values()]
    return {made.trap.id: made for made in checks if made.state is not State.PASS}


def test_a_good_endpoint_passes_every_check(tmp_path: Path) -> None:
    with SmallEndpoint(Behaviour()) as server:
        known = asked(tmp_path, server.url("/embed"))
        sent = sum(len(request.texts) for request in server.requests)
    assert ended(known) == {}
    assert len(known.endpoints) == 1
    assert sent < 40, "only a few short texts"


@pytest.mark.parametrize(
    ("behaviour", "path", "trap", "says"),
    [
        (Behaviour(), "/embeds", "endpoint.route-not-found", "/embed"),
        (Behaviour(), "/v1/embeddings", "endpoint.wrong-contract", "CPERSONA_EMBEDDING_"),
        (Behaviour(scale=3.0), "/embed", "endpoint.not-normalized", "normali"),
        (Behaviour(before=lambda _r, _n: Answer(401)), "/embed", "endpoint.auth", "token"),
        (Behaviour(after=lambda _r, v: [[0.0] * len(x) for x in v]), "/embed", "endpoint.zero-vector", "model"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_is_named_with_the_setting(
    tmp_path: Path, behaviour: Behaviour, path: str, trap: str, says: str
) -> None:
    with SmallEndpoint(behaviour) as server:
        found = ended(asked(tmp_path, server.url(path)))
    assert found[trap].state is State.FINDINGS
    (finding,) = found[trap].findings
    shown = " ".join([finding.measured, finding.repair.prose, finding.repair.edit, *finding.repair.commands])
    assert says in shown
    assert finding.subject == "Claude Code (user)"
    assert finding.place is not None
    assert finding.place.file == tmp_path / ".claude.json"


def test_a_stopped_endpoint_is_refused_and_not_merely_unreachable(tmp_path: Path) -> None:
    with SmallEndpoint(Behaviour()) as server:
        url = server.url("/embed")
    found = ended(asked(tmp_path, url))
    assert list(found) == ["endpoint.refused"]
    assert len(found["endpoint.refused"].findings) == 1


def test_loading_is_unknown_and_no_fault(tmp_path: Path) -> None:
    with SmallEndpoint(Behaviour(loading=99)) as server:
        found = ended(asked(tmp_path, server.url("/embed")))
    assert list(found) == ["endpoint.undecided"]
    assert found["endpoint.undecided"].state is State.UNKNOWN
    assert "loaded" in found["endpoint.undecided"].reason


def test_the_deadline_holds_against_an_endpoint_that_says_nothing(tmp_path: Path) -> None:
    over = threading.Event()

    def silent(_request: Request, _number: int) -> Answer:
        over.wait(60)
        return Answer(drop=True)

    with SmallEndpoint(Behaviour(before=silent)) as server:
        start = time.monotonic()
        known = asked(tmp_path, server.url("/embed"), deadline=3.0)
        spent = time.monotonic() - start
        over.set()
    assert spent < 8.0
    assert known.unfinished or "endpoint.undecided" in ended(known)


def test_a_measurement_that_fails_is_named_and_is_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_goal: live.Goal, _end: float, _wait: float) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(live, "_measured", broken)
    known = asked(tmp_path, "http://127.0.0.1:9/embed")
    assert known.endpoints == ()
    assert known.unfinished == ("the endpoint of Claude Code (user) could not be examined (ZeroDivisionError)",)
    assert capsys.readouterr().err == ""


def test_stored_vectors_of_another_width_or_model_are_found(tmp_path: Path) -> None:
    with SmallEndpoint(Behaviour(width=8)) as server:
        url = server.url("/embed")
        database = schema_13(tmp_path / "old.db", dim=8)
        rebuild = (f"cpersona-cli reembed --db {database}",)
        found = ended(asked(tmp_path, url, database))
        assert found["endpoint.model-mismatch"].findings[0].repair.commands == rebuild
        assert "endpoint.dimension-mismatch" not in found
        run_sql(database, "UPDATE memories SET embedding = zeroblob(64)")
        found = ended(asked(tmp_path, url, database))
        assert found["endpoint.dimension-mismatch"].findings[0].repair.commands == rebuild


def test_the_rebuild_of_a_database_with_two_endpoints_names_a_registration(tmp_path: Path) -> None:
    database = schema_13(tmp_path / "old.db", dim=8)
    entries = {
        name: {
            "command": "cpersona",
            "env": {
                "CPERSONA_DB_PATH": str(database),
                "CPERSONA_EMBEDDING_MODE": "http",
                "CPERSONA_EMBEDDING_URL": f"http://127.0.0.1:{port}/embed",
            },
        }
        for name, port in (("cpersona", 8401), ("cpersona-work", 8402))
    }
    (tmp_path / ".claude.json").write_text(json.dumps({"mcpServers": entries}))
    machine = Machine(system="linux", home=tmp_path, cwd=tmp_path, env={"PATH": "/usr/bin"}, root=tmp_path / "root")
    known = gather(Selection(), machine, 20.0)
    assert [goal.rebuild for goal in live.goals(known)] == [
        (f"cpersona-cli reembed --db {database} --registration {tmp_path}/.claude.json:{name}",) for name in entries
    ]


def test_settings_that_allow_no_call_are_left_to_other_traps(tmp_path: Path) -> None:
    for mode in ("none", "HTTP"):
        assert asked(tmp_path, "http://127.0.0.1:9/embed", mode=mode).endpoints == ()
    assert asked(tmp_path, "").endpoints == ()


def test_calls_that_are_alike_are_made_once() -> None:
    env = {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": "http://127.0.0.1:8401/embed"}
    one, other = registration(env, client="cursor"), registration(env, client="vscode")
    known = facts(env)
    known = replace(known, targets=(*targets(one), *targets(other)))
    (goal,) = live.goals(known)
    assert {target.registration.client for target in goal.targets} == {"cursor", "vscode"}
    elsewhere = registration({**env, "HTTP_PROXY": "http://proxy.example:3128"}, client="cursor")
    known = replace(known, targets=(*targets(one), *targets(elsewhere)))
    assert len(live.goals(known)) == 2


def test_every_end_of_a_call_has_its_trap() -> None:
    """What a probe reports can be explained and skipped by its id."""
    decided = {trap_id(kind) for kind, meaning in MEANINGS.items() if meaning.fatal and kind not in UNDECIDED}
    assert decided - {trap_id(Kind.DISABLED)} | {trap_id(name) for name in REMARKS} <= set(TRAPS)
