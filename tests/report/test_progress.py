from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import pytest

from cpersona_cli.commands.errors import CommandError, UsageError
from cpersona_cli.rebuild.model import Progress
from cpersona_cli.record import replace
from cpersona_cli.report.progress import Form, Teller, duration, line_of, short, spoken, telling

HALF = Progress(
    phase="embedding", done=1500, total=3000, failed=2, tokens=18_400, rate=412.4, in_flight=4, retries=1, left=61.2
)


class Clock:
    """Seconds that pass when told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def teller(clock: Clock, form: Form = Form.TEXT, *, terminal: bool = False) -> tuple[Teller, io.StringIO]:
    stream = io.StringIO()
    return Teller(form=form, stream=stream, terminal=terminal, now=clock), stream


# --- the words


def test_a_line_says_all_there_is_to_say() -> None:
    assert line_of(HALF) == (
        "embedding 1,500/3,000  50 %, 1:01 left, 412/s, 18k tokens, 4 in flight, 1 retry, 2 failed"
    )


def test_what_is_not_known_is_left_out() -> None:
    assert line_of(Progress(phase="checking", done=0, total=0)) == "checking"
    assert line_of(Progress(phase="embedding", done=1, total=9, rate=0.25)) == "embedding 1/9  11 %, 0.2/s"


def test_the_reason_of_slowness_is_told() -> None:
    line = line_of(Progress(phase="embedding", done=1, total=2, retries=2, why="the server asks to wait 7 s"))
    assert line == "embedding 1/2  50 %, 2 retries  (the server asks to wait 7 s)"


def test_a_hundred_per_cent_only_when_all_is_done() -> None:
    assert "99 %" in line_of(Progress(phase="embedding", done=9999, total=10_000))
    assert "100 %" in line_of(Progress(phase="embedding", done=10_000, total=10_000))


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.0, "0:00"), (-1.0, "0:00"), (61.2, "1:01"), (3599.6, "1:00:00"), (10_925.0, "3:02:05")]
)
def test_durations(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.4, "less than a second"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (3599.0, "59 min 59 s"),
        (7500.0, "2 h 5 min"),
    ],
)
def test_durations_in_words(seconds: float, shown: str) -> None:
    assert spoken(seconds) == shown


@pytest.mark.parametrize(("number", "shown"), [(950, "950"), (1000, "1k"), (999_499, "999k"), (999_500, "1.0M")])
def test_numbers_in_short(number: int, shown: str) -> None:
    assert short(number) == shown


# --- without a terminal


def test_without_a_terminal_a_line_comes_with_the_phase_the_share_or_the_time(clock: Clock) -> None:
    told, stream = teller(clock)

    def after(seconds: float, done: int, **more: Any) -> int:
        clock.now += seconds
        before = len(stream.getvalue().splitlines())
        told.tell(replace(HALF, done=done, **more))
        return len(stream.getvalue().splitlines()) - before

    assert after(0, 0) == 1, "the first"
    assert after(0.1, 1000) == 0, "too soon, whatever was done"
    assert after(2, 1000) == 1, "a third of the work"
    assert after(5, 1100) == 0, "a thirtieth of the work"
    assert after(5, 1101) == 1, "ten seconds"
    assert after(2, 1102, why="waits 7 s") == 1, "a reason"
    assert after(2, 1103, why="waits 7 s") == 0, "told already"
    assert after(0, 0, phase="checking") == 1, "another phase"
    assert "\r" not in stream.getvalue()


def test_what_has_no_end_is_told_by_time(clock: Clock) -> None:
    told, stream = teller(clock)
    for _ in range(21):
        told.tell(Progress(phase="backup", done=0, total=0))
        clock.now += 1
    assert stream.getvalue() == "backup\n" * 3


# --- at a terminal


def test_at_a_terminal_one_line_is_drawn_over_and_over(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.get_terminal_size", lambda _fallback: os.terminal_size((24, 80)))
    told, stream = teller(clock, terminal=True)
    told.tell(HALF)
    told.tell(replace(HALF, phase="検査検査検査検査検査検査", done=0, total=0))
    told.clear()
    told.clear()
    drawn = stream.getvalue().split("\x1b[K")
    assert drawn == ["\rembedding 1,500/3,000  ", "\r検査検査検査検査検査検", "\r", ""]


def test_a_sentence_does_not_end_up_in_the_line(clock: Clock) -> None:
    told, stream = teller(clock, terminal=True)
    told.tell(Progress(phase="backup", done=0, total=0))
    told.note("stopping")
    told.done(0)
    assert stream.getvalue() == "\rbackup\x1b[K\r\x1b[Kstopping\n"


def test_what_a_signal_says_comes_with_the_next_word(clock: Clock) -> None:
    told, stream = teller(clock, terminal=True)
    told.soon("stopping")
    assert stream.getvalue() == ""
    told.tell(Progress(phase="backup", done=0, total=0))
    told.soon("stopping at once")
    told.error("interrupted")
    told.done(130)
    assert stream.getvalue() == "stopping\n\rbackup\x1b[K\r\x1b[Kstopping at once\n"


# --- for machines


def test_events_are_one_document_a_line(clock: Clock) -> None:
    told, stream = teller(clock, Form.JSON)
    told.tell(replace(HALF, why="slow\x1b[31m"))
    told.tell(replace(HALF, done=1501))
    clock.now += 0.5
    told.tell(replace(HALF, done=1502, left=None))
    told.tell(replace(HALF, done=3000))
    told.note("half of it")
    told.error("broken")
    told.done(1)
    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(event["event"], event.get("done")) for event in events] == [
        ("progress", 1500), ("progress", 1502), ("progress", 3000), ("note", None), ("error", None), ("done", None),
    ]  # fmt: skip
    assert events[0] == {
        "event": "progress", "phase": "embedding", "done": 1500, "total": 3000, "failed": 2, "tokens": 18_400,
        "per_second": 412.4, "in_flight": 4, "retries": 1, "seconds_left": 61.2, "why": "slow\\x1b[31m",
    }  # fmt: skip
    assert (events[1]["seconds_left"], events[1]["why"]) == (None, None)
    assert events[-3:] == [
        {"event": "note", "sentence": "half of it"},
        {"event": "error", "reason": "broken"},
        {"event": "done", "exit_code": 1},
    ]


def test_nothing_is_told_where_nothing_is_wanted(clock: Clock) -> None:
    told, stream = teller(clock, Form.NONE)
    told.tell(HALF)
    told.note("a sentence")
    told.error("broken")
    told.done(1)
    assert stream.getvalue() == ""


@pytest.mark.parametrize("form", list(Form))
def test_a_reader_that_went_away_harms_nothing(clock: Clock, form: Form) -> None:
    for terminal in (True, False):
        told, stream = teller(clock, form, terminal=terminal)
        stream.close()
        told.tell(HALF)
        told.note("a sentence")
        told.done(0)


def test_no_secret_in_what_is_told(clock: Clock) -> None:
    for form in (Form.JSON, Form.TEXT):
        told, stream = teller(clock, form)
        told.secrets = ("sk-0123456789",)
        told.tell(replace(HALF, why="the key sk-0123456789 is wrong"))
        told.note("sk-0123456789")
        assert "sk-0123456789" not in stream.getvalue()
        assert stream.getvalue().count("[13 characters removed]") == 2


# --- every run ends with a word


def _code(error: BaseException) -> int:
    return 130 if isinstance(error, KeyboardInterrupt) else int(getattr(error, "code", 3))


@pytest.mark.parametrize(
    ("error", "reason", "code"),
    [
        (KeyboardInterrupt(), "interrupted", 130),
        (CommandError("the endpoint does not answer"), "the endpoint does not answer", 3),
        (UsageError("say yes"), "say yes", 2),
        (ValueError("what a bug quotes stays unsaid"), "ValueError", 3),
    ],
)
def test_every_bad_end_is_told(
    error: BaseException, reason: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(type(error)), telling(Form.JSON, code=_code):
        raise error
    events = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert events == [{"event": "error", "reason": reason}, {"event": "done", "exit_code": code}]


def test_a_good_end_is_told_by_its_user(capsys: pytest.CaptureFixture[str]) -> None:
    with telling(Form.JSON, code=_code) as told:
        told.done(0)
    assert capsys.readouterr().err == '{"event": "done", "exit_code": 0}\n'


def test_without_stderr_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with telling(Form.TEXT, code=_code) as told:
        told.tell(HALF)
        told.note("a sentence")


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _closed() -> io.StringIO:
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize(
    ("stream", "term", "drawn"),
    [
        (io.StringIO, "xterm", False),
        (_Terminal, "xterm", True),
        (_Terminal, "dumb", False),
        (_closed, "xterm", False),
    ],
)
def test_lines_are_drawn_where_they_can_be(
    stream: Callable[[], io.StringIO], term: str, monkeypatch: pytest.MonkeyPatch, *, drawn: bool
) -> None:
    monkeypatch.setattr(sys, "stderr", stream())
    monkeypatch.setenv("TERM", term)
    with telling(Form.TEXT, code=_code) as told:
        assert told.terminal is drawn
