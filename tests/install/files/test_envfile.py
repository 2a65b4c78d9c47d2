"""Environment files in the two dialects, with the line each value stands on."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpersona_cli.install.files.envfile import read

Style = Literal["dotenv", "docker"]

ROWS: list[tuple[Style, str, dict[str, tuple[str, int]]]] = [
    ("dotenv", "A=1\n\n# no\nB = two words \n", {"A": ("1", 1), "B": ("two words", 4)}),
    ("dotenv", 'export A=\'x # y\'\nB="q\\"\\n\\z" # c\n', {"A": ("x # y", 1), "B": ('q"\n\\z', 2)}),
    ("dotenv", "A=x # c\nB=x#c\nC=\n", {"A": ("x", 1), "B": ("x#c", 2), "C": ("", 3)}),
    ("dotenv", "A='one\ntwo'\nB=1\n", {"A": ("one\ntwo", 1), "B": ("1", 3)}),
    ("dotenv", "A='open\nB=1\n", {"A": ("'open", 1), "B": ("1", 2)}),
    ("dotenv", "not a line\nA\n=1\nB=1\r\n", {"B": ("1", 4)}),
    ("dotenv", "\ufeffA=1", {"A": ("1", 1)}),
    ("docker", 'A="http"\n# no\n\n  B= x \n', {"A": ('"http"', 1), "B": (" x ", 4)}),
    ("docker", "A=1\r\nB='2' # c\n", {"A": ("1", 1), "B": ("'2' # c", 2)}),
]


@pytest.mark.parametrize(("style", "text", "told"), ROWS)
def test_lines_become_variables(tmp_path: Path, style: Style, text: str, told: dict[str, tuple[str, int]]) -> None:
    file = tmp_path / "x.env"
    file.write_bytes(text.encode())
    variables, passed, problem = read(file, style, "envFile")
    assert {v.name: (v.text, v.place.line) for v in variables} == told
    assert {v.place.file for v in variables} <= {file}
    assert (passed, problem) == ((), "")


def test_a_name_alone_is_handed_on_by_docker_only(tmp_path: Path) -> None:
    file = tmp_path / "x.env"
    file.write_text("CPERSONA_AUTH_TOKEN\n")
    assert read(file, "docker", "")[1] == ("CPERSONA_AUTH_TOKEN",)
    assert read(file, "dotenv", "")[1] == ()


def test_what_cannot_be_read_is_a_sentence(tmp_path: Path) -> None:
    latin = tmp_path / "latin"
    latin.write_bytes(b"A=\xe9")
    long = tmp_path / "long"
    long.write_bytes(b"#" * ((1 << 20) + 1))
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for path in (tmp_path / "absent", tmp_path, latin, long, loop, Path("nul\0")):
        variables, _, problem = read(path, "dotenv", "")
        assert variables == ()
        assert str(path) in problem


@settings(deadline=None)
@given(st.text(max_size=60), st.sampled_from(["dotenv", "docker"]))
def test_any_text_is_survived(tmp_path_factory: pytest.TempPathFactory, text: str, style: Style) -> None:
    file = tmp_path_factory.getbasetemp() / "any.env"
    file.write_bytes(text.encode("utf-8", "replace"))
    assert read(file, style, "")[2] == ""
