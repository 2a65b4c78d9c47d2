"""Starting the child, hearing it out, and what is kept when it is slow, dies or talks nonsense."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from support.advisories import asked

from cpersona_cli.advisory.child import Command, ask
from cpersona_cli.advisory.model import Call, Event, Preview, Recall, Server, masked
from cpersona_cli.start.process import ClosedError, Family

SECRET = "sk-child-0123456789"


def program(folder: Path, text: str) -> Path:
    """A program in the place of the server's Python: it gets ``-I -c SCRIPT`` and may do what it likes."""
    path = folder / "python3"
    path.write_text(f"#!{sys.executable}\n{text}", "utf-8")
    path.chmod(0o755)
    return path


def answered(python: Path, *, count: int = 2, seconds: float = 20.0) -> Preview:
    family = Family()
    command = Command(python=python, env={"PATH": os.environ["PATH"]}, cwd=python.parent)
    try:
        return ask(command, [Event(word="measure")] * count, "live", family, time.monotonic() + seconds)
    finally:
        family.close()


RECALL = '{"event":"recall","number":1,"word":"measure","key":"","call":{"attempted":true,"ok":true,"error":null},\
"escaped":null,"state":"healthy","advisory":null,"seconds":0.1}'


def test_what_is_no_message_is_passed_over(tmp_path: Path) -> None:
    lines = ["a word of a module", "[1]", "{}", '{"event": 5}', '{"broken', RECALL, '{"event":"end"}', RECALL]
    found = answered(program(tmp_path, f"import sys\nsys.stdin.readline()\nprint('\\n'.join({lines!r}))"))
    assert len(found.recalls) == 1
    assert found.recalls[0].call == Call(attempted=True, ok=True)
    assert (found.state, found.unfinished, found.absent, found.refused) == ("healthy", "", "", "")


def test_a_child_that_dies_keeps_what_it_said(tmp_path: Path) -> None:
    text = f"import sys\nprint('''{RECALL}''', flush=True)\nprint('out of\\tmemory', file=sys.stderr)\nsys.exit(9)"
    found = answered(program(tmp_path, text))
    assert len(found.recalls) == 1
    assert found.unfinished == "1 of 2 recalls were over when the server’s Python ended: out of\\tmemory"


def test_a_child_that_dies_without_a_word(tmp_path: Path) -> None:
    found = answered(program(tmp_path, ""))
    assert found.unfinished == "0 of 2 recalls were over when the server’s Python ended: it said nothing"


def test_a_child_that_hangs_is_given_up_in_time(tmp_path: Path) -> None:
    text = f"import sys, threading\nprint('''{RECALL}''', flush=True)\nthreading.Event().wait()"
    found = answered(program(tmp_path, text), seconds=0.6)
    assert len(found.recalls) <= 1
    assert "when the time was up; --timeout allows more" in found.unfinished


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    found = answered(tmp_path / "python3")
    assert found.absent == f"{tmp_path / 'python3'} could not be started (No such file or directory)"


def test_a_variable_that_cannot_be_given(tmp_path: Path) -> None:
    family = Family()
    command = Command(python=Path(sys.executable), env={"A": "b\0c"}, cwd=tmp_path)
    found = ask(command, [], "live", family, time.monotonic() + 5)
    assert "a variable holds a NUL character" in found.absent


def test_a_run_that_is_over_starts_nothing(tmp_path: Path) -> None:
    family = Family()
    family.close()
    with pytest.raises(ClosedError):
        ask(Command(python=Path(sys.executable), env={}, cwd=tmp_path), [], "live", family, time.monotonic() + 5)


def test_modules_that_print_do_not_spoil_the_answer(tmp_path: Path) -> None:
    """A package of the server's name that prints on import, and is none."""
    venv = tmp_path / "lib"
    (venv / "cpersona").mkdir(parents=True)
    (venv / "cpersona" / "__init__.py").write_text("print('hello')")
    (venv / "cpersona" / "config.py").write_text("print('and more')")
    path = program(tmp_path, f"import sys\nsys.path.insert(0, {str(venv)!r})\nexec(sys.argv[3])")
    found = answered(path)
    assert found.absent.startswith("this release of CPersona tells its agent nothing")


def test_a_python_without_the_server(tmp_path: Path) -> None:
    path = program(tmp_path, "import sys\nsys.modules['cpersona'] = None\nexec(sys.argv[3])")
    found = answered(path)
    assert found.absent.startswith("the server’s Python cannot import cpersona")


@pytest.mark.server
def test_a_mode_that_does_not_exist_is_refused_in_the_servers_own_words(tmp_path: Path) -> None:
    found = asked({"CPERSONA_EMBEDDING_MODE": "htp"}, [Event(word="measure")], sys.executable, tmp_path)
    assert found.refused.startswith("ValueError: CPERSONA_EMBEDDING_MODE='htp' is not supported")
    assert found.server is None


@pytest.mark.server
def test_the_server_is_described(tmp_path: Path) -> None:
    env = {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_VECTOR_SEARCH_MODE": "remote"}
    found = asked({**env, "CPERSONA_TRANSPORT": "streamable-http"}, [], sys.executable, tmp_path)
    server = found.server
    assert server is not None
    assert (server.mode, server.enabled, server.shared, server.keyed, server.remote) == ("http", True, True, True, True)
    assert (server.threshold, server.cap, server.known_texts) == (2, 256, True)
    assert list(tmp_path.iterdir()) == []


def test_masked_the_bytes_that_differ_are_counted() -> None:
    text = f'{{"runbook": "Bearer {SECRET}, and {SECRET}", "evidence": null}}'
    recall = Recall(number=1, word="call", text=text, escaped=f"E: {SECRET}", call=Call(
        attempted=True, ok=False, error=f"x {SECRET}"))  # fmt: skip
    found = masked(
        Preview(source="server", how="replay", recalls=(recall,), refused=SECRET, server=Server()), (SECRET,)
    )
    assert SECRET not in repr(found)
    assert found.hidden == 2 * len(SECRET)
    assert found.recalls[0].advisory is not None


def test_nothing_to_mask() -> None:
    assert masked(Preview(source="server", how="live"), (SECRET,)).hidden == 0
    told = Recall(number=1, word="call", text='{"runbook": "[12 characters removed]"}')
    assert masked(Preview(source="server", how="live", recalls=(told,)), (SECRET,)).hidden == 0


def test_a_preview_of_nothing() -> None:
    found = Preview(source="own", how="live")
    assert (found.state, found.evidence, found.last) == ("unknown", "", None)
    assert not Server().known_texts
