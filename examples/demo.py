"""The main job on real parts: one registration, a store written by the real server, `doctor` before and after.

Usage: python -m examples.demo. Everything happens in a temporary folder and is gone afterwards.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

MEMORIES = (
    "The release checklist lives in docs/release.md; Noor signs it off.",
    "Kenji prefers short answers and never wants mail after six.",
    "The invoices table moved to its own database in March.",
)


def variables(home: Path) -> dict[str, str]:
    """The settings of the demo's registration, all in order."""
    return {
        "CPERSONA_DB_PATH": str(home / "memory.db"),
        "CPERSONA_EMBEDDING_MODE": "http",
        "CPERSONA_EMBEDDING_URL": "http://127.0.0.1:8401/embed",
        "CPERSONA_UPDATE_CHECK": "false",
    }


def register(home: Path, env: Mapping[str, str]) -> Path:
    """Write the registration of Claude Code's user scope into ``home`` and return the file."""
    entry = {"command": sys.executable, "args": ["-m", "cpersona"], "env": dict(env)}
    file = home / ".claude.json"
    file.write_text(json.dumps({"mcpServers": {"cpersona": entry}}, indent=2) + "\n")
    return file


async def remember(home: Path) -> None:
    """Let the real server create the store in ``home`` and write ``MEMORIES`` into it, without an endpoint."""
    env = {**variables(home), "CPERSONA_EMBEDDING_MODE": "none", "HOME": str(home), "PATH": os.environ.get("PATH", "")}
    server = StdioServerParameters(command=sys.executable, args=["-m", "cpersona"], env=env, cwd=home)
    with (home / "server.log").open("w") as log:
        async with stdio_client(server, errlog=log) as (reader, writer), ClientSession(reader, writer) as session:
            await session.initialize()
            for day, text in enumerate(MEMORIES, 1):
                message = {"content": text, "timestamp": f"2026-03-{day:02d}T09:00:00+00:00"}
                await session.call_tool("store", {"agent_id": "demo", "message": message})


def scratch_home(folder: Path) -> Path:
    """A home in order: one registration and the store it names, written by the real server."""
    asyncio.run(remember(folder))
    register(folder, variables(folder))
    return folder


def doctor(home: Path) -> int:
    """Run the installed script as a person would, its output shown; returns its exit code."""
    script = Path(sys.executable).with_name("cpersona-cli")
    print("\n$ cpersona-cli doctor --offline", flush=True)
    env = {"HOME": str(home), "PATH": os.environ.get("PATH", ""), "TERM": os.environ.get("TERM", "dumb")}
    code = subprocess.run([script, "doctor", "--offline"], env=env, cwd=home, check=False).returncode
    print(f"exit code {code}", flush=True)
    return code


def main() -> int:
    """A setting misspelt, found, mended: 0 when the doctor said 1, then 0."""
    with tempfile.TemporaryDirectory(prefix="cpersona-demo-") as folder:
        home = scratch_home(Path(folder).resolve())
        right = variables(home)
        wrong = {**right, "CPERSONA_EMBEDING_URL": right["CPERSONA_EMBEDDING_URL"]}
        del wrong["CPERSONA_EMBEDDING_URL"]
        register(home, wrong)
        print("A registration with one letter missing in a name. The server starts, answers, and forgets:", flush=True)
        before = doctor(home)
        register(home, right)
        print("\nThe name mended:", flush=True)
        after = doctor(home)
    return 0 if (before, after) == (1, 0) else 1


if __name__ == "__main__":
    sys.exit(main())
