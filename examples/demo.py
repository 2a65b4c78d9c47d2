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

from examples.endpoint import endpoint

MEMORIES = (
    "The release checklist lives in docs/release.md; Noor signs it off.",
    "Kenji prefers short answers and never wants mail after six.",
    "The invoices table moved to its own database in March.",
)


def variables(home: Path, url: str) -> dict[str, str]:
    """The settings of the demo's registration, all in order."""
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


def show(home: Path, *words: str) -> int:
    """Run the installed script as a person would, its output shown; returns its exit code."""
    script = Path(sys.executable).with_name("cpersona-cli")
    print(f"\n$ cpersona-cli {' '.join(words)}", flush=True)
    env = {"HOME": str(home), "PATH": os.environ.get("PATH", ""), "TERM": os.environ.get("TERM", "dumb")}
    code = subprocess.run([script, *words], env=env, cwd=home, check=False).returncode
    print(f"exit code {code}", flush=True)
    return code


def main() -> int:
    """A setting misspelt, found, mended; then the endpoint asked, and asked again when it is gone.

    0 when the tool said 1, 0, 0 and 1 about these four.
    """
    with tempfile.TemporaryDirectory(prefix="cpersona-demo-") as folder:
        home = Path(folder).resolve()
        with endpoint() as url:
            right = variables(scratch_home(home, url), url)
            wrong = {**right, "CPERSONA_EMBEDING_URL": url}
            del wrong["CPERSONA_EMBEDDING_URL"]
            register(home, wrong)
            print(
                "One letter is missing in the name of a setting. The server starts, answers, and forgets:", flush=True
            )
            codes = [show(home, "doctor", "--offline")]
            register(home, right)
            print("\nThe name mended:", flush=True)
            codes.append(show(home, "doctor", "--offline"))
            print("\nWhat answers at the endpoint:", flush=True)
            codes.append(show(home, "probe"))
        print("\nThe embedding server stopped:", flush=True)
        codes.append(show(home, "probe"))
    return 0 if codes == [1, 0, 0, 1] else 1


if __name__ == "__main__":
    sys.exit(main())
