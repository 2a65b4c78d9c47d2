"""Open WebUI exports, new and old: the branch that was shown, without what is folded away in the texts."""

from __future__ import annotations

import datetime as dt

from hypothesis import given
from hypothesis import strategies as st
from support.exports import START, stream, webui, webui_message

from cpersona_cli.history.model import Conversation, Dated, Format, Unread
from cpersona_cli.history.open_webui import END_MISSING, reader
from cpersona_cli.history.times import Clock
from cpersona_cli.history.tree import CIRCLE, GAP

NOW = dt.datetime(2026, 6, 1, tzinfo=dt.UTC)
QUESTION = webui_message("u", "user", "Why?", None, int(START) + 1)
ANSWER = webui_message("a", "assistant", "So.", "u", int(START) + 2, model="qwen3")


def at(seconds: float) -> dt.datetime:
    return dt.datetime.fromtimestamp(START + seconds, dt.UTC)


def read_all(*conversations: object) -> list[Conversation | Unread]:
    found = list(reader()(stream(list(conversations)), "x.json", Clock(NOW)))
    return [item for item in found if isinstance(item, (Conversation, Unread))]


def read(conversation: object) -> Conversation:
    (found,) = read_all(conversation)
    assert isinstance(found, Conversation)
    return found


def said(conversation: Conversation) -> list[tuple[str, str]]:
    return [(turn.role.value, turn.text) for turn in conversation.turns]


def test_a_chat() -> None:
    found = read(webui(QUESTION, ANSWER))
    assert (found.id, found.format, found.title, found.model) == ("c1", Format.OPEN_WEBUI, "Cats", "qwen3")
    assert [(turn.id, turn.text, turn.at) for turn in found.turns] == [("u", "Why?", at(1)), ("a", "So.", at(2))]


def test_old_shapes() -> None:
    inner = webui(QUESTION, ANSWER)["chat"]
    found = read(inner | {"id": "old", "timestamp": int(START * 1000)})
    assert (found.id, found.model) == ("old", "qwen3")
    assert said(found) == [("user", "Why?"), ("assistant", "So.")]
    listed = {"title": "L", "models": ["m"], "history": {}, "messages": [{"role": "user", "content": "Hi"}, None]}
    found = read(webui(chat=listed))
    assert said(found) == [("user", "Hi")]
    assert (found.model, found.left_out, found.turns[0].dated) == ("m", {"damaged messages": 1}, Dated.CONVERSATION)
    assert found.turns[0].id.startswith("sha256:")
    assert read(listed | {"timestamp": int(START * 1000)}).turns[0].at == at(0)
    assert read(listed).id == read(listed | {"title": "other"}).id


def test_branches_circles_and_gaps() -> None:
    other = webui_message("b", "assistant", "Or so.", "u", int(START) + 3)
    found = read(webui(QUESTION, other, ANSWER))
    assert said(found) == [("user", "Why?"), ("assistant", "So.")]
    assert (found.branches, found.left_out) == (1, {"messages on other branches": 1})
    value = webui(QUESTION, other, ANSWER)
    value["chat"]["history"]["currentId"] = "gone"
    found = read(value)
    assert (said(found)[1], found.remarks) == (("assistant", "Or so."), (END_MISSING,))
    value["chat"]["history"]["currentId"] = None
    assert read(value).remarks == ()
    circle = webui(webui_message("u", "user", "Why?", "a"), ANSWER)
    assert (said(read(circle)), read(circle).remarks) == ([("user", "Why?"), ("assistant", "So.")], (CIRCLE,))
    assert read(webui(ANSWER)).remarks == (GAP,)


def test_what_is_folded_away() -> None:
    content = (
        '<details type="reasoning" done="true" duration="5">\n<summary>Thought</summary>\n> hm\n</details>\nSo.'
        '<details type="tool_calls" done="true" id="x">\n</details> It '
        "<details>\n<summary>More</summary>kept</details>"
        '<details type="reasoning" done="false">\n> never ended'
    )
    found = read(webui(QUESTION, webui_message("a", "assistant", content, "u")))
    assert said(found)[1] == ("assistant", "So. It <details>\n<summary>More</summary>kept</details>")
    assert found.left_out == {"thoughts": 2, "calls of tools": 1}
    quoted = webui_message("u", "user", content, None)
    assert said(read(webui(quoted))) == [("user", content)]


def test_parts_roles_and_files() -> None:
    parts = [{"type": "text", "text": "See"}, {"type": "image_url"}, {"type": "smell"}, None]
    found = read(
        webui(
            webui_message("s", "system", "be kind", None),
            webui_message("t", "tool", "x", "s"),
            webui_message("x", "ghost", "x", "t"),
            webui_message("u", "user", parts, "x", files=[{}, {}]),
            webui_message("e", "user", "", "u"),
            webui_message(
                "a",
                "assistant",
                "",
                "e",
                output=[{"type": "message", "content": [{"type": "output_text", "text": "So."}]}],
            ),
        )
    )
    assert said(found) == [("user", "See"), ("assistant", "So.")]
    assert found.left_out == {
        "system messages": 1,
        "results of tools": 1,
        "messages of unknown roles": 1,
        "images": 1,
        "parts of the unknown type smell": 1,
        "parts of the unknown type (none)": 1,
        "files without text": 2,
        "empty messages": 1,
    }


def test_empty_and_unreadable_ones() -> None:
    assert read(webui()).passed_over == "empty"
    empty, none = read_all(webui(chat={"history": {"messages": {}}}), webui(chat={"title": "x"}))
    assert isinstance(empty, Conversation)
    assert empty.passed_over == "empty"
    assert isinstance(none, Unread)
    assert none.reason == 'it has no messages: neither "history" nor "messages" holds any'


SHAPES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "a", "u", "user", "text"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*webui_message("a", "user", "", None), "history", "messages"]), inner, max_size=4
        )
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(list(webui())), SHAPES), st.dictionaries(st.sampled_from("uab"), SHAPES))
def test_no_shape_stops_the_reading(changed: dict[str, object], nodes: dict[str, object]) -> None:
    value = webui(QUESTION, ANSWER)
    value["chat"]["history"]["messages"] |= nodes
    first, second = read_all(value | changed, webui(QUESTION, name="next"))
    assert isinstance(first, (Conversation, Unread))
    assert isinstance(second, Conversation)
    assert second.id == "next"
