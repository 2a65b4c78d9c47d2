"""What is read of a compose file, what is left out, and the service that comes out of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cpersona_cli.install.launch.compose import Node, read
from cpersona_cli.install.launch.understand import understand
from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import Launch


def plain(node: Node | None) -> object:
    if node is None:
        return None
    if isinstance(node.value, dict):
        return {name: plain(child) for name, child in node.value.items()}
    if isinstance(node.value, list):
        return [plain(child) for child in node.value]
    return node.value


READS: list[tuple[str, object]] = [
    ("a: 1\nb: two words\n", {"a": "1", "b": "two words"}),
    ("---\n# words\na: 1 # more\nb: x#y\n", {"a": "1", "b": "x#y"}),
    ("a: 'it''s # here'\nb: \"q \\\" \\\\ x\"\n", {"a": "it's # here", "b": 'q " \\ x'}),
    ("a:\n  b:\n    c: 1\n  d: 2\ne: 3\n", {"a": {"b": {"c": "1"}, "d": "2"}, "e": "3"}),
    ("a:\n  - x\n  - y: 1\n    z: 2\n  -\n    q: 1\n", {"a": ["x", {"y": "1", "z": "2"}, {"q": "1"}]}),
    ("a:\n- x\n- y\nb: 1\n", {"a": ["x", "y"], "b": "1"}),
    ("a: [x, 'y, z', \"w\"]\nb: []\n", {"a": ["x", "y, z", "w"], "b": []}),
    ("a:\nb: null\nc: ~\nd: ''\n", {"a": None, "b": "", "c": "", "d": ""}),
    ('"quoted key": 1\n', {"quoted key": "1"}),
    ("a: http://h:8401/embed\n- b\n", {"a": "http://h:8401/embed"}),
    ("\ufeffa: 1\r\nb: 2\r\n", {"a": "1", "b": "2"}),
    ("", None),
]


@pytest.mark.parametrize(("text", "tree"), READS)
def test_block_style_is_read(tmp_path: Path, text: str, tree: object) -> None:
    file = tmp_path / "compose.yaml"
    file.write_bytes(text.encode())
    assert plain(read(file)[0]) == tree


LEFT_OUT = [
    ("a: *anchor\nb: 1\n", 1),
    ("b: 1\na: &x 5\n", 2),
    ("b: 1\na:\n  <<: *x\n  c: 1\n", 3),
    ("b: 1\na: |\n  lines\n  more\n", 2),
    ("b: 1\na: {x: 1}\n", 2),
    ("b: 1\na: 'open\n", 2),
    ('b: 1\na: "open\n', 2),
    ('b: 1\na: "\\u0041"\n', 2),
    ("b: 1\na: [x, {y: 1}]\n", 2),
    ("b: 1\na: one\n  two\n", 2),
    ("b: 1\n\ta: 1\n", 2),
    ("b: 1\njust words\n", 2),
    ("b: 1\n   a: 1\n", 1),
]


@pytest.mark.parametrize(("text", "line"), LEFT_OUT)
def test_other_forms_are_named_by_line_and_left_out(tmp_path: Path, text: str, line: int) -> None:
    file = tmp_path / "compose.yaml"
    file.write_text(text)
    tree, unclear = read(file)
    assert f"{file}:{line} " in " ".join(unclear)
    assert "anchor" not in str(plain(tree))


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    broken = tmp_path / "latin.yaml"
    broken.write_bytes(b"a: \xe9\n")
    large = tmp_path / "large.yaml"
    large.write_bytes(b"#" * ((1 << 20) + 5))
    for path, said in (
        (tmp_path / "none.yaml", "does not exist"),
        (tmp_path, "regular"),
        (broken, "UTF-8"),
        (large, "long"),
    ):
        tree, unclear = read(path)
        assert tree is None
        assert said in unclear[0]


SERVICE = """\
services:
  cpersona:
    image: ghcr.io/someone/cpersona:2.6.14
    environment:
      CPERSONA_EMBEDDING_MODE: http
      CPERSONA_EMBEDDING_URL: "http://embedding:8401/embed"
      CPERSONA_AUTH_TOKEN:
    env_file:
      - path: memory.env
      - more.env
    volumes:
      - ./data:/data
      - type: bind
        source: /srv/models
        target: /models
      - named:/n
    network_mode: host
    working_dir: /srv
  other:
    image: redis
"""


def compose(folder: Path, text: str, *words: str, name: str = "compose.yaml") -> Launch:
    (folder / name).write_text(text)
    machine = Machine(system="linux", home=folder, cwd=folder)
    return understand("docker", ["compose", *words], machine, folder)


def test_a_service_is_taken_from_the_file(tmp_path: Path) -> None:
    launch = compose(tmp_path, SERVICE, "run", "--rm", "-e", "X=1", "cpersona", "serve")
    assert launch.image == "ghcr.io/someone/cpersona:2.6.14"
    assert launch.package == "cpersona"
    told = {v.name: (v.text, v.place.line) for v in launch.variables}
    assert told == {
        "CPERSONA_EMBEDDING_MODE": ("http", 5),
        "CPERSONA_EMBEDDING_URL": ("http://embedding:8401/embed", 6),
        "X": ("1", None),
    }
    assert launch.passed == ("CPERSONA_AUTH_TOKEN",)
    assert launch.env_files == (str(tmp_path / "memory.env"), str(tmp_path / "more.env"))
    assert launch.mounts == ((str(tmp_path / "data"), "/data"), ("/srv/models", "/models"), ("named", "/n"))
    assert (launch.network_host, launch.cwd, launch.leftover, launch.interactive) == (True, "/srv", ("serve",), True)
    assert launch.unclear == ()


def test_environment_as_a_list_and_the_one_service_that_holds_the_server(tmp_path: Path) -> None:
    text = (
        "services:\n  memory:\n    image: x/cpersona\n    env_file: a.env\n    environment:\n      - A=1=2\n      - B\n"
    )
    launch = compose(tmp_path, text, "up", name="docker-compose.yml")
    assert [(v.name, v.text, v.place.line) for v in launch.variables] == [("A", "1=2", 6)]
    assert (launch.passed, launch.interactive) == (("B",), False)
    assert launch.env_files == (str(tmp_path / "a.env"),)


def test_several_files_and_overrides_are_layered(tmp_path: Path) -> None:
    (tmp_path / "compose.override.yaml").write_text(
        "services:\n  cpersona:\n    environment: {A: 1}\n    image: x/cpersona:9\n"
    )
    launch = compose(tmp_path, SERVICE, "run", "cpersona")
    assert launch.image == "x/cpersona:9"
    assert "compose.override.yaml:3" in launch.unclear[0]
    named = compose(tmp_path, SERVICE, "-f", "compose.yaml", "run", "-i=false", "cpersona")
    assert (named.image, named.interactive) == ("ghcr.io/someone/cpersona:2.6.14", False)


def test_project_directory_moves_relative_names(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    launch = compose(tmp_path, SERVICE, "-f", "compose.yaml", "--project-directory", "sub", "run", "cpersona")
    assert launch.mounts[0][0] == str(tmp_path / "sub" / "data")


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        (SERVICE, ("run", "absent"), "no service 'absent'"),
        ("services:\n  a:\n    image: redis\n", ("up",), "does not say which service"),
        ("services:\n  cpersona:\n    extends: base\n", ("run", "cpersona"), "extends another service"),
        (SERVICE, ("-f", "absent.yaml", "run", "cpersona"), "does not exist"),
    ],
)
def test_what_a_file_does_not_say_is_said(tmp_path: Path, text: str, words: tuple[str, ...], said: str) -> None:
    assert said in " ".join(compose(tmp_path, text, *words).unclear)
