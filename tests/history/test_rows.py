"""From talk to rows: the rules of the server for what it stores, with the source's own times and ids."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.talks import at, talk, turn, wants

from cpersona_cli.history.model import Dated, Role, Stored, StoredKind
from cpersona_cli.history.rows import (
    AFTER,
    BEFORE,
    BLANK,
    COVERED,
    NO_AGENT,
    NOT_SUMMARISED,
    ODD_JSON,
    PROFILES,
    SHORTENED,
    TOO_LONG,
    UNDATED,
    Made,
    Maker,
)
from cpersona_cli.history.texts import digest
from cpersona_cli.history.wants import Form
from cpersona_cli.store.model import Kind
from cpersona_cli.store.newrow import NewRow

LONG = "The ferry leaves the harbour at nine, and comes back before noon."


def memories(*turns: Any, **given: Any) -> list[Made]:
    return list(Maker(wants(form=Form.MEMORIES, **given)).conversation(talk("c1", *turns)))


def one(made: list[Made]) -> NewRow:
    (only,) = made
    (row,) = only.rows
    return row


def test_a_message_becomes_a_memory() -> None:
    row = one(memories(turn("m1", f"  {LONG}\n"), project="orion", channel="desk"))
    assert (row.kind, row.agent, row.project, row.channel) == (Kind.MEMORY, "atlas", "orion", "desk")
    assert row.text == LONG
    assert row.at == "2023-04-05T10:00:00+00:00"
    assert row.created == "2023-04-05 10:00:00"
    assert row.msg_id == "chatgpt:c1:m1"
    assert json.loads(row.source) == {"type": "User", "id": "chatgpt:user", "name": "user"}
    assert json.loads(row.metadata) == {
        "backfill": {
            "imported_at": "2026-05-01T12:00:00+00:00",
            "from": "chatgpt",
            "conversation": "c1",
            "message": "m1",
        }
    }


def test_an_answer_is_the_agents_own() -> None:
    maker = Maker(wants(form=Form.MEMORIES))
    spoken = turn("m1", LONG, role=Role.ASSISTANT, dated=Dated.CONVERSATION)
    row = one(list(maker.conversation(talk("c1", spoken, title="Ferry", model="gpt-9"))))
    assert json.loads(row.source) == {"type": "Agent", "id": "chatgpt:assistant", "name": "gpt-9"}
    origin = json.loads(row.metadata)["backfill"]
    assert (origin["title"], origin["dated"]) == ("Ferry", "conversation")


def test_annotations_of_the_server_go() -> None:
    assert one(memories(turn("m1", f"[Memory fr[Memory from a] om b] {LONG}"))).text == LONG
    (made,) = memories(turn("m1", "[Memory from a longer conversation about ferries]"))
    assert (made.rows, made.reason) == ((), BLANK)


def test_a_long_text_is_stored_in_pieces_and_nothing_is_lost() -> None:
    text = "\n\n".join(f"Paragraph {number}. {LONG}" for number in range(60))
    maker = Maker(wants(form=Form.MEMORIES, limit=500))
    (made,) = maker.conversation(talk("c1", turn("m1", text)))
    assert len(made.rows) > 5
    assert all(0 < len(row.text) <= 500 and row.text == row.text.strip() for row in made.rows)
    assert re.sub(r"\s", "", "".join(row.text for row in made.rows)) == re.sub(r"\s", "", text)
    assert [row.msg_id for row in made.rows[:3]] == ["chatgpt:c1:m1", "chatgpt:c1:m1:2", "chatgpt:c1:m1:3"]
    assert json.loads(made.rows[1].metadata)["backfill"]["part"] == f"2/{len(made.rows)}"
    assert len({row.item for row in made.rows}) == 1
    assert maker.split == 1


def test_ids_too_long_for_the_server_are_shortened_and_stay_apart() -> None:
    names = [one(memories(turn("m" * 300 + end, LONG))).msg_id for end in "ab"]
    assert all(len(name) <= 256 for name in names)
    assert len(set(names)) == 2
    assert names[0] == one(memories(turn("m" * 300 + "a", LONG))).msg_id


@settings(max_examples=60, deadline=None)
@given(st.text(), st.text(), st.text(min_size=1), st.integers(1, 40))
def test_whatever_is_said_the_rows_are_ones_the_server_could_have_written(
    name: str, title: str, text: str, limit: int
) -> None:
    maker = Maker(wants(limit=limit, form=Form.MEMORIES))
    for made in maker.conversation(talk(name, turn(name, text + LONG), title=title)):
        for row in made.rows:
            assert 0 < len(row.text) <= limit
            assert row.text == row.text.strip()
            assert len(row.msg_id) <= 256
            assert max(len(row.source), len(row.metadata)) <= 8000
            assert json.loads(row.metadata)
            row.msg_id.encode()
            row.metadata.encode()


def test_messages_without_a_date_are_left_out_or_put_where_the_user_says() -> None:
    assert [made.reason for made in memories(turn("m1", LONG, None))] == [UNDATED]
    placed = turn("m1", LONG, None, dated=Dated.UNKNOWN)
    row = one(memories(placed, undated=at("2020-01-01T00:00:00")))
    assert (row.at, row.created) == ("2020-01-01T00:00:00+00:00", "2020-01-01 00:00:00")
    assert json.loads(row.metadata)["backfill"]["dated"] == "unknown"


def test_a_span_of_time_has_its_first_moment_and_not_its_last() -> None:
    turns = [turn(f"m{day}", f"{LONG} {day}", f"2023-04-0{day}T00:00:00") for day in range(1, 5)]
    made = memories(*turns, since=at("2023-04-02T00:00:00"), until=at("2023-04-04T00:00:00"))
    assert [row.at[:10] for one_made in made for row in one_made.rows] == ["2023-04-02", "2023-04-03"]
    assert sorted(one_made.reason for one_made in made if one_made.reason) == sorted([BEFORE, AFTER])


def test_what_says_nothing_by_itself_is_left_out() -> None:
    made = memories(turn("m1", LONG), turn("m2", "ok"), turn("m3", "continue"))
    assert [one_made.reason for one_made in made] == ["", "short messages", "short messages"]


def episode(*turns: Any, covered: dict[str, tuple[str, str]] | None = None, **given: Any) -> Made:
    of = {name: given.pop(name) for name in ("title", "summary", "passed_over") if name in given}
    maker = Maker(wants(form=Form.EPISODES, **given), (covered or {}).get)
    (made,) = maker.conversation(talk("c1", *turns, **of))
    return made


def test_a_conversation_becomes_an_episode() -> None:
    turns = [turn(f"m{hour}", f"{LONG} Hour {hour}.", f"2023-04-05T{hour}:00:00.5") for hour in (12, 10, 11)]
    (row,) = episode(*turns, title="Ferries").rows
    assert (row.kind, row.started, row.ended) == (
        Kind.EPISODE, "2023-04-05T10:00:00.500000+00:00", "2023-04-05T12:00:00.500000+00:00",
    )  # fmt: skip
    assert row.created == row.wanted == "2023-04-05 12:00:00"
    assert row.text.startswith("Ferries (extract of 3 messages)")
    assert "ferry" in row.keywords


def test_summaries_of_the_user_come_before_the_sources_and_those_before_an_extract() -> None:
    said = turn("m1", LONG)
    assert episode(said, summary="By the source.").rows[0].text == "By the source."
    given = {"c1": "[Memory from x] By the user. "}
    assert episode(said, summary="By the source.", summaries=given).rows[0].text == "By the user."


def test_a_summary_is_as_long_as_the_server_keeps() -> None:
    maker = Maker(wants(form=Form.EPISODES, limit=100, summaries={"c1": LONG * 5}))
    (made,) = maker.conversation(talk("c1", turn("m1", LONG)))
    assert len(made.rows[0].text) <= 100
    assert maker.altered[SHORTENED] == 1


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (episode(passed_over="marked not to be remembered"), "marked not to be remembered"),
        (episode(), "empty"),
        (episode(turn("m1", LONG, None)), UNDATED),
        (episode(turn("m1", "12 ?")), NOT_SUMMARISED),
    ],
)
def test_conversations_without_an_episode(made: Made, reason: str) -> None:
    assert (made.rows, made.reason) == ((), reason)


def test_of_a_conversation_that_has_grown_the_new_part_becomes_an_episode() -> None:
    turns = [turn(f"m{hour}", f"{LONG} Hour {hour}.", f"2023-04-05T{hour}:00:00") for hour in range(10, 16)]
    (first,) = episode(*turns[:2]).rows
    covered = {first.key: (first.last, first.ended)}
    assert episode(*turns[:2], covered=covered).reason == COVERED
    (second,) = episode(*turns[:4], covered=covered).rows
    assert (second.started[11:13], second.ended[11:13]) == ("12", "13")
    covered[second.key] = second.last, second.ended
    assert episode(*turns[:4], covered=covered).reason == COVERED
    (third,) = episode(*turns, covered=covered).rows
    assert (third.started[11:13], len({first.key, second.key, third.key})) == ("14", 3)
    # one that was edited so that its beginning, or its old end, is gone
    assert episode(*turns[2:], covered=covered, title="x").rows
    assert episode(turns[0], covered=covered).reason == COVERED
    (other,) = episode(turns[0], turns[4], turns[5], covered=covered).rows
    assert (other.started[11:13], other.ended[11:13]) == ("14", "15")


def test_places_have_their_own_episodes() -> None:
    (first,) = episode(turn("m1", LONG)).rows
    assert episode(turn("m1", LONG), covered={first.key: (first.last, first.ended)}, project="orion").rows


def exported(**given: Any) -> Made:
    row = Stored(
        **{
            "kind": StoredKind.MEMORY,
            "where": "export.jsonl, line 2",
            "text": LONG,
            "agent": "borealis",
            "project": "vega",
            "channel": "desk",
            "msg_id": "note-1",
            "source": '{"type": "assistant", "id": "a"}',
            "metadata": '{"mood": "calm"}',
            "at": at("2023-04-05T10:00:00"),
            "created": at("2023-04-06T10:00:00.9"),
            **given,
        }
    )
    return Maker(wants(agent="", since=at("2020-01-01T00:00:00"))).stored(row)


def test_a_memory_of_an_export_stays_what_it_is() -> None:
    (row,) = exported(locked=True).rows
    assert (row.agent, row.project, row.channel, row.msg_id, row.locked) == ("borealis", "vega", "desk", "note-1", 1)
    assert (row.at, row.created) == ("2023-04-05T10:00:00+00:00", "2023-04-06 10:00:00")
    assert json.loads(row.source) == {"type": "Agent", "id": "a"}
    assert json.loads(row.metadata) == {
        "mood": "calm",
        "backfill": {"imported_at": "2026-05-01T12:00:00+00:00", "from": "cpersona"},
    }


def test_an_export_may_be_brought_to_another_agent_and_place() -> None:
    row = Stored(kind=StoredKind.MEMORY, where="x", text=LONG, agent="b", project="p", at=at("2023-04-05T10:00:00"))
    (made,) = Maker(wants(agent="atlas", project="", channel="desk")).stored(row).rows
    assert (made.agent, made.project, made.channel, made.msg_id) == ("atlas", "", "desk", "")


def test_an_episode_of_an_export_stays_what_it_is() -> None:
    times = {"at": None, "started": at("2023-04-05T10:00:00"), "ended": at("2023-04-05T11:00:00")}
    (row,) = exported(kind=StoredKind.EPISODE, keywords="ferry", resolved=True, **times).rows
    assert (row.keywords, row.resolved, row.created) == ("ferry", 1, "2023-04-06 10:00:00")
    assert (row.started, row.ended) == ("2023-04-05T10:00:00+00:00", "2023-04-05T11:00:00+00:00")
    # without times of its own it is dated as the server itself would: by when it was stored
    (row,) = exported(kind=StoredKind.EPISODE, at=None).rows
    assert row.started == row.ended == "2023-04-06T10:00:00.900000+00:00"


def test_a_long_memory_of_an_export_is_stored_in_pieces() -> None:
    rows = exported(text=(LONG + "\n\n") * 400, msg_id="").rows
    assert [row.msg_id for row in rows] == ["", f"{digest((LONG + chr(10) * 2) * 400)}#2"]
    assert len({row.item for row in rows}) == 1


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"kind": StoredKind.PROFILE}, PROFILES),
        ({"agent": ""}, NO_AGENT),
        ({"at": None}, UNDATED),
        ({"source": "[1]"}, ODD_JSON),
        ({"metadata": '{"a": NaN}'}, ODD_JSON),
        ({"metadata": json.dumps({"a": "x" * 8000})}, TOO_LONG),
        ({"project": "p" * 257}, TOO_LONG),
        ({"at": at("2019-01-01T00:00:00")}, BEFORE),
        ({"text": "[Memory from x] "}, BLANK),
    ],
)
def test_rows_of_an_export_that_cannot_be_stored(given: dict[str, Any], reason: str) -> None:
    made = exported(**given)
    assert (made.rows, made.reason) == ((), reason)


def test_metadata_without_room_for_more_stays_as_it_is() -> None:
    full = json.dumps({"a": "x" * 7950})
    assert exported(metadata=full).rows[0].metadata == full
