"""Everything a user gives becomes conversations, or is named with the reason why not."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from support.exports import claude, claude_message, gpt, gpt_message, webui, webui_message, zipped

from cpersona_cli.history.model import Conversation, Format, HistoryError, Looked, Stored, Unread
from cpersona_cli.history.read import MODULES, read
from cpersona_cli.history.times import Clock

CLOCK = Clock(dt.datetime(2026, 6, 1, tzinfo=dt.UTC))
QUESTION = gpt_message("u", "user", "Hi")


def written(path: Path, value: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


def seen(*paths: Path, wanted: Format | None = None) -> list[str]:
    """What was read, in its order: ids, reasons and files."""
    result = []
    for item in read(paths, CLOCK, wanted):
        where = Path(item.where.split(",")[0]).name
        if isinstance(item, Conversation):
            result.append(item.id)
        elif isinstance(item, Looked):
            result.append(f"{where}: {item.format or item.reason}")
        else:
            assert isinstance(item, Unread)
            result.append(f"{where}! {item.reason}")
    return result


def test_an_export_of_many_files(tmp_path: Path) -> None:
    entries: dict[str, object] = {
        f"conversations-{n:03}.json": [gpt(QUESTION, name=f"c{n}"), gpt(QUESTION, name=f"d{n}")] for n in range(53)
    }
    beside = {
        "user.json": {"id": "u", "email": "me@example.org"},
        "message_feedback.json": [{"id": "f", "rating": "x"}],
        "shared_conversations.json": [{"id": "s", "conversation_id": "c", "title": "T", "is_anonymous": True}],
        "chat.html": "<html>",
        "../../evil.json": [gpt(QUESTION)],
    }
    expected = [f"{letter}{n}" for n in range(53) for letter in "cd"]
    looked = {
        "chat.html: not a JSON file, by its name",
        "message_feedback.json: an array of objects with the keys id, rating",
        "shared_conversations.json: an array of objects with the keys id, conversation_id, title, is_anonymous",
        "user.json: an object with the keys id, email",
    }
    archive = seen(zipped(tmp_path / "export.zip", entries | beside))
    assert [item for item in archive if re.fullmatch(r"[cd]\d+", item)] == expected
    assert {item for item in archive if ": chatgpt" not in item} - set(expected) == looked | {
        "evil.json: refused: its name leads out of the archive"
    }
    for name, value in (entries | beside).items():
        if ".." not in name:
            written(tmp_path / "folder" / name, value)
    folder = seen(tmp_path / "folder")
    assert [item for item in folder if re.fullmatch(r"[cd]\d+", item)] == expected
    assert looked <= set(folder)
    assert seen(tmp_path / "folder/conversations-000.json") == ["c0", "d0", "conversations-000.json: chatgpt"]


def test_many_formats_in_one_run(tmp_path: Path) -> None:
    first = written(tmp_path / "a.json", [claude(claude_message("h", "human", "Hi"), name="cl")])
    second = written(tmp_path / "b.json", [webui(webui_message("u", "user", "Hi", None), name="ow")])
    third = tmp_path / "c.json.gz"
    third.write_bytes(gzip.compress(json.dumps(gpt(QUESTION, name="gp")).encode()))
    assert seen(first, second, third) == [
        "cl",
        "a.json: claude",
        "ow",
        "b.json: open-webui",
        "gp",
        "c.json.gz: chatgpt",
    ]
    assert seen(third, tmp_path) == [
        "gp",
        "c.json.gz: chatgpt",
        "cl",
        "a.json: claude",
        "ow",
        "b.json: open-webui",
        "c.json.gz: read already",
    ]
    assert seen(first, first) == ["cl", "a.json: claude", "a.json: read already"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"name": "x", "version": "1"}, "an object with the keys name, version"),
        ([{"role": "user", "content": "x"}], "an array of objects with the keys role, content"),
        ([], "an empty array"),
    ],
)
def test_a_file_of_no_known_kind_stops_all_at_once(tmp_path: Path, value: object, words: str) -> None:
    good = written(tmp_path / "good.json", [gpt(QUESTION)])
    bad = written(tmp_path / "package.json", value)
    with pytest.raises(HistoryError) as raised:
        read([good, bad], CLOCK)
    assert str(raised.value) == (
        f"{bad} cannot be read here, for it is {words}; exports that can be read: "
        "ChatGPT, Claude, Claude Code, Codex, CPersona, Open WebUI, plain JSONL."
    )


def test_a_log_of_an_api_is_no_transcript(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    line = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "x",
        "messages": [{"role": "user", "content": "x"}],
    }
    path.write_text(f"{json.dumps(line)}\n" * 3)
    with pytest.raises(HistoryError, match="lines of objects with the keys id, object, model, messages"):
        read([path], CLOCK)


def test_a_format_that_is_said_must_be_right(tmp_path: Path) -> None:
    path = written(tmp_path / "x.json", [claude()])
    with pytest.raises(HistoryError) as raised:
        read([path], CLOCK, Format.CHATGPT)
    assert str(raised.value) == (
        f"{path} comes from Claude (an array of objects with the keys uuid, name, summary, created_at, updated_at, "
        "account, chat_messages), not from ChatGPT: name claude as its format, or none."
    )
    assert seen(path, wanted=Format.CLAUDE) == ["c1", "x.json: claude"]
    archive = zipped(tmp_path / "x.zip", {"a.json": [gpt(QUESTION)], "b.json": [claude()]})
    found = seen(archive, wanted=Format.CHATGPT)
    assert found[:2] == ["c1", "a.json: chatgpt"]
    assert found[2].startswith("b.json: comes from Claude (an array of objects with the keys uuid")


def test_a_format_that_is_said_decides_where_nothing_tells(tmp_path: Path) -> None:
    path = written(tmp_path / "x.json", [{"id": "a"}, {"id": "b"}])
    missing = 'x.json! it has no messages: "mapping" is missing'
    assert seen(path, wanted=Format.CHATGPT) == [missing, missing, "x.json: chatgpt"]
    export = zipped(tmp_path / "x.zip", {"conversations.json": [gpt(QUESTION)], "user.json": {"id": "u", "email": "e"}})
    assert seen(export, wanted=Format.CHATGPT)[2:] == ["user.json: an object with the keys id, email"]
    with pytest.raises(HistoryError, match="an array of numbers or words"):
        read([written(tmp_path / "y.json", [1])], CLOCK, Format.CHATGPT)


def test_an_export_in_which_every_conversation_fails(tmp_path: Path) -> None:
    broken = {"title": "T", "create_time": 1756000000.0, "update_time": 1756000000.0, "id": "x"}
    found = seen(written(tmp_path / "x.json", [broken] * 12))
    assert found == ['x.json! it has no messages: "mapping" is missing'] * 12 + ["x.json: chatgpt"]


def test_paths_that_hold_nothing(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match=r"gone cannot be read: No such file or directory\."):
        read([tmp_path / "gone"], CLOCK)
    (tmp_path / "empty").mkdir()
    with pytest.raises(HistoryError, match=r"empty holds no files; exports that can be read: ChatGPT, "):
        seen(tmp_path / "empty")
    for number in range(7):
        written(tmp_path / f"f/{number}.json", {"a": 1})
    written(tmp_path / "f/x.png", "")
    with pytest.raises(HistoryError) as raised:
        seen(tmp_path / "f")
    named = "; ".join(f"{tmp_path}/f/{n}.json: an object with the keys a" for n in range(5))
    assert str(raised.value).startswith(
        f"{tmp_path}/f holds no conversations that can be read here ({named}; and 2 more); exports that can"
    )
    written(tmp_path / "g/x.png", "")
    with pytest.raises(HistoryError, match=r"\(.*x\.png: not a JSON file, by its name\)"):
        seen(tmp_path / "g")


def test_a_file_that_is_cut_keeps_what_came_before(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    whole = json.dumps([gpt(QUESTION, name=f"c{n}") for n in range(3)])
    path.write_text(whole[:-40])
    found = seen(path)
    assert found[:2] == ["c0", "c1"]
    assert re.fullmatch(r"x\.json! the file ends within the value that begins here, after [0-9]+ bytes of it", found[2])
    assert found[3:] == ["x.json: chatgpt"]


def test_a_compressed_file_that_is_cut_keeps_what_came_before(tmp_path: Path) -> None:
    path = tmp_path / "x.json.gz"
    noise = [gpt(gpt_message("u", "user", os.urandom(200_000).hex()), name=f"c{n}") for n in range(10)]
    path.write_bytes(gzip.compress(json.dumps(noise).encode())[:-300_000])
    found = seen(path)
    assert found[:3] == ["c0", "c1", "c2"]
    assert found[-2].startswith("x.json.gz! is damaged: Compressed file ended before")
    assert found[-1] == "x.json.gz: chatgpt"
    path.write_bytes(path.read_bytes()[:30])
    with pytest.raises(HistoryError, match=r"x.json.gz is damaged: "):
        read([path], CLOCK)
    archive = zipped(tmp_path / "x.zip", {"a.json.gz": path.read_bytes(), "b.json": [gpt(QUESTION)]})
    lost, named = seen(archive)[:2]
    assert lost.startswith("a.json.gz! is damaged: ")
    assert named.startswith("a.json.gz: is damaged: ")
    archive.write_bytes(archive.read_bytes()[:-9])
    written(tmp_path / "f/b.json", [gpt(QUESTION)])
    shutil.move(archive, tmp_path / "f/x.zip")
    assert seen(tmp_path / "f")[2].startswith("x.zip! a damaged zip archive: its end is missing, as after a download")


def test_a_disk_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = written(tmp_path / "f/a.json", [gpt(QUESTION)]).parent
    written(tmp_path / "f/b.json", [gpt(QUESTION, name="other")])
    opened, calls = Path.open, []

    def failing(self: Path, mode: str) -> object:
        calls.append(self.name)
        # Each file is opened to see if it is an archive, to see what it is, and to read it.
        if (self.name, calls.count(self.name)) in {("a.json", 2), ("b.json", 3)}:
            raise OSError(5, "Input/output error")
        return opened(self, mode)

    monkeypatch.setattr(Path, "open", failing)
    assert seen(folder) == [
        "a.json! cannot be read: Input/output error",
        "a.json: cannot be read: Input/output error",
        "b.json! cannot be read: Input/output error",
        "b.json: chatgpt",
    ]


def test_a_path_that_may_not_be_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(_path: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "is_dir", denied)
    with pytest.raises(HistoryError, match=r"x\.json cannot be read: Permission denied\."):
        read([tmp_path / "x.json"], CLOCK)


def test_every_format_has_its_reader() -> None:
    assert set(MODULES) == set(Format)
    for name in MODULES.values():
        assert callable(import_module(f"cpersona_cli.history.{name}").reader())


def test_rows_pass_through(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    memory = {"_type": "memory", "id": 1, "content": "Tea.", "timestamp": "2025-01-01T00:00:00+00:00", "agent_id": "a"}
    path.write_text(json.dumps(memory) + "\n")
    first, last = read([path], CLOCK)
    assert isinstance(first, Stored)
    assert first.text == "Tea."
    assert isinstance(last, Looked)
    assert last.format is Format.CPERSONA


CHILD = """
import datetime as dt, resource, sys
from pathlib import Path
from cpersona_cli.history.read import read
from cpersona_cli.history.times import Clock

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

clock = Clock(dt.datetime(2026, 6, 1, tzinfo=dt.UTC))
print(len(list(read([Path(sys.argv[1])], clock))))
before = peak()
print(sum(1 for _ in read([Path(sys.argv[2])], clock)), peak() - before)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no resource module")
def test_a_large_export_takes_the_memory_of_one_conversation(tmp_path: Path) -> None:
    text = "So it goes, and on it goes. " * 500
    conversation = json.dumps(gpt(*(gpt_message(str(n), "user", f"{n} {text}") for n in range(70))))
    size = len(conversation)
    small, large = tmp_path / "small.json", tmp_path / "large.json"
    count = 150 * 2**20 // size
    for path, repeated in ((small, 2), (large, count)):
        with path.open("w") as file:
            file.write("[" + conversation)
            for _ in range(repeated - 1):
                file.write("," + conversation)
            file.write("]")
    assert large.stat().st_size > 149 * 2**20
    result = subprocess.run(
        [sys.executable, "-c", CHILD, small, large], capture_output=True, text=True, check=True, timeout=120
    ).stdout.split()
    assert [int(word) for word in result[:2]] == [3, count + 1]
    assert int(result[2]) < 8
