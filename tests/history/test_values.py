"""A JSON stream cut at its objects: the same values as the parser's own, whatever the chunks, and damage named."""

from __future__ import annotations

import io
import json
from typing import BinaryIO, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpersona_cli.history import values
from cpersona_cli.history.model import Unread
from cpersona_cli.history.values import Object, kind_of, mapping, objects, parsed, word

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
OBJECTS = st.lists(st.dictionaries(st.text(max_size=5), JSON, max_size=3), max_size=4)


class Drops(io.RawIOBase):
    """A stream that gives a few bytes at a time."""

    def __init__(self, data: bytes, size: int) -> None:
        self.data, self.size = io.BytesIO(data), size

    def read(self, _size: int = -1) -> bytes:
        return self.data.read(self.size)


def read(data: bytes | str, size: int = 2**18, limit: int = 2**20) -> list[Object | Unread]:
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    return list(objects(cast("BinaryIO", Drops(raw, size)), "f", limit=limit))


def good(found: list[Object | Unread]) -> list[object]:
    return [item.value for item in found if isinstance(item, Object)]


def bad(found: list[Object | Unread]) -> list[tuple[str, str]]:
    return [(item.where, item.reason) for item in found if isinstance(item, Unread)]


@given(OBJECTS, st.integers(1, 9), st.booleans(), st.sampled_from([None, 0, 2]))
def test_an_array_gives_its_objects(expected: list[object], size: int, ascii_: bool, indent: int | None) -> None:
    text = json.dumps(expected, ensure_ascii=ascii_, indent=indent)
    assert good(read(text, size)) == expected
    assert good(read("\ufeff" + text + "\n", size)) == expected


@given(OBJECTS, st.integers(1, 9), st.sampled_from(["\n", " ", "", "\r\n\r\n"]))
def test_a_sequence_gives_its_objects(expected: list[object], size: int, between: str) -> None:
    assert good(read(between.join(json.dumps(value) for value in expected), size)) == expected


@given(st.lists(JSON, max_size=6), st.integers(1, 9))
def test_what_is_no_object_is_named(expected: list[object], size: int) -> None:
    found = read(json.dumps(expected), size)
    assert len(found) == len(expected)
    for value, item in zip(expected, found, strict=True):
        if isinstance(value, dict):
            assert isinstance(item, Object)
            assert item.value == value
        else:
            assert isinstance(item, Unread)
            assert item.reason == f"it is {kind_of(value)}, not an object"


@given(OBJECTS.filter(bool), st.data())
def test_an_end_too_early_keeps_what_came_before(expected: list[object], data: st.DataObject) -> None:
    text = json.dumps(expected).encode()
    cut = data.draw(st.integers(1, len(text) - 1))
    found = read(text[:cut], 7)
    whole = good(found)
    assert whole == expected[: len(whole)]
    assert "ends" in bad(found)[-1][1]


def test_places() -> None:
    found = read('[{"a":1},\n {"b":"ü"}, {}]')
    assert [item.where for item in found] == [
        "f, conversation 1 (byte 1)",
        "f, conversation 2 (byte 11)",
        "f, conversation 3 (byte 23)",
    ]


def test_an_end_within_an_object_names_the_byte() -> None:
    found = read('[{"a":1},{"b":"abc')
    assert good(found) == [{"a": 1}]
    assert bad(found) == [("f, byte 9", "the file ends within the value that begins here, after 9 bytes of it")]
    assert bad(read('[{"a":1}')) == [("f, byte 8", "the file ends before its list does, so more may be missing")]


def test_a_damaged_object_costs_itself_only() -> None:
    found = read('[{"a":1},{"b":tru},{"c":3}]')
    assert good(found) == [{"a": 1}, {"c": 3}]
    assert bad(found) == [("f, conversation 2 (byte 9)", "it is not JSON: expecting value at byte 14")]


def test_two_damaged_objects_in_a_row_end_the_reading() -> None:
    found = read('[{"a":1},{"ü":x},{y},{"c":3}]')
    assert good(found) == [{"a": 1}]
    assert bad(found) == [
        ("f, conversation 2 (byte 9)", "it is not JSON: expecting value at byte 15"),
        ("f, conversation 3 (byte 18)", "it is not JSON: expecting property name enclosed in double quotes at byte 19"),
        ("f, byte 21", "two values in a row are no JSON; the 9 bytes from there on were not read"),
    ]


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ('[{"a":1} {"b":2}]', 9, "there is no comma between two values; the 8 bytes from there on were not read"),
        ('[{"a":1}}]', 8, "'}' stands alone; the 2 bytes from there on were not read"),
        ('[{"a":1}],{}', 9, "',' stands alone; the 3 bytes from there on were not read"),
        ('[{"a":1},,{"b":2}]', 9, "',' stands alone; the 9 bytes from there on were not read"),
    ],
)
def test_what_stands_between_objects(text: str, place: int, reason: str) -> None:
    for size in (1, 3, 100):
        found = read(text, size)
        assert good(found) == [{"a": 1}]
        assert bad(found) == [(f"f, byte {place}", reason)]


def test_a_comma_at_the_end_of_a_list_harms_nothing() -> None:
    assert good(read('[{"a":1},]')) == [{"a": 1}]
    assert read("[]") == []
    assert read("") == []


def test_what_is_too_large_is_passed_in_its_place() -> None:
    large = json.dumps({"text": "x" * 3000, "more": ["y" * 100] * 20})
    for size in (1, 64, 10_000):
        found = read(f'[{{"a":1}},{large},{{"c":3}}]', size, limit=1000)
        assert good(found) == [{"a": 1}, {"c": 3}]
        assert bad(found) == [
            ("f, conversation 2 (byte 9)", "it takes 0.0 MiB, more than the 0.0 MiB one may take"),
        ]


def test_depth_and_numbers_beyond_the_parser() -> None:
    found = read(f'[{{"a":{"[" * 100_000}{"]" * 100_000}}},{{"b":1}},{{"c":{"9" * 5000}}},{{"d":NaN}}]')
    assert [reason for _, reason in bad(found)] == [
        "it is not JSON: it is nested too deeply at byte 1",
        "it is not JSON: a number in it has too many digits at byte 200016",
    ]
    assert good(found)[0] == {"b": 1}
    assert len(good(found)) == 2


def test_broken_bytes_arrive_as_halves() -> None:
    assert parsed(b'"a\xffb"') == "a\udcffb"
    assert parsed(rb'"\ud83d"') == "\ud83d"
    assert parsed(b'"a\x01b"') == "a\x01b"


def test_kinds() -> None:
    samples: list[object] = [True, None, {}, [], "", 1, 1.5]
    kinds = [kind_of(value) for value in samples]
    assert kinds == ["true or false", "null", "an object", "an array", "a string", "a number", "a number"]
    assert mapping([1]) == {}
    assert values.items({}) == []
    assert word(1) == ""
