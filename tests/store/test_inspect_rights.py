"""What a user without rights may read. The suite may run as root, so a child becomes somebody else."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.readings import ADD
from support.stores import Other, copy_store, untouched

AS_NOBODY = """
import os, sys
from pathlib import Path
from cpersona_cli.store.inspect import read
from cpersona_cli.install.model import Process
import fcntl
os.setgroups([]); os.setgid(65534); os.setuid(65534)
holders = {"": (), "held": (Process(pid=1),)}[sys.argv[2]]
reading = read(Path(sys.argv[1]), timeout=10, mountinfo="", system="linux", holders=lambda _: holders)
print(reading.state.value, reading.method, reading.counts.get("memories"), reading.writable, reading.folder_writable)
print(reading.detail)
"""

needs_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another")


@pytest.fixture
def shared(wal: Path) -> Iterator[Path]:
    """A copy of ``wal`` in a folder that anybody may enter; pytest's own are private."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield copy_store(wal, Path(folder) / "store")


def as_nobody(path: Path, held: str = "") -> tuple[str, str]:
    """The reading as a user without rights makes it: (state, method, memories, writable, folder_writable), detail."""
    modules = os.pathsep.join(p for p in sys.path if p)
    run = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, str(path), held],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": modules},
    )
    assert run.returncode == 0, run.stderr
    first, _, second = run.stdout.strip("\n").partition("\n")
    return first, second


@needs_root
@pytest.mark.parametrize(
    ("file", "folder", "held", "expected", "words"),
    [
        (0o600, 0o755, "", "no-permission", "may not read the file"),
        (0o644, 0o700, "", "no-permission", "may not be entered"),
        (0o644, 0o555, "", "ok immutable 12 False False", ""),
        (0o666, 0o777, "", "ok immutable 12 True True", ""),
        (0o644, 0o555, "held", "folder-read-only", "-shm"),
    ],
)
def test_rights(  # noqa: PLR0917
    shared: Path, file: int, folder: int, held: str, expected: str, words: str
) -> None:
    shared.chmod(file)
    shared.parent.chmod(folder)
    answer, detail = as_nobody(shared, held)
    assert answer.startswith(expected)
    assert words in detail


@needs_root
def test_rights_with_a_live_writer(shared: Path) -> None:
    shared.chmod(0o644)
    with Other(shared, ADD), untouched(shared.parent):
        for log in shared.parent.iterdir():
            log.chmod(0o644)
        shared.parent.chmod(0o555)
        assert as_nobody(shared, "held")[0] == "ok in-place 13 False False"


@needs_root
def test_a_shm_that_may_not_be_read(shared: Path) -> None:
    shared.chmod(0o644)
    with Other(shared, ADD):
        shared.with_name("c.db-wal").chmod(0o644)
        shared.with_name("c.db-shm").chmod(0o600)
        assert as_nobody(shared)[0].startswith("ok copy 13")
