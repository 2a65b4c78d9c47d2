"""The demo as a newcomer meets it: the whole of it once, and broken off."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support import docs
from support.documents import document

from cpersona_cli import app
from cpersona_cli.demo.acts import SCENES
from cpersona_cli.demo.memories import MEMORIES

pytestmark = [pytest.mark.server, pytest.mark.timeout(600)]

SCRIPT = Path(sys.executable).with_name("cpersona-cli")


def test_every_fault_is_found_and_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scratch, home = tmp_path / "scratch", tmp_path / "home"
    scratch.mkdir()
    home.mkdir()
    for name, value in (("TMPDIR", scratch), ("HOME", home), ("NO_COLOR", "1"), ("COLUMNS", "80")):
        monkeypatch.setenv(name, str(value))
    # What the user has configured is none of the demo's.
    monkeypatch.setenv("CPERSONA_DB_PATH", str(home / "precious.db"))
    monkeypatch.setenv("CPERSONA_EMBEDDING_MODE", "none")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    file = tmp_path / "demo.json"
    code = app.main(["demo", "--output", f"json:{file}"])
    out, err = capsys.readouterr()
    assert (code, err) == (0, ""), out
    found = document(file.read_text("utf-8"))
    assert (found["verdict"], found["kept"]) == ("pass", None)
    assert [act["title"] for act in found["acts"]] == [scene.title for scene in SCENES]
    steps = [step for act in found["acts"] for step in act["steps"]]
    assert all(step["ok"] for step in steps)
    commands = [step for step in steps if step["kind"] == "command"]
    assert [(step["command"].split()[1], step["exit_code"]) for step in commands] == [
        ("doctor", 0),
        ("doctor", 1), ("advisory-preview", 1), ("doctor", 0),
        ("dimension", 1), ("reembed", 0), ("dimension", 0),
        ("dimension", 1), ("reembed", 0), ("dimension", 0),
        ("doctor", 1), ("backfill", 0), ("doctor", 0),
    ]  # fmt: skip
    for step in commands:
        # each command's own verdict, and each as it was printed
        verdict = {0: "PASS", 1: "FAIL"}[step["exit_code"]]
        assert re.search(rf"^{verdict}   ", step["output"], re.MULTILINE), step
        assert "".join(f"    {line}".rstrip() + "\n" for line in step["output"].splitlines()) in out
    recalls = [step["seen"] for step in steps if step["kind"] == "recall"]
    well = "4 of 4 answered"
    assert (recalls[0], recalls[2], recalls[4]) == (well, well, well)
    assert "4 of 4" not in recalls[1] + recalls[3]
    assert MEMORIES[0] in out
    assert "\x1b" not in out
    assert str(scratch) not in out, "its home is shown as ~"
    assert docs.block(docs.PLAYED) == docs.demo_run(out), "what the README shows of the demo; `make docs` rewrites it"
    assert list(scratch.iterdir()) == list(home.iterdir()) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_nothing_behind(tmp_path: Path, number: int, code: int) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CPERSONA_")}
    with subprocess.Popen(
        [SCRIPT, "demo"],
        env={**kept, "HOME": str(tmp_path), "TMPDIR": str(scratch)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        while "stores" not in process.stdout.readline():  # the model answers, and the server has started
            assert process.poll() is None
        children = _children(process.pid)
        process.send_signal(number)
        _, err = process.communicate(timeout=120)
    assert process.returncode == code
    assert "nothing was changed" in err
    assert list(scratch.iterdir()) == []
    assert len(children) == 2
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()]


def _children(parent: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]
