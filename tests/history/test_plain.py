from __future__ import annotations

import datetime as dt
import re
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.histories import CLOCK, NOW, Endless, conversation, jsonl, read, said

from cpersona_cli.history import summaries
from cpersona_cli.history.lines import UNFINISHED
from cpersona_cli.history.model import Conversation, Dated, Format, Unread
from cpersona_cli.history.plain import reader
from cpersona_cli.history.times import ASSUMED, Clock, zone_named

DOCS = Path(__file__).parents[2] / "docs" / "history-formats.md"


def _blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", DOCS.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def _line(text: str, **more: object) -> dict[str, object]:
    return {"conversation": "c", "role": "user", "text": text, **more}


def test_the_example_of_the_documentation_is_read_as_it_says() -> None:
    trip, recipes = read(reader(), _blocks("jsonl")[0].encode())
    assert isinstance(trip, Conversation)
    assert isinstance(recipes, Conversation)
    assert (trip.id, trip.title, trip.format) == ("trip-1", "Day at the lake", Format.PLAIN)
    assert [turn.id for turn in trip.turns] == ["m1", "m2"]
    assert said(trip) == [("user", "Which bus goes to the lake?"), ("assistant", "Line 7, every twenty minutes.")]
    assert trip.turns[0].at == dt.datetime(2024, 5, 1, 7, 30, tzinfo=dt.UTC)
    asked = dt.datetime(2024, 5, 3, 7, 15, tzinfo=dt.UTC)
    assert [(turn.at, turn.dated) for turn in recipes.turns] == [(asked, Dated.MESSAGE), (asked, Dated.CONVERSATION)]
    assert all(turn.id.startswith("sha256:") for turn in recipes.turns)


@pytest.mark.parametrize("block", [0, 1])
def test_the_summaries_of_the_documentation_are_read(tmp_path: Path, block: int) -> None:
    text = [*_blocks("json"), _blocks("jsonl")[1]][block]
    file = tmp_path / "summaries"
    file.write_text(text, encoding="utf-8")
    assert summaries.read(file) == {
        "trip-1": "A day at the lake was planned; line 7 goes there.",
        "recipes": "Cooking times of lentils.",
    }


def test_every_time_the_documentation_names_is_read_as_it_says() -> None:
    page = DOCS.read_text(encoding="utf-8")
    section = page[page.index("## Times") : page.index("## Ready-made")]
    readable, _, unknown = section.partition("Not known, with the reason")
    forms = [
        form for form in re.findall(r"`([^`]+)`", readable) if form[-1].isdigit() or form.endswith(("UTC", "GMT", "Z"))
    ]
    instants = {CLOCK.read(form).at for form in forms if form not in ("Z", "UTC")}
    meant = dt.datetime(2024, 5, 1, 7, 30, tzinfo=dt.UTC)
    assert len(forms) >= 6
    assert instants == {meant, dt.datetime(2024, 5, 1, tzinfo=dt.UTC)}
    assert [CLOCK.read(form).at for form in re.findall(r"`([^`]+)`", unknown)] == [None, None]


def test_lines_of_one_conversation_stand_together_and_a_later_part_is_a_further_one() -> None:
    found = read(reader(), jsonl(_line("a", id=1), _line("b", conversation=7), _line("c", id=2), _line("d", id="2")))
    talks = [item for item in found if isinstance(item, Conversation)]
    assert [(talk.id, [turn.text for turn in talk.turns]) for talk in talks] == [
        ("c", ["a"]),
        ("7", ["b"]),
        ("c", ["c"]),
    ]
    assert [talk.where for talk in talks] == ["file, line 1", "file, line 2", "file, line 3"]
    assert talks[2].left_out == {"messages read before": 1}


def test_what_is_no_message_is_counted_or_named() -> None:
    found = read(
        reader(),
        jsonl(
            _line("a"),
            _line("b", role="system"),
            _line("c", role=None),
            _line(" "),
            {"conversation": "c", "role": "assistant"},
            {"role": "user", "text": "whose?"},
            _line("d", conversation=True),
            b"{",
            None,
        )
        + b"{",
    )
    assert [item.where for item in found if isinstance(item, Unread)] == [f"file, line {n}" for n in (6, 7, 8)]
    talk = conversation(item for item in found if isinstance(item, Conversation))
    assert [turn.text for turn in talk.turns] == ["a"]
    assert talk.left_out == {
        "system messages": 1,
        "messages without a role": 1,
        "empty messages": 2,
        "lines without a record": 1,
    }
    assert talk.remarks == (UNFINISHED,)


def test_ids_that_are_made_stay_the_same_when_the_file_grows_and_differ_for_equal_texts() -> None:
    lines = [_line("continue"), _line("continue"), _line("continue", time=1714720500)]
    first = conversation(read(reader(), jsonl(*lines)))
    grown = conversation(read(reader(), jsonl(*lines, _line("more"))))
    assert [turn.id for turn in first.turns] == [turn.id for turn in grown.turns[:3]]
    assert len({turn.id for turn in grown.turns}) == 4


def test_a_zone_that_is_assumed_is_counted() -> None:
    clock = Clock(NOW, zone_named("+09:00"))
    talk = conversation(read(reader(), jsonl(_line("a", time="2024-05-01 09:00:00")), clock=clock))
    assert talk.turns[0].at == dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
    assert talk.altered == {ASSUMED: 1}


def test_an_empty_stream_holds_nothing() -> None:
    assert read(reader(), b"") == []


def test_a_stream_of_any_size_takes_the_memory_of_one_conversation() -> None:
    def lines() -> Iterator[bytes]:
        for number in range(6000):
            yield jsonl(_line(f"{number} " + "some word " * 300, conversation=str(number // 3)))

    stream = Endless(lines())
    tracemalloc.start()
    found = reader()(stream, "file", CLOCK)  # type: ignore[arg-type]
    count = sum(len(item.turns) for item in found if isinstance(item, Conversation))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 6000
    assert stream.size > 15 * 2**20
    assert peak < 6 * 2**20
