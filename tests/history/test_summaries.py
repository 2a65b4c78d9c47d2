from __future__ import annotations

import datetime as dt
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpersona_cli.history import summaries
from cpersona_cli.history.model import Conversation, Format, HistoryError, Role, Turn
from cpersona_cli.history.summaries import LENGTH, Summary, extract


def _talk(title: str, *texts: str) -> Conversation:
    roles = (Role.USER, Role.ASSISTANT)
    turns = tuple(
        Turn(id=str(at), role=roles[at % 2], text=text, at=dt.datetime(2024, 1, 1, tzinfo=dt.UTC))
        for at, text in enumerate(texts)
    )
    return Conversation(id="c", format=Format.PLAIN, where="file", title=title, turns=turns)


LOGIN = _talk(
    "Flaky login test",
    "The login test fails every third run on CI. Can you find out why?\n```\nE port in use, of the login test\n```",
    "Looking at the fixture now. The fixture starts the server on port 8080, and two workers share this port.",
    "ok",
    "I changed the fixture to bind to port 0, so that each worker has a free port. What a lovely day it is outside.",
    "great, please commit",
    "Committed.",
)
MOVE = _talk(
    "引っ越しの相談",
    "来月、東京から京都に引っ越します。荷物が多いので、引っ越し業者を探しています。",
    "京都までの引っ越しなら、荷物の量で料金が変わります。「三社から見積もりを取る。」のがよいでしょう。",
    "はい",
    "見積もりは平日の午前が安くなります。荷物を減らすと料金も下がります。今日はよい天気ですね。",
)


def test_an_extract_has_the_title_says_that_it_is_one_and_keeps_what_was_said_in_its_order() -> None:
    found = extract(LOGIN, 290)
    assert found.text.split("\n") == [
        "Flaky login test (extract of 6 messages)",
        "User: The login test fails every third run on CI.",
        "Assistant: The fixture starts the server on port 8080, and two workers share this port.",
        "Assistant: I changed the fixture to bind to port 0, so that each worker has a free port.",
    ]
    assert {"fixture", "login"} <= set(found.keywords.split(" "))
    assert len(found.keywords.split(" ")) == 8


def test_it_works_the_same_where_words_have_no_spaces() -> None:
    found = extract(MOVE, 130)
    lines = found.text.split("\n")
    assert lines[0] == "引っ越しの相談 (extract of 4 messages)"
    assert "User: 荷物が多いので、引っ越し業者を探しています。" in lines
    assert all("天気" not in line and "はい" not in line for line in lines)
    assert {"荷物", "京都", "料金"} <= set(found.keywords.split(" "))


def test_sentences_are_cut_from_marks_and_code_and_never_said_twice() -> None:
    talk = _talk(
        "",
        "# A **heading** of the plan\n- first we `measure` it.\n- first we `measure` it.\n"
        f'1) "Then we cut it down." Really! {"word " * 100}',
        "first we `measure` it.",
    )
    lines = extract(talk).text.split("\n")
    assert lines[0] == "(extract of 2 messages)"
    assert lines.count("User: first we measure it.") + lines.count("Assistant: first we measure it.") == 1
    assert "User: A heading of the plan" in lines
    assert 'User: "Then we cut it down."' in lines
    assert any(line.endswith("…") for line in lines)
    assert all(len(line) <= 320 for line in lines)


def test_where_nothing_is_said_there_is_no_extract() -> None:
    assert extract(_talk("A title", "ok", "12 34 56 78", "do re mi fa so la ti do")) == Summary(text="")
    assert extract(_talk("")) == Summary(text="")
    assert extract(LOGIN, 30) == Summary(text="")
    assert extract(LOGIN, 0) == Summary(text="")


def test_of_a_very_long_talk_beginning_and_end_are_weighed() -> None:
    middle = [f"sentence number {at} about the weather in town {at}" for at in range(5000)]
    found = extract(_talk("", "We want to move the archive to Lisbon.", *middle, "The archive is in Lisbon now."))
    assert "move the archive to Lisbon" in found.text


def test_every_run_gives_the_same(tmp_path: Path) -> None:
    script = tmp_path / "one.py"
    script.write_text(
        "import sys\nsys.path[:0] = sys.argv[1:]\nfrom history.test_summaries import LOGIN, MOVE\n"
        "from cpersona_cli.history.summaries import extract\n"
        "print(ascii((extract(LOGIN, 400), extract(MOVE, 200))))\n",
        encoding="utf-8",
    )
    tests = Path(__file__).parents[1]
    runs = {
        subprocess.run(
            [sys.executable, str(script), str(tests), str(tests.parent)],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert runs == {f"{(extract(LOGIN, 400), extract(MOVE, 200))!a}\n"}


@given(st.lists(st.text(), max_size=6), st.text(max_size=400), st.integers(0, LENGTH))
def test_it_is_never_longer_than_asked_for(texts: list[str], title: str, limit: int) -> None:
    found = extract(_talk(title, *texts), limit)
    assert len(found.text) <= limit
    assert not found.text or "(extract of" in found.text or found.text.split("\n")[0].endswith("…") or title


def test_summaries_are_read_from_one_object_or_from_lines(tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    for text, found in (
        ('\ufeff{\n "a": "one",\n "b": " two "\n}', {"a": "one", "b": "two"}),
        ('{"conversation": "a", "summary": "one"}', {"a": "one"}),
        ('{"conversation": "a",\n "summary": "one"}', {"a": "one"}),
        (
            '{"conversation": 7, "summary": "one", "by": "me"}\n\n{"conversation": "b", "summary": "a\\u0000b"}\n',
            {"7": "one", "b": "ab"},
        ),
        ("{}", {}),
    ):
        file.write_text(text, encoding="utf-8")
        assert summaries.read(file) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "are an array; it must be one object"),
        ("[]\n[]", "line 1 of {} is an array; it must be one object"),
        ('{"conversation": "a", "summary": "x"}\n{"conv', "line 2 of {} is not JSON: "),
        ('{"a": ["x"]}', "{}: the summary of a is no text; it must be"),
        ('{"a": " "}', "{}: the summary of a is no text"),
        ('{"summary": "x"}\n{"summary": "x"}', "line 1 of {}: a summary names no conversation"),
        (
            '{"conversation": "a", "summary": "x"}\n{"conversation": "a", "summary": "y"}',
            "line 2 of {}: there is a second summary of a; leave one",
        ),
    ],
)
def test_a_file_of_another_kind_is_refused_in_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "s.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(HistoryError) as raised:
        summaries.read(file)
    assert said.format(file) in str(raised.value)


def test_a_file_that_is_not_there_or_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HistoryError, match="cannot be read: No such file"):
        summaries.read(tmp_path / "none")
    monkeypatch.setattr(summaries, "FILE", 3)
    (tmp_path / "s").write_text("{   }")
    with pytest.raises(HistoryError, match="more than 0 MiB"):
        summaries.read(tmp_path / "s")
