"""Claude exports: text from the blocks, attached texts with it, and the rest counted."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.exports import claude, claude_message, stream

from cpersona_cli.history.claude import ATTACHMENT, CUT, reader
from cpersona_cli.history.draft import EMPTY
from cpersona_cli.history.model import Conversation, Dated, Format, Unread
from cpersona_cli.history.times import ASSUMED, Clock
from cpersona_cli.history.tree import GAP

NOW = dt.datetime(2026, 6, 1, tzinfo=dt.UTC)
ROOT = "00000000-0000-4000-8000-000000000000"


def read_all(*conversations: object) -> list[Conversation | Unread]:
    found = list(reader()(stream(list(conversations)), "x.json", Clock(NOW)))
    return [item for item in found if isinstance(item, (Conversation, Unread))]


def read(conversation: object) -> Conversation:
    (found,) = read_all(conversation)
    assert isinstance(found, Conversation)
    return found


def said(conversation: Conversation) -> list[tuple[str, str]]:
    return [(turn.role.value, turn.text) for turn in conversation.turns]


def blocks(*content: object, text: str = "", **more: Any) -> dict[str, Any]:
    return claude_message("m", "assistant", text, content=list(content), **more)


def test_a_conversation() -> None:
    found = read(
        claude(claude_message("h", "human", "Hi"), claude_message("a", "assistant", "Hello", None), summary="S")
    )
    assert (found.id, found.format, found.title, found.summary) == ("c1", Format.CLAUDE, "Tea", "S")
    assert said(found) == [("user", "Hi"), ("assistant", "Hello")]
    started = dt.datetime(2025, 10, 4, 9, 12, tzinfo=dt.UTC)
    first = dt.datetime(2025, 10, 4, 9, 12, 33, 123456, dt.UTC)
    assert [(turn.id, turn.at, turn.dated) for turn in found.turns] == [
        ("h", first, Dated.MESSAGE),
        ("a", started, Dated.CONVERSATION),
    ]


def test_text_comes_from_the_blocks() -> None:
    found = read(
        claude(
            blocks(
                {"type": "thinking", "thinking": "hm"},
                {"type": "token_budget"},
                {"type": "text", "text": "Hello"},
                {"type": "tool_use", "name": "web_search", "input": {}},
                {"type": "tool_result", "content": []},
                {"type": "text", "text": "again"},
                {"type": "text", "text": None},
                {"type": None},
                "odd",
                text="hm Hello ```\nThis block is not supported on your current device yet.\n``` again",
            )
        )
    )
    assert said(found) == [("assistant", "Hello\n\nagain")]
    assert found.left_out == {
        "thoughts": 1,
        "blocks of the unknown type token_budget": 1,
        "calls of tools": 1,
        "results of tools": 1,
        "blocks of the unknown type (none)": 2,
    }


def test_the_field_counts_only_without_known_blocks() -> None:
    placeholder = "```\nThis block is not supported on your current device yet.\n```"
    assert said(read(claude(claude_message("h", "human", "old export", content=[])))) == [("user", "old export")]
    assert said(read(claude(blocks({"type": "new"}, text=f"{placeholder}\nreal")))) == [("assistant", "real")]
    assert read(claude(blocks({"type": "tool_use"}, text=placeholder))).left_out == {"calls of tools": 1, EMPTY: 1}
    assert read(claude(blocks({"type": "thinking"}, text="hm"))).passed_over == "no talk in it"


def test_attached_texts_belong_to_their_message() -> None:
    attachments = [
        {"file_name": "a.txt", "extracted_content": "abc\r\n"},
        {"file_name": None, "extracted_content": "x" * (ATTACHMENT + 1_234)},
        {"file_name": "b.png", "extracted_content": ""},
        None,
    ]
    message = claude_message("h", "human", "See", attachments=attachments, files=[{"file_name": "c.png"}])
    found = read(claude(message))
    files = ["[attached file: a.txt]\nabc", f"[attached file: without a name]\n{'x' * ATTACHMENT}"]
    assert said(found) == [("user", "\n\n".join(["See", *files]) + "\n[1,234 more characters of this file left out]")]
    assert found.left_out == {"attachments without text": 2, "files without text": 1}
    assert found.altered == {CUT: 1}
    alone = claude_message("h", "human", "", attachments=attachments[:1])
    assert said(read(claude(alone))) == [("user", "[attached file: a.txt]\nabc")]


def test_empty_ones_are_no_errors() -> None:
    found = read({"uuid": "e", "name": "", "chat_messages": [], "created_at": "2025-01-01T00:00:00Z"})
    assert (found.passed_over, found.turns, found.left_out) == ("empty", (), {})


@pytest.mark.parametrize(("messages", "seen"), [(None, "is null"), ({}, "is an object")])
def test_messages_that_are_none(messages: object, seen: str) -> None:
    found, missing, whole = read_all(claude(chat_messages=messages), {"uuid": "x"}, claude(name="next"))
    assert isinstance(found, Unread)
    assert found.reason == f'it has no messages: "chat_messages" {seen}'
    assert isinstance(missing, Unread)
    assert missing.reason == 'it has no messages: "chat_messages" is missing'
    assert isinstance(whole, Conversation)


def tree(*edges: tuple[str, str | None, int]) -> list[dict[str, Any]]:
    return [
        claude_message(name, "human", name, f"2025-10-04T10:{minute:02}:00Z", parent_message_uuid=parent)
        for name, parent, minute in edges
    ]


def texts(found: Conversation) -> str:
    return "".join(turn.text for turn in found.turns)


def test_the_branch_that_was_said_last() -> None:
    messages = tree(("a", ROOT, 0), ("b", "a", 1), ("c", "a", 2), ("d", "c", 3), ("e", "b", 2))
    found = read(claude(*messages))
    assert texts(found) == "acd"
    assert (found.branches, found.left_out, found.remarks) == (1, {"messages on other branches": 2}, ())
    found = read(claude(*messages, current_leaf_message_uuid="e"))
    assert texts(found) == "abe"


def test_a_list_stays_as_it_is_where_nothing_was_edited() -> None:
    assert texts(read(claude(*tree(("a", ROOT, 0), ("b", "a", 1), ("c", "b", 2))))) == "abc"
    assert texts(read(claude(*tree(("b", "a", 1), ("c", "b", 2))))) == "bc"
    unnamed = tree(("a", ROOT, 0), ("", "a", 1), ("c", "a", 2))
    assert texts(read(claude(*unnamed))) == "ac"
    twice = tree(("a", ROOT, 0), ("b", "a", 1), ("b", "a", 1))
    assert (texts(read(claude(*twice))), read(claude(*twice)).left_out) == ("ab", {})
    found = read(claude(*tree(("b", "gone", 0), ("c", "b", 1), ("d", "b", 2))))
    assert (texts(found), found.remarks) == ("bd", (GAP,))


def test_senders_and_damage() -> None:
    found = read(
        claude(
            chat_messages=[
                claude_message("x", "robot", "beep"),
                None,
                claude_message("h", "human", "Hi"),
            ],
        )
    )
    assert said(found) == [("user", "Hi")]
    assert found.left_out == {"messages of unknown senders": 1, "damaged messages": 1}


def test_a_time_without_a_zone_is_counted() -> None:
    found = read(claude(claude_message("h", "human", "Hi", "2025-10-04T09:12:33")))
    assert found.turns[0].at == dt.datetime(2025, 10, 4, 9, 12, 33, tzinfo=dt.UTC)
    assert found.altered == {ASSUMED: 1}


def test_ids_without_a_name() -> None:
    message = claude_message("h", "human", "Hi", uuid=None)
    first, other = read(claude(message)), read(claude(message, claude_message("z", "human", "Ho")))
    assert first.turns[0].id.startswith("sha256:")
    assert first.turns[0].id == other.turns[0].id
    assert read(claude(claude_message("h", "human", "Hi"), uuid="")).id.startswith("sha256:")


SHAPES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "a", "b", "human", "text", ROOT]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(list(claude_message("a", "human", ""))), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(list(claude())), SHAPES), st.lists(SHAPES, max_size=3))
def test_no_shape_stops_the_reading(changed: dict[str, object], messages: list[object]) -> None:
    first, second = read_all(claude() | {"chat_messages": messages} | changed, claude(name="next"))
    assert isinstance(first, (Conversation, Unread))
    assert isinstance(second, Conversation)
    assert second.id == "next"
