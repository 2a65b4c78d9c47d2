"""What one run of the installed script said, and the empty home it runs in."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest
from support.documents import document


class Run:
    """What one run said. A subclass names the ``command`` whose document it expects."""

    command: ClassVar[str]

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> dict[str, Any]:
        found = document(self.out)
        assert found["exit_code"] == self.code
        assert found["schema"] == f"cpersona-cli/{self.command}/1"
        return found

    @property
    def traps(self) -> list[str]:
        return [finding["trap"] for finding in self.json["findings"]]

    @property
    def last(self) -> str:
        """The verdict and its sentence, without the next command."""
        lines = self.out.strip().splitlines()
        last = next(line for line in reversed(lines) if not line.startswith("Next: "))
        return last.partition("   Next: ")[0]


def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, columns: int = 200) -> Path:
    """A home directory without anything in it, that is also the working directory; nothing else is configured."""
    folder = tmp_path / "home"
    folder.mkdir()
    for name in list(os.environ):
        if name.startswith(
            ("CPERSONA_", "EMBEDDING_", "XDG_", "SSL_CERT", "COVERAGE_PROCESS")
        ) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.chdir(folder)
    return folder
