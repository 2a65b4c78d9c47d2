"""Calibration files in any state of repair."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support.stores import schema_13

from cpersona_cli.store import inspect
from cpersona_cli.store.sidecar import LIMIT, read_calibration

GOOD = {
    "embedding_dim": 64,
    "embedding_model": "some-model",
    "global_threshold": 0.31,
    "agent_thresholds": {"atlas": 0.28},
    "global_fused_gate": None,
    "agent_fused_gates": {},
    "agent_betas": {"atlas": 1},
}


def test_a_good_one(tmp_path: Path) -> None:
    database = schema_13(tmp_path / "c.db")
    (tmp_path / "c.db.calibration.json").write_text(json.dumps(GOOD))
    (tmp_path / "alias_ledger.json").write_text("{}")
    (tmp_path / "c.db.memories.vecindex").write_bytes(b"x" * 9)
    reading = inspect.read(database, mountinfo="", system="linux", holders=lambda _: ())
    assert (reading.calibration, reading.calibration_problem) == (GOOD, "")
    assert reading.files["alias_ledger.json"] == 2
    assert reading.files[".memories.vecindex"] == 9
    assert ".calibration.json" in reading.files


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (bytes(100), "empty"),
        (b"{", "not JSON"),
        (b'{"embedding_dim": 64,}', "line 1, column"),
        (b"[1]", "no JSON object"),
        (b"\xff\xfe\x00{", "not UTF-8"),
        (b'{"a": "\xff\xff"}', "not UTF-8"),
        (b"[" * 100_000, "not JSON the server could read"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not JSON the server could read"),
        (b" " * (LIMIT + 1), "longer than 1 MiB"),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "c.json"
    file.write_bytes(content)
    data, problem = read_calibration(file)
    assert data is None
    assert words in problem


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"embedding_dim": "64"}, "embedding_dim"),
        ({"embedding_dim": 0}, "embedding_dim"),
        ({"embedding_dim": True}, "embedding_dim"),
        ({"global_threshold": "high"}, "global_threshold"),
        ({"global_fused_gate": [1]}, "global_fused_gate"),
        ({"agent_thresholds": [0.3]}, "agent_thresholds"),
        ({"agent_betas": {"atlas": None}}, "agent_betas"),
        ({"agent_fused_gates": {"atlas": float("nan")}}, "agent_fused_gates"),
        ({"embedding_dim": None}, ""),
    ],
)
def test_wrong_types_are_named(tmp_path: Path, change: dict[str, object], words: str) -> None:
    file = tmp_path / "c.json"
    file.write_text(json.dumps(GOOD | change))
    data, problem = read_calibration(file)
    assert data is not None
    assert words in problem
    assert bool(problem) == bool(words)


def test_what_is_no_file(tmp_path: Path) -> None:
    assert read_calibration(tmp_path / "none.json") == (None, "")
    assert "not a regular file" in read_calibration(tmp_path)[1]
    os.mkfifo(tmp_path / "pipe.json")
    assert "not a regular file" in read_calibration(tmp_path / "pipe.json")[1]
    (tmp_path / "loop.json").symlink_to(tmp_path / "loop.json")
    assert read_calibration(tmp_path / "loop.json") == (None, "")


def test_a_file_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "c.json").write_text("{}")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    assert read_calibration(tmp_path / "c.json") == (None, "it cannot be read: Permission denied")
