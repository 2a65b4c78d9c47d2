from __future__ import annotations

import os
import subprocess

import pytest

from cpersona_cli.text import bare_url, nearest, percent, quoted, redact, safe


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://u:p@h:1/embed?token=x#f", "http://h:1/embed"),
        ("http://h/a@b", "http://h/a@b"),
        ("'http://u:hidden@h/embed'", "'http://h/embed'"),
        ("u:hidden@h:1/embed", "h:1/embed"),
        ("//u:hidden@h/embed", "//h/embed"),
        ("http://u:hidden@[::1/embed?x", "http://[::1/embed"),
        ("", ""),
    ],
)
def test_an_address_is_shown_without_what_may_be_secret(url: str, shown: str) -> None:
    assert bare_url(url) == shown


@pytest.mark.parametrize(
    ("text", "secrets", "shown"),
    [
        ("key=abcd-1234!", ["abcd-1234"], "key=[9 characters removed]!"),
        ('{"a": "q\\"w\\\\e"}', ['q"w\\e'], '{"a": "[7 characters removed]"}'),
        ('{"a": "gr\\u00fcn-77"}', ["grün-77"], '{"a": "[12 characters removed]"}'),
        ("got 'line\\n77'", ["line\n77"], "got '[8 characters removed]'"),
        ("abcdef abcd", ["abcd", "abcdef"], "[6 characters removed] [4 characters removed]"),
        ("http://ollama:11434 serves ollama", ["ollama"], "http://ollama:11434 serves ollama"),
        ("run cpersona-cli", ["CPersona"], "run cpersona-cli"),
        ("a key", ["a"], "a key"),
    ],
)
def test_secrets_go_by_value_and_words_that_hide_nothing_stay(text: str, secrets: list[str], shown: str) -> None:
    assert redact(text, secrets) == shown


@pytest.mark.parametrize(
    ("part", "whole", "shown"),
    [(0, 0, "0 %"), (0, 9, "0 %"), (9, 9, "100 %"), (1, 10000, "0.1 %"), (9999, 10000, "99.9 %"), (1, 3, "33 %")],
)
def test_a_share_is_nothing_only_of_nothing(part: int, whole: int, shown: str) -> None:
    assert percent(part, whole) == shown


@pytest.mark.parametrize(
    ("word", "meant"),
    [("dcotor", "doctor"), ("DOCTR", "doctor"), ("dmo", "demo"), ("do", None), ("dtor", "doctor"), ("xyz", None)],
)
def test_what_was_meant_shares_letters_with_what_was_typed(word: str, meant: str | None) -> None:
    assert nearest(word, ("demo", "doctor", "ok", "xml")) == meant


@pytest.mark.skipif(os.name == "nt", reason="POSIX quoting")
@pytest.mark.parametrize(
    "word", ["", "plain", "a b", "it's\nnew\\line", "tab\t'", "\x01a1", "x\udcffy\u202e", "é $x `y`"]
)
def test_a_quoted_word_is_one_argument_on_one_line(word: str) -> None:
    said = quoted(word)
    assert safe(said, 1000) == said
    bash = subprocess.run(["bash", "-c", f"printf %s {said}"], capture_output=True, check=True)
    assert bash.stdout == os.fsencode(word)
