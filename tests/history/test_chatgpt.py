"""ChatGPT exports: the branch that was shown, the talk in it, and the rest counted."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.exports import START, gpt, gpt_message, stream

from cpersona_cli.history.chatgpt import END_MISSING, MARKS, reader
from cpersona_cli.history.draft import EMPTY, NO_TIME
from cpersona_cli.history.model import Conversation, Dated, Format, Role, Unread
from cpersona_cli.history.texts import HALVES, NULS
from cpersona_cli.history.times import FUTURE, Clock
from cpersona_cli.history.tree import CIRCLE, GAP

NOW = dt.datetime(2026, 6, 1, tzinfo=dt.UTC)


def at(seconds: float) -> dt.datetime:
    return dt.datetime.fromtimestamp(START + seconds, dt.UTC)


def read_all(*conversations: object) -> list[Conversation | Unread]:
    found = list(reader()(stream(list(conversations)), "x.json", Clock(NOW)))
    assert all(isinstance(item, (Conversation, Unread)) for item in found)
    return [item for item in found if isinstance(item, (Conversation, Unread))]


def read(conversation: object) -> Conversation:
    (found,) = read_all(conversation)
    assert isinstance(found, Conversation)
    return found


def said(conversation: Conversation) -> list[tuple[str, str]]:
    return [(turn.role.value, turn.text) for turn in conversation.turns]


def test_a_conversation() -> None:
    question = gpt_message("u1", "user", "How do I roll back?", START + 1)
    answer = gpt_message("a1", "assistant", "Run helm rollback.", START + 2.5, channel="final")
    answer["metadata"] = {"model_slug": "o4-mini"}
    found = read(gpt(question, answer))
    assert (found.id, found.format, found.title, found.model) == ("c1", Format.CHATGPT, "Deploying", "o4-mini")
    assert [(turn.id, turn.role, turn.text, turn.at, turn.dated) for turn in found.turns] == [
        ("u1", Role.USER, "How do I roll back?", at(1), Dated.MESSAGE),
        ("a1", Role.ASSISTANT, "Run helm rollback.", at(2.5), Dated.MESSAGE),
    ]
    assert (found.left_out, found.altered, found.undated, found.branches, found.remarks) == ({}, {}, {}, 0, ())
    assert found.where == "x.json, conversation 1 (byte 1)"


def test_what_is_hidden_broken_or_named_elsewhere() -> None:
    context = {"content_type": "user_editable_context", "user_profile": "secret", "user_instructions": "…"}
    hidden = gpt_message("ctx", "user", context, None, metadata={"is_visually_hidden_from_conversation": True})
    broken = {"title": "Corrupted entry", "create_time": START + 500, "update_time": START + 500, "id": "c2"}
    third = gpt(gpt_message("u2", "user", "Hi"), name="c3")
    first, second, last = read_all(gpt(hidden, gpt_message("u1", "user", "Hello")), broken, third)
    assert isinstance(first, Conversation)
    assert said(first) == [("user", "Hello")]
    assert first.left_out == {"hidden messages": 1}
    assert first.model == "gpt-5-thinking"
    assert isinstance(second, Unread)
    assert second.reason == 'it has no messages: "mapping" is missing'
    assert "conversation 2" in second.where
    assert "Corrupted" not in second.where
    assert isinstance(last, Conversation)
    assert last.id == "c3"


@pytest.mark.parametrize(
    ("mapping", "seen"), [(None, "is null"), ([], "is an array"), ("x", "is a string"), (7, "is a number")]
)
def test_a_mapping_that_is_none(mapping: object, seen: str) -> None:
    (found,) = read_all(gpt(mapping=mapping))
    assert isinstance(found, Unread)
    assert found.reason == f'it has no messages: "mapping" {seen}'


def test_each_kind_of_message_that_is_no_talk() -> None:
    def kind(name: str, content_type: str, role: str = "assistant", **more: Any) -> dict[str, Any]:
        return gpt_message(name, role, {"content_type": content_type, "text": "no talk", "parts": ["no talk"]}, **more)

    found = read(
        gpt(
            gpt_message("1", "system", "be kind"),
            gpt_message("2", "tool", "result"),
            gpt_message("3", "critic", "?"),
            gpt_message("4", "assistant", "search('x')", recipient="web"),
            gpt_message("5", "assistant", "thinking", channel="analysis"),
            gpt_message("6", "assistant", "I will look", channel="commentary"),
            kind("7", "code"),
            kind("8", "execution_output"),
            kind("9", "tether_quote", "user"),
            kind("10", "thoughts"),
            kind("11", "reasoning_recap"),
            kind("12", "model_editable_context"),
            kind("13", "system_error"),
            kind("14", "new\x1b[31m_type"),
            gpt_message("15", "assistant", "talk", channel=None, recipient=None),
            gpt_message("16", "user", "  "),
        )
    )
    assert said(found) == [("assistant", "talk")]
    assert found.left_out == {
        "system messages": 1,
        "results of tools": 3,
        "messages of unknown roles": 1,
        "calls of tools": 2,
        "thoughts": 4,
        "context texts": 1,
        "error messages": 1,
        r"messages of the unknown type new\x1b[31m_type": 1,
        EMPTY: 1,
    }


def test_nulls_anywhere() -> None:
    nothing = gpt_message("n", "user", None)
    nothing["content"] = None
    bare = {"id": "b", "author": {"role": "user"}, "content": {"parts": None}}
    found = read(
        gpt(
            nothing,
            bare,
            {"id": "c", "author": None, "content": None},
            gpt_message(
                "p",
                "user",
                {"content_type": "multimodal_text", "parts": [None, "text", {"content_type": "image_asset_pointer"}]},
            ),
            title=None,
        )
    )
    assert found.title == ""
    assert said(found) == [("user", "text")]
    assert found.left_out == {EMPTY: 2, "messages of unknown roles": 1, "images": 1}


def test_parts_of_many_kinds() -> None:
    parts = [
        "look at",
        {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"},
        {"content_type": "audio_transcription", "text": "and hear", "direction": "in"},
        {"content_type": "real_time_user_audio_video_asset_pointer"},
        {"content_type": "hologram"},
        "this",
    ]
    found = read(gpt(gpt_message("u", "user", {"content_type": "multimodal_text", "parts": parts})))
    assert said(found) == [("user", "look at\nand hear\nthis")]
    expected = {"images": 1, "sound and film recordings": 1, "parts of the unknown type hologram": 1}
    assert found.left_out == expected


def test_texts_of_old_shapes() -> None:
    old = gpt_message("o", "assistant", {"content_type": "text", "text": "as a field"})
    bare = gpt_message("s", "user", {})
    bare["content"] = "as it is"
    assert said(read(gpt(old, bare))) == [("assistant", "as a field"), ("user", "as it is")]


@pytest.mark.parametrize(
    ("created", "updated", "message", "started", "dated"),
    [
        (START, START + 9, None, 0.0, Dated.CONVERSATION),
        (None, START + 9, None, 9.0, Dated.CONVERSATION),
        (None, START + 9, START + 1, 1.0, Dated.MESSAGE),
        (None, None, START + 1, 1.0, Dated.MESSAGE),
        (None, None, None, None, Dated.UNKNOWN),
        (0, -1, 0, None, Dated.UNKNOWN),
    ],
)
def test_times_that_are_missing(
    created: object, updated: object, message: float | None, started: float | None, dated: Dated
) -> None:
    found = read(gpt(gpt_message("u", "user", "Hi", message), create_time=created, update_time=updated))
    expected = None if started is None else at(started)
    assert [(turn.at, turn.dated) for turn in found.turns] == [(expected, dated)]
    assert found.undated.get(NO_TIME, 0) == (dated is Dated.UNKNOWN)


def test_a_time_to_come_is_none() -> None:
    found = read(gpt(gpt_message("u", "user", "Hi", NOW.timestamp() + 3600)))
    assert [turn.dated for turn in found.turns] == [Dated.CONVERSATION]
    assert found.undated == {FUTURE: 1}


def test_a_time_of_the_change_of_a_message() -> None:
    found = read(gpt(gpt_message("u", "user", "Hi", None, update_time=START + 3)))
    assert found.turns[0].at == at(3)


def branching() -> dict[str, Any]:
    value = gpt(gpt_message("u", "user", "Q"), gpt_message("a", "assistant", "first", START + 1))
    second = gpt_message("b", "assistant", "second", START + 2)
    third = gpt_message("c", "user", "more", START + 3)
    value["mapping"]["b"] = {"id": "b", "message": second, "parent": "u", "children": ["c"]}
    value["mapping"]["c"] = {"id": "c", "message": third, "parent": "b", "children": []}
    value["mapping"]["u"]["children"].append("b")
    return value


def test_only_the_branch_that_was_shown() -> None:
    value = branching()
    assert [text for _, text in said(read(value | {"current_node": "a"}))] == ["Q", "first"]
    assert [text for _, text in said(read(value | {"current_node": "b"}))] == ["Q", "second"]
    found = read(value | {"current_node": "c"})
    assert [text for _, text in said(found)] == ["Q", "second", "more"]
    assert found.branches == 1
    assert found.left_out == {"messages on other branches": 1}


def test_an_end_that_is_missing() -> None:
    for end, remarks in ((None, ()), ("gone", (END_MISSING,)), (["x"], (END_MISSING,))):
        found = read(branching() | {"current_node": end})
        assert [text for _, text in said(found)] == ["Q", "second", "more"]
        assert found.remarks == remarks


def test_a_circle_and_a_parent_that_is_missing() -> None:
    circle = branching()
    circle["mapping"]["u"]["parent"] = "c"
    found = read(circle | {"current_node": "c"})
    assert [text for _, text in said(found)] == ["Q", "second", "more"]
    assert found.remarks == (CIRCLE,)
    gap = branching()
    gap["mapping"]["b"]["parent"] = "gone"
    found = read(gap | {"current_node": "c"})
    assert [text for _, text in said(found)] == ["second", "more"]
    assert found.remarks == (GAP,)


def test_one_not_to_be_remembered_is_not() -> None:
    found = read(gpt(gpt_message("u", "user", "secret"), is_do_not_remember=True))
    assert found.turns == ()
    assert found.passed_over == "marked not to be remembered"


def test_empty_ones() -> None:
    assert read(gpt(mapping={})).passed_over == "empty"
    assert read(gpt(gpt_message("s", "system", "x"))).passed_over == "no talk in it"
    assert read(gpt(gpt_message("u", "user", "x"))).passed_over == ""


def test_damaged_messages_are_counted() -> None:
    value = gpt(gpt_message("u", "user", "x"))
    value["mapping"]["odd"] = None
    value["mapping"]["odder"] = ["x"]
    assert read(value).left_out == {"damaged messages": 2}


def test_ids() -> None:
    value = gpt(gpt_message("u", "user", "x"), name="own")
    assert read(value).id == "own"
    assert read(value | {"conversation_id": None}).id == "own"
    nameless = value | {"conversation_id": None, "id": None}
    assert read(nameless).id == read(json.loads(json.dumps(nameless | {"title": "other"}))).id
    assert read(nameless).id.startswith("sha256:")
    value["mapping"]["u"]["message"]["id"] = None
    assert read(value).turns[0].id == "u"


def test_mended_texts_are_counted() -> None:
    found = read(gpt(gpt_message("u", "user", "a\x00b \ud83d"), title="T\x00i\n tle"))
    assert said(found) == [("user", "ab \ufffd")]
    assert found.altered == {HALVES: 1, NULS: 2}
    assert found.title == "Ti tle"


def test_marks_are_shown_as_on_the_page() -> None:
    cite, link = "\ue200cite\ue202turn0search0\ue201", "\ue200navlist\ue202x\ue201"
    city = '\ue200entity\ue202["city","Kyoto","city in Japan"]\ue201'
    text = f"{city} is old {cite}. See {link}\ue200entity\ue202[1]\ue201\ue200entity\ue202{{\ue201 now"
    references = [
        {"matched_text": link, "alt": "[list](https://example.org)"},
        {"matched_text": cite, "alt": None},
        None,
    ]
    found = read(gpt(gpt_message("a", "assistant", text, metadata={"content_references": references})))
    assert said(found) == [("assistant", "Kyoto is old . See [list](https://example.org) now")]
    assert found.altered == {MARKS: 5}


SHAPES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "u", "a", "user", "text", "all", "gone"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["message", "parent", "author", "role", "content", "parts"]), inner, max_size=4
        )
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(list(gpt())), SHAPES), st.dictionaries(st.sampled_from("uabr"), SHAPES))
def test_no_shape_stops_the_reading(changed: dict[str, object], nodes: dict[str, object]) -> None:
    value = gpt(gpt_message("u", "user", "x"), gpt_message("a", "assistant", "y"))
    value["mapping"] |= nodes
    first, second = read_all(value | changed, gpt(gpt_message("u", "user", "Hi"), name="next"))
    assert isinstance(first, (Conversation, Unread))
    assert isinstance(second, Conversation)
    assert second.id == "next"
