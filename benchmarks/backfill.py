"""What bringing a large export in costs: memory, and rows per second beside the server's own ``import_memories``.

Usage: python -m benchmarks.backfill [MEGABYTES]

A ChatGPT export of that size (256) is made, most of whose bytes are outputs of tools, and brought into an empty store
of the installed server without vectors. The rows are then exported by the server itself, and imported by it into
another empty store: the same records, in the same run. Needs about twice that size in the folder for temporary files.
1024 takes more than three minutes, most of them for the server's import.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from support.stores import Server

#: Resident memory that a run may take, whatever the size of the export; mebibytes.
BOUND = 200
#: Messages of a conversation, characters of a message, and characters of what a tool gave out between two of them.
MESSAGES, LENGTH, OUTPUT = 40, 600, 90_000
_MEGABYTE = 1 << 20


def words(chance: random.Random, length: int) -> str:
    """Prose-like text of about ``length`` characters; no two are alike."""
    made: list[str] = []
    size = 0
    while size < length:
        word = "".join(chance.choices("etaoinshrdlucmfwypvbgk", k=chance.randint(2, 9)))
        made.append(word)
        size += len(word) + 1
    return " ".join(made)


def conversation(number: int, chance: random.Random, output: str) -> dict[str, object]:
    """One conversation as ChatGPT exports it."""
    start = 1_600_000_000.0 + number * 3600
    mapping: dict[str, object] = {"root": {"id": "root", "message": None, "parent": None, "children": []}}
    parent = "root"
    for turn in range(MESSAGES):
        for role, kind, text in (
            (("assistant", "user")[turn % 2 == 0], "text", words(chance, LENGTH)),
            *([("tool", "execution_output", output)] if turn % 4 == 3 else []),
        ):
            name = f"{number:08}-{turn:03}-{role}"
            mapping[name] = {
                "id": name,
                "message": {
                    "id": name,
                    "author": {"role": role, "name": None, "metadata": {}},
                    "create_time": start + turn,
                    "content": {"content_type": kind, "parts": [text]}
                    if kind == "text"
                    else {"content_type": kind, "text": text},
                    "metadata": {},
                    "recipient": "all",
                },
                "parent": parent,
                "children": [],
            }
            mapping[parent]["children"] = [name]  # type: ignore[index]
            parent = name
    return {
        "title": f"Conversation {number}",
        "create_time": start,
        "update_time": start + MESSAGES,
        "mapping": mapping,
        "current_node": parent,
        "conversation_id": f"c-{number:08}",
        "id": f"c-{number:08}",
    }


def write_export(path: Path, size: int) -> tuple[int, int]:
    """An export of ``size`` bytes at the least; its conversations and messages."""
    chance = random.Random(7)
    output = words(chance, OUTPUT)
    number = 0
    with path.open("w", encoding="utf-8") as file:
        file.write("[")
        while file.tell() < size:
            file.write(("," if number else "") + json.dumps(conversation(number, chance, output)))
            number += 1
        file.write("]")
    return number, number * MESSAGES


def timed(*command: str) -> tuple[int, float, float, int, str]:
    """Exit code, wall seconds, CPU seconds, peak resident mebibytes, and stdout of a child process."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as out:
        began = time.monotonic()
        child = subprocess.Popen(command, stdout=out, stdin=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.monotonic() - began
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        return child.returncode, wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1024, out.read()


@contextlib.contextmanager
def server(folder: Path, name: str) -> Iterator[tuple[Server, Path]]:
    """The installed server on a store of its own in ``folder``."""
    place = folder / name
    place.mkdir(exist_ok=True)
    env = {
        "CPERSONA_EXPORT_DIR": str(folder),
        "CPERSONA_MAX_IMPORT_BYTES": str(1 << 30),
    }
    with Server(place / "memory.db", env) as running:
        yield running, place / "memory.db"


def rows(database: Path) -> int:
    with contextlib.closing(sqlite3.connect(database)) as connection:
        (count,) = connection.execute("SELECT count(*) FROM memories").fetchone()
        return int(count)


def main() -> int:
    """One run; 1 where memory went above the bound or rows are missing."""
    size = (int(sys.argv[1]) if len(sys.argv) > 1 else 256) * _MEGABYTE
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        export = folder / "conversations.json"
        conversations, messages = write_export(export, size)
        megabytes = export.stat().st_size / _MEGABYTE
        print(f"export    {megabytes:,.0f} MiB, {conversations:,} conversations, {messages:,} messages", flush=True)
        with server(folder, "ours") as (_, ours):
            pass
        code, wall, cpu, peak, out = timed(
            sys.executable, "-m", "cpersona_cli", "backfill", str(export), "--db", str(ours), "--agent", "atlas",
            "--no-embed", "--no-penalty", "--yes", "--json", "--progress", "none",
        )  # fmt: skip
        stored = rows(ours)
        print(
            f"backfill  {wall:6.1f} s, {cpu:6.1f} s CPU, {stored / wall:8,.0f} rows/s, {peak} MiB resident, exit {code}"
        )
        if code:
            print(json.loads(out).get("error") or json.loads(out).get("summary") or out[:2000])
        with server(folder, "ours") as (running, _):
            print(
                "exporting", running.call("export_memories", agent_id="atlas", output_path=str(folder / "rows.jsonl"))
            )
        export.unlink()
        with server(folder, "theirs") as (running, theirs):
            began = time.monotonic()
            print("importing", running.call("import_memories", input_path=str(folder / "rows.jsonl")))
            wall = time.monotonic() - began
        print(f"server    {wall:6.1f} s, {rows(theirs) / wall:8,.0f} rows/s")
        return 0 if code == 0 and stored == messages and peak <= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
