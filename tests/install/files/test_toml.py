from __future__ import annotations

import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpersona_cli.install.files import toml
from cpersona_cli.install.files.tree import Node
from cpersona_cli.install.model import ProblemKind

_SAMPLE = """\
# Codex
model = "x"
approval.policy = 'never'

[mcp_servers.cpersona]
command = "uvx"
args = [
  "cpersona", # the server
  ["nested"],
]
env = { CPERSONA_DB_PATH = "/srv/m.db", "quoted name" = 'v' }

[mcp_servers . "my memory".env]
note = \"\"\"
[not.a.table]
key = 1
\"\"\"
when = 2026-01-02

[[servers]]
id = "a"
[servers.env]
X = "1"
[[servers]]
id = "b"
[servers.env]
X = "2"
"""


def _at(text: str, node: Node) -> tuple[int, str]:
    line = text.count("\n", 0, node.key_at) + 1
    return line, text[node.key_at :].split("\n", 1)[0]


def test_every_key_and_table_has_its_place() -> None:
    root, faults = toml.parse(_SAMPLE)
    assert root is not None
    assert faults == []
    places = {
        ("model",): (2, 'model = "x"'),
        ("approval", "policy"): (3, "approval.policy = 'never'"),
        ("mcp_servers", "cpersona"): (5, "[mcp_servers.cpersona]"),
        ("mcp_servers", "cpersona", "args"): (7, "args = ["),
        ("mcp_servers", "cpersona", "env"): (11, 'env = { CPERSONA_DB_PATH = "/srv/m.db", "quoted name" = \'v\' }'),
        ("mcp_servers", "cpersona", "env", "quoted name"): (11, "\"quoted name\" = 'v' }"),
        ("mcp_servers", "my memory", "env", "note"): (14, 'note = """'),
        ("mcp_servers", "my memory", "env", "when"): (18, "when = 2026-01-02"),
    }
    for path, place in places.items():
        node = root.find(*path)
        assert node is not None, path
        assert _at(_SAMPLE, node) == place
    first, second = root.members["servers"].items
    assert _at(_SAMPLE, first.members["env"].members["X"]) == (23, 'X = "1"')
    assert _at(_SAMPLE, second.members["env"].members["X"]) == (27, 'X = "2"')
    args = root.find("mcp_servers", "cpersona", "args")
    assert args is not None
    assert _at(_SAMPLE, args.items[0])[0] == 8
    assert _at(_SAMPLE, args.items[1].items[0]) == (9, '"nested"],')


def test_a_date_is_shown_as_the_table_that_clients_see() -> None:
    root, _ = toml.parse("when = 2026-01-02T03:04:05Z\n")
    assert root is not None
    assert root.plain() == {"when": {"datetime": "2026-01-02 03:04:05+00:00"}}


_KEYS = st.text(alphabet="abXY_-09", min_size=1, max_size=5)
_SCALARS = st.booleans() | st.integers(-(2**60), 2**60) | st.text(alphabet="ab \\'\"#[]{}=.,é", max_size=8)
_TOML_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=10,
)


def _written(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, list):
        return "[" + ", ".join(_written(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f'"{key}" = {_written(item)}' for key, item in value.items()) + " }"
    return str(value)


@settings(deadline=None)
@given(st.dictionaries(_KEYS, _TOML_VALUES, max_size=4))
def test_values_are_those_of_the_standard_parser_and_places_point_at_them(data: dict[str, object]) -> None:
    text = "".join(f"{key} = {_written(value)}\n" for key, value in data.items())
    root, faults = toml.parse(text)
    assert root is not None
    assert faults == []
    assert root.plain() == tomllib.loads(text) == data
    todo = [root]
    while todo:
        node = todo.pop()
        for key, child in node.members.items():
            assert text[child.key_at :].lstrip('"').startswith(key)
            assert text.startswith(_written(child.plain()), child.at)
        todo += [*node.members.values(), *node.items]


@settings(deadline=None, max_examples=300)
@given(st.text() | st.text(alphabet="[]{}=.,\"'#\n ab1\\u"))
def test_no_text_makes_it_raise(text: str) -> None:
    _, faults = toml.parse(text)
    assert all(0 <= fault.at <= len(text) for fault in faults)
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        assert any(fault.fatal for fault in faults)
    else:
        assert faults == []


@pytest.mark.parametrize(
    ("text", "plain", "kind", "line", "word"),
    [
        (
            '[a.env]\nP = "C:\\Users\\me\\m.db"\nQ = "q"\n',
            {"a": {"env": {"P": "C:\\Users\\me\\m.db", "Q": "q"}}},
            ProblemKind.SYNTAX, 2, "single backslash",
        ),
        (
            '[a]\nP = "D:\\work\\m.db" # \\d\n', {"a": {"P": "D:\\work\\m.db"}}, ProblemKind.SYNTAX, 2,
            "single backslash",
        ),
        ("[a]\nx = 1\n[b]\ny = 2\n[a]\nz = 3\n[c]\n", {"a": {"x": 1}, "b": {"y": 2}, "c": {}}, ProblemKind.DUPLICATE, 5,
         "[a] is written twice"),
        ("[a]\nx = 1\nx = 2\ny = 3\n", {"a": {"x": 1, "y": 3}}, ProblemKind.DUPLICATE, 3, "“x” is written twice"),
        ("[a]\nx = [1,\n2\n", {"a": {}}, ProblemKind.TRUNCATED, 3, "ends too early"),
        ("[a]\nx = oops\ny = 1\n", {"a": {"y": 1}}, ProblemKind.SYNTAX, 2, "not TOML"),
        ("[a\nx = 1\n[b]\ny = 1\n", {"b": {"y": 1}}, ProblemKind.SYNTAX, 1, "not TOML"),
        ('[a]\nx = "open\ny = 1\n', {"a": {"y": 1}}, ProblemKind.SYNTAX, 2, "not TOML"),
        ("[a", {}, ProblemKind.TRUNCATED, 1, "ends too early"),
    ],
)  # fmt: skip
def test_each_fault_is_named_where_it_stands_and_the_rest_is_saved(
    text: str, plain: object, kind: ProblemKind, line: int, word: str
) -> None:
    root, faults = toml.parse(text)
    assert root is not None
    assert root.plain() == plain
    assert faults[0].kind is kind
    assert text.count("\n", 0, faults[0].at) + 1 == line
    assert word in faults[0].detail
    assert faults[0].fatal


def test_the_advice_for_windows_paths_is_the_literal_string() -> None:
    _, faults = toml.parse('P = "C:\\Users\\me"\n')
    assert "'C:\\Users\\" in faults[0].advice


def test_nesting_beyond_the_parser_is_named() -> None:
    root, faults = toml.parse("x = " + "[" * 20_000)
    assert root is None or root.plain() == {}
    assert faults


def test_a_file_that_is_no_toml_at_all_is_given_up() -> None:
    root, faults = toml.parse("".join(f"line {number} of prose\n" for number in range(100)))
    assert root is None
    assert len(faults) == toml.LIMIT


def test_a_name_of_thousands_of_parts_is_refused_at_once() -> None:
    for text in (f"[{'.'.join(['a'] * 5000)}]\n", f"{'.'.join(['a'] * 5000)} = 1\n"):
        root, (fault,) = toml.parse(text)
        assert root is None
        assert "nested too deeply" in fault.detail
    root, faults = toml.parse(f"a = '{'.' * 5000}'\n")
    assert root is not None
    assert faults == []
