from __future__ import annotations

import datetime as dt
import json
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.histories import CLOCK, Endless, conversation, jsonl, read, said

from cpersona_cli.history.codex import reader
from cpersona_cli.history.lines import UNFINISHED
from cpersona_cli.history.model import Conversation, Dated, Format, Unread

U, A = "user", "assistant"


def _line(kind: str, payload: object, second: int = 0) -> dict[str, object]:
    return {"timestamp": f"2026-05-05T12:{second // 60:02d}:{second % 60:02d}.000Z", "type": kind, "payload": payload}


def _meta(name: str = "c-1", **more: Any) -> dict[str, object]:
    payload = {"id": name, "timestamp": "2026-05-05T12:00:00.000Z", "cwd": "/w", "source": "cli", **more}
    return _line("session_meta", payload)


def _sent(role: str, *texts: str, second: int = 0, **more: object) -> dict[str, object]:
    kind = "output_text" if role == A else "input_text"
    content = [{"type": kind, "text": text} for text in texts]
    return _line("response_item", {"type": "message", "role": role, "content": content, **more}, second)


def _shown(role: str, text: str, second: int = 0, **more: object) -> dict[str, object]:
    kind = "user_message" if role == U else "agent_message"
    return _line("event_msg", {"type": kind, "message": text, **more}, second)


def _done(role: str, text: str, second: int = 0, **more: object) -> dict[str, object]:
    kind = "UserMessage" if role == U else "AgentMessage"
    item = {"type": kind, "id": "i", "content": [{"type": "text" if role == U else "Text", "text": text}], **more}
    return _line("event_msg", {"type": "item_completed", "thread_id": "c-1", "item": item}, second)


TALK = [(U, "Fix flaky test"), (A, "Working")]


def test_a_message_that_stands_in_two_places_is_one() -> None:
    data = jsonl(
        _meta(),
        _line("turn_context", {"cwd": "/w", "model": "gpt-5.6"}),
        _sent("developer", "You are Codex"),
        _sent(U, "<environment_context>…</environment_context>"),
        _sent(U, "Fix flaky test", second=1),
        _shown(U, "Fix flaky test", second=2, images=[]),
        _line("response_item", {"type": "reasoning", "encrypted_content": "gAAAA", "summary": []}),
        _line("response_item", {"type": "function_call", "name": "exec_command", "arguments": "{}"}),
        _line("response_item", {"type": "function_call_output", "call_id": "1", "output": "ok"}),
        _shown(A, "Working", second=3),
        _sent(A, "Working", second=4),
        _line("event_msg", {"type": "token_count", "info": {}}),
        _line("compacted", {"message": "…"}),
        _line("world_state", {"full": True}),
    )
    talk = conversation(read(reader(), data))
    assert said(talk) == TALK
    assert talk.left_out == {
        "instructions of the program": 1,
        "context messages of the program": 1,
        "second copies of messages": 2,
        "thoughts": 1,
        "calls of tools": 1,
        "results of tools": 1,
        "token_count records": 1,
        "summaries of earlier talk": 1,
        "world_state records": 1,
    }
    assert (talk.id, talk.format, talk.model, talk.undated) == ("c-1", Format.CODEX, "gpt-5.6", {})
    assert [turn.at for turn in talk.turns] == [
        dt.datetime(2026, 5, 5, 12, 0, second, tzinfo=dt.UTC) for second in (1, 3)
    ]


PLACES: dict[str, Callable[[str, str], dict[str, object]]] = {"sent": _sent, "shown": _shown, "done": _done}


@pytest.mark.parametrize(
    "places", [["sent"], ["shown"], ["done"], ["sent", "shown"], ["done", "sent"], ["done", "shown", "sent"]]
)
def test_any_places_a_message_stands_in_give_the_same_talk(places: list[str]) -> None:
    data = jsonl(_meta(), *(PLACES[place](role, text) for role, text in TALK for place in places))
    talk = conversation(read(reader(), data))
    assert said(talk) == TALK
    only_sent = conversation(read(reader(), jsonl(_meta(), *(_sent(role, text) for role, text in TALK))))
    assert [turn.id for turn in talk.turns] == [turn.id for turn in only_sent.turns]


@given(st.lists(st.tuples(st.sampled_from([U, A]), st.sampled_from(["yes", "go on", "done"])), max_size=12), st.data())
def test_what_stands_in_some_places_only_is_neither_lost_nor_doubled(
    talk: list[tuple[str, str]], data: st.DataObject
) -> None:
    # each message stands in all places or in one that is the same for all
    first = data.draw(st.sampled_from(list(PLACES)))
    lines = [_meta()]
    for role, text in talk:
        places = data.draw(st.lists(st.sampled_from(list(PLACES)), unique=True))
        lines += [PLACES[place](role, text) for place in dict.fromkeys([*places, first])]
    assert said(conversation(read(reader(), jsonl(*lines)))) == talk


def test_a_message_that_stands_in_one_place_only_is_read_from_there() -> None:
    data = jsonl(_meta(), _sent(U, "one"), _shown(A, "two"), _shown(U, "three"), _sent(A, "four"))
    talk = conversation(read(reader(), data))
    assert said(talk) == [(U, "one"), (A, "two"), (U, "three"), (A, "four")]


def test_a_message_sent_with_something_around_it_or_shown_in_parts_is_one() -> None:
    data = jsonl(
        _meta(),
        _sent(U, "[the file is open]\n", "why is it red?"),
        _shown(U, "why is it red?"),
        _shown(A, "Because of"),
        _shown(A, "the theme."),
        _sent(A, "Because of", "the theme."),
        _sent(U, "# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\nmake it blue\n"),
        _shown(U, "# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\nmake it blue"),
        _sent(A, "Blue."),
    )
    talk = conversation(read(reader(), data))
    assert said(talk) == [
        (U, "why is it red?"),
        (A, "Because of\n\nthe theme."),
        (U, "make it blue"),
        (A, "Blue."),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "<environment_context>\n<cwd>/w</cwd>\n</environment_context>",
        "<user_instructions>be brief</user_instructions>",
        "<recommended_plugins>\nnone",
        "<permissions instructions>ask</permissions instructions>",
        "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>…</INSTRUCTIONS>",
        "<turn_aborted>the user interrupted</turn_aborted>",
        "<something_new version='2'>\nof the next release\n</something_new>",
        "# Context from my IDE setup:\n\n## Open tabs:",
    ],
)
def test_what_the_user_never_typed_is_left_out(text: str) -> None:
    data = jsonl(_meta(), _sent(U, text), _sent(U, text, "the real one"), _sent(A, "yes"))
    talk = conversation(read(reader(), data))
    assert said(talk) == [(U, "the real one"), (A, "yes")]
    assert talk.left_out == {"context messages of the program": 2}


def test_an_element_that_the_user_typed_is_the_users() -> None:
    data = jsonl(_meta(), _sent(U, "<div>why is it red?</div>"), _shown(U, "<div>why is it red?</div>"))
    assert said(conversation(read(reader(), data))) == [(U, "<div>why is it red?</div>")]


def test_images_and_their_tags_and_progress_are_counted() -> None:
    content = [
        {"type": "input_text", "text": "<image name=[Image #1]>"},
        {"type": "input_image", "image_url": "data:"},
        {"type": "input_text", "text": "</image>"},
        {"type": "input_text", "text": "what is this?"},
        {"type": "hologram"},
        None,
    ]
    data = jsonl(
        _meta(),
        _line("response_item", {"type": "message", "role": "user", "content": content}),
        _sent(A, "Looking…", phase="commentary"),
        _shown(A, "Looking…", phase="commentary"),
        _sent(A, "A cat.", phase="final_answer"),
        _sent(A),
    )
    talk = conversation(read(reader(), data))
    assert said(talk) == [(U, "what is this?"), (A, "A cat.")]
    assert talk.left_out == {
        "images": 1,
        "parts of the type hologram": 1,
        "parts of the type (none)": 1,
        "progress messages": 2,
    }


def test_lines_without_an_envelope_are_dated_by_their_session() -> None:
    data = jsonl(
        {"id": "c-0", "timestamp": "2025-08-18T01:16:13.522Z", "instructions": None, "git": {"branch": "main"}},
        {"record_type": "state"},
        {"type": "message", "id": None, "role": "user", "content": [{"type": "input_text", "text": "hello codex"}]},
        {"type": "reasoning", "summary": [], "encrypted_content": "x"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hello"}]},
        {"record_type": "state"},
    )
    talk = conversation(read(reader(), data))
    assert said(talk) == [(U, "hello codex"), (A, "hello")]
    began = dt.datetime(2025, 8, 18, 1, 16, 13, 522000, tzinfo=dt.UTC)
    assert [(turn.at, turn.dated) for turn in talk.turns] == [(began, Dated.CONVERSATION)] * 2
    assert (talk.id, talk.left_out) == ("c-0", {"state records": 2, "thoughts": 1})


@pytest.mark.parametrize("indent", [None, 2])
def test_the_oldest_files_are_one_object(indent: int | None) -> None:
    value = {
        "session": {"timestamp": "2025-05-01T10:00:00.000Z", "id": "c-00", "instructions": ""},
        "items": [
            {"role": "user", "content": [{"type": "input_text", "text": "hi"}], "type": "message"},
            {"role": "assistant", "content": [{"type": "output_text", "text": "ho"}], "type": "message"},
        ],
    }
    talk = conversation(read(reader(), json.dumps(value, indent=indent).encode()))
    assert (talk.id, said(talk)) == ("c-00", [(U, "hi"), (A, "ho")])
    broken, rest = read(reader(), json.dumps(value, indent=2).encode()[:-30])
    assert isinstance(broken, Unread)
    assert isinstance(rest, Conversation)


def test_what_was_taken_back_is_no_talk() -> None:
    def turn(text: str, answer: str) -> list[object]:
        return [_sent(U, text), _shown(U, text), _sent(A, answer), _shown(A, answer)]

    def back(count: object) -> object:
        return _line("event_msg", {"type": "thread_rolled_back", "num_turns": count})

    data = jsonl(
        back(1),
        _meta(),
        *turn("start", "ok"),
        *turn("wrong", "no"),
        *turn("wrong", "no again"),
        back(2),
        back("x"),
        *turn("right", "no"),
    )
    talk = conversation(read(reader(), data))
    assert said(talk) == [(U, "start"), (A, "ok"), (U, "right"), (A, "no")]
    assert (talk.branches, talk.left_out["messages on other branches"]) == (1, 4)


def test_what_a_fork_has_from_its_parent_is_read_once() -> None:
    parent = [_sent(U, "one"), _sent(A, "two"), _sent(U, "continue")]
    read_all = reader()
    first = conversation(read(read_all, jsonl(_meta("p"), *parent)))
    fork = jsonl(_meta("f", forked_from_id="p"), _meta("p"), *parent, _sent(A, "three"), _sent(U, "continue"))
    talk = conversation(read(read_all, fork))
    assert (talk.id, said(talk)) == ("f", [(A, "three"), (U, "continue")])
    assert talk.left_out == {"messages read before": 3}
    alone = conversation(read(reader(), fork))
    assert len(alone.turns) == 5
    assert [turn.id for turn in alone.turns[3:]] == [turn.id for turn in talk.turns]
    early = jsonl(_meta("e", forked_from_id="p"), parent[0], _sent(A, "another way"))
    assert said(conversation(read(read_all, early))) == [(A, "another way")]
    # the same session again, grown
    grown = conversation(read(read_all, jsonl(_meta("p"), *parent, _sent(A, "new"))))
    assert said(grown) == [(A, "new")]
    again = conversation(read(read_all, jsonl(_meta("p"), *parent)))
    assert (again.turns, again.passed_over) == ((), "no talk in it")
    assert len({turn.id for turn in (*first.turns, *talk.turns, *grown.turns)}) == 6


@pytest.mark.parametrize(
    "meta",
    [
        {"source": {"subagent": {"thread_spawn": {"parent_thread_id": "c-1"}}}},
        {"source": {"internal": "memory_consolidation"}},
        {"thread_source": "subagent"},
    ],
)
def test_a_session_of_a_sub_agent_is_no_talk_of_the_user(meta: dict[str, Any]) -> None:
    talk = conversation(read(reader(), jsonl(_meta(**meta), _sent(U, "do this"), _sent(A, "did"))))
    assert (talk.turns, talk.passed_over) == ((), "the talk of a sub-agent")
    assert talk.left_out == {"messages of sub-agents": 2}


def test_a_name_given_to_the_session_is_its_title() -> None:
    named = _line("event_msg", {"type": "thread_name_updated", "thread_name": "Flaky\n tests"})
    assert conversation(read(reader(), jsonl(_meta(), _sent(U, "hi"), named))).title == "Flaky tests"


def test_damage_costs_what_is_damaged() -> None:
    data = jsonl(_meta(), _sent(U, "one"), b'{"timestamp":"2026', _sent(A, "two")) + b'{"timestamp":"2026-05'
    unread, talk = read(reader(), data)
    assert isinstance(unread, Unread)
    assert unread.where == "file, line 3"
    assert isinstance(talk, Conversation)
    assert (said(talk), talk.remarks) == ([(U, "one"), (A, "two")], (UNFINISHED,))


def test_without_a_record_of_the_session_ids_still_stay_the_same() -> None:
    lines = [_sent(U, "one", second=1), _sent(A, "two", second=2), _line("event_msg", {"type": "item_completed"})]
    first, grown = (conversation(read(reader(), jsonl(*lines[:count]))) for count in (2, 3))
    assert (first.id, first.turns) == (grown.id, grown.turns)
    assert first.id.startswith("sha256:")


@pytest.mark.parametrize("payload", [{}, {"type": 5}, {"type": "message", "role": [], "content": {}}])
def test_payloads_of_any_shape_are_survived(payload: object) -> None:
    kinds = ("session_meta", "response_item", "event_msg", "turn_context", "compacted", "new_thing", "")
    talk = conversation(read(reader(), jsonl(*(_line(kind, payload) for kind in kinds), {"payload": payload}, {})))
    assert talk.turns == ()


def test_a_session_of_any_size_takes_the_memory_of_its_talk() -> None:
    output = _line("response_item", {"type": "function_call_output", "output": "x" * 200_000})

    def lines() -> Iterator[bytes]:
        for _ in range(350):
            yield jsonl(output)
        yield jsonl(_sent(U, "the end"))

    stream = Endless(lines())
    tracemalloc.start()
    talk = conversation(reader()(stream, "file", CLOCK))  # type: ignore[arg-type]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert stream.size > 60 * 2**20
    assert peak < 6 * 2**20
    assert said(talk) == [(U, "the end")]


def test_a_session_with_too_much_talk_is_unread_with_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cpersona_cli.history.talk.LIMIT", 1000)
    data = jsonl(_meta(), *(_sent(U, f"{n:04d}" * 100) for n in range(4)))
    (found,) = read(reader(), data)
    assert found == Unread(where="file", reason="its talk has 0.0 Mi characters, more than the 0.0 Mi one may have")
