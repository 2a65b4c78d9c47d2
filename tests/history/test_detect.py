"""A file is known by what it holds, and named by what was seen when it is not known."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.exports import claude, claude_message, gpt, gpt_message, webui, webui_message

from cpersona_cli.history.detect import HEAD, NAMES, detect
from cpersona_cli.history.model import Format


def lines(*values: object) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


TALK = "x" * HEAD
SAMPLES = [
    (Format.CHATGPT, json.dumps([gpt(gpt_message("u", "user", TALK))]).encode()),
    (Format.CHATGPT, json.dumps(gpt(gpt_message("u", "user", "Hi")), indent=2).encode()),
    (Format.CHATGPT, lines(gpt(), gpt())),
    (Format.CHATGPT, json.dumps([{"id": "broken", "title": ""}, gpt()]).encode()),
    (Format.CHATGPT, json.dumps([{"title": "T", "create_time": 1, "update_time": 2, "id": "x"}] * 12).encode()),
    (Format.CHATGPT, json.dumps([{"mapping": gpt()["mapping"], "x": 1}]).encode()),
    (Format.CHATGPT, json.dumps([gpt(mapping=None)]).encode()),
    (Format.CLAUDE, json.dumps([claude(claude_message("h", "human", TALK))]).encode()),
    (Format.CLAUDE, json.dumps([{"uuid": "e", "name": "", "chat_messages": []}]).encode("utf-8")),
    (Format.CLAUDE, b"\xef\xbb\xbf \n" + json.dumps(claude()).encode()),
    (Format.CLAUDE_CODE, lines({"type": "summary", "summary": TALK, "leafUuid": "x"})[:HEAD]),
    (Format.CLAUDE_CODE, lines({"type": "summary", "summary": "Fix auth", "leafUuid": "x"})),
    (Format.CLAUDE_CODE, lines({"type": "permission-mode", "permissionMode": "default", "sessionId": "s"})),
    (Format.CLAUDE_CODE, lines({"type": "file-history-snapshot", "messageId": "m", "snapshot": {}})),
    (
        Format.CLAUDE_CODE,
        lines({"parentUuid": None, "isSidechain": False, "type": "user", "message": {"role": "user"}}),
    ),
    (Format.CODEX, lines({"timestamp": "2026", "type": "session_meta", "payload": {"id": "c"}})),
    (Format.CODEX, lines({"id": "c", "timestamp": "2025", "instructions": None}, {"type": "message", "role": "user"})),
    (Format.CODEX, lines({"record_type": "state"})),
    (Format.CODEX, json.dumps({"session": {"id": "c"}, "items": []}).encode()),
    (Format.CPERSONA, lines({"_type": "header", "version": "cpersona-export/1.2"})),
    (Format.CPERSONA, lines({"_type": "memory", "content": "x"})),
    (Format.OPEN_WEBUI, json.dumps([webui(webui_message("u", "user", TALK, None))]).encode()),
    (Format.OPEN_WEBUI, json.dumps([webui()["chat"]]).encode()),
    (Format.PLAIN, lines({"conversation": "a", "role": "user", "text": "x"})),
]


@pytest.mark.parametrize(("expected", "data"), SAMPLES[:10] + SAMPLES[11:])
def test_a_format_is_known(expected: Format, data: bytes) -> None:
    assert detect(data[:HEAD]).format is expected


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b" \n\t", "blank"),
        (b"\xef\xbb\xbf", "blank"),
        (b'{"name": "x", "version": "1.0.0", "private": true}', "an object with the keys name, version, private"),
        (b'[{"user_id": 1, "rating": "up"}]', "an array of objects with the keys user_id, rating"),
        (
            lines({"messages": [{"role": "user", "content": "x"}]}, {"messages": []}),
            "lines of objects with the keys messages",
        ),
        (
            lines({"role": "user", "content": "x"}, {"role": "assistant"}),
            "lines of objects with the keys role, content",
        ),
        (
            lines({"custom_id": "1", "method": "POST", "body": {"model": "gpt"}}),
            "an object with the keys custom_id, method, body",
        ),
        (json.dumps({chr(97 + n): n for n in range(9)}).encode(), "an object with the keys a, b, c, d, e, f, g, h, …"),
        (b'{"\x1b[31m": 1}', r"an object with the keys \x1b[31m"),
        (b"[]", "an empty array"),
        (b"[1, 2]", "an array of numbers or words"),
        (b'["a"]', "an array of strings"),
        (b"[[1]]", "an array of arrays"),
        (b"[", "an array of something cut off"),
        (b"{", "an object"),
        (b"{}", "an object"),
        (b'{"a', "an object"),
        (b'{"a": "b\\', "an object with the keys a"),
        (b"<!DOCTYPE html><html>", "an HTML page"),
        (b"<?xml version='1.0'?>", "XML"),
        (b"Dear diary", "text that is no JSON"),
        (b"\x00\x01\x02", "binary data"),
        (b"SQLite format 3\x00", "an SQLite database"),
        (b"PK\x03\x04", "a zip archive"),
        (b"\xff\xfe[\x00", "text in UTF-16, which is to be saved as UTF-8 first"),
        (b"x" * 257 + b"ustar\x0000", "a tar archive, which is to be unpacked first"),
    ],
)
def test_what_is_not_known_is_named(data: bytes, words: str) -> None:
    seen = detect(data)
    assert seen.format is None
    assert seen.words() == words


def test_files_beside_conversations_are_of_no_format() -> None:
    beside = [
        {"id": "u", "email": "x", "chatgpt_plus_user": True},  # user.json
        [{"id": "f", "conversation_id": "c", "user_id": "u", "rating": "x", "create_time": "2025", "content": "{}"}],
        [{"id": "s", "conversation_id": "c", "title": "T", "is_anonymous": True}],
        [{"uuid": "p", "name": "P", "description": "", "is_private": True, "created_at": "x", "docs": []}],
        [{"uuid": "u", "full_name": "x", "email_address": "x"}],
        {"type": "object", "properties": {"sessionId": {"type": "string"}, "mapping": {}}},
    ]
    for value in beside:
        assert detect(json.dumps(value).encode()).format is None


def test_what_a_text_says_is_no_key() -> None:
    talk = json.dumps({"mapping": {"message": 1}, "chat_messages": [], "title": "x", "sessionId": "s", "type": "user"})
    assert detect(json.dumps([{"note": talk}]).encode()).format is None
    assert detect(json.dumps({"note": talk}).encode()[:60]).format is None
    assert detect(json.dumps({"deep": json.loads(talk)}).encode()).format is None


def test_the_first_that_tell_are_among_the_first() -> None:
    strangers = [{"a": 1}] * 150
    assert detect(lines(*strangers, {"_type": "memory"})).format is Format.CPERSONA
    assert detect(lines(*strangers, *strangers, {"_type": "memory"})).format is None


@given(st.binary(max_size=200) | st.text('[]{}",:\\ ntx1', max_size=80).map(str.encode))
def test_anything_can_be_looked_at(data: bytes) -> None:
    assert detect(data).words()


def test_every_format_has_a_name() -> None:
    assert list(NAMES) == list(Format)
