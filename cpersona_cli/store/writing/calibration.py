"""The calibration file beside a database: what was measured goes with the vectors, what the operator chose stays.

The form written here makes every release from 2.4.41 to 2.6.14 measure again at its next start and keep the operator's
precision (``agent_betas``); a file that names no fused gate is what those servers complete.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

from cpersona_cli.store.files import sibling
from cpersona_cli.store.sidecar import read_calibration
from cpersona_cli.store.writing.derived import names_of
from cpersona_cli.store.writing.disk import make_private, sync
from cpersona_cli.store.writing.joblock import lock_descriptor

_SUFFIX = ".calibration.json"
#: The first schema of a server that takes turns at the file.
_LOCKING = 20
#: Seconds to wait for a server that is writing it; its turns last milliseconds.
_WAIT = 5.0


class HeldError(OSError):
    """Another process keeps the file to itself."""


def contents(database: Path) -> dict[str, bytes | None]:
    """The bytes of each calibration file of a database by its path, None where there is none. Raises ``OSError``."""
    found: dict[str, bytes | None] = {}
    for name in names_of(database):
        path = sibling(name, _SUFFIX)
        try:
            found[str(path)] = path.read_bytes()
        except FileNotFoundError:
            found[str(path)] = None
    return found


def renew(database: Path, dim: int, schema: int) -> str:
    """Have the server calibrate for vectors of ``dim`` at its next start; ``rewritten``, ``absent``, or why not."""
    results = [_renew(sibling(name, _SUFFIX), dim, schema) for name in names_of(database)]
    return next((result for result in results if result != "absent"), "absent")


def _renew(path: Path, dim: int, schema: int) -> str:
    try:
        with _turn(path, schema):
            found, problem = read_calibration(path)
            if found is None:
                return f"left as it is: {problem}" if problem else "absent"
            _replace(path, _fresh(found, dim))
    except OSError as error:
        return f"left as it is: {error.strerror or error}"
    return "rewritten"


def _fresh(found: dict[str, object], dim: int) -> bytes:
    betas = found.get("agent_betas")
    document: dict[str, object] = {"embedding_dim": dim}
    if "scoring_version" in found:
        document["scoring_version"] = found["scoring_version"]
    document |= {
        "global_threshold": None,
        "agent_thresholds": {},
        "global_fused_gate": None,
        "agent_fused_gates": {},
        "fused_gate_signal": None,
        "agent_betas": betas if isinstance(betas, dict) else {},
    }
    return json.dumps(document).encode()


def restore(path: Path, before: bytes | None, dim: int, schema: int) -> str:
    """Give a calibration file its former content, with the precision the operator has chosen since, if he did.

    Where there was none, one that came since is made to be measured again. Says ``restored``, ``rewritten``,
    ``absent``, or why not.
    """
    try:
        with _turn(path, schema):
            now, problem = read_calibration(path)
            if before is None:
                if now is None:
                    return f"left as it is: {problem}" if problem else "absent"
                _replace(path, _fresh(now, dim))
                return "rewritten"
            _replace(path, _merged(before, now))
    except OSError as error:
        return f"left as it is: {error.strerror or error}"
    return "restored"


def _merged(before: bytes, now: dict[str, object] | None) -> bytes:
    chosen = (now or {}).get("agent_betas")
    try:
        old = json.loads(before)
    except ValueError:
        return before
    if not isinstance(chosen, dict) or not isinstance(old, dict) or (old.get("agent_betas") or {}) == chosen:
        return before
    return json.dumps({**old, "agent_betas": chosen}).encode()


def _replace(path: Path, content: bytes) -> None:
    """Write a new file in the place of ``path``, with the mode that has."""
    new = sibling(path, f".tmp.{os.getpid()}")
    with contextlib.suppress(FileNotFoundError):
        new.unlink()
    make_private(new)
    try:
        new.write_bytes(content)
        with contextlib.suppress(FileNotFoundError):
            new.chmod(path.stat().st_mode & 0o777)
        sync(new)
        new.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            new.unlink()
        raise
    sync(path.parent)


@contextlib.contextmanager
def _turn(path: Path, schema: int) -> Iterator[None]:
    """Hold the lock by which servers take turns at the file, where they do. Raises ``OSError``."""
    lock = sibling(path, ".lock")
    if not os.path.lexists(path) or (schema < _LOCKING and not os.path.lexists(lock)):
        yield
        return
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    descriptor = os.open(lock, flags, 0o600)
    try:
        until = time.monotonic() + _WAIT
        while True:
            try:
                lock_descriptor(descriptor, 0)
                break
            except (BlockingIOError, PermissionError) as error:
                if time.monotonic() > until:
                    raise HeldError("a server keeps it to itself") from error
                time.sleep(0.01)
        yield
    finally:
        os.close(descriptor)
