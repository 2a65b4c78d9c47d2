"""The servers of three lines after an import: every memory that was there scores as before, and nothing is amiss."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.endpoints_small import SmallEndpoint, serving
from support.stores import SENTENCES, Server, copy_store, fill, run_sql
from support.talks import ask, day, imported, talk, turn, wants

from cpersona_cli.embedding.model import Endpoint, Mode
from cpersona_cli.history.wants import FORMER_LIMIT, LIMIT, Form
from cpersona_cli.rebuild.target import identified
from cpersona_cli.store.audit_model import Lens
from cpersona_cli.store.boundary import Penalty, Scope, rule_of
from cpersona_cli.store.cpersona.store import CPersonaStore
from cpersona_cli.store.model import Kind
from cpersona_cli.store.writing.mending import find, mend
from cpersona_cli.store.writing.taking_back import take_back

pytestmark = pytest.mark.server

SERVERS = {
    "2.4.41": os.environ.get("CPERSONA_CLI_TEST_OLDEST_SERVER", ""),
    "2.5.12": os.environ.get("CPERSONA_CLI_TEST_OLD_SERVER", ""),
    "2.6.14": sys.executable,
}


def python_of(release: str) -> str:
    if not SERVERS[release]:
        pytest.skip(f"no interpreter with {release} is named; `make test` sets it")
    return SERVERS[release]


def env(endpoint: SmallEndpoint) -> dict[str, str]:
    """The penalty is on, and steep; search is by meaning alone, so that a score is one memory's own."""
    return {
        "CPERSONA_EMBEDDING_MODE": "http",
        "CPERSONA_EMBEDDING_URL": endpoint.url(),
        "CPERSONA_FTS_ENABLED": "false",
        "CPERSONA_EPISODE_PENALTY_ENABLED": "true",
        "CPERSONA_EPISODE_DECAY_RATE": "0.0001",
        "CPERSONA_EPISODE_DECAY_FLOOR": "0.01",
        "CPERSONA_CONFIDENCE_ENABLED": "true",
        "CPERSONA_FUSED_GATE_ENABLED": "false",
        "CPERSONA_AUTOCUT_ENABLED": "false",
    }


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Path], Path]:
    """Copies of a store that the server of a release wrote, with an episode of the ninth of March 2025."""
    written: dict[str, Path] = {}

    def copy(release: str, folder: Path) -> Path:
        if release not in written:
            database = written[release] = tmp_path_factory.mktemp("written") / "c.db"
            with serving(width=64) as endpoint, Server(database, env(endpoint), python_of(release)) as server:
                fill(server)
                for number, place in enumerate(({"project_id": "orion"}, {"channel": "desk"})):
                    message = {"content": f"{SENTENCES[1]} Again {number}.", "timestamp": "2025-03-18T00:00:00+00:00"}
                    answer = server.call("store", agent_id="atlas", message=message, **place)
                    assert "error" not in answer, answer
            run_sql(database, "UPDATE episodes SET created_at = '2025-03-09 11:00:00'")
        return copy_store(written[release], folder)

    return copy


#: Every kind of recall: no restriction, the global pool, a project, a channel.
PLACES: tuple[dict[str, str], ...] = ({}, {"project_id": ""}, {"project_id": "orion"}, {"channel": "desk"})

Scores = dict[tuple[object, ...], float]


def scores(database: Path, settings: dict[str, str], python: str) -> Scores:
    """The cosine, as the penalty left it, of every memory from before that recall gives.

    Which ones it gives depends on their number too, so only those near the question are sure to be among them.
    """
    known = set(ask(database, "SELECT content FROM memories WHERE timestamp LIKE '2025-03%'"))
    found = {}
    with Server(database, settings, python) as server:
        for query in (SENTENCES[1], SENTENCES[6]):
            for place in PLACES:
                answer = server.call("recall", agent_id="atlas", query=query, limit=60, **place)
                for message in answer["messages"]:
                    if message["content"] in known:
                        found[query, *place.items(), message["content"]] = message["confidence"]["cosine"]
    return found


def near(found: Scores) -> Scores:
    """Those near the question."""
    return {key: score for key, score in found.items() if score > 0.8}


def common(before: Scores, after: Scores) -> Scores:
    """The scores from before, where there is one after."""
    return {key: score for key, score in before.items() if key in after}


@pytest.mark.parametrize(("release", "with_episode"), [("2.4.41", True), ("2.5.12", True), ("2.6.14", False)])
def test_every_memory_that_was_there_scores_as_before(
    stores: Callable[[str, Path], Path], tmp_path: Path, release: str, *, with_episode: bool
) -> None:
    python, database = python_of(release), stores(release, tmp_path / "store")
    if not with_episode:
        run_sql(database, "DELETE FROM episodes")
    wanted = wants(
        no_penalty=True,
        clamp=True,
        limit=FORMER_LIMIT if release == "2.4.41" else LIMIT,
        lens=Lens(rule_of(release), Penalty(rate=0.0001, floor=0.01)),
    )
    talks = [
        day("c1", "2023-04-05T10:00:00", "quarterly ferry timetables"),
        # newer than everything that is there
        day("c2", "2026-02-03T10:00:00", "repairs of the northern pier"),
    ]
    with serving(width=64) as endpoint:
        before = scores(database, env(endpoint), python)
        assert len(near(before)) >= 8
        target = identified(Endpoint(mode=Mode.HTTP, url=endpoint.url()))
        done = imported(database, talks, wanted, identified=target)
        assert done.rows == {Kind.EPISODE: 2, Kind.MEMORY: 6}
        assert (done.held, done.whole, done.embedded) == (True, True, 8)
        after = scores(database, env(endpoint), python)
        assert near(before).keys() <= after.keys()
        assert common(after, before) == common(before, after)
        # and what was brought in is found
        with Server(database, env(endpoint), python) as server:
            answer = server.call("recall", agent_id="atlas", query="repairs of the northern pier", limit=5)
        assert any("northern pier" in message["content"] for message in answer["messages"])


def test_an_import_without_care_does_lower_scores(stores: Callable[[str, Path], Path], tmp_path: Path) -> None:
    """The measure above would see it."""
    database = stores("2.6.14", tmp_path / "store")
    with serving(width=64) as endpoint:
        before = scores(database, env(endpoint), sys.executable)
        imported(database, [day("c2", "2026-02-03T10:00:00")], wants())
        after = scores(database, env(endpoint), sys.executable)
    shown = near(before).keys() & after.keys()
    assert shown
    assert all(after[key] < before[key] / 2 for key in shown)


def issues(server: Server) -> set[str]:
    """What the server's own check complains about."""
    report = server.call("check_health", agent_id="atlas")
    return {issue["type"] for issue in report["issues"]}


def test_the_servers_own_check_finds_nothing_in_what_was_brought_in(tmp_path: Path) -> None:
    database = tmp_path / "store" / "c.db"
    database.parent.mkdir()
    with serving(width=64) as endpoint:
        settings = {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": endpoint.url()}
        with Server(database, settings) as server:
            server.store("atlas", "A memory of its own.", source={"type": "User", "id": "u", "name": "U"})
            before = issues(server)
        long = " ".join(f"Line {number} of a long tale of the ferry." for number in range(1000))
        talks = [
            day("c1", "2023-04-05T10:00:00"),
            talk(
                "c2",
                turn("m1", f"[Memory from x] {long}\x00", "2023-05-05T10:00:00.123456"),
                turn("m2", "  ログは三十日だけ保存する。 🍸👩‍👩‍👧 and a half: \ufffd ", "2023-05-05T10:00:01"),
                turn("m3", "Undated, and left out by rule.", None),
                title="A tale",
            ),
        ]
        done = imported(
            database, talks, wants(no_penalty=True), identified=identified(Endpoint(mode=Mode.HTTP, url=endpoint.url()))
        )
        assert done.whole
        assert done.blocks
        with Server(database, settings) as server:
            # the blocks that were asked for, and their index, are built in the background
            assert issues(server) - before <= {"missing_blocks", "missing_nodes", "block_index_absent"}
            deep = server.call("deep_check", agent_id="atlas", checks=["anonymous_source", "embedding_norm"])
            assert not any(found.get("count") for found in deep["results"].values()), deep
            listed = server.call("list_memories", agent_id="atlas", limit=100)
    dates = sorted(memory["timestamp"][:7] for memory in listed["memories"])
    assert dates[:-1] == ["2023-04"] * 3 + ["2023-05"] * 4


def test_a_store_that_the_oldest_server_harmed_is_mended_and_the_repair_taken_back(
    stores: Callable[[str, Path], Path], tmp_path: Path
) -> None:
    python, database = python_of("2.4.41"), stores("2.4.41", tmp_path / "store")
    lens = Lens(rule_of("2.4.41"), Penalty(rate=0.0001, floor=0.01))
    old = tmp_path / "old.jsonl"
    old.write_text(
        "".join(
            json.dumps(
                {
                    "_type": "episode",
                    "agent_id": "atlas",
                    "summary": f"Old plans, part {month}.",
                    "start_time": f"2024-0{month}-01T10:00:00+00:00",
                    "end_time": f"2024-0{month}-01T11:00:00+00:00",
                    "created_at": f"2024-0{month}-01 11:00:00",
                }
            )
            + "\n"
            for month in (1, 2, 3)
        )
    )
    with serving(width=64) as endpoint:
        before = scores(database, env(endpoint), python)
        with Server(database, env(endpoint), python) as server:
            server.call("import_memories", input_path=str(old), target_agent_id="atlas")
        harmed = scores(database, env(endpoint), python)
        assert all(harmed.get(key, 0.0) < score for key, score in near(before).items())
        harm = find(CPersonaStore(database), lens)
        assert (harm.episodes, harm.bursts, dict(harm.agents)) == (3, (3,), {"atlas": 3})
        assert (harm.oldest, harm.newest) == ("2024-01-01 11:00:00", "2024-03-01 11:00:00")
        (change,) = harm.scopes
        assert change.scope == Scope("atlas")
        assert change.after.stamp == "2025-03-09 11:00:00"
        assert change.changed == change.rows == 17
        assert change.most > 0
        stamps = ask(database, "SELECT id, created_at FROM episodes")
        done = mend(database)
        assert (done.mended, done.left) == (3, 0)
        assert done.backup is not None
        assert find(CPersonaStore(database), lens).episodes == 0
        assert mend(database).id == ""
        after = scores(database, env(endpoint), python)
        assert near(before).keys() <= after.keys()
        assert common(after, before) == common(before, after)
        taken = take_back(database)
        assert (taken.of.id, taken.removed, taken.left) == (done.id, 3, 0)
        assert ask(database, "SELECT id, created_at FROM episodes") == stamps


def test_a_live_server_goes_on_storing_while_rows_are_brought_in(tmp_path: Path) -> None:
    database = tmp_path / "store" / "c.db"
    database.parent.mkdir()
    with Server(database) as server:
        fill(server)
        stored: list[bool] = []

        def tell(_progress: object) -> None:
            server.store("atlas", f"Noted meanwhile, number {len(stored)}, about something of its own.")
            stored.append(True)

        talks = [day(f"c{n}", "2023-04-05T10:00:00", f"gyroscope{n}", turns=40) for n in range(10)]
        done = imported(database, talks, wants(no_penalty=True, form=Form.BOTH), tell=tell)
        assert done.rows == {Kind.EPISODE: 10, Kind.MEMORY: 400}
        assert done.held is True
        assert len(stored) >= 2
        answer = server.call("recall", agent_id="atlas", query="gyroscope3", limit=5)
        assert any("gyroscope3" in message["content"] for message in answer["messages"])
    (memories,) = ask(database, "SELECT count(*) FROM memories")
    assert memories == 20 + 400 + len(stored)
