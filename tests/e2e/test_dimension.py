"""``dimension`` at a real terminal, over stores that real servers wrote with real embeddings."""

from __future__ import annotations

import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from fcntl import ioctl
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.documents import document
from support.endpoints_small import Answer, Request, SmallEndpoint, embed, serving
from support.stores import Server, copy_store, fill, run_sql, snapshot

from cpersona_cli.report.layout import columns

pytestmark = pytest.mark.server

SCRIPT = Path(sys.executable).with_name("cpersona-cli")
WIDTH = 64


class Ended(NamedTuple):
    code: int
    text: str


def at_a_terminal(home: Path, *words: str, width: int = 80, typed: str = "", **env: str) -> Ended:
    """The installed script with all three streams on a terminal of ``width`` columns; ``typed`` answers a question."""
    master, slave = pty.openpty()
    ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    plain = {"HOME": str(home), "PATH": os.environ["PATH"], "TERM": "xterm", "LC_ALL": "C.UTF-8", **env}
    process = subprocess.Popen([SCRIPT, *words], stdin=slave, stdout=slave, stderr=slave, env=plain, cwd=home)
    os.close(slave)
    said = b""
    try:
        while True:
            if not select.select([master], [], [], 60)[0]:
                raise AssertionError(f"silent for a minute after {said!r}")
            try:
                part = os.read(master, 65536)
            except OSError:  # the other side is closed
                break
            if not part:
                break
            said += part
            if typed and b"Type yes to allow it" in said:
                os.write(master, f"{typed}\n".encode())
                typed = ""
        return Ended(process.wait(60), said.decode().replace("\r\n", "\n"))
    finally:
        os.close(master)
        process.kill()
        process.wait(60)


def piped(home: Path, *words: str, **env: str) -> Ended:
    done = subprocess.run(
        [SCRIPT, *words],
        env={"HOME": str(home), "PATH": os.environ["PATH"], **env},
        cwd=home,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    return Ended(done.returncode, done.stdout)


@pytest.fixture(scope="module")
def endpoint() -> Iterator[SmallEndpoint]:
    with serving(width=WIDTH) as server:
        yield server


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, endpoint: SmallEndpoint) -> Path:
    """A store of the real server, with vectors of ``endpoint``."""
    database = tmp_path_factory.mktemp("embedded") / "store" / "memory.db"
    database.parent.mkdir()
    env = {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": endpoint.url()}
    with Server(database, env) as server:
        fill(server)
    return database


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder.resolve()


@pytest.fixture
def database(written: Path, home: Path) -> Path:
    return copy_store(written, home)


def chosen(database: Path, endpoint: SmallEndpoint, path: str = "/embed") -> tuple[str, ...]:
    return ("dimension", "--db", database.name, "--url", endpoint.url(path))


def test_what_a_server_wrote_fits_its_endpoint(home: Path, database: Path, endpoint: SmallEndpoint) -> None:
    before = snapshot(home)
    ended = at_a_terminal(home, *chosen(database, endpoint))
    assert snapshot(home) == before
    assert ended.code == 0, ended.text
    last = ended.text.splitlines()[-1]
    assert re.sub(r"\x1b\[[0-9;]*m", "", last) == "PASS   ok, stored 64, expected 64; 0 faults, 0 warnings."
    assert "\x1b[1;32mPASS" in ended.text
    assert "record_blocks" in ended.text


@pytest.mark.parametrize("width", [80, 120])
def test_a_swapped_model_at_a_terminal(home: Path, database: Path, width: int) -> None:
    with serving(width=WIDTH, after=lambda _request, vectors: [vector[::-1] for vector in vectors]) as other:
        ended = at_a_terminal(home, *chosen(database, other), width=width, NO_COLOR="1")
    assert ended.code == 1, ended.text
    assert "\x1b" not in ended.text
    assert "the server calls this healthy" in ended.text
    assert "░░░" in ended.text
    long = [line for line in ended.text.splitlines() if columns(line) > width and "cpersona-cli" not in line]
    assert long == []
    assert "Next: cpersona-cli" in ended.text.splitlines()[-1]


def test_vectors_of_another_width_that_the_server_itself_calls_healthy(
    home: Path, database: Path, endpoint: SmallEndpoint
) -> None:
    """The blocks that the server's own repair leaves behind are seen."""
    blob = struct.pack("<96f", *embed("any text", 96)).hex()
    run_sql(database, *(f"UPDATE {table} SET embedding = x'{blob}'" for table in ("memories", "episodes")))
    with serving(width=96) as wider:
        ended = piped(home, *chosen(database, wider), "--sample", "0", "--json")
    found: dict[str, Any] = document(ended.text)
    traps = [finding["trap"] for finding in found["findings"]]
    assert "vectors.blocks-width" in traps
    with_old = piped(home, *chosen(database, endpoint), "--json")
    assert document(with_old.text)["status"] == "changed"


@pytest.mark.parametrize("typed", ["yes", "no"])
def test_consent_at_a_terminal(home: Path, database: Path, typed: str) -> None:
    """The name of another computer, reached by way of a proxy that answers in its place."""

    def answer(request: Request, _number: int) -> Answer:
        return Answer(200, {"embeddings": [embed(text, WIDTH) for text in request.texts]})

    with serving(before=answer) as server:
        words = ("dimension", "--db", database.name, "--url", "http://embeddings.invalid/embed")
        ended = at_a_terminal(home, *words, typed=typed, http_proxy=f"http://127.0.0.1:{server.port}")
        stored = [text for request in server.calls for text in request.texts if "invoice" in text]
    told = " ".join(ended.text.split())
    assert "24 stored texts would be sent to http://embeddings.invalid/embed, to compare their vectors" in told
    if typed == "yes":
        assert (ended.code, bool(stored)) == (0, True), ended.text
    else:
        assert (ended.code, stored) == (3, []), ended.text
        assert "is another computer, and that was not allowed (--yes)" in told
        assert told.endswith("--yes")


def test_with_every_stream_closed(home: Path, database: Path, endpoint: SmallEndpoint) -> None:
    command = " ".join([str(SCRIPT), *chosen(database, endpoint)])
    done = subprocess.run(
        ["sh", "-c", f"{command} <&- >&- 2>&-"],
        env={"HOME": str(home), "PATH": os.environ["PATH"]},
        cwd=home,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0


def test_beside_a_server_at_work(home: Path, database: Path, endpoint: SmallEndpoint) -> None:
    """The store is read while its server has it open, and the server goes on."""
    env = {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": endpoint.url()}
    with Server(database, env) as server:
        server.store("atlas", "The ferry timetable changes in May.")
        ended = piped(home, *chosen(database, endpoint), "--json")
        server.store("atlas", "The lighthouse is painted in June.")
    found = document(ended.text)
    assert (ended.code, found["status"]) == (0, "ok")
    assert found["widths"]["64"] == 22
