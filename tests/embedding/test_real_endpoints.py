"""Without the real embedding servers: a developer's run goes on, and that of `make test` does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.real_endpoints import VARIABLE, Log, interpreter


def test_none_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(pytest.skip.Exception, match="`make test` sets it"):
        interpreter()


@pytest.mark.parametrize("there", [False, True])
def test_named_and_not_to_be_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, there: bool) -> None:
    python = tmp_path / "python"
    if there:
        python.touch(0o644)
    monkeypatch.setenv(VARIABLE, str(python))
    with pytest.raises(pytest.fail.Exception, match=r"cannot be run: `make \.venv-embed/\.done` builds it"):
        interpreter()


def test_a_server_that_ends_without_the_word_it_is_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text("cannot start\nbecause of a reason\n")
    log = Log(file.open())
    try:
        log.wait_for("a reason")
        with pytest.raises(RuntimeError, match=r"ended; its log:\ncannot start\nbecause of a reason"):
            log.wait_for("listening")
    finally:
        log.close()
