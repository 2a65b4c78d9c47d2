"""Files that are no SQLite database, named from their first bytes."""

from __future__ import annotations

import gzip
import io
import random
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpersona_cli.store.refusal import SAMPLE, describe


def _zip() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("memory.db", "x")
    return buffer.getvalue()


NOISE = random.Random(4).randbytes(16384)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"<!doctype html>\n<html>", "HTML page"),
        (b"\xef\xbb\xbf\n  <HTML lang=en>", "HTML page"),
        (b"<!-- saved --><html>", "HTML page"),
        (b'<?xml version="1.0"?><a/>', "XML"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n", "Git LFS pointer"),
        (bytes(8192), "begins with at least 4096 zero bytes"),
        (bytes(1000), "all of its 1000 bytes are zeros"),
        (gzip.compress(b"x", mtime=0), "gzip"),
        (_zip(), "zip archive"),
        (b'{"_type": "header", "version": "cpersona-export/1.1"}', "export of memories"),
        (b'[{"a": 1}]', "JSON"),
        (b"-- a dump\nPRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n", "dump of SQL"),
        (b"CREATE TABLE memories(id);", "dump of SQL"),
        (b"** This file contains an SQLite 2.1 database **", "SQLite 2"),
        (b"\x37\x7f\x06\x82" + bytes(28), "write-ahead log"),
        (b"\x12\x34\x56\x78\x00\x00\x00\x00DUCK\x40" + bytes(50), "DuckDB"),
        (NOISE, "encrypted"),
        (NOISE[:16000], "does not begin"),
        (NOISE[:1500], "does not begin"),
        (NOISE[:40], "does not begin"),
        ("Einfacher Text, nichts weiter: ä".encode(), "text file"),
        ("あ".encode() * 2000, "text file"),
        (b"mostly text" + b"\xff" * 5 + b" but not quite", "does not begin"),
        (b"\0\1\2\3" * 2000, "does not begin"),
    ],
)
def test_the_plain_reason(content: bytes, words: str) -> None:
    assert words in describe(content[:SAMPLE], len(content))


@settings(deadline=None)
@given(st.binary(min_size=1, max_size=SAMPLE))
def test_every_content_gets_one_sentence(content: bytes) -> None:
    sentence = describe(content, len(content))
    assert sentence
    assert "\n" not in sentence
