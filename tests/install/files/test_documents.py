from __future__ import annotations

import codecs
import hashlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpersona_cli.install.files import documents
from cpersona_cli.install.files.documents import Document, read
from cpersona_cli.install.files.tree import Flavour
from cpersona_cli.install.model import ProblemKind

_SERVER = {"mcpServers": {"memory": {"command": "uvx", "args": ["cpersona"], "env": {"CPERSONA_DB_PATH": "/srv/ä.db"}}}}
_TEXT = json.dumps(_SERVER, indent=2, ensure_ascii=False)

posix = pytest.mark.skipif(os.name == "nt", reason="pipes, sockets and modes of POSIX")


def _read(tmp_path: Path, data: bytes, flavour: Flavour = "json") -> Document:
    path = tmp_path / "file"
    path.write_bytes(data)
    before = hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns
    document = read(path, flavour)
    assert (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns) == before
    assert document.mtime == path.stat().st_mtime
    return document


def _database(document: Document) -> object:
    assert document.root is not None
    node = document.root.find("mcpServers", "memory", "env", "CPERSONA_DB_PATH")
    return node.value if node is not None else None


def test_a_whole_file_is_read_with_line_and_column(tmp_path: Path) -> None:
    document = _read(tmp_path, _TEXT.encode())
    assert document.state == "read"
    assert document.problems == ()
    assert document.root is not None
    node = document.root.find("mcpServers", "memory", "env", "CPERSONA_DB_PATH")
    assert node is not None
    place = document.place(node)
    assert (place.file, place.line, place.column) == (tmp_path / "file", 9, 9)
    assert document.at(node.at).column == 29


@settings(deadline=None)
@given(st.binary(), st.sampled_from(["json", "json+comments", "jsonc", "toml"]))
def test_no_bytes_make_it_raise(data: bytes, flavour: Flavour) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(data)
        document = read(path, flavour)
    assert document.state in ("read", "broken")
    assert (document.state == "broken") is any(problem.fatal for problem in document.problems)


@pytest.mark.parametrize(
    ("mark", "codec", "kind", "fatal"),
    [
        (codecs.BOM_UTF8, "utf-8", ProblemKind.BOM, False),
        (codecs.BOM_UTF16_LE, "utf-16-le", ProblemKind.UTF16, True),
        (codecs.BOM_UTF16_BE, "utf-16-be", ProblemKind.UTF16, True),
        (codecs.BOM_UTF32_LE, "utf-32-le", ProblemKind.UTF16, True),
        (codecs.BOM_UTF32_BE, "utf-32-be", ProblemKind.UTF16, True),
        (b"", "utf-16-le", ProblemKind.UTF16, True),
        (b"", "utf-16-be", ProblemKind.UTF16, True),
    ],
)
def test_another_encoding_is_named_and_the_entries_are_still_shown(
    tmp_path: Path, mark: bytes, codec: str, kind: ProblemKind, *, fatal: bool
) -> None:
    document = _read(tmp_path, mark + _TEXT.encode(codec))
    assert [(problem.kind, problem.fatal) for problem in document.problems] == [(kind, fatal)]
    assert "UTF-8 without" in document.problems[0].advice
    assert document.state == ("broken" if fatal else "read")
    assert _database(document) == "/srv/ä.db"


def test_a_byte_order_mark_stops_a_toml_reader_at_the_first_line(tmp_path: Path) -> None:
    document = _read(tmp_path, codecs.BOM_UTF8 + b"a = 1\n", "toml")
    assert [(problem.kind, problem.fatal, problem.place.line) for problem in document.problems] == [
        (ProblemKind.BOM, True, 1)
    ]
    assert document.root is not None
    assert document.root.plain() == {"a": 1}


@pytest.mark.parametrize(("flavour", "fatal"), [("json", False), ("toml", True)])
def test_bytes_that_are_not_utf8_are_named_with_their_place(tmp_path: Path, flavour: Flavour, *, fatal: bool) -> None:
    text = '{\n "é": "/srv/ö.db"}' if flavour == "json" else '# é\nx = "/srv/ö.db"'
    document = _read(tmp_path, text.encode("latin-1"), flavour)
    problem = document.problems[0]
    assert (problem.kind, problem.fatal) == (ProblemKind.NOT_UTF8, fatal)
    assert (problem.place.line, problem.place.column) == ((2, 3) if flavour == "json" else (1, 3))
    assert "E9" in problem.detail
    assert document.root is not None


@pytest.mark.parametrize("data", [b"", b" \r\n\t\n", codecs.BOM_UTF8])
def test_an_empty_file_is_named(tmp_path: Path, data: bytes) -> None:
    document = _read(tmp_path, data)
    assert document.problems[-1].kind is ProblemKind.EMPTY
    assert document.state == "broken"
    assert document.root is None


def test_an_empty_file_is_nothing_to_an_editor_and_valid_toml(tmp_path: Path) -> None:
    document = _read(tmp_path, b"\n", "jsonc")
    assert [(problem.kind, problem.fatal) for problem in document.problems] == [(ProblemKind.EMPTY, False)]
    assert _read(tmp_path, b"", "toml").problems == ()


def test_nul_bytes_of_a_crash_are_counted(tmp_path: Path) -> None:
    document = _read(tmp_path, _TEXT.encode() + b"\0" * 40)
    assert document.problems[0].kind is ProblemKind.SYNTAX
    assert "40 NUL bytes" in document.problems[0].detail
    assert _database(document) == "/srv/ä.db"
    document = _read(tmp_path, b"\0" * 8)
    assert [(problem.kind, "8 NUL bytes" in problem.detail) for problem in document.problems] == [
        (ProblemKind.EMPTY, True)
    ]
    assert document.state == "broken"


def test_a_root_of_another_shape_is_named(tmp_path: Path) -> None:
    document = _read(tmp_path, b'["uvx", "cpersona"]')
    assert [(problem.kind, problem.fatal) for problem in document.problems] == [(ProblemKind.SHAPE, True)]
    assert "one array" in document.problems[0].detail


def test_a_half_written_file_keeps_what_came_before(tmp_path: Path) -> None:
    document = _read(tmp_path, _TEXT.encode()[: _TEXT.index("cpersona") + 12])
    assert document.problems[-1].kind is ProblemKind.TRUNCATED
    assert document.root is not None
    command = document.root.find("mcpServers", "memory", "command")
    assert command is not None
    assert command.value == "uvx"


def test_an_absent_file_is_absent(tmp_path: Path) -> None:
    assert read(tmp_path / "none", "json").state == "absent"
    (tmp_path / "file").write_text("x")
    assert read(tmp_path / "file" / "below", "json").state == "absent"


def _unreadable(path: Path) -> str:
    document = read(path, "json")
    assert document.state == "unreadable"
    assert document.root is None
    (problem,) = document.problems
    assert (problem.kind, problem.fatal, problem.place.file) == (ProblemKind.UNREADABLE, True, path)
    return problem.detail


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    assert "a folder" in _unreadable(tmp_path)
    assert "cannot be read" in _unreadable(tmp_path / "nul\0name")
    assert "cannot be read" in _unreadable(tmp_path / ("n" * 5000))


@posix
def test_pipes_sockets_devices_and_links_to_nowhere_are_named_and_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "a pipe" in _unreadable(tmp_path / "pipe")
    assert "a device" in _unreadable(Path("/dev/null"))
    with tempfile.TemporaryDirectory() as short, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{short}/s")
        assert "a socket" in _unreadable(Path(short) / "s")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert "cannot be read" in _unreadable(tmp_path / "loop")
    (tmp_path / "dangling").symlink_to("/nowhere/at/all")
    assert "/nowhere/at/all, which does not exist" in _unreadable(tmp_path / "dangling")


def test_a_file_too_large_for_settings_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(documents.LARGEST + 1)
    assert f"{documents.LARGEST + 1:,} bytes" in _unreadable(path)


@posix
def test_a_file_without_permission_is_named() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = Path(folder) / "closed.json"
        path.write_text("{}")
        path.chmod(0)
        # The child gives its rights away only after the imports: another user may not reach this interpreter's files.
        code = (
            "import os, sys; from pathlib import Path; from cpersona_cli.install.files.documents import read\n"
            "mine = os.geteuid()\n"
            "if mine == 0: os.seteuid(65534)\n"
            "document = read(Path(sys.argv[1]), 'json'); print(document.state, document.problems[0].detail)\n"
            "os.seteuid(mine)"
        )
        root = Path(__file__).parents[3]
        ran = subprocess.run(
            [sys.executable, "-c", code, path], cwd=root, capture_output=True, text=True, timeout=60, check=False
        )
    assert ran.stderr == ""
    assert ran.stdout == "unreadable this user may not read it\n"
