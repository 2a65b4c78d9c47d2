"""A scratch home in order: one registration, and the store it names, written by the real server."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

MEMORIES = (
    "The release checklist lives in docs/release.md; Noor signs it off.",
    "Kenji prefers short answers and never wants mail after six.",
    "The invoices table moved to its own database in March.",
)


def variables(home: Path, url: str) -> dict[str, str]:
    """The settings of the registration, all in order."""
    return {
        "CPERSONA_DB_PATH": str(home / "memory.db"),
        "CPERSONA_EMBEDDING_MODE": "http",
        "CPERSONA_EMBEDDING_URL": url,
        "CPERSONA_UPDATE_CHECK": "false",
    }


def register(home: Path, env: Mapping[str, str]) -> Path:
    """Write the registration of Claude Code's user scope into ``home`` and return the file."""
    entry = {"command": sys.executable, "args": ["-m", "cpersona"], "env": dict(env)}
    file = home / ".claude.json"
    file.write_text(json.dumps({"mcpServers": {"cpersona": entry}}, indent=2) + "\n")
    return file


async def remember(home: Path, url: str) -> None:
    """Let the real server create the store in ``home`` and write ``MEMORIES`` into it, embedded at ``url``."""
    env = {**variables(home, url), "HOME": str(home), "PATH": os.environ.get("PATH", "")}
    server = StdioServerParameters(command=sys.executable, args=["-m", "cpersona"], env=env, cwd=home)
    with (home / "server.log").open("w") as log:
        async with stdio_client(server, errlog=log) as (reader, writer), ClientSession(reader, writer) as session:
            await session.initialize()
            for day, text in enumerate(MEMORIES, 1):
                message = {"content": text, "timestamp": f"2026-03-{day:02d}T09:00:00+00:00"}
                await session.call_tool("store", {"agent_id": "demo", "message": message})


def scratch_home(folder: Path, url: str) -> Path:
    """A home in order: one registration and the store it names, written by the real server."""
    asyncio.run(remember(folder, url))
    register(folder, variables(folder, url))
    return folder
