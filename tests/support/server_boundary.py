"""The server's own episode boundary and factors, asked in the server's own interpreter.

``OwnBoundary`` runs this file there as a child process; it depends on nothing but the server's package. A stamp at the
edge of the calendar makes releases before 2.6 fail; it counts as no date here, as in later ones.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self


class OwnBoundary:
    """A child of the interpreter ``python``, which has the server; ``zone`` is its time zone, ``env`` its settings."""

    def __init__(self, python: str, folder: Path, zone: str = "UTC", env: Mapping[str, str] | None = None) -> None:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("CPERSONA_", "EMBEDDING_", "COV"))}
        clean |= {"CPERSONA_DB_PATH": str(folder / "unused.db"), "CPERSONA_UPDATE_CHECK": "false", "TZ": zone}
        clean |= {"CPERSONA_EPISODE_PENALTY_ENABLED": "true", **(env or {})}
        self.process = subprocess.Popen(
            [python, str(Path(__file__).resolve())],
            env=clean,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(
        self, database: Path, scopes: Sequence[tuple[str, str | None, str]], stamps: Sequence[str]
    ) -> list[tuple[str | None, list[float]]]:
        """For every (agent, project, channel) the boundary in ISO 8601, and the factor of each stamp."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([str(database), scopes, stamps]) + "\n")
        self.process.stdin.flush()
        return [(at, factors) for at, factors in json.loads(self.process.stdout.readline())]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


def _serve() -> None:
    import asyncio  # noqa: PLC0415 - only the child needs these
    import inspect  # noqa: PLC0415

    import aiosqlite  # noqa: PLC0415
    from cpersona.memory_handlers import (  # noqa: PLC0415
        _episode_boundary_factor,
        _get_episode_boundary_ts,
    )

    own: Any = _get_episode_boundary_ts
    scoped = "project_id" in inspect.signature(own).parameters

    async def edge(call: Any) -> Any:
        try:
            return await call
        except OverflowError:
            return None

    def factor(stamp: str, at: Any) -> float:
        try:
            return float(_episode_boundary_factor(stamp, at))
        except OverflowError:
            return 1.0

    async def answer(database: str, scopes: list[list[Any]], stamps: list[str]) -> list[tuple[str | None, list[float]]]:
        async with aiosqlite.connect(database) as db:
            found = []
            for agent, project, channel in scopes:
                axes = {"project_id": project, "channel": channel} if scoped else {}
                at = await edge(own(db, agent, **axes))
                factors = [factor(stamp, at) for stamp in stamps]
                found.append((None if at is None else at.isoformat(), factors))
            return found

    for line in sys.stdin:
        sys.stdout.write(json.dumps(asyncio.run(answer(*json.loads(line)))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != Path(__file__).resolve().parent]
    _serve()
