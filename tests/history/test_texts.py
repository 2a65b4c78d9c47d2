"""Texts on their way to becoming memories: nothing lost that was said, nothing kept that breaks a store."""

from __future__ import annotations

import base64
import json
import random
import sqlite3
from collections import Counter
from contextlib import closing

import pytest
from cpersona.utils import _strip_annotations
from hypothesis import example, given
from hypothesis import strategies as st

from cpersona_cli.history.texts import BLOB, BLOBS, HALVES, NULS, clean, digest, split, unannotated

ANY = st.text(st.characters(codec=None, exclude_categories=()))
BYTES = random.Random(7).randbytes(9_000)
BASE64 = base64.b64encode(BYTES).decode()


def cleaned(text: str) -> tuple[str, dict[str, int]]:
    counts: Counter[str] = Counter()
    return clean(text, counts), dict(counts)


def test_what_is_whole_stays() -> None:
    for text in (
        "plain",
        "family \U0001f468‍\U0001f469‍\U0001f467",
        "日本語と漢字",
        "שלום, عالم",
        "e\u0301",
        "\U0001f378",
    ):
        assert cleaned(text) == (text, {})


def test_a_half_character_is_replaced_and_counted() -> None:
    assert cleaned(json.loads(r'"ok \ud83d x"')) == ("ok \ufffd x", {HALVES: 1})
    assert cleaned(json.loads(r'"\ud83c\udf78 \udf78\ud83c"')) == ("\U0001f378 \ufffd\ufffd", {HALVES: 2})


def test_a_nul_is_removed_and_counted() -> None:
    assert cleaned("a\x00b\x00") == ("ab", {NULS: 2})


def test_line_ends_and_white_space_around() -> None:
    assert cleaned("\r\n  one\r\ntwo\rthree \n\n") == ("one\ntwo\nthree", {})


@given(ANY)
def test_a_clean_text_can_be_stored_and_sent(text: str) -> None:
    fit, _ = cleaned(text)
    fit.encode()
    assert "\x00" not in fit
    assert fit == fit.strip()
    assert cleaned(fit) == (fit, {})
    with closing(sqlite3.connect(":memory:")) as database:
        assert database.execute("SELECT ?, length(?)", (fit, fit)).fetchone() == (fit, len(fit))


@pytest.mark.parametrize(
    "blob",
    [
        f"data:image/png;base64,{BASE64}",
        f"data:text/plain;charset=utf-8;base64,{BASE64}",
        BASE64,
        BASE64.replace("+", "-").replace("/", "_"),
        base64.encodebytes(BYTES).decode().rstrip("\n"),
        base64.encodebytes(BYTES[:1_141]).decode().rstrip("\n"),
    ],
)
def test_a_blob_gives_way_to_its_length(blob: str) -> None:
    text, counts = cleaned(f"See\n{blob}\nand say what it is.")
    assert text == f"See\n[base64 data left out: {len(blob):,} characters]\nand say what it is."
    assert counts == {BLOBS: 1}


@pytest.mark.parametrize(
    "text",
    [
        "a" * 50_000,
        "ACGT" * 5_000,
        "word " * 5_000,
        "漢字" * 5_000,
        f"https://example.org/{'a/B1?' * 900}",
        "x = 1\n" * 2_000,
        f"short: data:image/png;base64,{BASE64[:60]}",
        f"{BASE64[: BLOB - 1]} " * 3,
    ],
)
def test_what_is_no_blob_stays(text: str) -> None:
    assert cleaned(text) == (text.strip(), {})


@given(st.lists(st.sampled_from(["[Memory from ", "[Memory fr", "om ", "]", "[", "a", " ", "\n", "M"])).map("".join))
@example("[Memory fr[Memory from a] om b] x")
@example("[Memory fr[Memory from [Memory from ]om [Memory from [Memory from ]")
@example("[Memory from ] [Memory from x]y")
@example("[Memory from [Memory from a]]b]")
def test_annotations_go_as_the_server_lets_them_go(text: str) -> None:
    assert unannotated(text) == _strip_annotations(text)


def test_annotations_in_ordinary_text() -> None:
    assert unannotated("[Memory from 2026-01-01] Tea, not coffee.") == "Tea, not coffee."
    assert unannotated("no annotation [1]") == "no annotation [1]"


def test_many_layers_of_annotations_take_one_pass() -> None:
    text = "[Memory from " * 40_000 + "a" + "]" * 40_000
    assert unannotated(text) == _strip_annotations(text)
    # Openings without an end: a search from each of them would take for ever.
    endless = "[Memory from " * 40_000
    assert unannotated(endless) == endless
    assert unannotated("[Memory from a] \n" + endless) == endless


@given(st.text(st.sampled_from("ab.!。 \n\u0301\u200d👍🏽 ")), st.integers(1, 40))
def test_pieces_hold_all_that_was_said(text: str, limit: int) -> None:
    pieces = split(text, limit)
    assert all(0 < len(piece) <= limit for piece in pieces)
    assert all(piece == piece.strip() for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())


def test_a_short_text_is_one_piece() -> None:
    assert split("  a\n\nb ", 4) == ("a\n\nb",)
    assert split(" \n ", 4) == ()
    with pytest.raises(ValueError, match="not 0"):
        split("a", 0)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        # a paragraph before a line, a line before a sentence, a sentence before a word, a word before anywhere
        ("One two.\nThree.\n\nFour five.", ("One two.\nThree.", "Four five.")),
        ("One. Two three\nfour five six", ("One. Two three", "four five six")),
        ("One. Two three. Four five", ("One. Two three.", "Four five")),
        ("一二三四五六七八九十。十一二三四五六七八九十。", ("一二三四五六七八九十。", "十一二三四五六七八九十。")),
        ("one two three four five", ("one two three four", "five")),
        ("abcdefghijklmnopqrstuvwxyz", ("abcdefghijklmnopqrst", "uvwxyz")),
        # a break in the first half would make crumbs
        ("a\n\nbcdefghijklmnopqrstuvwxyz", ("a\n\nbcdefghijklmnopqr", "stuvwxyz")),
        # the last room is used to its end
        (f"{'a' * 20}\n\n{'b' * 20}", ("a" * 20, "b" * 20)),
        (f"{'a' * 18}. {'b' * 20}", ("a" * 18 + ".", "b" * 20)),
    ],
)
def test_where_a_text_is_cut(text: str, pieces: tuple[str, ...]) -> None:
    assert split(text, 20) == pieces


def test_a_composed_character_is_not_cut() -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    assert split("a" * 18 + family, 20) == ("a" * 18, family)
    assert split("a" * 19 + "e\u0301x", 20) == ("a" * 19, "e\u0301x")
    assert split("a" * 19 + "\U0001f44d\U0001f3fd", 20) == ("a" * 19, "\U0001f44d\U0001f3fd")
    assert split("\u0301" * 50, 20) == ("\u0301" * 20, "\u0301" * 20, "\u0301" * 10)


def test_a_long_text_is_split_in_pieces_of_a_fair_length() -> None:
    text = " ".join(f"Sentence {n} says a little." for n in range(8_000))
    pieces = split(text, 16_000)
    assert len(text) > 200_000
    assert all(15_900 < len(piece) <= 16_000 and piece.endswith("little.") for piece in pieces[:-1])


def test_a_digest_is_of_its_parts() -> None:
    assert digest("a", "b") == digest("a", "b") != digest("ab")
    assert digest("\ud83d").startswith("sha256:")
    assert len(digest("a")) == 39
