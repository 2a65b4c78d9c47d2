from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.histories import Endless

from cpersona_cli.history.lines import Line, Lines
from cpersona_cli.history.model import Unread


def _read(data: bytes, limit: int = 1000) -> tuple[list[tuple[int, dict[str, object]]], list[Unread], Lines]:
    lines = Lines(io.BytesIO(data), "f.jsonl", limit=limit)
    found = list(lines)
    sound = [(line.number, line.value) for line in found if isinstance(line, Line)]
    return sound, [line for line in found if isinstance(line, Unread)], lines


def test_a_broken_line_is_named_by_its_number_and_the_rest_is_read() -> None:
    good = [json.dumps({"n": n}).encode() for n in range(1, 11)]
    good[5] = good[5][:-2]
    data = b"\n".join([*good[:8], b"", b"null", b"  ", *good[8:]])
    sound, unread, lines = _read(data)
    assert [value["n"] for _, value in sound] == [1, 2, 3, 4, 5, 7, 8, 9, 10]
    assert [number for number, _ in sound] == [1, 2, 3, 4, 5, 7, 8, 12, 13]
    assert [line.where for line in unread] == ["f.jsonl, line 6"]
    assert unread[0].reason.startswith("it is not JSON: ")
    assert lines.nulls == 1
    assert not lines.unfinished
    lines.close()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"[1]", "it is an array, not an object"),
        (b'"x"', "it is a string, not an object"),
        (b'{"a": ' + b"1" * 5000 + b"}", "it is not JSON: a number in it has too many digits at byte 0"),
        (b'{"a":' + b"[" * 4000 + b"]" * 4000 + b"}", "it is not JSON: it is nested too deeply at byte 0"),
        (b'{"a": "' + b"x" * 20_000 + b'"}', "it takes 0.0 MiB, more than the 0.0 MiB one may take"),
    ],
)
def test_what_is_no_object_is_unread_with_the_reason(line: bytes, reason: str) -> None:
    sound, unread, _ = _read(b'{"a":1}\n' + line + b'\n{"b":2}', limit=15_000)
    assert [value for _, value in sound] == [{"a": 1}, {"b": 2}]
    assert unread == [Unread(where="f.jsonl, line 2", reason=reason)]


def test_a_last_line_without_an_end_that_is_no_json_is_one_still_being_written() -> None:
    sound, unread, lines = _read(b'{"a":1}\n{"a":2')
    assert (len(sound), unread, lines.unfinished) == (1, [], True)
    assert _read(b'{"a":1}\n{"a":2\n')[2].unfinished is False


def test_a_byte_order_mark_and_windows_line_ends_are_nothing() -> None:
    sound, unread, _ = _read(b'\xef\xbb\xbf{"a":1}\r\n\r\n{"b":2}\r\n')
    assert ([value for _, value in sound], unread) == ([{"a": 1}, {"b": 2}], [])


def test_what_came_before_a_stream_fails_is_read_and_the_failure_raised_at_the_end() -> None:
    lines = Lines(Endless(iter([b'{"a":1}\n{"a"']), failing=EOFError("cut")), "f")  # type: ignore[arg-type]
    assert [line.value for line in lines if isinstance(line, Line)] == [{"a": 1}]
    with pytest.raises(EOFError, match="cut"):
        lines.close()


def test_a_line_of_any_length_takes_no_more_than_the_limit() -> None:
    read = Endless(part for part in [b'{"a":"', *[b"x" * 2**18] * 400, b'"}\n{"b":2}\n'])
    found = list(Lines(read, "f", limit=2**20))  # type: ignore[arg-type]
    assert found == [
        Unread(where="f, line 1", reason="it takes 100.0 MiB, more than the 1.0 MiB one may take"),
        Line(2, "f, line 2", {"b": 2}),
    ]


@given(st.lists(st.dictionaries(st.text(max_size=3), st.text(max_size=20), max_size=3)), st.integers(1, 40))
def test_any_chunks_give_the_same_lines(values: list[dict[str, str]], size: int) -> None:
    data = b"\n".join(json.dumps(value, ensure_ascii=False).encode() for value in values)
    chunks = (data[start : start + size] for start in range(0, len(data), size))

    class Chunks(io.BytesIO):
        def read(self, _size: int | None = -1) -> bytes:
            return next(chunks, b"")

    assert [line.value for line in Lines(Chunks(), "f") if isinstance(line, Line)] == values
