"""Live processes: holders of a database and servers that run, from real ones and from laid-out ``/proc`` folders."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cpersona_cli.install import processes
from cpersona_cli.install.model import Process

linux = pytest.mark.skipif(sys.platform != "linux", reason="/proc is a thing of Linux")
HOLD = """
import sqlite3, sys
store = sqlite3.connect(sys.argv[1])
store.execute("PRAGMA journal_mode=WAL")
store.execute("CREATE TABLE IF NOT EXISTS t (x)")
store.execute("INSERT INTO t VALUES (1)")
store.commit()
print("open", flush=True)
sys.stdin.read()
"""


@contextmanager
def holding(path: Path) -> Iterator[int]:
    """Another process that has the database open, for as long as the block lasts."""
    env = {**os.environ, "CPERSONA_RRF_K": "7", "OTHER": "1"}
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            assert child.stdout.readline() == b"open\n"
            yield child.pid
        finally:
            child.stdin.close()
            child.wait(20)


@linux
def test_another_process_that_holds_the_database(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    before = time.time()
    with holding(path) as pid:
        (tmp_path / "other").mkdir()
        shutil.copy(path, tmp_path / "other" / "memory.db")
        (tmp_path / "link.db").symlink_to(path)
        found = processes.holders(path)
        assert found is not None
        assert [process.pid for process in found] == [pid]
        assert "sqlite3" in found[0].command
        assert found[0].environment == {"CPERSONA_RRF_K": "7"}
        assert found[0].started is not None
        assert before - 60 < found[0].started < time.time() + 60
        assert processes.holders(tmp_path / "other" / "memory.db") == ()
    assert processes.holders(path) == ()


@linux
def test_our_own_handle_does_not_count(tmp_path: Path) -> None:
    store = sqlite3.connect(tmp_path / "memory.db")
    try:
        store.execute("CREATE TABLE t (x)")
        assert processes.holders(tmp_path / "memory.db") == ()
    finally:
        store.close()


def test_a_database_that_is_not_there() -> None:
    assert not processes.holders(Path("/nowhere/at/all.db"))


# laid-out /proc folders -----------------------------------------------------------------------------------------


def proc(root: Path, pid: int, *words: str, opened: Path | None = None, hidden: bool = False) -> Path:
    """One process under ``root``."""
    folder = root / str(pid)
    (folder / "fd").mkdir(parents=True)
    (folder / "cmdline").write_bytes(b"\0".join(word.encode() for word in words) + b"\0")
    (folder / "stat").write_text(f"{pid} (a) b) S " + " ".join(["0"] * 18) + f" {100 * os.sysconf('SC_CLK_TCK')} 0\n")
    (folder / "environ").write_bytes(b"CPERSONA_X=1\0PATH=/bin\0EMBEDDING_Y=a=b\0broken\0")
    if opened is not None:
        (folder / "fd" / "3").symlink_to(opened)
    if hidden:
        (folder / "fd").rmdir()
        (folder / "fd").mkdir(mode=0)
    return folder


@linux
def test_what_a_process_is_told_by_its_folder(tmp_path: Path) -> None:
    root = tmp_path / "proc"
    database = tmp_path / "memory.db"
    database.touch()
    proc(root, 7, "cpersona", "serve", opened=database)
    (root / "stat").write_text("cpu 1\nbtime 1000\n")
    told = Process(
        pid=7, command="cpersona serve", started=1100.0, environment={"CPERSONA_X": "1", "EMBEDDING_Y": "a=b"}
    )
    assert processes.holders(database, proc=root) == (told,)


@linux
def test_what_a_folder_does_not_tell_stays_unknown(tmp_path: Path) -> None:
    root = tmp_path / "proc"
    database = tmp_path / "memory.db"
    database.touch()
    folder = proc(root, 7, "x", opened=database)
    for name in ("cmdline", "stat", "environ"):
        (folder / name).unlink()
    (root / "8").mkdir()
    (root / "stat").write_text("cpu 1\n")
    assert processes.holders(database, proc=root) == (Process(pid=7),)
    (folder / "stat").write_text("7 (x) S\n")
    (root / "stat").write_text("btime 5\n")
    assert processes.holders(database, proc=root) == (Process(pid=7),)
    (folder / "stat").write_text("7 (x) S" + " 1" * 30)
    (root / "stat").write_text("cpu 1\n")
    assert processes.holders(database, proc=root) == (Process(pid=7),)
    assert processes.holders(database, proc=tmp_path / "absent") is None


@contextmanager
def as_another_user(folder: Path) -> Iterator[None]:
    """Give up root's rights for a while; ``folder`` is opened for everybody."""
    if os.geteuid() != 0:
        yield
        return
    for part in (folder, *folder.parents):
        if part.stat().st_uid == 0 and not part.stat().st_mode & 0o001:
            part.chmod(part.stat().st_mode | 0o055)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


OTHERS = {
    1: ("sshd",),
    2: ("uvx", "cpersona"),
    3: ("bash", "-c", "cpersona"),
    4: ("vi", "cpersona"),
    5: ("python", "-m", "cpersona.proxy_stdio"),
    6: ("docker", "run", "-i", "cpersona"),
    7: (),
}


@linux
@pytest.mark.parametrize("server", [("/v/bin/python", "/v/bin/cpersona"), ("python", "-m", "cpersona")])
def test_a_server_whose_files_are_hidden_makes_it_unknown(tmp_path: Path, server: tuple[str, ...]) -> None:
    database = tmp_path / "memory.db"
    database.touch()
    root = tmp_path / "proc"
    (root / "self").mkdir(parents=True)
    for pid, words in OTHERS.items():
        proc(root, pid, *words, hidden=True)
    with as_another_user(tmp_path):
        assert processes.holders(database, proc=root) == ()
    proc(root, 8, *server, hidden=True)
    with as_another_user(tmp_path):
        assert processes.holders(database, proc=root) is None
    proc(root, 9, "x", opened=database)
    with as_another_user(tmp_path):
        found = processes.holders(database, proc=root)
    assert [process.pid for process in found or ()] == [9]
    for pid in (*OTHERS, 8):
        (root / str(pid) / "fd").chmod(0o700)


# without /proc --------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not shutil.which("lsof") or not shutil.which("ps"), reason="needs lsof and ps")
def test_without_proc_lsof_and_ps_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "current_system", lambda: "darwin")
    monkeypatch.setattr(processes, "LIMIT", 60.0)
    path = tmp_path / "memory.db"
    with holding(path) as pid:
        found = processes.holders(path)
        assert found is not None
        assert [process.pid for process in found] == [pid]
        assert "sqlite3" in found[0].command
        assert found[0].started is not None
        assert abs(found[0].started - time.time()) < 600
    assert processes.holders(path) == ()


def test_without_any_helper_it_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "memory.db").touch()
    monkeypatch.setattr(processes, "current_system", lambda: "darwin")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert processes.holders(tmp_path / "memory.db") is None
    monkeypatch.setattr(processes, "current_system", lambda: "windows")
    assert processes.holders(tmp_path / "memory.db") is None


@pytest.mark.skipif(os.name == "nt", reason="the stand-ins are shell scripts")
def test_helpers_that_tell_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "memory.db").touch()
    for name, text in {
        "lsof": "echo p4242; echo f3; echo p4242; echo p4243",
        "ps": "echo ' 4242 1-02:03:04 /v/bin/python -m cpersona'; echo '77 05:06 vi cpersona'; echo nonsense",
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(processes, "current_system", lambda: "darwin")
    monkeypatch.setattr(processes, "LIMIT", 60.0)
    monkeypatch.setattr(time, "time", lambda: 1_000_000.0)
    monkeypatch.setenv("PATH", str(tmp_path))
    age = 86400 + 2 * 3600 + 3 * 60 + 4
    held = Process(pid=4242, command="/v/bin/python -m cpersona", started=1_000_000.0 - age)
    assert processes.holders(tmp_path / "memory.db") == (held, Process(pid=4243))
