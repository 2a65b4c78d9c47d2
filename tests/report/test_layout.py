from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpersona_cli.report.layout import Style, columns, flow, pad, spelled, wrap


@pytest.mark.parametrize(
    ("text", "width"),
    [("", 0), ("abc", 3), ("記憶", 4), ("e\u0301", 1), ("a記b", 4), ("ｆｕｌｌ", 8), ("…“”", 3)],
)
def test_columns(text: str, width: int) -> None:
    assert columns(text) == width


def test_pad_counts_columns() -> None:
    assert pad("記憶", 6) == "記憶  "
    assert pad("longer", 3) == "longer"


def test_wrap_leaves_paths_and_quotes_whole() -> None:
    text = 'see /a b/c d.json and run "x y z" now'
    assert wrap(text, 12, ["/a b/c d.json"]) == ["see", "/a b/c d.json", "and run", '"x y z" now']
    assert wrap(text, 12)[:2] == ["see /a b/c", "d.json and"]


def test_a_quotation_longer_than_the_line_is_broken_like_prose() -> None:
    assert wrap('"a b c d e f"', 6) == ['"a b c', 'd e f"']


def test_wrap_counts_wide_characters() -> None:
    assert wrap("記憶 記憶 記憶", 9) == ["記憶 記憶", "記憶"]


def test_flow() -> None:
    assert flow(["one", "two", "three"], 10) == ["one    two", "three"]
    assert flow([], 10) == []


WORDS = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zs", "Zl", "Zp"], exclude_characters='"`“'), min_size=1)


@settings(deadline=None)
@given(st.lists(WORDS, min_size=1), st.integers(1, 40))
def test_wrapping_loses_and_breaks_no_word(words: list[str], width: int) -> None:
    lines = wrap(" ".join(words), width)
    assert " ".join(lines).split(" ") == words
    assert all(columns(line) <= width or " " not in line for line in lines)


def test_paint() -> None:
    assert Style().paint("x", "red") == "x"
    assert Style(color=True).paint("x", "red") == "\x1b[1;31mx\x1b[0m"
    assert Style(color=True).paint("", "red") == ""


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("utf-8", "“a” → … █░"),
        (None, "“a” → … █░"),
        ("ascii", '"a" -> ... #-'),
        ("cp1252", "“a” -> … #-"),
        ("no-such-encoding", '"a" -> ... #-'),
    ],
)
def test_own_characters_are_put_plainly_where_a_stream_has_none(encoding: str | None, shown: str) -> None:
    assert spelled("“a” → … █░", encoding) == shown


def test_foreign_characters_are_left_to_the_stream() -> None:
    assert spelled("記憶 “a”", "ascii") == '記憶 "a"'
    assert spelled("plain", "ascii") == "plain"


JAPANESE = (
    "記憶とエピソード 1,234 件のうち 56 件にはベクトルがなく、意味による検索では見つかりません（`cpersona-cli "
    "reembed` で補えます）。「これから」起動するサーバーは、正常と見なします。"
)


@pytest.mark.parametrize("width", range(10, 90))
def test_japanese_sentences_break_between_characters(width: int) -> None:
    lines = wrap(JAPANESE, width)
    # nothing is lost but the spaces at which a line ended
    assert "".join(lines).replace(" ", "") == JAPANESE.replace(" ", "")
    for line in lines:
        assert line[:1] not in "。、）」ーょ"
        assert line[-1:] not in "（「"
        # what is quoted, such as a command, is never broken
        assert columns(line) <= max(width, columns("つかりません（`cpersona-cli reembed`"))


def test_japanese_lines_are_filled() -> None:
    text = "意味による検索では、" * 20
    lines = wrap(text, 40)
    assert all(36 <= columns(line) <= 40 for line in lines[:-1])


def test_paths_with_japanese_names_stay_whole() -> None:
    path = "/home/ユーザー/記憶/とても長い名前のフォルダー/memory.db"
    assert wrap(f"see {path} there", 20) == ["see", path, "there"]
