"""``cpersona-cli backfill`` through the installed script, case by case."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pytest_console_scripts import ScriptRunner
from support import runs
from support.endpoints_small import Answer, Request, serving
from support.exports import START, claude, claude_message, gpt, gpt_message, gpt_tree, webui, webui_message, zipped
from support.histories import claude_line, jsonl
from support.stores import insert, run_sql, untouched
from support.talks import ask

from cpersona_cli.commands import importing, workplace
from cpersona_cli.store.model import StoreError
from cpersona_cli.store.writing.joblock import JobLock

pytestmark = [pytest.mark.script_launch_mode("inprocess"), pytest.mark.server]

LATER = "2026-10-01 09:00:00"
LINE = {"conversation": "other", "id": "m", "role": "user", "time": "2023-04-05T10:00:00Z"}


class Run(runs.Run):
    """What one run of ``backfill`` said."""

    command = "backfill"

    @property
    def json(self) -> dict[str, Any]:
        found = super().json
        for kind in ("memories", "episodes"):
            counts = found.get(kind)
            parts = ("stored", "duplicate", "left_out", "failed", "rest")
            assert counts is None or counts["read"] == sum(counts[part] for part in parts), counts
        return found


Backfill = Callable[..., Run]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return runs.empty_home(tmp_path, monkeypatch)


@pytest.fixture
def backfill(home: Path, script_runner: ScriptRunner) -> Backfill:
    def run(*words: object, env: Mapping[str, str] | None = None, typed: str = "") -> Run:
        result = script_runner.run(
            ["cpersona-cli", "backfill", *map(str, words)],
            cwd=home,
            env={**os.environ, **(env or {})},
            stdin=io.StringIO(typed),
        )
        return Run(result.returncode, result.stdout, result.stderr)

    return run


@pytest.fixture
def bring(backfill: Backfill, store: Path) -> Backfill:
    """A whole import for the agent atlas, without vectors."""

    def run(*words: object) -> Run:
        return backfill(*words, "--db", store, "--agent", "atlas", "--no-embed", "--yes", "--json")

    return run


@pytest.fixture
def bounded(store: Path) -> Path:
    """Memories of last month beside an episode of October."""
    run_sql(store, "DELETE FROM episodes")
    insert(store, "episodes", [{"summary": "A plan of October.", "created_at": LATER}])
    return store


def file(folder: Path, name: str, value: object) -> Path:
    """A file with ``value`` as JSON; bytes as they are."""
    path = folder / name
    path.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
    return path


def plain(folder: Path, *texts: object, name: str = "talk.jsonl", time: object = "2023-04-05T10:00:00Z") -> Path:
    """A conversation in which the user says ``texts``, one a line; what is no text is a line of its own."""
    lines = (
        {"conversation": "c", "id": f"m{number}", "role": "user", "text": text, "time": time}
        if isinstance(text, str)
        else text
        for number, text in enumerate(texts)
    )
    return file(folder, name, jsonl(*lines))


def contents(database: Path, after: int = 20) -> list[str]:
    """The memories that came after the first ones, in their order."""
    return ask(database, "SELECT content FROM memories WHERE id > ? ORDER BY id", after)


# --- ChatGPT


def test_a_conversation_without_a_time_takes_its_messages_and_none_is_dated_now(
    bring: Backfill, store: Path, home: Path
) -> None:
    """B01"""
    message = gpt_message("u1", "user", "How do I roll back?", 1756000001.0)
    without = gpt(gpt_message("u2", "user", "Where is the chart?", None), name="c2")
    undated = gpt(gpt_message("u3", "user", "When was this said?", None), name="c3", create_time=None, update_time=None)
    without["create_time"] = None
    missing = gpt(message, name="c1")
    del missing["create_time"]
    run = bring(file(home, "conversations.json", [missing, without, undated]))
    assert run.code == 0
    assert contents(store) == ["How do I roll back?", "Where is the chart?"]
    assert ask(store, "SELECT timestamp, created_at FROM memories WHERE id > 20 ORDER BY id") == [
        ("2025-08-24T01:46:41+00:00", "2025-08-24 01:46:41"), ("2025-08-24T01:53:20+00:00", "2025-08-24 01:53:20"),
    ]  # fmt: skip
    assert run.json["memories"]["left_out_by_reason"] == {"without a date": 1}


def test_undated_messages_go_where_the_user_puts_them(bring: Backfill, store: Path, home: Path) -> None:
    undated = gpt(gpt_message("u3", "user", "When was this said?", None), create_time=None, update_time=None)
    run = bring(file(home, "conversations.json", [undated]), "--undated", "2024-01-01")
    assert (run.code, run.json["memories"]["stored"]) == (0, 1)
    assert ask(store, "SELECT timestamp FROM memories WHERE id > 20") == ["2024-01-01T00:00:00+00:00"]


def test_nulls_where_texts_should_be(bring: Backfill, store: Path, home: Path) -> None:
    """B02"""
    talk = gpt(
        {"id": "n", "author": None, "content": None, "create_time": None},
        gpt_message("u", "user", None),
        gpt_message("i", "user", {"content_type": "multimodal_text", "parts": [
            None, "What is on this picture of the harbour?", {"content_type": "image_asset_pointer"},
        ]}),
        title=None,
    )  # fmt: skip
    run = bring(file(home, "conversations.json", [talk]))
    assert (run.code, contents(store)) == (0, ["What is on this picture of the harbour?"])
    assert run.json["read"]["not_talk"]["images"] == 1


def test_an_archive_of_many_files(bring: Backfill, store: Path, home: Path) -> None:
    """B03"""
    entries: dict[str, object] = {
        f"conversations-{number:03}.json": [
            gpt(gpt_message(f"u{number}", "user", f"Question {number} of the day?"), name=f"c{number}")
        ]
        for number in range(53)
    }
    entries |= {"user.json": {"id": "u"}, "message_feedback.json": [], "chat.html": "<html></html>"}
    entries["../outside.json"] = [gpt(gpt_message("x", "user", "This would escape the folder."), name="x")]
    run = bring(zipped(home / "export.zip", entries))
    assert run.code == 0
    assert contents(store) == [f"Question {number} of the day?" for number in range(53)]
    read = run.json["read"]
    assert (read["files_read"], read["files_passed_over"], read["conversations"]) == (53, 4, 53)
    passed = {one["where"]: one["reason"] for one in read["files"] if one["format"] is None}
    assert [where.rpartition("/")[2] for where in sorted(passed)] == [
        "outside.json",
        "chat.html",
        "message_feedback.json",
        "user.json",
    ]
    assert all(passed.values())
    assert not (home.parent / "outside.json").exists()


def test_hidden_parts_stay_hidden_and_a_broken_entry_is_named(bring: Backfill, store: Path, home: Path) -> None:
    """B04"""
    profile = gpt_message(
        "p", "user", {"content_type": "user_editable_context", "user_profile": "Secret profile"}, None
    )
    profile["metadata"] = {"is_visually_hidden_from_conversation": True}
    whole = gpt(
        profile, gpt_message("u1", "user", "How do I roll back?"), gpt_message("a1", "assistant", "Run helm rollback.")
    )
    broken = {"title": "Corrupted entry", "create_time": START, "update_time": START, "id": "c2"}
    third = gpt(gpt_message("u3", "user", "And how do I roll forward?"), name="c3")
    path = file(home, "conversations.json", [whole, broken, third])
    strict = bring(path, "--strict")
    assert (strict.code, contents(store)) == (1, [])
    assert "1 place could not be read, which --strict forbids" in strict.json["plan"]["refusals"]
    run = bring(path)
    assert (run.code, run.json["read"]["unread"]) == (0, 1)
    assert contents(store) == ["How do I roll back?", "Run helm rollback.", "And how do I roll forward?"]
    (place,) = run.json["read"]["unread_places"]
    assert "conversation 2" in place["where"]


def test_the_branch_shown_last_is_read(bring: Backfill, store: Path, home: Path) -> None:
    """B06"""
    tree = gpt_tree(
        gpt_message("u", "user", "Name a colour of the sea."), gpt_message("a1", "assistant", "The sea is green.")
    )
    again = gpt_message("a2", "assistant", "The sea is grey today.")
    tree["a2"] = {"id": "a2", "message": again, "parent": "u", "children": []}
    tree["u"]["children"].append("a2")
    circle = gpt_tree(
        gpt_message("x", "user", "Round and round it goes."), gpt_message("y", "assistant", "And comes back here.")
    )
    circle["x"]["parent"] = "y"
    edited = gpt(gpt_message("q", "user", "q"), mapping=tree, current_node="a2")
    run = bring(file(home, "edited.json", [edited]))
    assert (run.code, run.json["read"]["branches"]) == (0, 1)
    assert contents(store) == ["Name a colour of the sea.", "The sea is grey today."]
    run = bring(
        file(home, "round.json", [gpt(gpt_message("q", "user", "q"), mapping=circle, current_node="y", name="c2")])
    )
    assert run.code == 0
    (remark,) = run.json["read"]["remarks"]
    assert remark.endswith("its messages answer each other in a circle; each of them was read once")


def test_imported_is_said_of_what_was_imported(backfill: Backfill, store: Path, home: Path) -> None:
    """B07"""
    path = file(
        home,
        "conversations.json",
        [{"title": "t", "create_time": 1, "update_time": 1, "id": f"c{n}"} for n in range(12)],
    )
    for words in (["--yes"], ["--dry-run"]):
        run = backfill(path, "--db", store, "--agent", "atlas", "--no-embed", *words)
        assert run.code == 1
        assert run.last.startswith("FAIL")
        assert "0 of 12 imported" in run.last or "12 could not be read" in run.last
    assert contents(store) == []


# --- other formats


def test_claude_exports(bring: Backfill, store: Path, home: Path) -> None:
    """B08, B09"""
    blocks = claude_message("m2", "assistant", "", None)
    blocks["content"] = [
        {"type": "thinking", "thinking": "hm"}, {"type": "token_budget"},
        {"type": "text", "text": "It is brewed for four minutes."},
        {"type": "tool_use", "name": "web_search", "input": {}},
    ]  # fmt: skip
    talk = claude(claude_message("m1", "human", "How long is black tea brewed?"), blocks)
    entries = {"conversations.json": [talk, claude(name="empty")], "projects.json": [], "users.json": [{"uuid": "me"}]}
    run = bring(zipped(home / "claude.zip", entries))
    assert (run.code, contents(store)) == (0, ["How long is black tea brewed?", "It is brewed for four minutes."])
    read = run.json["read"]
    assert (read["passed_over"], read["unread"], read["files_read"]) == ({"empty": 1}, 0, 1)
    assert ask(store, "SELECT timestamp FROM memories WHERE id > 20 ORDER BY id DESC LIMIT 1") == [
        "2025-10-04T09:12:00+00:00"
    ]


def test_open_webui(bring: Backfill, store: Path, home: Path) -> None:
    talk = webui(
        webui_message("m1", "user", "Why do cats purr at night?", None),
        webui_message("m2", "assistant", "They do it to calm down.", "m1"),
    )
    run = bring(file(home, "chats.json", [talk]))
    assert (run.code, contents(store)) == (0, ["Why do cats purr at night?", "They do it to calm down."])


def test_a_transcript_past_its_broken_lines(bring: Backfill, store: Path, home: Path) -> None:
    """B10, B11"""
    lines: list[object] = [claude_line("user", f"u{n}", f"Fix the bug in part {n} of the parser.") for n in range(10)]
    lines[5] = b'{"type":"user","message":{"role":"user","content":"cut in the mi'
    lines += [
        b"",
        b"null",
        {"type": "mode", "sessionId": "s1"},
        claude_line("user", "u11", "sub-agent prompt of many words", isSidechain=True),
    ]
    run = bring(file(home, "session.jsonl", jsonl(*lines).rstrip(b"\n")))
    assert (run.code, run.json["memories"]["stored"]) == (0, 9)
    assert any("line 6" in place["where"] for place in run.json["read"]["unread_places"])
    assert not any("sub-agent" in text for text in contents(store))


def test_a_rollout_holds_each_message_once(bring: Backfill, store: Path, home: Path) -> None:
    """B13, B15"""

    def line(kind: str, **payload: Any) -> Mapping[str, object]:
        return {"timestamp": "2026-05-05T12:00:00.000Z", "type": kind, "payload": payload}

    def said(role: str, text: str) -> Mapping[str, object]:
        kind = "input_text" if role != "assistant" else "output_text"
        return line("response_item", type="message", role=role, content=[{"type": kind, "text": text}])

    path = file(home, "rollout.jsonl", jsonl(
        line("session_meta", id="c-1", cwd="/w"), said("developer", "You are Codex"),
        said("user", "<environment_context>x</environment_context>"), said("user", "Fix the flaky test"),
        line("event_msg", type="user_message", message="Fix the flaky test", images=[]),
        line("event_msg", type="agent_message", message="I am working on it now"),
        said("assistant", "I am working on it now"),
    ))  # fmt: skip
    assert bring(path).code == 0
    assert contents(store) == ["Fix the flaky test", "I am working on it now"]


# --- times


def test_nothing_is_dated_today(bring: Backfill, store: Path, home: Path) -> None:
    """B16, B18"""
    talks = [
        gpt(
            gpt_message(f"u{n}", "user", f"A question that was asked in year {n}", START - n * 31_536_000), name=f"c{n}"
        )
        for n in range(3)
    ]
    path = file(home, "conversations.json", talks)
    assert bring(path, "--as", "both").code == 0
    first = [
        *ask(
            store, "SELECT min(timestamp), max(timestamp), min(created_at), max(created_at) FROM memories WHERE id > 20"
        ),
        *ask(
            store, "SELECT min(start_time), max(end_time), min(created_at), max(created_at) FROM episodes WHERE id > 1"
        ),
    ]
    for low, high, oldest, newest in first:
        assert low.startswith("2023-08-")
        assert high == "2025-08-24T01:46:40+00:00"
        assert oldest.startswith("2023-08-")
        assert newest == "2025-08-24 01:46:40"
    for (metadata,) in [(one,) for one in ask(store, "SELECT metadata FROM memories WHERE id > 20")]:
        assert json.loads(metadata)["backfill"]["imported_at"][:4] >= "2025"
    assert bring(path, "--as", "both").json["memories"]["stored"] == 0
    assert first == [
        *ask(
            store, "SELECT min(timestamp), max(timestamp), min(created_at), max(created_at) FROM memories WHERE id > 20"
        ),
        *ask(
            store, "SELECT min(start_time), max(end_time), min(created_at), max(created_at) FROM episodes WHERE id > 1"
        ),
    ]


@pytest.mark.parametrize(
    ("time", "stored"),
    [
        ("2024-01-01T00:00:00+0530", "2023-12-31T18:30:00+00:00"),
        ("Fri, 27 Oct 2023 10:30:00 GMT", "2023-10-27T10:30:00+00:00"),
        (1698402600000, "2023-10-27T10:30:00+00:00"),
        ("10/27/2023, 10:30 AM", None),
        ("2024-02-30T00:00:00Z", None),
        ("now", None),
        ("2099-01-01T00:00:00Z", None),
    ],
)
def test_odd_times(bring: Backfill, store: Path, home: Path, *, time: object, stored: str | None) -> None:
    """B19"""
    run = bring(plain(home, "A sentence that was said at some time.", time=time))
    assert ask(store, "SELECT timestamp FROM memories WHERE id > 20") == ([stored] if stored else [])
    if stored is None:
        assert run.json["memories"]["left_out_by_reason"] == {"without a date": 1}
        assert run.code == 1, "nothing came of it, and by no rule of the user's"


def test_a_zone_is_assumed_only_when_told(bring: Backfill, store: Path, home: Path) -> None:
    path = plain(home, "A sentence that was said at some time.", time="2024-03-10T12:30:00")
    assert bring(path, "--assume-tz", "+02:00").json["read"]["altered"] == {"times without a zone": 1}
    assert ask(store, "SELECT timestamp FROM memories WHERE id > 20") == ["2024-03-10T10:30:00+00:00"]


def test_since_and_until(bring: Backfill, store: Path, home: Path) -> None:
    lines = [
        {
            "conversation": "c",
            "id": str(n),
            "role": "user",
            "text": f"What was said on day {n} of May",
            "time": f"2024-05-{n:02d}T10:00:00Z",
        }
        for n in range(1, 6)
    ]
    run = bring(plain(home, *lines), "--since", "2024-05-02", "--until", "2024-05-04T10:00:00Z")
    assert contents(store) == ["What was said on day 2 of May", "What was said on day 3 of May"]
    assert run.json["memories"]["left_out_by_reason"] == {"before --since": 1, "not before --until": 2}


# --- texts


def test_half_characters_and_nuls(bring: Backfill, store: Path, home: Path) -> None:
    """B20, B21"""
    data = jsonl(
        b'{"conversation":"c","id":"1","role":"user","text":"a half \\ud83d of an emoji","time":1698402600}',
        b'{"conversation":"c","id":"2","role":"user","text":"whole: \\ud83c\\udf78 \\u0000a NUL","time":1698402600}',
    )
    run = bring(file(home, "talk.jsonl", data))
    assert contents(store) == ["a half � of an emoji", "whole: \U0001f378 a NUL"]
    assert run.json["read"]["altered"] == {"half characters replaced": 1, "NULs removed": 1}


def test_a_long_message_is_stored_whole_in_pieces(bring: Backfill, store: Path, home: Path) -> None:
    """B22"""
    words = " ".join(f"word{n}" for n in range(6_000))
    run = bring(plain(home, words))
    pieces = contents(store)
    assert " ".join(pieces) == words
    assert len(pieces) == 4
    assert max(map(len, pieces)) <= 16_000
    assert (run.json["memories"]["stored"], run.json["read"]["split"], run.json["result"]["rows"]) == (
        1,
        1,
        {"mem": 4, "ep": 0} if "ep" in run.json["result"]["rows"] else {"mem": 4},
    )


def test_what_says_nothing_is_left_out_by_rule(bring: Backfill, store: Path, home: Path) -> None:
    """B26"""
    run = bring(plain(home, "ok", "The harbour opens at six in the morning.", "continue", "yes"))
    assert (run.code, contents(store)) == (0, ["The harbour opens at six in the morning."])
    assert run.json["memories"]["left_out_by_reason"] == {"short messages": 3}


# --- again


def test_a_second_run_changes_nothing_and_a_grown_export_adds_what_is_new(
    bring: Backfill, store: Path, home: Path
) -> None:
    """B23"""
    texts = [f"Remark number {n} about the weather." for n in range(5)]
    path = plain(home, *texts)
    assert bring(path).json["memories"]["stored"] == 5
    before = store.read_bytes()
    again = bring(path)
    assert (again.code, again.json["memories"]["stored"], again.json["memories"]["duplicate"]) == (0, 0, 5)
    assert store.read_bytes() == before
    grown = bring(plain(home, *texts, "A new remark about the tide.", "And one more about the moon."))
    assert (grown.json["memories"]["stored"], grown.json["memories"]["duplicate"]) == (2, 5)
    assert len(contents(store)) == 7


def test_undo_takes_out_what_was_brought_in_and_nothing_else(
    backfill: Backfill, bring: Backfill, store: Path, home: Path
) -> None:
    before = ask(store, "SELECT * FROM memories ORDER BY id"), ask(store, "SELECT * FROM episodes ORDER BY id")
    assert bring(plain(home, *[f"Remark number {n} about the weather." for n in range(5)]), "--as", "both").code == 0
    asked = backfill("undo", "--db", store, "--json")
    assert asked.code == 2
    assert asked.json["error"].endswith("add --yes")
    run_sql(store, "UPDATE memories SET content = 'A remark that was changed.' WHERE id = 21")
    run = backfill("undo", "--db", store, "--yes", "--json")
    assert (run.code, run.json["undone"]["removed"], run.json["undone"]["left"]) == (1, 5, 1)
    run_sql(store, "DELETE FROM memories WHERE id = 21")
    assert (
        ask(store, "SELECT * FROM memories ORDER BY id"),
        ask(store, "SELECT * FROM episodes ORDER BY id"),
    ) == before
    assert backfill("undo", "--db", store, "--yes").code == 3


# --- vectors


def test_every_new_row_gets_a_vector(backfill: Backfill, store: Path, home: Path) -> None:
    with serving(width=64) as server:
        path = plain(home, *[f"Remark number {n} about the weather." for n in range(40)])
        run = backfill(
            path, "--db", store, "--agent", "atlas", "--as", "both", "--url", server.url(), "--yes", "--json"
        )
    assert run.code == 0
    assert ask(store, "SELECT count(*), min(length(embedding)) FROM memories WHERE id > 20") == [(40, 256)]
    assert ask(store, "SELECT length(embedding) FROM episodes WHERE id > 1") == [256]
    result = run.json["result"]
    assert (result["embedded"], result["without_vector"], result["why_none"]) == (41, 0, None)


def test_an_endpoint_that_dies_leaves_rows_without_a_vector(
    backfill: Backfill, store: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B24"""
    path = plain(home, *[f"Remark number {n} about the weather." for n in range(40)])
    about = ("--db", store, "--agent", "atlas", "--yes", "--json")
    with serving(width=64) as server:
        seen = 0

        def dies(request: Request, _number: int) -> Answer | None:
            nonlocal seen
            ours = [text for text in request.texts if text.startswith("Remark number")]
            seen += len(ours)
            return Answer(401, {"error": "the key is no longer valid"}) if ours and seen > 10 else None

        server.behaviour.before = dies
        run = backfill(path, *about, "--url", server.url())
        lacking = ask(store, "SELECT count(*) FROM memories WHERE id > 20 AND embedding IS NULL")[0]
        assert (run.code, run.json["memories"]["stored"], run.json["result"]["without_vector"]) == (1, 40, lacking)
        assert lacking > 0
        assert ask(store, "SELECT count(*) FROM memories WHERE id > 20 AND embedding = zeroblob(256)") == [0]
        assert run.json["next_command"].startswith(f"cpersona-cli reembed --only missing --db {store} --url ")
        server.behaviour.before = lambda _request, _number: None
        with monkeypatch.context() as terminal:
            terminal.setattr(workplace, "terminal", lambda _stream: True)
            asked = backfill(path, *about[:4], "--url", server.url(), typed="no\n")
        assert f"Make {lacking} missing vectors in {store}? Type yes:" in asked.err
        again = backfill(path, *about, "--url", server.url())
    assert (again.code, again.json["memories"]["stored"], again.json["result"]["embedded"]) == (0, 0, lacking)
    assert ask(store, "SELECT count(*) FROM memories WHERE id > 20 AND embedding IS NULL") == [0]


def test_an_endpoint_that_is_not_there(backfill: Backfill, store: Path, home: Path) -> None:
    path = plain(home, "The harbour opens at six in the morning.")
    with serving(width=64) as server:
        url = server.url()
    about = ("--db", store, "--agent", "atlas", "--url", url)
    plan = backfill(path, *about, "--dry-run", "--json")
    assert plan.code == 0
    assert plan.json["plan"]["vectors"].startswith("none: ")
    run = backfill(path, *about, "--yes")
    assert run.code == 1
    assert "1 without a vector" in run.last
    assert "cpersona-cli reembed --only missing" in run.out
    assert ask(store, "SELECT embedding FROM memories WHERE id > 20") == [None]
    again = backfill(path, *about, "--yes", "--json")
    assert (again.code, again.json["memories"]["duplicate"]) == (1, 1), "the row still has no vector"
    assert again.json["next_command"] == f"cpersona-cli reembed --only missing --db {store} --url {url}"
    assert backfill(path, *about[:-2], "--no-embed", "--yes").code == 0


def test_no_vectors_of_another_width(backfill: Backfill, store: Path, home: Path) -> None:
    run_sql(store, "UPDATE memories SET embedding = zeroblob(256)")
    with serving(width=96) as server:
        path = plain(home, "The harbour opens at six in the morning.")
        run = backfill(path, "--db", store, "--agent", "atlas", "--url", server.url(), "--yes", "--json")
    assert (run.code, ask(store, "SELECT embedding FROM memories WHERE id > 20")) == (1, [None])
    assert "96 dimensions, and those stored have 64" in run.json["plan"]["vectors"]
    assert run.json["next_command"].startswith("cpersona-cli dimension --db ")


@pytest.mark.parametrize("far", [False, True])
def test_no_vectors_of_another_model(
    backfill: Backfill, store: Path, home: Path, monkeypatch: pytest.MonkeyPatch, *, far: bool
) -> None:
    def turned(_request: Request, vectors: list[list[float]]) -> list[list[float]]:
        return [[*vector[1::2], *vector[::2]] for vector in vectors]

    monkeypatch.setattr(workplace, "terminal", lambda _stream: True)
    for module in ("importing", "import_around"):
        monkeypatch.setattr(f"cpersona_cli.commands.{module}.is_loopback", lambda _url: not far)
    with serving(width=64) as server:
        about = ("--db", store, "--agent", "atlas", "--url", server.url())
        stored = [f"What the harbour master wrote on day {n}, and why the gate was shut." for n in range(12)]
        assert backfill(plain(home, *stored, name="own.jsonl"), *about, "--yes").code == 0
        server.behaviour.after = turned
        path = plain(home, {**LINE, "text": "The harbour opens at six in the morning."})
        run = backfill(path, *about, "--json", typed="yes\n")
    assert (run.code, run.json["memories"]["stored"], run.json["result"]["without_vector"]) == (1, 1, 1)
    assert run.json["result"]["why_none"] == "the endpoint’s model is another one than that of the stored vectors"
    assert ("another model’s" in run.json["plan"]["vectors"]) is not far, "asked only after the yes"
    assert run.json["next_command"].startswith(f"cpersona-cli dimension --db {store} --url ")


def test_texts_leave_this_computer_only_after_a_yes(
    backfill: Backfill, store: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cpersona_cli.commands.import_around.is_loopback", lambda _url: False)
    with serving(width=64) as server:
        path = plain(home, "The harbour opens at six in the morning.")
        run = backfill(path, "--db", store, "--agent", "atlas", "--url", server.url(), "--json")
        assert "The harbour" not in str([request.texts for request in server.requests])
    assert run.code == 2
    assert "and to send texts to http://127.0.0.1:" in run.json["error"]
    assert contents(store) == []


# --- consent, and what interferes


@pytest.mark.parametrize(("typed", "code", "stored"), [("yes\n", 0, 1), ("no\n", 2, 0), ("", 2, 0)])
def test_the_plan_is_confirmed_at_a_terminal(
    backfill: Backfill, store: Path, home: Path, monkeypatch: pytest.MonkeyPatch, *, typed: str, code: int, stored: int
) -> None:
    monkeypatch.setattr(workplace, "terminal", lambda _stream: True)
    run = backfill(
        plain(home, "The harbour opens at six."), "--db", store, "--agent", "atlas", "--no-embed", typed=typed
    )
    assert (run.code, len(contents(store))) == (code, stored)
    assert f"Store 1 memory in {store}? It can be undone. Type yes:" in run.err
    assert "no boundary moves: each memory that is there counts as before" in run.err


def test_what_would_count_differently_is_said_with_the_question(
    backfill: Backfill, bounded: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workplace, "terminal", lambda _stream: True)
    run_sql(bounded, "UPDATE episodes SET created_at = '2024-01-01 00:00:00'")
    path = file(home, "conversations.json", [gpt(gpt_message("u", "user", "A long question about some topic"))])
    run = backfill(path, "--db", bounded, "--agent", "atlas", "--as", "episodes", "--no-embed", typed="no\n")
    assert run.code == 2
    assert f"15 memories that are there would count differently. Store 1 episode in {bounded}?" in run.err


def test_a_repair_is_confirmed_at_a_terminal(backfill: Backfill, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workplace, "terminal", lambda _stream: True)
    insert(store, "episodes", harmed())
    assert backfill("repair", "--db", store, typed="no\n").code == 2
    run = backfill("repair", "--db", store, typed="yes\n")
    assert (run.code, run.last) == (0, "PASS   3 episodes dated back")
    assert f"3 episodes would be dated back to when they ended, in {store}." in run.err


def test_nobody_is_there_to_confirm(backfill: Backfill, store: Path, home: Path) -> None:
    run = backfill(plain(home, "The harbour opens at six."), "--db", store, "--agent", "atlas", "--no-embed", "--json")
    assert run.code == 2
    assert run.json["error"].startswith("nobody is here to confirm the plan; look at it with --dry-run, then add --yes")
    assert {one.name for one in store.parent.iterdir()} == {store.name}


def test_a_plan_alone_writes_nothing(backfill: Backfill, store: Path, home: Path) -> None:
    path = plain(home, "The harbour opens at six.")
    with untouched(store.parent):
        run = backfill(path, "--db", store, "--no-embed", "--agent", "atlas", "--no-penalty", "--dry-run")
    assert (run.code, run.last) == (0, "PASS   1 memory would be stored; nothing was changed")
    assert f"Next: cpersona-cli backfill ~/{path.name} --db {store} --agent atlas --no-penalty --no-embed" in run.out


def test_an_endpoint_that_is_not_configured_right(backfill: Backfill, store: Path, home: Path) -> None:
    env = {"CPERSONA_DB_PATH": str(store), "CPERSONA_EMBEDDING_MODE": "http"}
    entry = {"command": sys.executable, "args": ["-m", "cpersona"], "env": env}
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"cpersona": entry}}))
    path = plain(home, "The harbour opens at six.")
    run = backfill(path, "--agent", "atlas", "--yes", "--json")
    assert (run.code, run.json["findings"][0]["trap"], contents(store)) == (1, "names.url-missing", [])
    assert backfill(path, "--agent", "atlas", "--yes", "--no-embed").code == 0


def test_the_endpoint_of_the_registration(backfill: Backfill, store: Path, home: Path) -> None:
    path = plain(home, "The harbour opens at six.")
    with serving(width=64) as server, serving(width=64) as other:
        env = {
            "CPERSONA_DB_PATH": str(store),
            "CPERSONA_EMBEDDING_MODE": "http",
            "CPERSONA_EMBEDDING_URL": server.url(),
        }
        entry = {"command": sys.executable, "args": ["-m", "cpersona"], "env": env}
        (home / ".claude.json").write_text(json.dumps({"mcpServers": {"cpersona": entry}}))
        assert backfill(path, "--agent", "atlas", "--yes").code == 0
        assert any(request.texts == ["The harbour opens at six."] for request in server.requests)
        run = backfill(
            plain(home, {**LINE, "text": "The tide is low."}),
            "--agent",
            "atlas",
            "--yes",
            "--url",
            other.url(),
            "--model",
            "m",
        )
        assert run.code == 0
        assert ask(store, "SELECT embedding_model FROM memories WHERE id > 20 ORDER BY id") == ["", "m"]


def test_nothing_says_where_vectors_come_from(backfill: Backfill, store: Path, home: Path) -> None:
    run = backfill(plain(home, "The harbour opens at six."), "--db", store, "--agent", "atlas", "--yes", "--json")
    assert run.code == 2
    assert run.json["error"].endswith("add --url, or --no-embed to store without vectors")


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (StoreError("the disk is full"), 1, "stopped; what was stored until then is kept"),
        (RuntimeError("of our own"), 1, "stopped; what was stored until then is kept"),
        (KeyboardInterrupt(), 130, "interrupted; what was stored until then is kept"),
    ],
)
def test_a_run_that_is_cut_off_says_what_is_there(
    bring: Backfill, home: Path, monkeypatch: pytest.MonkeyPatch, *, error: BaseException, code: int, says: str
) -> None:
    def fails(*_args: object, **_named: object) -> None:
        raise error

    monkeypatch.setattr(importing, "bring_in", fails)
    run = bring(plain(home, "The harbour opens at six."))
    assert run.code == code
    assert "of our own" not in run.out
    assert run.json["next_command"].startswith("cpersona-cli backfill ")
    told = bring(plain(home, "The harbour opens at six."), "--output", "text:told.txt")
    assert told.code == code
    assert says in (home / "told.txt").read_text("utf-8")


def test_another_run_at_work_is_named_and_nothing_is_said_to_be_stored(
    bring: Backfill, store: Path, home: Path
) -> None:
    path = plain(home, "The harbour opens at six.")
    with JobLock(store):
        run = bring(path)
    assert (run.code, contents(store), run.json["result"]) == (1, [], None)
    (refusal,) = run.json["plan"]["refusals"]
    assert refusal.startswith(f"process {os.getpid()} is at work on {store} right now")
    assert bring(path).code == 0


def test_a_command_for_the_vectors_is_given_where_it_works(backfill: Backfill, store: Path, home: Path) -> None:
    about = ("--agent", "atlas", "--no-embed", "--yes")
    unknown = backfill(plain(home, "The harbour opens at six."), "--db", store, *about)
    assert "name an endpoint (--url) or register one, and give them one" in unknown.out
    assert "cpersona-cli reembed" not in unknown.out
    env = {
        "CPERSONA_DB_PATH": str(store),
        "CPERSONA_EMBEDDING_MODE": "http",
        "CPERSONA_EMBEDDING_URL": "http://h:1/embed",
    }
    entry = {"command": sys.executable, "args": ["-m", "cpersona"], "env": env}
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"cpersona": entry}}))
    known = backfill(plain(home, {**LINE, "text": "The tide is low."}), *about)
    assert f"cpersona-cli reembed --only missing --db {store}" in known.out


def test_what_older_memories_do_to_confidence_is_said(backfill: Backfill, store: Path, home: Path) -> None:
    env = {"CPERSONA_DB_PATH": str(store), "CPERSONA_EMBEDDING_MODE": "none", "CPERSONA_CONFIDENCE_ENABLED": "true"}
    entry = {"command": sys.executable, "args": ["-m", "cpersona"], "env": env}
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"cpersona": entry}}))
    about = ("--agent", "atlas", "--no-penalty", "--dry-run", "--json")
    (older,) = backfill(plain(home, "The harbour opens at six."), *about).json["plan"]["warnings"]
    assert older.startswith("CPERSONA_CONFIDENCE_ENABLED is on in ")
    assert "begins 2023-04-05 then in place of 2025-03-02;" in older
    newer = plain(home, "The harbour opens at six.", time="2025-03-05T10:00:00Z")
    assert backfill(newer, *about).json["plan"]["warnings"] == []


# --- the penalty


def boundaries(database: Path) -> list[str]:
    return ask(database, "SELECT max(datetime(created_at)) FROM episodes WHERE agent_id = 'atlas'")


def test_no_boundary_moves(bring: Backfill, bounded: Path, home: Path) -> None:
    """B17: five old conversations as episodes."""
    talks = [gpt(gpt_message(f"u{n}", "user", f"A long question about topic {n}"), name=f"c{n}") for n in range(5)]
    run = bring(file(home, "conversations.json", talks), "--as", "episodes", "--no-penalty")
    assert (run.code, run.json["episodes"]["stored"], boundaries(bounded)) == (0, 5, [LATER])
    assert run.json["result"]["penalty_held"] is True
    assert run.json["plan"]["memories_changed"] == 0


def test_a_newer_episode_is_refused_or_held_back_or_shown(
    bring: Backfill, backfill: Backfill, bounded: Path, home: Path
) -> None:
    run_sql(bounded, "UPDATE episodes SET created_at = '2024-01-01 00:00:00'")
    path = file(home, "conversations.json", [gpt(gpt_message("u", "user", "A long question about some topic"))])
    refused = bring(path, "--as", "episodes", "--no-penalty")
    assert (refused.code, refused.json["plan"]["late_episodes"], boundaries(bounded)) == (1, 1, ["2024-01-01 00:00:00"])
    assert "--clamp" in refused.json["plan"]["refusals"][0]
    shown = backfill(path, "--db", bounded, "--agent", "atlas", "--as", "episodes", "--no-embed", "--dry-run")
    assert shown.code == 0
    assert "would count differently" in shown.out
    assert "2025-08-24" in shown.out
    held = bring(path, "--as", "episodes", "--no-penalty", "--clamp")
    assert (held.code, held.json["plan"]["clamped"], boundaries(bounded)) == (0, 1, ["2024-01-01 00:00:00"])
    assert ask(bounded, "SELECT end_time FROM episodes ORDER BY id DESC LIMIT 1") == ["2025-08-24T01:46:40+00:00"]


def test_without_the_flag_the_boundary_moves_and_is_told(bring: Backfill, bounded: Path, home: Path) -> None:
    run_sql(bounded, "UPDATE episodes SET created_at = '2024-01-01 00:00:00'")
    path = file(home, "conversations.json", [gpt(gpt_message("u", "user", "A long question about some topic"))])
    run = bring(path, "--as", "episodes")
    assert (run.code, boundaries(bounded)) == (0, ["2025-08-24 01:46:40"])
    changed = ask(bounded, "SELECT count(*) FROM memories WHERE agent_id = 'atlas' AND timestamp < '2025-08-24'")[0]
    assert run.json["plan"]["memories_changed"] == changed > 0
    assert run.json["result"]["scopes"][0]["changed"] == changed
    assert run.json["result"]["penalty_held"] is None


def harmed() -> Iterable[Mapping[str, str]]:
    """Three episodes of 2024 that an import stored in 2025 as of then."""
    for n in range(1, 4):
        start, end = f"2024-05-0{n}T10:00:00+00:00", f"2024-05-0{n}T11:00:00+00:00"
        stored = f"2025-07-01 08:00:0{n}"
        yield {"summary": f"An old plan {n}.", "start_time": start, "end_time": end, "created_at": stored}


def test_an_earlier_import_is_mended_and_that_taken_back(backfill: Backfill, store: Path) -> None:
    run_sql(store, "UPDATE episodes SET created_at = '2025-01-01 00:00:00', start_time = NULL, end_time = NULL")
    insert(store, "episodes", harmed())
    dry = backfill("repair", "--db", store, "--dry-run", "--json")
    assert (dry.code, dry.json["harm"]["episodes"], boundaries(store)) == (0, 3, ["2025-07-01 08:00:03"])
    assert dry.json["next_command"] == f"cpersona-cli backfill repair --db {store}"
    assert backfill("repair", "--db", store).code == 2
    run = backfill("repair", "--db", store, "--yes")
    assert (run.code, run.last, boundaries(store)) == (0, "PASS   3 episodes dated back", ["2025-01-01 00:00:00"])
    assert ask(store, "SELECT created_at FROM episodes WHERE id > 1") == [f"2024-05-0{n} 11:00:00" for n in range(1, 4)]
    assert "2025-07-01 08:00" in run.out, "the boundary of before is shown"
    nothing = backfill("repair", "--db", store, "--yes")
    assert (nothing.code, "no harm" in nothing.last) == (0, True)
    undone = backfill("undo", "--db", store, "--yes")
    assert (undone.last, boundaries(store)) == ("PASS   3 rows dated as before", ["2025-07-01 08:00:03"])


# --- whose memory


def test_whose_memory_it_is(backfill: Backfill, store: Path, home: Path) -> None:
    path = plain(home, "The harbour opens at six in the morning.")
    about = (path, "--db", store, "--no-embed", "--yes", "--json")
    several = backfill(*about)
    assert several.code == 2
    assert several.json["error"].endswith("name one with --agent; in the database are atlas, borealis")
    run_sql(store, "DELETE FROM memories WHERE agent_id = 'borealis'")
    assert backfill(*about).json["agent"] == "atlas"


def test_a_search_elsewhere_is_said_to_know_nothing_of_it(backfill: Backfill, store: Path, home: Path) -> None:
    env = {"CPERSONA_DB_PATH": str(store), "CPERSONA_VECTOR_SEARCH_MODE": "remote"}
    entry = {"command": sys.executable, "args": ["-m", "cpersona"], "env": env}
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"cpersona": entry}}))
    run = backfill(plain(home, "The tide is low today."), "--agent", "atlas", "--no-embed", "--dry-run", "--json")
    (warning,) = run.json["plan"]["warnings"]
    assert warning.startswith("CPERSONA_VECTOR_SEARCH_MODE is remote in Claude Code")


@pytest.mark.parametrize(
    ("agent", "hint"),
    [("atlass", "did you mean atlas?"), ("sol", "the database holds memories of atlas, borealis"), ("atlas", None)],
)
def test_an_agent_without_memories_is_named(
    backfill: Backfill, store: Path, home: Path, *, agent: str, hint: str | None
) -> None:
    path = plain(home, "The harbour opens at six in the morning.")
    run = backfill(path, "--db", store, "--no-embed", "--dry-run", "--json", "--agent", agent)
    said = [] if hint is None else [f"agent '{agent}' has no memories yet; {hint}"]
    assert (run.code, run.json["plan"]["warnings"]) == (0, said)


def test_a_registration_may_name_the_agent(backfill: Backfill, store: Path, home: Path) -> None:
    env = {"CPERSONA_DB_PATH": str(store), "CPERSONA_EMBEDDING_MODE": "none", "CPERSONA_AGENT_ID": "borealis"}
    entry = {"command": sys.executable, "args": ["-m", "cpersona"], "env": env}
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"cpersona": entry}}))
    run = backfill(plain(home, "The harbour opens at six in the morning."), "--yes", "--json")
    assert (run.code, run.json["agent"], run.json["result"]["why_none"]) == (0, "borealis", "not wanted")
    assert run.json["plan"]["vectors"] == "none: the server works without an endpoint"


def test_rows_of_an_export_keep_their_agents_unless_one_is_named(backfill: Backfill, store: Path, home: Path) -> None:
    run_sql(store, "DELETE FROM memories WHERE agent_id = 'borealis'")
    path = file(home, "memory.jsonl", jsonl(
        {"_type": "header", "version": "cpersona-export/1.0", "agent_id": "sol", "memory_count": 1,
         "episode_count": 0},
        {"_type": "memory", "id": 1, "agent_id": "sol", "msg_id": "", "content": "Sol likes tea.", "source": {},
         "metadata": {},
         "timestamp": "2024-01-01T00:00:00+00:00", "created_at": "2024-01-01 00:00:00",
         "project_id": "p", "channel": "", "locked": False},
    ))  # fmt: skip
    about = (path, "--db", store, "--no-embed", "--yes")
    assert backfill(*about).code == 0
    assert backfill(*about, "--agent", "luna", "--project", "q").code == 0
    assert ask(store, "SELECT agent_id, project_id FROM memories WHERE id > 20") == [("sol", "p"), ("luna", "q")]


def test_project_channel_and_ready_summaries(bring: Backfill, store: Path, home: Path) -> None:
    path = plain(home, "The harbour opens at six in the morning.")
    summaries = file(home, "summaries.json", {"c": "When the harbour opens.", "C": "Another."})
    run = bring(path, "--as", "both", "--project", "ferry", "--channel", "north", "--summaries", summaries)
    assert run.code == 0
    (warning,) = run.json["plan"]["warnings"]
    assert warning.startswith("1 of 2 summaries given with --summaries is of no conversation that was read")
    assert ask(store, "SELECT project_id, channel, summary FROM episodes WHERE id > 1") == [
        ("ferry", "north", "When the harbour opens.")
    ]
    assert ask(store, "SELECT project_id, channel FROM memories WHERE id > 20") == [("ferry", "north")]


# --- the wrong thing


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("users.json", [{"uuid": "me", "full_name": "Aya"}], "an array of objects with the keys uuid, full_name"),
        ("memory.db", b"SQLite format 3\0" + bytes(100), "an SQLite database"),
        ("page.html", b"<!doctype html><html></html>", "an HTML page"),
        ("empty.json", b"", "empty"),
    ],
)  # fmt: skip
def test_the_wrong_kind_of_file(bring: Backfill, home: Path, *, name: str, value: object, says: str) -> None:
    """B25"""
    run = bring(file(home, name, value))
    assert run.code == 2
    assert says in run.json["error"]
    assert "ChatGPT, Claude, Claude Code, Codex, CPersona, Open WebUI, plain JSONL" in run.json["error"]


def test_another_format_than_was_said(bring: Backfill, home: Path) -> None:
    run = bring(plain(home, "The harbour opens."), "--from", "claude")
    assert run.code == 2
    assert "comes from plain JSONL" in run.json["error"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nowhere.zip"], "nowhere.zip"),
        (["repai"], "did you mean `backfill repair`?"),
        (["repair", "x"], "takes no path; for a file of that name, ./repair"),
        (["x", "undo"], "`undo` is a command of its own"),
        (["undo", "--dry-run"], "--dry-run does not go with `backfill undo`"),
        (["undo", "--as", "both"], "--as does not go with `backfill undo`"),
        (["repair", "--url", "http://127.0.0.1:1/embed"], "--url does not go with `backfill repair`"),
        (["x", "--as", "memorys"], "--as does not know 'memorys'; did you mean memories?"),
        (["x", "--from", "gpt"], "--from does not know 'gpt'; it takes chatgpt,"),
        (["x", "--clamp"], "--clamp goes with --no-penalty"),
        (["x", "--no-embed", "--url", "http://127.0.0.1:1/embed"], "contradict each other"),
        (["x", "--summaries", "s.json"], "--summaries goes with --as episodes or --as both"),
        (["x", "--summaries", "s.json", "--as", "both"], "--summaries: the summaries in s.json cannot be read"),
        (["x", "--since", "soon"], "--since 'soon' is no day or time"),
        (["x", "--undated", "2199-01-01"], "--undated '2199-01-01' is no day or time: in the future"),
        (["x", "--since", "2025-01-02", "--until", "2025-01-02"], "nothing can lie between them"),
        (["x", "--assume-tz", "Atlantis"], "--assume-tz: no time zone is called 'Atlantis'"),
        (["x", "--agent", " "], "--agent is empty"),
        (["x", "--agent", "@me"], "--agent @me is the server's word"),
        (["x", "--channel", "a\tb"], "--channel takes at most 256 printable characters"),
        (["x", "--progress", "loud"], "--progress does not know 'loud'"),
    ],
)  # fmt: skip
def test_what_makes_no_sense(backfill: Backfill, store: Path, words: list[str], says: str) -> None:
    run = backfill(
        *words, "--db", store, *([] if "--url" in words or words[0] in {"repair", "undo"} else ["--no-embed"]), "--json"
    )
    assert run.code == 2
    assert says in run.json["error"]
