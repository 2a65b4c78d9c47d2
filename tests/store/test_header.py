"""Which write-ahead logs belong to their database."""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from cpersona_cli.store import header, inspect
from cpersona_cli.store.header import parse, read_log, why_stale
from cpersona_cli.store.reading import State

_STEPS = (
    "INSERT INTO memories VALUES (NULL, 'a', hex(randomblob(20)), '2025-01-01')",
    "INSERT INTO memories VALUES (NULL, 'b', hex(randomblob(9000)), '2025-01-01')",
    "UPDATE memories SET content = content || 'x' WHERE id % 3 = 0",
    "DELETE FROM memories WHERE id % 5 = 0",
    "PRAGMA user_version = 4",
    "PRAGMA wal_checkpoint(PASSIVE)",
    "PRAGMA wal_checkpoint(RESTART)",
    "PRAGMA wal_checkpoint(TRUNCATE)",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SELECT count(*) FROM memories",
    "CREATE TABLE IF NOT EXISTS extra(a)",
    "DROP TABLE IF EXISTS extra",
    "reopen",
)


def _connect(database: Path, chance: random.Random) -> sqlite3.Connection:
    connection = sqlite3.connect(database, isolation_level=None, timeout=0)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(f"PRAGMA wal_autocheckpoint={chance.choice((0, 3, 1000))}")
    connection.execute("PRAGMA cache_size=4")
    return connection


def _crashes(database: Path, seed: int) -> Iterator[int]:
    """Use a database from three connections and yield, wherever a crash could happen, the rows then committed."""
    chance = random.Random(seed)
    users = [_connect(database, chance) for _ in range(3)]
    users[0].execute("CREATE TABLE memories(id INTEGER PRIMARY KEY, agent_id, content, timestamp)")
    for _ in range(40):
        number = chance.randrange(3)
        step = chance.choice(_STEPS)
        with contextlib.suppress(sqlite3.OperationalError):
            if step == "reopen":
                users[number].close()
                users[number] = _connect(database, chance)
            else:
                users[number].execute(step).fetchall()
        with contextlib.closing(sqlite3.connect(database)) as reader:
            yield reader.execute("SELECT count(*) FROM memories").fetchone()[0]
    for user in users:
        user.close()


@pytest.mark.parametrize("seed", range(6))
def test_no_crash_makes_a_log_look_foreign(tmp_path: Path, seed: int) -> None:
    database = tmp_path / "c.db"
    logs = 0
    for number, committed in enumerate(_crashes(database, seed)):
        image = tmp_path / f"crash{number}" / "c.db"
        image.parent.mkdir()
        shutil.copy2(database, image)
        log = database.with_name("c.db-wal")
        if log.exists():
            shutil.copy2(log, image.with_name("c.db-wal"))
            logs += log.stat().st_size > 0
        reading = inspect.read(image, timeout=10, mountinfo="", system="linux", holders=lambda _: ())
        assert (reading.state, reading.counts["memories"]) == (State.OK, committed), reading.detail
    assert logs


def test_a_header_is_all_or_nothing() -> None:
    whole = b"SQLite format 3\0" + (1).to_bytes(2, "big") + b"\2\2" + bytes(80)
    found = parse(whole)
    assert found is not None
    assert (found.wal, found.page_size) == (True, 65536)
    assert parse(whole[:99]) is None
    assert parse(b"x" + whole[1:]) is None


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """A database and its log, as a crash leaves them."""
    database = tmp_path / "live.db"
    connection = sqlite3.connect(database, isolation_level=None)
    for step in ("PRAGMA journal_mode=WAL", "CREATE TABLE t(a)", "INSERT INTO t VALUES (1)", "PRAGMA user_version=3"):
        connection.execute(step)
    shutil.copyfile(database, tmp_path / "c.db")
    shutil.copyfile(tmp_path / "live.db-wal", tmp_path / "c.db-wal")
    connection.close()
    return tmp_path / "c.db"


def test_what_a_log_holds(pair: Path) -> None:
    log = read_log(pair.with_name("c.db-wal"))
    assert log is not None
    assert (log.page_size, log.size, set(log.pages)) == (4096, 2, {1, 2})
    assert log.first is not None
    assert log.last is not None
    assert log.first <= log.last


@pytest.mark.parametrize("keep", [0, 10, 31, 32, 60, 4000])
def test_a_log_without_a_whole_frame_holds_nothing(pair: Path, keep: int) -> None:
    log = pair.with_name("c.db-wal")
    log.write_bytes(log.read_bytes()[:keep])
    assert read_log(log) is None
    assert why_stale(pair, log, in_use=False) == ""


def test_a_log_whose_header_does_not_add_up_holds_nothing(pair: Path) -> None:
    log = pair.with_name("c.db-wal")
    content = bytearray(log.read_bytes())
    content[20] ^= 1
    log.write_bytes(content)
    assert read_log(log) is None


def test_a_log_too_long_to_follow_proves_nothing(pair: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(header, "_FRAMES", 1)
    assert read_log(pair.with_name("c.db-wal")) is None


@pytest.mark.parametrize(
    ("seconds", "words"), [(7, "7 seconds"), (60, "1 minute"), (7300, "2 hours"), (86_400 * 3, "3 days")]
)
def test_spans_of_time(seconds: float, words: str) -> None:
    assert header._span(seconds) == words
