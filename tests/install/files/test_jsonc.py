from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpersona_cli.install.files import jsonc
from cpersona_cli.install.files.tree import Flavour, Node
from cpersona_cli.install.model import ProblemKind

_LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
_VALUES = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=20
)


def _nodes(root: Node) -> list[tuple[str, Node]]:
    found, todo = [], [root]
    while todo:
        node = todo.pop()
        found += list(node.members.items())
        todo += [*node.members.values(), *node.items]
    return found


@settings(deadline=None)
@given(_VALUES, st.sampled_from([None, 1, 4]), st.booleans())
def test_what_json_reads_is_read_the_same_and_without_a_complaint(
    value: object, indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    root, faults = jsonc.parse(text, "json")
    assert root is not None
    assert root.plain() == json.loads(text)
    assert faults == []


@settings(deadline=None)
@given(_VALUES, st.sampled_from([None, 2]))
def test_positions_point_at_key_and_value(value: object, indent: int | None) -> None:
    text = json.dumps({"root": value}, indent=indent)
    root, _ = jsonc.parse(text, "json")
    assert root is not None
    decoder = json.JSONDecoder()
    for key, node in _nodes(root):
        assert decoder.raw_decode(text, node.key_at)[0] == key
        assert decoder.raw_decode(text, node.at)[0] == node.plain()


@settings(deadline=None, max_examples=300)
@given(st.text() | st.text(alphabet="{}[]:,\"'\\/*#\n ab1.-eu"), st.sampled_from(["json", "json+comments", "jsonc"]))
def test_no_text_makes_it_raise_and_none_without_value_passes_unnoticed(text: str, flavour: Flavour) -> None:
    root, faults = jsonc.parse(text, flavour)
    assert root is not None or faults or not text.strip() or flavour != "json"
    assert all(0 <= fault.at <= len(text) for fault in faults)
    try:
        json.loads(text, parse_constant=lambda _: 1 / 0)
    except (ValueError, ZeroDivisionError):
        if flavour == "json" and text.strip(" \t\r\n"):
            assert any(fault.fatal for fault in faults)
    else:
        assert not [fault for fault in faults if fault.fatal]


@settings(deadline=None)
@given(_VALUES, st.data())
def test_a_file_cut_anywhere_gives_what_stood_before_the_cut(value: object, data: st.DataObject) -> None:
    text = json.dumps({"first": "kept", "rest": value})
    cut = data.draw(st.integers(len('{"first": "kept"'), len(text) - 1))
    root, faults = jsonc.parse(text[:cut], "json")
    assert root is not None
    assert root.members["first"].value == "kept"
    assert faults[-1].kind is ProblemKind.TRUNCATED
    assert faults[-1].fatal


def test_nesting_far_beyond_the_stack_is_read() -> None:
    depth = 20_000
    root, faults = jsonc.parse("[" * depth + "]" * depth, "json")
    assert faults == []
    assert root is not None
    assert root.plain(depth=1) == ["…"]
    root, faults = jsonc.parse('{"a":' * depth, "json")
    assert faults[-1].kind is ProblemKind.TRUNCATED


def test_numbers_beyond_what_python_converts_are_no_obstacle() -> None:
    root, faults = jsonc.parse("[" + "9" * 5000 + ", 1e999, -0.5E+2]", "json")
    assert faults == []
    assert root is not None
    assert root.plain() == [float("inf"), float("inf"), -50.0]


_SYNTAX, _CUT = ProblemKind.SYNTAX, ProblemKind.TRUNCATED


@pytest.mark.parametrize(
    ("text", "flavour", "plain", "first"),
    [
        ('{"a": 1,}', "json", {"a": 1}, (ProblemKind.TRAILING_COMMA, 7, "closing bracket")),
        ("[1, 2, ]", "json+comments", [1, 2], (ProblemKind.TRAILING_COMMA, 5, "closing bracket")),
        ('{"a": 1} // note', "json", {"a": 1}, (ProblemKind.COMMENT, 9, "comments")),
        ('/* one\ntwo */ {"a": 1 /* x */}', "json", {"a": 1}, (ProblemKind.COMMENT, 0, "comments")),
        ('{"a": 1 # note\n}', "jsonc", {"a": 1}, (_SYNTAX, 8, "“#”")),
        ('{"a": 1 /* never', "jsonc", {"a": 1}, (_CUT, 8, "never closed")),
        ('{"a": "C:\\Users\\me\\x.db"}', "json", {"a": "C:\\Users\\me\\x.db"}, (_SYNTAX, 9, "single backslash")),
        ('{"a": "\\u12"}', "json", {"a": "\\u12"}, (_SYNTAX, 7, "“\\u”")),
        ('{"a": "C:\\dir\\"\n}', "json", {"a": 'C:\\dir"'}, (_SYNTAX, 9, "single backslash")),
        ('{"a": "one\ttwo\x01"}', "json", {"a": "one\ttwo\x01"}, (_SYNTAX, 10, "U+0009")),
        ('{"a": "one\n}', "json", {"a": "one"}, (_SYNTAX, 6, "closing quote")),
        ("{'a': 'b'}", "json", {"a": "b"}, (_SYNTAX, 1, "single quotes")),
        ("{a: 1}", "json", {"a": 1}, (_SYNTAX, 1, "double quotes")),
        ('{"a": sk-live-0123}', "json", {"a": "sk-live-0123"}, (_SYNTAX, 6, "neither a number nor in quotes")),
        ('{"a": True}', "json", {"a": True}, (_SYNTAX, 6, "True")),
        ('{"a": None}', "json", {"a": None}, (_SYNTAX, 6, "None")),
        ('{"a": NaN}', "json", {"a": "NaN"}, (_SYNTAX, 6, "neither a number")),
        ('{"a": 01}', "json", {"a": "01"}, (_SYNTAX, 6, "neither a number")),
        ('{"a" 1}', "json", {"a": 1}, (_SYNTAX, 5, "“:” is missing")),
        ('{"a" = 1}', "json", {"a": 1}, (_SYNTAX, 5, "“=”")),
        ('{"a": }', "json", {}, (_SYNTAX, 6, "the value of “a” is missing")),
        ('{"a": 1 "b": 2}', "json", {"a": 1, "b": 2}, (_SYNTAX, 8, "comma is missing")),
        ('{"a": 1,, "b": 2}', "json", {"a": 1, "b": 2}, (_SYNTAX, 8, "nothing before it")),
        ('{, "b": 2}', "jsonc", {"b": 2}, (_SYNTAX, 1, "nothing before it")),
        ('{"a": [1}', "json", {"a": [1]}, (_SYNTAX, 8, "“}” stands where “]” belongs")),
        ('{"a": 1]}', "json", {"a": 1}, (_SYNTAX, 7, "“]” stands where “}” belongs")),
        ('{"a": 1} {"b": 2}', "json", {"a": 1}, (_SYNTAX, 9, "more text follows")),
        ('{"a": \u00a01}', "json", {"a": None}, (_SYNTAX, 6, "U+00A0")),
        ("{: 1}", "json", {":": 1}, (_SYNTAX, 1, "“:”")),
        ('{"a": /}', "json", {"a": None}, (_SYNTAX, 6, "“/”")),
        ('{"a": 1, "b', "json", {"a": 1}, (_CUT, 9, "inside the text")),
        ('{"a": 1, "b"', "json", {"a": 1}, (_CUT, 0, "never closed")),
        ('{"a": 1, "b": "\\', "json", {"a": 1}, (_CUT, 14, "inside the text")),
        ("nonsense", "json", "nonsense", (_SYNTAX, 0, "neither a number")),
    ],
)
def test_each_fault_is_named_where_it_stands_and_reading_goes_on(
    text: str, flavour: Flavour, plain: object, first: tuple[ProblemKind, int, str]
) -> None:
    root, faults = jsonc.parse(text, flavour)
    assert root is not None
    assert root.plain() == plain
    kind, at, word = first
    assert (faults[0].kind, faults[0].at) == (kind, at)
    assert word in faults[0].detail
    assert faults[0].fatal


def test_a_wrong_backslash_is_reported_once_in_a_text_and_advises_both_spellings() -> None:
    _, faults = jsonc.parse('{"a": "C:\\Users\\me", "b": "D:\\My\\x"}', "json")
    assert len(faults) == 2
    assert all("C:/Users/" in fault.advice and "C:\\\\Users" in fault.advice for fault in faults)


def test_an_unquoted_value_may_be_a_secret_and_is_not_repeated() -> None:
    _, faults = jsonc.parse('{"CPERSONA_AUTH_TOKEN": tok-4711}', "json")
    assert "4711" not in "".join(fault.detail + fault.advice for fault in faults)


def test_comments_and_trailing_commas_are_no_fault_where_they_are_allowed() -> None:
    text = '// first\n{"a": [1, 2,], /* and */ "b": {},}\n# not this one'
    root, faults = jsonc.parse(text.partition("#")[0], "jsonc")
    assert root is not None
    assert root.plain() == {"a": [1, 2], "b": {}}
    assert faults == []


def test_a_member_given_twice_counts_last_and_breaks_nothing() -> None:
    root, faults = jsonc.parse('{"a": 1, "a": 2}', "json")
    assert root is not None
    assert root.plain() == {"a": 2}
    assert [(fault.kind, fault.at, fault.fatal) for fault in faults] == [(ProblemKind.DUPLICATE, 9, False)]


def test_many_duplicates_do_not_end_the_reading() -> None:
    root, faults = jsonc.parse("{" + '"a": 1, ' * 50 + '"last": 2}', "json")
    assert root is not None
    assert root.members["last"].value == 2
    assert len(faults) == jsonc.LIMIT


def test_a_file_that_is_no_json_at_all_is_given_up_after_some_faults() -> None:
    _, faults = jsonc.parse("= ; " * 1000, "json")
    assert len(faults) <= jsonc.LIMIT
    _, faults = jsonc.parse("{" + "= ; " * 1000, "json")
    assert len(faults) == jsonc.LIMIT


def test_an_empty_text_has_no_tree_and_no_fault_of_its_own() -> None:
    assert jsonc.parse("", "json") == (None, [])
    assert jsonc.parse(" // nothing\n", "jsonc") == (None, [])


def test_shapes_have_the_names_of_json() -> None:
    root, _ = jsonc.parse('[{}, [], "", 1, 1.5, true, null]', "json")
    assert root is not None
    shapes = [node.shape for node in root.items]
    assert shapes == ["object", "array", "string", "number", "number", "boolean", "null"]
    assert root.items[2].text == ""
    assert root.items[3].text == ""
    assert root.find("a", "b") is None


def test_only_what_is_looked_at_is_read() -> None:
    """The history of a client is megabytes; the parser of the standard library alone goes through it."""
    text = json.dumps({"history": [{"text": "x"}] * 50, "mcpServers": {"memory": {"command": "uvx"}}}, indent=1)
    root, faults = jsonc.parse(text, "json")
    assert faults == []
    assert root is not None
    node = root.find("mcpServers", "memory", "command")
    assert node is not None
    assert text[node.key_at :].startswith('"command": "uvx"')
    assert text[node.at :].startswith('"uvx"')
    history = root.members["history"]
    assert history.shape == "array"
    assert [item.key_at == item.at for item in history.items] == [True] * 50
    assert history is root.members["history"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"a": 1, "a": 2}', ProblemKind.DUPLICATE),
        ('{"a": NaN}', ProblemKind.SYNTAX),
        ('{"a": 1} x', ProblemKind.SYNTAX),
        ('{"a": 1', ProblemKind.TRUNCATED),
    ],
)
def test_what_the_standard_parser_lets_pass_or_only_stops_at_is_named(text: str, kind: ProblemKind) -> None:
    root, faults = jsonc.parse(text, "json")
    assert [fault.kind for fault in faults] == [kind]
    assert root is not None
    assert "a" in root.members


def test_of_a_huge_broken_text_the_first_fault_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonc, "LARGEST_BROKEN", 10)
    for text, at in (('{"a": 1, "b" 2}', 13), ('{"a": NaN, "b": 2}', 0), ('{"a": 1, "a": 2}', 0)):
        root, (fault,) = jsonc.parse(text, "json")
        assert root is None
        assert (fault.kind, fault.at) == (ProblemKind.SYNTAX, at)
        assert "not valid JSON" in fault.detail
    assert jsonc.parse("[" * 100_000, "json")[1][0].detail.startswith("values are nested too deeply")
