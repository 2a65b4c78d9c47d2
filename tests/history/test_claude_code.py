from __future__ import annotations

import datetime as dt
import json
import tracemalloc
from collections.abc import Iterator

import pytest
from support.histories import CLOCK, Endless, claude_line, conversation, jsonl, read, said

from cpersona_cli.history.claude_code import reader
from cpersona_cli.history.draft import NO_TIME
from cpersona_cli.history.lines import UNFINISHED
from cpersona_cli.history.model import Aside, Conversation, Dated, Format, Unread

USER, ASSISTANT = "user", "assistant"


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


CALL = {"type": "tool_use", "id": "t1", "name": "Read", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "the file"}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "x"}


def test_only_what_the_user_and_the_model_said_in_the_main_chain_is_talk() -> None:
    data = jsonl(
        {"type": "summary", "summary": "Fix auth", "leafUuid": "u5"},
        {"type": "permission-mode", "permissionMode": "default", "sessionId": "s1"},
        {
            "type": "file-history-snapshot",
            "messageId": "m1",
            "snapshot": {"messageId": "m1"},
            "isSnapshotUpdate": False,
        },
        {"type": "queue-operation", "operation": "dequeue", "timestamp": "2026-04-01T10:00:00.000Z", "sessionId": "s1"},
        claude_line(USER, "u1", "fix the auth bug"),
        claude_line(ASSISTANT, "a2", [THOUGHT, _text("Looking."), CALL], parentUuid="u1"),
        claude_line(USER, "u3", [RESULT], parentUuid="a2", toolUseResult={}),
        claude_line(USER, "x1", "prompt of a sub-agent", isSidechain=True),
        claude_line(USER, "u4", "<local-command-caveat>…", isMeta=True, parentUuid="a2"),
        claude_line(USER, "u5", "<command-name>/clear</command-name>\n<command-args></command-args>"),
        claude_line(USER, "u6", [_text("see this"), {"type": "image", "source": {}}], parentUuid="a2"),
        claude_line(USER, "u7", "Summary: we fixed it", isCompactSummary=True),
        claude_line(ASSISTANT, "a8", [_text("API Error: 529")], isApiErrorMessage=True),
        claude_line(ASSISTANT, "a9", [_text("No response requested.")], model="<synthetic>"),
        claude_line("system", "y1", None, subtype="turn_duration"),
        claude_line(ASSISTANT, "a10", [{"type": "hologram"}, _text("Done.")], parentUuid="u6"),
        {"type": "custom-title", "customTitle": "Chase the flaky test", "sessionId": "s1"},
    )
    talk = conversation(read(reader(), data))
    assert said(talk) == [
        (USER, "fix the auth bug"),
        (ASSISTANT, "Looking."),
        (USER, "see this"),
        (ASSISTANT, "Done."),
    ]
    assert talk.left_out == {
        "permission-mode records": 1,
        "file-history-snapshot records": 1,
        "queue-operation records": 1,
        "system records": 1,
        "thoughts": 1,
        "calls of tools": 1,
        "results of tools": 1,
        "messages of sub-agents": 1,
        "notices of the program": 2,
        "commands and their output": 1,
        "images": 1,
        "summaries of earlier talk": 1,
        "errors of the service": 1,
        "blocks of the type hologram": 1,
    }
    assert (talk.id, talk.format, talk.title, talk.model) == (
        "s1",
        Format.CLAUDE_CODE,
        "Chase the flaky test",
        "claude-x",
    )
    assert [turn.id for turn in talk.turns] == ["u1", "msg_a2", "u6", "msg_a10"]
    assert talk.turns[0].at == dt.datetime(2026, 4, 1, 10, 0, 1, tzinfo=dt.UTC)
    assert talk.turns[-1].at == dt.datetime(2026, 4, 1, 10, 0, 10, tzinfo=dt.UTC)
    assert {turn.dated for turn in talk.turns} == {Dated.MESSAGE}
    assert (talk.undated, talk.altered, talk.remarks, talk.branches) == ({}, {}, (), 0)


def test_a_broken_line_in_the_middle_costs_itself_only() -> None:
    lines = [
        json.dumps(claude_line(USER if n % 2 else ASSISTANT, f"u{n}", f"text {n}", parentUuid=f"u{n - 1}")).encode()
        for n in range(1, 11)
    ]
    lines[5] = lines[5][:90]
    found = read(reader(), b"\n".join([*lines[:7], b"", b"null", *lines[7:]]))
    assert [(item.where, item.reason[:14]) for item in found if isinstance(item, Unread)] == [
        ("file, line 6", "it is not JSON")
    ]
    talk = conversation(item for item in found if not isinstance(item, Unread))
    assert [turn.text for turn in talk.turns] == [f"text {n}" for n in (1, 2, 3, 4, 5, 7, 8, 9, 10)]
    assert talk.left_out == {"lines without a record": 1}


def test_a_line_still_being_written_is_a_remark() -> None:
    talk = conversation(read(reader(), jsonl(claude_line(USER, "u1", "hello")) + b'{"type":"assist'))
    assert talk.remarks == (UNFINISHED,)
    assert len(talk.turns) == 1


def test_an_answer_over_several_lines_is_one_turn() -> None:
    data = jsonl(
        claude_line(USER, "u1", "go"),
        claude_line(ASSISTANT, "a2", [THOUGHT], answer="msg_1"),
        claude_line(ASSISTANT, "a3", [_text("First.")], answer="msg_1"),
        claude_line(ASSISTANT, "a4", [CALL], answer="msg_1"),
        claude_line(USER, "u5", [RESULT]),
        claude_line(ASSISTANT, "a6", [_text("First."), _text("Second.")], answer="msg_1"),
        claude_line(ASSISTANT, "a7", [CALL], answer="msg_2"),
        claude_line(ASSISTANT, "a8", "Third.", answer=""),
    )
    talk = conversation(read(reader(), data))
    assert said(talk) == [(USER, "go"), (ASSISTANT, "First.\n\nSecond."), (ASSISTANT, "Third.")]
    assert [turn.id for turn in talk.turns] == ["u1", "msg_1", "a8"]
    assert talk.turns[1].at == dt.datetime(2026, 4, 1, 10, 0, 2, tzinfo=dt.UTC)
    assert "empty messages" not in talk.left_out


def test_what_a_resumed_session_repeats_is_read_once() -> None:
    first = [claude_line(USER, "u1", "go"), claude_line(ASSISTANT, "a2", [_text("Gone.")], answer="msg_1")]
    new = [claude_line(USER, "u3", "more", sessionId="s2"), claude_line(ASSISTANT, "a4", "Yes.", sessionId="s2")]
    # also with new uuids, as older releases wrote it
    again = {**first[1], "uuid": "b2", "sessionId": "s2"}
    read_all = reader()
    assert said(conversation(read(read_all, jsonl(*first)))) == [(USER, "go"), (ASSISTANT, "Gone.")]
    old, resumed = read(read_all, jsonl(*first, again, *new, new[0], new[1]))
    assert isinstance(old, Conversation)
    assert isinstance(resumed, Conversation)
    assert (old.id, old.turns, old.left_out, old.passed_over) == (
        "s1",
        (),
        {"messages read before": 2},
        "no talk in it",
    )
    assert said(resumed) == [(USER, "more"), (ASSISTANT, "Yes.")]
    assert resumed.left_out == {"messages read before": 3}
    # without the file it resumes, all of it is new
    assert len(conversation(read(reader(), jsonl(*first))).turns) == 2


def test_a_prompt_that_was_taken_back_goes_with_what_followed_from_it() -> None:
    data = jsonl(
        claude_line(USER, "u1", "start"),
        claude_line(ASSISTANT, "a2", "ok?", parentUuid="u1"),
        claude_line(USER, "u3", "wrong way", parentUuid="a2"),
        claude_line(ASSISTANT, "a4", "going wrong", parentUuid="u3"),
        claude_line(USER, "u5", "right way", parentUuid="a2"),
        claude_line(ASSISTANT, "a6", "going right", parentUuid="u5"),
    )
    talk = conversation(read(reader(), data))
    assert [turn.text for turn in talk.turns] == ["start", "ok?", "right way", "going right"]
    assert (talk.branches, talk.left_out) == (1, {"messages on other branches": 2})


def test_where_the_way_back_is_broken_nothing_is_left_out() -> None:
    data = jsonl(
        claude_line(USER, "u1", "a", parentUuid="u2"),  # a circle
        claude_line(ASSISTANT, "u2", "b", parentUuid="u1"),
        claude_line(USER, "u3", "c", parentUuid="gone"),
        claude_line(ASSISTANT, "a4", "d", parentUuid="gone too"),
    )
    talk = conversation(read(reader(), data))
    assert ([turn.text for turn in talk.turns], talk.branches) == (["a", "b", "c", "d"], 0)


@pytest.mark.parametrize(
    ("text", "typed", "reason"),
    [
        ("<bash-stdout>x</bash-stdout><bash-stderr></bash-stderr>", "", "commands and their output"),
        ("<local-command-stdout>ok</local-command-stdout>", "", "commands and their output"),
        (
            "<task-notification>\n<task-id>1</task-id></task-notification>\nRead the output",
            "",
            "notices of the program",
        ),
        ("[Request interrupted by user for tool use]", "", "notices of the program"),
        (
            "This session is being continued from a previous conversation that ran out of context. The",
            "",
            "summaries of earlier talk",
        ),
        ("do it\n<system-reminder>be\nnice</system-reminder>", "do it", "notices of the program"),
        ("<ide_opened_file>/x</ide_opened_file>\nwhy?", "why?", "notices of the program"),
        ("<div>why is it red?</div>", "<div>why is it red?</div>", ""),
        ("  ", "", "empty messages"),
    ],
)
def test_what_the_program_writes_in_the_users_name_is_no_talk(text: str, typed: str, reason: str) -> None:
    talk = conversation(read(reader(), jsonl(claude_line(USER, "u1", text))))
    assert [turn.text for turn in talk.turns] == ([typed] if typed else [])
    assert talk.left_out == ({reason: 1} if reason else {})


def test_what_was_typed_while_the_model_worked_is_read_and_what_a_task_says_is_not() -> None:
    def queued(uuid: str, **more: object) -> object:
        return {**claude_line("attachment", uuid, None), "attachment": {"type": "queued_command", **more}}

    data = jsonl(
        queued("q1", prompt="and the tests", commandMode="prompt", origin={"kind": "human"}),
        queued("q2", prompt=[_text("and the docs")]),
        queued("q3", prompt="<task-notification>", commandMode="task-notification"),
        queued("q4", prompt="from another", origin={"kind": "coordinator"}),
        claude_line(USER, "u5", "a task is done", origin={"kind": "task-notification"}),
    )
    talk = conversation(read(reader(), data))
    assert said(talk) == [(USER, "and the tests"), (USER, "and the docs")]
    assert talk.left_out == {"attachment records": 2, "notices of the program": 1}


def test_titles_by_the_strength_of_their_claim() -> None:
    prompt, leaf = claude_line(USER, "u1", "x"), {"type": "summary", "summary": "By a summary", "leafUuid": "u1"}
    elsewhere = {"type": "summary", "summary": "Of another session", "leafUuid": "zz"}
    own = {"type": "ai-title", "aiTitle": "By the program", "sessionId": "s1"}
    assert conversation(read(reader(), jsonl(prompt, elsewhere))).title == ""
    assert conversation(read(reader(), jsonl(elsewhere, leaf, prompt))).title == "By a summary"
    assert conversation(read(reader(), jsonl(own, leaf, prompt))).title == "By the program"
    both = reader()
    assert read(both, jsonl(leaf)) == []  # a summary stands in the file of another session
    assert conversation(read(both, jsonl(prompt))).title == "By a summary"


def test_times_that_are_missing_or_unreadable_are_counted_and_never_made_up() -> None:
    data = jsonl(
        claude_line(USER, "u1", "a", timestamp=None),
        claude_line(ASSISTANT, "a2", "b", timestamp="yesterday"),
    )
    talk = conversation(read(reader(), data))
    assert [(turn.at, turn.dated) for turn in talk.turns] == [(None, Dated.UNKNOWN)] * 2
    assert talk.undated == {NO_TIME: 2, "not in a form that has one meaning": 1}


def test_half_characters_and_nuls_are_mended_and_whole_ones_kept() -> None:
    text = r'"ok \ud83d x \ud83c\udf78 a\u0000b 漢字"'
    line = json.dumps(claude_line(USER, "u1", "@@")).replace('"@@"', text).encode()
    talk = conversation(read(reader(), jsonl(line)))
    assert talk.turns[0].text == "ok � x 🍸 ab 漢字"
    assert talk.altered == {"half characters replaced": 1, "NULs removed": 1}


def test_records_of_no_session_are_an_aside() -> None:
    snapshot = {"type": "file-history-snapshot", "messageId": "m1", "snapshot": {}}
    assert read(reader(), jsonl(snapshot, {"leafUuid": "x"})) == [
        Aside(where="file", left_out={"file-history-snapshot records": 1, "records without a type": 1})
    ]
    titled = {"type": "custom-title", "customTitle": "Nothing yet", "sessionId": "s9"}
    talk = conversation(read(reader(), jsonl(titled, snapshot, {**titled, "sessionId": ""})))
    assert (talk.id, talk.title, talk.passed_over) == ("s9", "Nothing yet", "no talk in it")


@pytest.mark.parametrize("broken", [None, 7, "x", [], {"content": 5}, {"content": [None, 3, {}]}])
def test_messages_of_any_shape_are_survived(broken: object) -> None:
    line = {**claude_line(ASSISTANT, "", None), "message": broken, "uuid": 4, "parentUuid": [], "timestamp": {}}
    talk = conversation(read(reader(), jsonl(line, {**line, "type": "user"}, {**line, "type": {"a": 1}})))
    assert talk.turns == ()


def test_messages_without_an_id_get_a_stable_one() -> None:
    lines = [claude_line(USER, "", "a", timestamp="t1"), claude_line(ASSISTANT, "", "b", answer="", timestamp="t2")]
    first = conversation(read(reader(), jsonl(*lines)))
    grown = conversation(read(reader(), jsonl(*lines, claude_line(USER, "", "c"))))
    assert [turn.id for turn in first.turns] == [turn.id for turn in grown.turns[:2]]
    assert all(turn.id.startswith("sha256:") for turn in grown.turns)
    assert len({turn.id for turn in grown.turns}) == 3


def test_a_stream_that_breaks_off_gives_what_it_gave() -> None:
    stream = Endless(iter([jsonl(claude_line(USER, "u1", "hello"))]), failing=EOFError("compressed file ended"))
    found = reader()(stream, "file", CLOCK)  # type: ignore[arg-type]
    talk = next(found)
    assert isinstance(talk, Conversation)
    assert said(talk) == [(USER, "hello")]
    with pytest.raises(EOFError):
        next(found)


def test_a_session_of_any_size_takes_the_memory_of_its_talk() -> None:
    result = "x" * 200_000

    def lines() -> Iterator[bytes]:
        for n in range(350):
            yield jsonl(claude_line(USER, f"u{n}", [{**RESULT, "content": result}]))
        yield jsonl(claude_line(USER, "u999", "the end"))

    stream = Endless(lines())
    tracemalloc.start()
    talk = conversation(reader()(stream, "file", CLOCK))  # type: ignore[arg-type]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert stream.size > 60 * 2**20
    assert peak < 6 * 2**20
    assert (said(talk), talk.left_out) == ([(USER, "the end")], {"results of tools": 350})


def test_a_session_with_too_much_talk_is_unread_with_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cpersona_cli.history.talk.LIMIT", 1000)
    lines = [claude_line(USER, f"u{n}", f"{n:04d}" * 100) for n in range(1, 4)]
    lines += [claude_line(ASSISTANT, "a4", "x" * 10), claude_line(ASSISTANT, "a5", "y" * 10, answer="msg_a4")]
    small = claude_line(USER, "u6", "small", sessionId="s2")
    large, other = read(reader(), jsonl(*lines, small))
    assert large == Unread(
        where="file, session s1", reason="its talk has 0.0 Mi characters, more than the 0.0 Mi one may have"
    )
    assert isinstance(other, Conversation)
    assert said(other) == [(USER, "small")]
