"""Requirements as uv and pip write them."""

from __future__ import annotations

import pytest

from cpersona_cli.install.launch.options import leading
from cpersona_cli.install.launch.requirement import requirement

ROWS = [
    ("cpersona", "cpersona", "", False),
    ("CPersona", "cpersona", "", False),
    ("cpersona[extra]==2.6.10", "cpersona", "2.6.10", False),
    ("cpersona == 2.6.10 ; python_version > '3'", "cpersona", "2.6.10", False),
    ("cpersona@2.6.14", "cpersona", "2.6.14", False),
    ("cpersona@latest", "cpersona", "", True),
    ("cpersona==2.6.*", "cpersona", "", False),
    ("cpersona>=2.6,<3", "cpersona", "", False),
    ("cpersona @ git+https://example.org/x", "cpersona", "", False),
    ("git+https://example.org/CPersona.git@v2.6.10", "cpersona-git", "2.6.10", False),
    ("git+https://example.org/CPersona@v2.6.10#egg=x", "cpersona", "2.6.10", False),
    ("git+https://example.org/CPersona@main", "cpersona", "", False),
    ("/wheels/cpersona-2.6.10-py3-none-any.whl", "cpersona", "2.6.10", False),
    ("https://example.org/cpersona-2.5.12.tar.gz", "cpersona", "2.5.12", False),
    ("./CPersona", "cpersona", "", False),
    (".", "", "", False),
    ("!", "", "", False),
]


@pytest.mark.parametrize(("text", "name", "pin", "latest"), ROWS)
def test_requirement_is_taken_apart(text: str, name: str, pin: str, latest: bool) -> None:
    found = requirement(text)
    assert (found.pin, found.latest) == (pin, latest)
    assert found.name == name.removesuffix("-git")


ALLOWS = [
    ("cpersona", "2.4.1", True),
    ("cpersona==2.6.10", "2.6.10", True),
    ("cpersona==2.6.10", "2.6.11", False),
    ("cpersona>=2.6,<3", "2.6", True),
    ("cpersona>=2.6,<3", "2.5.12", False),
    ("cpersona>=2.6,<3", "3.0", False),
    ("cpersona>2.6", "2.6", False),
    ("cpersona<=2.6", "2.6.1", False),
    ("cpersona!=2.6.1", "2.6.1", False),
    ("cpersona~=2.6.1", "2.6.9", True),
    ("cpersona~=2.6.1", "2.7", False),
    ("cpersona~=2.6.1", "2.6.0", False),
    ("cpersona==2.6.*", "2.6.3", True),
    ("cpersona==2.6.*", "2.60", False),
    ("cpersona!=2.6.*", "2.6.3", False),
    ("cpersona>=2.6.*", "1", True),
    ("cpersona>=words", "1", True),
]


@pytest.mark.parametrize(("text", "release", "allowed"), ALLOWS)
def test_releases_that_will_do(text: str, release: str, allowed: bool) -> None:
    assert requirement(text).allows(release) is allowed


def test_options_are_told_from_words() -> None:
    words = ["-it", "-eA=1", "-e", "B", "--name", "x", "--rm", "--net=host", "--", "-x", "y"]
    options = leading(words, valued=("-e",), flags=frozenset({"--rm"}))
    assert options.rest == ("-x", "y")
    assert options.all("-e") == ("A=1", "B")
    assert options.last("--name") == "x"
    assert options.last("--absent") == ""
    assert options.has("-t")
    assert not options.has("--absent")
    assert leading(["-e"], valued=("-e",)).pairs == ()
    assert leading(["--name"], valued=("--name",)).pairs == (("--name", None),)
    assert leading(["-Command", "x", "y"], valued=("-Command",)).pairs == (("-Command", "x"),)
    assert leading(["-", "x"]).rest == ("-", "x")
