from __future__ import annotations

import datetime as dt
import json
import os
import sys
from pathlib import Path

import pytest
from support.histories import NOW, Endless, jsonl, read
from support.stores import Server, fill

from cpersona_cli.history.cpersona_export import reader
from cpersona_cli.history.lines import UNFINISHED
from cpersona_cli.history.model import Aside, Stored, StoredKind, Unread
from cpersona_cli.history.times import Clock, zone_named


def _header(version: str = "1.1", **counts: object) -> dict[str, object]:
    return {"_type": "header", "version": f"cpersona-export/{version}", "agent_id": "atlas", **counts}


def _memory(number: int = 1, **more: object) -> dict[str, object]:
    return {
        "_type": "memory",
        "id": number,
        "agent_id": "atlas",
        "msg_id": f"note-{number}",
        "content": f"text {number}",
        "source": {"type": "User", "id": "u", "name": "Mira"},
        "timestamp": "2025-03-01T09:30:00+00:00",
        "metadata": {},
        "created_at": "2025-03-01 09:30:01",
        "project_id": "p",
        "channel": "c",
        "locked": 0,
        **more,
    }


def _episode(**more: object) -> dict[str, object]:
    return {
        "_type": "episode",
        "id": 4,
        "agent_id": "atlas",
        "summary": "Planning.",
        "keywords": "spring release",
        "start_time": "2025-03-01T09:00:00+00:00",
        "end_time": "2025-03-01T10:00:00+00:00",
        "created_at": "2025-03-01 10:00:02",
        "resolved": True,
        "project_id": "",
        "channel": "",
        **more,
    }


def test_rows_are_carried_as_what_they_are() -> None:
    memory, episode, profile = read(
        reader(),
        jsonl(
            _header("1.0", memory_count=1, episode_count=1, has_profile=True),
            _memory(7, locked=1, metadata={"k": "名"}),
            _episode(),
            {
                "_type": "profile",
                "agent_id": "atlas",
                "user_id": "m",
                "content": "Likes tea.",
                "updated_at": "2025-03-02 08:00:00",
            },
        ),
    )
    assert memory == Stored(
        kind=StoredKind.MEMORY,
        where="file, line 2",
        text="text 7",
        agent="atlas",
        project="p",
        channel="c",
        msg_id="note-7",
        source='{"type": "User", "id": "u", "name": "Mira"}',
        metadata='{"k": "名"}',
        at=dt.datetime(2025, 3, 1, 9, 30, tzinfo=dt.UTC),
        created=dt.datetime(2025, 3, 1, 9, 30, 1, tzinfo=dt.UTC),
        locked=True,
    )
    assert episode == Stored(
        kind=StoredKind.EPISODE,
        where="file, line 3",
        text="Planning.",
        agent="atlas",
        started=dt.datetime(2025, 3, 1, 9, tzinfo=dt.UTC),
        ended=dt.datetime(2025, 3, 1, 10, tzinfo=dt.UTC),
        created=dt.datetime(2025, 3, 1, 10, 0, 2, tzinfo=dt.UTC),
        keywords="spring release",
        resolved=True,
    )
    assert isinstance(profile, Stored)
    assert (profile.kind, profile.text) == (StoredKind.PROFILE, "Likes tea.")
    assert profile.created == dt.datetime(2025, 3, 2, 8, tzinfo=dt.UTC)


def test_a_header_that_says_another_number_tells_of_a_file_that_was_cut() -> None:
    whole = jsonl(_header(memory_count=2, episode_count=0, profile_count=0), _memory(1), _memory(2))
    assert [type(item) for item in read(reader(), whole)] == [Stored, Stored]
    first, told = read(reader(), jsonl(_header(memory_count=2, episode_count=0), _memory(1)))
    assert isinstance(first, Stored)
    assert told == Unread(
        where="file, line 1", reason="the header says 2 memories, and 1 follow: the file was cut or edited"
    )
    cut = read(reader(), whole[:-20])
    assert [item.reason for item in cut if isinstance(item, Unread)] == [
        UNFINISHED,
        "the header says 2 memories, and 1 follow: the file was cut or edited",
    ]
    # two exports in one file, the first of them cut
    told, *_ = [
        item
        for item in read(reader(), jsonl(_header(episode_count=1), _memory(1), _header(memory_count=1), _memory(2)))
        if isinstance(item, Unread)
    ]
    assert told.reason == "the header says 1 episode, and 0 follow: the file was cut or edited"


def test_a_file_without_a_header_or_with_one_that_counts_nothing_is_read() -> None:
    assert len(read(reader(), jsonl(_memory(1), _episode()))) == 2
    assert len(read(reader(), jsonl(_header(memory_count=True, episode_count="2"), _memory(1)))) == 1


def test_an_export_of_another_kind_is_not_guessed_at() -> None:
    (told,) = read(reader(), jsonl(_header("2.0"), _memory(1)))
    assert isinstance(told, Unread)
    assert "version cpersona-export/2.0, newer than 1.x" in told.reason
    assert len(read(reader(), jsonl(_header("1.7"), _memory(1)))) == 1


def test_what_cannot_be_carried_over_is_counted() -> None:
    found = read(
        reader(),
        jsonl(
            _header("1.2", memory_count=1, folder_count=1),
            _memory(1, embedding_b64="AAAA", embedding_model="m"),
            {"_type": "entity"},
            {"_type": "entity"},
            {"_type": "folder_member"},
            {"no": "type"},
            None,
        ),
    )
    assert found[1:] == [
        Aside(
            where="file",
            left_out={
                "vectors": 1,
                "entities": 2,
                "folder members": 1,
                "records without a type": 1,
                "lines without a record": 1,
            },
        )
    ]


def test_damage_costs_the_row_it_is_in() -> None:
    data = jsonl(
        _memory(1), b'{"_type":"memory", "content', _memory(2, content=" "), _episode(summary=None), _memory(3)
    )
    found = read(reader(), data)
    assert [item.text for item in found if isinstance(item, Stored)] == ["text 1", "text 3"]
    assert [(item.where, item.reason.partition(":")[0]) for item in found if isinstance(item, Unread)] == [
        ("file, line 2", "it is not JSON"),
        ("file, line 3", 'there is no text in "content" of this memory'),
        ("file, line 4", 'there is no text in "summary" of this episode'),
    ]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (_memory(timestamp="now"), "not in a form that has one meaning"),
        (_memory(timestamp=None), "no time is given"),
        (_memory(timestamp="2099-01-01T00:00:00+00:00"), "in the future"),
        (_memory(timestamp="2025-03-01 09:30:00"), ""),
        (_episode(end_time="0"), ""),
        (_episode(end_time="0", start_time=None, created_at=None), "a number too small for a time"),
    ],
)
def test_a_time_that_is_needed_and_unknown_is_told_with_the_reason(row: object, reason: str) -> None:
    (found,) = list(read(reader(), jsonl(row), clock=Clock(NOW, zone_named("Asia/Tokyo"))))
    assert isinstance(found, Stored)
    assert found.undated == reason
    if isinstance(row, dict) and row.get("timestamp") == "2025-03-01 09:30:00":
        assert found.at == dt.datetime(2025, 3, 1, 9, 30, tzinfo=dt.UTC)  # of a database: UTC, whatever is assumed


def test_characters_are_mended_and_nothing_else_of_a_memory_is_changed() -> None:
    odd = jsonl(
        json.dumps(_memory(1, content="@@", source={}, source_text="not json"))
        .replace("@@", r"  a\r\nb \ud83d c\u0000 ")
        .encode()
    )
    (found,) = read(reader(), odd)
    assert isinstance(found, Stored)
    assert found.text == "  a\r\nb � c "
    assert found.source == "{}"
    assert found.altered == {
        "half characters replaced": 1,
        "NULs removed": 1,
        "descriptions that are no JSON left out": 1,
    }


def test_what_the_stream_raises_comes_after_what_was_read() -> None:
    found = reader()(Endless(iter([jsonl(_memory(1))]), failing=OSError("gone")), "file", Clock(NOW))  # type: ignore[arg-type]
    assert isinstance(next(found), Stored)
    with pytest.raises(OSError, match="gone"):
        next(found)


@pytest.mark.server
@pytest.mark.parametrize(
    "python",
    [
        sys.executable,
        os.environ.get("CPERSONA_CLI_TEST_OLD_SERVER", ""),
        os.environ.get("CPERSONA_CLI_TEST_OLDEST_SERVER", ""),
    ],
    ids=["2.6.14", "2.5.12", "2.4.41"],
)
def test_what_the_server_exports_is_read_whole(tmp_path: Path, python: str) -> None:
    if not python:
        pytest.skip("needs the older server")
    folder = tmp_path / "store"
    folder.mkdir()
    export = folder / "export.jsonl"
    with Server(folder / "memory.db", {"CPERSONA_EXPORT_DIR": str(folder)}, python=python) as server:
        fill(server)
        answer = server.call("export_memories", agent_id="atlas", output_path=str(export))
    assert "error" not in answer, answer
    present = Clock(dt.datetime.now(dt.UTC))  # the server dates the profile by the real one
    found = read(reader(), export.read_bytes(), clock=present)
    rows = [item for item in found if isinstance(item, Stored)]
    assert len(rows) == len(found)
    assert [row.kind for row in rows] == [StoredKind.MEMORY] * 15 + [StoredKind.EPISODE, StoredKind.PROFILE]
    assert all(row.agent == "atlas" and not row.undated and not row.altered for row in rows)
    assert rows[0].at == dt.datetime(2025, 3, 2, 9, 30, tzinfo=dt.UTC)
    assert rows[0].msg_id == "note-1"
    assert (rows[0].source, rows[0].metadata) == ("{}", "{}")
    assert rows[15].ended == dt.datetime(2025, 3, 9, 10, tzinfo=dt.UTC)
