"""Memory stores for tests: written by the real server, or built by hand as older servers leave them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from support import forked

SENTENCES = (
    "The release checklist is kept in docs/release.md and is read aloud first.",
    "Mira wants review comments as questions, never as orders.",
    "Backups of the ledger run at four in the morning.",
    "We chose a single file store because it is easy to copy.",
    "The invoice template has two languages, German and Portuguese.",
    "Nobody deploys on the day before a holiday.",
    "The test account of the payment provider expires each spring.",
    "Jonas is allergic to hazelnuts; order the other cake.",
    "ログは三十日だけ保存する。",
    "The parser must accept a missing final newline.",
)


class Server:
    """The real server as a process of its own, spoken to in JSON-RPC over its standard streams.

    With ``fresh``, also its command line and its environment are seen from outside as they are (``support.forked``).
    """

    def __init__(
        self, database: Path, env: Mapping[str, str] | None = None, python: str = sys.executable, *, fresh: bool = False
    ) -> None:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("CPERSONA_", "EMBEDDING_", "COV"))}
        clean |= {
            "CPERSONA_DB_PATH": str(database),
            "CPERSONA_EMBEDDING_MODE": "none",
            "CPERSONA_UPDATE_CHECK": "false",
            **(env or {}),
        }
        self._log = (database.parent.parent / f"{database.parent.name}.server.log").open("ab")
        self.process = forked.start(python, "cpersona", env=clean, cwd=database.parent, log=self._log, fresh=fresh)
        self._id = 0
        self._ask(
            "initialize",
            {
                "protocolVersion": "2025-03-26",
                "capabilities": {},
                "clientInfo": {"name": "tests", "version": "0"},
            },
        )
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, tool: str, **arguments: Any) -> Any:
        """The answer of one tool, decoded."""
        result = self._ask("tools/call", {"name": tool, "arguments": arguments})
        text = "".join(part.get("text", "") for part in result["content"])
        assert not result.get("isError"), text
        return json.loads(text)

    def store(self, agent: str, text: str, **message: Any) -> None:
        answer = self.call("store", agent_id=agent, message={"content": text, **message})
        assert "error" not in answer, answer

    def stop(self) -> None:
        """End it as a client does: by closing its standard input."""
        if self.process.poll() is None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            self.process.wait(30)
        self._close()

    def kill(self) -> None:
        """End it as a crash does, its log and shared memory left behind."""
        self.process.kill()
        self.process.wait(30)
        self._close()

    def _close(self) -> None:
        for stream in (self.process.stdin, self.process.stdout, self._log):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def _ask(self, method: str, params: Mapping[str, Any]) -> Any:
        self._id += 1
        self._send({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        assert self.process.stdout is not None
        for line in self.process.stdout:
            answer = json.loads(line)
            if answer.get("id") == self._id:
                assert "result" in answer, answer
                return answer["result"]
        raise AssertionError(f"the server ended; see {self._log.name}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def fill(server: Server) -> None:
    """Twenty memories of two agents, an episode and a profile."""
    for number in range(20):
        server.store(
            "atlas" if number % 4 else "borealis",
            SENTENCES[number % len(SENTENCES)] + (f" (again, {number})" if number >= len(SENTENCES) else ""),
            id=f"note-{number}",
            timestamp=f"2025-03-{number + 1:02d}T09:30:00+00:00",
        )
    server.call(
        "archive_episode",
        agent_id="atlas",
        history=[{"role": "user", "content": "plan it", "timestamp": "2025-03-09T10:00:00+00:00"}],
        summary="Planning of the spring release.",
        keywords="release spring",
    )
    server.call("update_profile", agent_id="atlas", profile="Works from Lisbon and likes short answers.")


def write_store(folder: Path, python: str = sys.executable) -> Path:
    """A store of the server that ``python`` has, in ``folder``, closed: one file, no log."""
    database = folder / "memory.db"
    with Server(database, python=python) as server:
        fill(server)
    return database


def copy_store(database: Path, folder: Path) -> Path:
    """A copy of a store and of all that stands beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in database.parent.iterdir():
        if file.name.startswith(database.name):
            shutil.copy2(file, folder / file.name)
    return folder / database.name


_TABLES_13 = """
CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at TEXT NOT NULL DEFAULT (datetime('now')));
INSERT INTO schema_version VALUES (13, '2025-05-01 08:00:00');
CREATE TABLE memories (
  id INTEGER PRIMARY KEY AUTOINCREMENT, agent_id TEXT NOT NULL, project_id TEXT NOT NULL DEFAULT '',
  msg_id TEXT NOT NULL DEFAULT '', content TEXT NOT NULL, source TEXT NOT NULL DEFAULT '{}', timestamp TEXT NOT NULL,
  metadata TEXT NOT NULL DEFAULT '{}', embedding BLOB, channel TEXT NOT NULL DEFAULT '',
  recall_count INTEGER NOT NULL DEFAULT 0, last_recalled_at TEXT, locked INTEGER NOT NULL DEFAULT 0,
  created_at TEXT NOT NULL DEFAULT (datetime('now')));
CREATE TABLE episodes (
  id INTEGER PRIMARY KEY AUTOINCREMENT, agent_id TEXT NOT NULL, project_id TEXT NOT NULL DEFAULT '',
  summary TEXT NOT NULL, keywords TEXT NOT NULL DEFAULT '', embedding BLOB, start_time TEXT, end_time TEXT,
  resolved INTEGER NOT NULL DEFAULT 0, channel TEXT NOT NULL DEFAULT '',
  created_at TEXT NOT NULL DEFAULT (datetime('now')));
CREATE TABLE profiles (
  id INTEGER PRIMARY KEY AUTOINCREMENT, agent_id TEXT NOT NULL, project_id TEXT NOT NULL DEFAULT '',
  user_id TEXT NOT NULL DEFAULT '', content TEXT NOT NULL, updated_at TEXT NOT NULL DEFAULT (datetime('now')),
  UNIQUE(agent_id, user_id));
CREATE TABLE pending_memory_tasks (
  id INTEGER PRIMARY KEY AUTOINCREMENT, task_type TEXT NOT NULL, agent_id TEXT NOT NULL,
  project_id TEXT NOT NULL DEFAULT '', payload TEXT NOT NULL, retries INTEGER NOT NULL DEFAULT 0,
  created_at TEXT NOT NULL DEFAULT (datetime('now')));
CREATE INDEX idx_memories_agent ON memories(agent_id, created_at DESC);
CREATE INDEX idx_memories_isolation ON memories(agent_id, project_id, created_at DESC);
CREATE UNIQUE INDEX idx_memories_dedup_content ON memories(agent_id, project_id, channel, content);
CREATE UNIQUE INDEX idx_memories_dedup_msg_id ON memories(agent_id, project_id, msg_id) WHERE msg_id != '';
"""

_TEXT_INDEX_13 = """
CREATE VIRTUAL TABLE memories_fts USING fts5(content, content='memories', content_rowid='id', tokenize='trigram');
CREATE VIRTUAL TABLE episodes_fts USING fts5(
  summary, keywords, content='episodes', content_rowid='id', tokenize='trigram');
CREATE TRIGGER memories_fts_ai AFTER INSERT ON memories BEGIN
  INSERT INTO memories_fts(rowid, content) VALUES (new.id, new.content); END;
CREATE TRIGGER memories_fts_ad AFTER DELETE ON memories BEGIN
  INSERT INTO memories_fts(memories_fts, rowid, content) VALUES ('delete', old.id, old.content); END;
CREATE TRIGGER memories_fts_au AFTER UPDATE OF content ON memories WHEN old.content <> new.content BEGIN
  INSERT INTO memories_fts(memories_fts, rowid, content) VALUES ('delete', old.id, old.content);
  INSERT INTO memories_fts(rowid, content) VALUES (new.id, new.content); END;
CREATE TRIGGER episodes_ai AFTER INSERT ON episodes BEGIN
  INSERT INTO episodes_fts(rowid, summary, keywords) VALUES (new.id, new.summary, new.keywords); END;
CREATE TRIGGER episodes_ad AFTER DELETE ON episodes BEGIN
  INSERT INTO episodes_fts(episodes_fts, rowid, summary, keywords)
  VALUES ('delete', old.id, old.summary, old.keywords); END;
CREATE TRIGGER episodes_au AFTER UPDATE OF summary, keywords ON episodes
  WHEN old.summary <> new.summary OR old.keywords <> new.keywords BEGIN
  INSERT INTO episodes_fts(episodes_fts, rowid, summary, keywords)
  VALUES ('delete', old.id, old.summary, old.keywords);
  INSERT INTO episodes_fts(rowid, summary, keywords) VALUES (new.id, new.summary, new.keywords); END;
"""

#: What late 2.5 releases add without changing the schema number.
_LATE_13 = """
CREATE INDEX idx_memories_lost_embedding ON memories(id) WHERE embedding IS NULL;
CREATE INDEX idx_episodes_lost_embedding ON episodes(id) WHERE embedding IS NULL;
CREATE INDEX idx_memories_span ON memories(agent_id, timestamp, project_id, channel);
"""


def schema_13(database: Path, *, late: bool = False, text_index: bool = True, rows: int = 12, dim: int = 8) -> Path:
    """A store as 2.4.41 creates it (``late``: as 2.5.12 does), in rollback mode, every vector ``dim`` wide."""
    database.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        tables = _TABLES_13 + (_TEXT_INDEX_13 if text_index else "") + (_LATE_13 if late else "")
        connection.executescript(f"PRAGMA synchronous=OFF; BEGIN; {tables} COMMIT;")
        connection.executemany(
            "INSERT INTO memories(agent_id, content, timestamp, embedding) VALUES (?, ?, ?, ?)",
            (
                (
                    "atlas" if number % 3 else "borealis",
                    f"{SENTENCES[number % len(SENTENCES)]} {number}",
                    f"2025-03-{number % 28 + 1:02d}T09:30:00+00:00",
                    hashlib.sha256(str(number).encode()).digest() * (dim // 8),
                )
                for number in range(rows)
            ),
        )
        connection.execute(
            "INSERT INTO episodes(agent_id, summary, end_time, created_at)"
            " VALUES ('atlas', 'An early plan.', '2025-03-05T12:00:00+00:00', '2025-03-05 12:00:00')"
        )
    return database


def run_sql(database: Path, *statements: str) -> None:
    """Change a store by hand."""
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("PRAGMA synchronous=OFF")
        for statement in statements:
            connection.execute(statement)


def insert(database: Path, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Insert rows into a table of memories or episodes; what is not given is filled in."""
    text = "content" if table == "memories" else "summary"
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("PRAGMA synchronous=OFF")
        for number, row in enumerate(rows):
            values = {"agent_id": "atlas", text: f"text {number}", "created_at": "2026-03-01 08:00:00", **row}
            if table == "memories":
                values.setdefault("timestamp", "2026-03-01T08:00:00+00:00")
            marks = ", ".join("?" * len(values))
            connection.execute(f"INSERT INTO {table}({', '.join(values)}) VALUES ({marks})", tuple(values.values()))


_OTHER = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0)
print("ready", flush=True)
for line in sys.stdin:
    word = line.strip()
    if word == "crash":
        os._exit(9)
    if word == "close":
        connection.close()
        print("closed", flush=True)
        continue
    try:
        print(connection.execute(word).fetchall(), flush=True)
    except sqlite3.Error as error:
        print("error", error, flush=True)
"""


class Other:
    """Another process with a connection of its own to a database."""

    def __init__(self, database: Path, *statements: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _OTHER, str(database)],
            env=forked.unmeasured(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._line()
        for statement in statements:
            answer = self.say(statement)
            assert not answer.startswith("error"), answer

    def say(self, statement: str) -> str:
        """The rows of one statement, ``error ...``, or the answer to ``close``."""
        assert self.process.stdin is not None
        self.process.stdin.write(statement + "\n")
        self.process.stdin.flush()
        return self._line()

    def crash(self) -> None:
        """End without closing anything."""
        assert self.process.stdin is not None
        self.process.stdin.write("crash\n")
        self._end()

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def _end(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()


Snapshot = dict[str, tuple[int, int, str]]


def snapshot(folder: Path) -> Snapshot:
    """Every file below ``folder``: size, modification time in nanoseconds, and a hash of its bytes."""
    return {
        str(file.relative_to(folder)): (
            file.stat().st_size,
            file.stat().st_mtime_ns,
            hashlib.sha256(file.read_bytes()).hexdigest(),
        )
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


@contextlib.contextmanager
def untouched(folder: Path) -> Iterator[None]:
    """Fails when a block changes a name, a byte or a modification time below ``folder``."""
    before = snapshot(folder)
    yield
    assert snapshot(folder) == before
