"""A child, its streams and its end."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cpersona_cli.start import process
from cpersona_cli.start.process import Child, Family


@contextmanager
def child(folder: Path, code: str) -> Iterator[Child]:
    started = Family().start([sys.executable, "-c", code], os.environ, folder)
    try:
        yield started
    finally:
        started.end(0.0)


def test_lines_and_the_end_of_stdout(tmp_path: Path) -> None:
    with child(tmp_path, "print('a'); print('b', end='')") as one:
        assert [one.lines.get(timeout=30) for _ in range(3)] == [b"a\n", b"b", None]


def test_what_is_sent_to_one_that_ended(tmp_path: Path) -> None:
    with child(tmp_path, "") as one:
        assert one.lines.get(timeout=30) is None
        assert not one.send(b"x" * 1_000_000)
        ending = one.end(30.0)
        assert (ending.code, ending.left) == (0, ())
        assert one.end(30.0) is ending


def test_only_the_end_of_stderr_is_kept(tmp_path: Path) -> None:
    with child(tmp_path, "import sys; sys.stderr.write('x' * 99 + '\\n' * 99_999 + 'last')") as one:
        one.end(30.0)
        assert one.errors.endswith("last")
        assert len(one.errors) == process.ERRORS


def test_one_that_writes_more_than_anybody_reads_can_be_ended(tmp_path: Path) -> None:
    with child(tmp_path, "while True: print('x' * 1000)") as one:
        assert one.lines.get(timeout=30)
        assert one.end(0.0).seconds is None


@pytest.mark.skipif(shutil.which("ps") is None, reason="there is no ps")
def test_a_group_as_ps_lists_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import subprocess, sys; subprocess.Popen(['cat']); print(1, flush=True); sys.stdin.read()"
    with child(tmp_path, code) as one:
        assert one.lines.get(timeout=30)
        assert sorted(process._group(one.pid)) == sorted(process._session(one.pid))
        assert len(process._group(one.pid)) == 2
    assert process._group(one.pid) == []


def test_a_system_that_lists_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_: object, **__: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(subprocess, "run", absent)
    assert process._group(1) == []
