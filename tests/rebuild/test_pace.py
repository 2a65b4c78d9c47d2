"""Rates, pauses and the time left."""

from __future__ import annotations

import pytest

from cpersona_cli.rebuild.board import Board
from cpersona_cli.rebuild.model import Progress
from cpersona_cli.rebuild.pace import Meter, Patience


def test_a_rate_follows_the_last_while() -> None:
    meter = Meter(0.0)
    assert meter.rate == 0
    for second in range(1, 11):
        meter.add(100, second)
    assert meter.rate == pytest.approx(100)
    for second in range(11, 41):
        meter.add(10, second)
    assert 10 < meter.rate < 25
    meter.add(5, 40)  # the clock stood still
    assert meter.rate > 0


def _patience(budget: float = 600.0) -> Patience:
    return Patience(budget, 0.0, luck=lambda: 1.0)


def test_pauses_double_up_to_the_longest() -> None:
    patience = _patience()
    now, pauses = 0.0, []
    for _ in range(8):
        assert patience.failed(now, now, None)
        pauses.append(patience.until - now)
        now = patience.until
    assert pauses == [0.5, 1, 2, 4, 8, 16, 20, 20]


def test_chance_shortens_a_pause_by_half_at_most() -> None:
    patience = Patience(600.0, 0.0, luck=lambda: 0.0)
    patience.failed(0.0, 0.0, None)
    assert patience.until == 0.25


def test_requests_of_one_incident_count_once() -> None:
    patience = _patience()
    assert patience.failed(10.0, 9.0, None)
    assert not patience.failed(10.1, 9.5, None)
    assert patience.until == 10.5
    assert not patience.failed(10.2, 9.9, 7.0)  # but what it is told is heard
    assert patience.until == 17.2
    patience.succeeded(10.3, 9.9)  # nor does one that came through before end it
    assert patience.until == 17.2
    assert patience.failed(17.2, 17.2, None)
    assert patience.until == 18.2


def test_a_success_begins_anew() -> None:
    patience = _patience()
    for now in (1.0, 2.0, 4.0):
        patience.failed(now, now, None)
    patience.succeeded(9.0, 8.5)
    assert patience.failed(10.0, 9.5, None)
    assert patience.until == 10.5


def test_nobody_is_waited_for_beyond_the_budget() -> None:
    patience = _patience(60.0)
    patience.failed(10.0, 10.0, 3600.0)
    assert patience.until == 60.0
    assert not patience.spent(59.0)
    assert patience.spent(60.0)
    patience.progressed(59.0)
    assert not patience.spent(60.0)


def _board(looks: list[Progress], *, total: int = 0, expected: int = 0) -> Board:
    return Board(tell=looks.append, rows=Meter(0.0), tokens=Meter(0.0), total=total, expected=expected)


def show(board: Board, now: float, settled: int, *, force: bool = False) -> None:
    board.show(now, settled=settled, failed=1, in_flight=2, retries=3, force=force)


def test_it_is_told_five_times_a_second_at_most() -> None:
    looks: list[Progress] = []
    board = _board(looks)
    for hundredth in range(100):
        show(board, hundredth / 100, hundredth)
    assert len(looks) == 5
    show(board, 0.99, 99, force=True)
    assert looks[-1] == Progress(phase="embed", done=99, total=99, failed=1, in_flight=2, retries=3)


def test_the_time_left_is_told_when_enough_was_seen() -> None:
    board = _board([], total=1000)
    assert board.left(0) is None
    board.batch(5, 50, 1.0)
    assert board.left(5) is None
    board.batch(5, 50, 2.0)
    assert board.left(10) == pytest.approx(990 / 5)  # one percent
    assert board.left(1000) == 0
    late = _board([], total=100_000)
    for second in range(1, 3):
        late.batch(10, 100, second)
    assert late.left(20) is None
    late.batch(10, 100, 3)
    assert late.left(30) == pytest.approx(99_970 / 10)


def test_tokens_tell_it_better_than_rows() -> None:
    board = _board([], total=100, expected=10_000)
    for second in range(1, 5):
        board.batch(20, 1000, second)
    assert board.left(80) == pytest.approx(6.0)
    board.batch(10, 6000, 5)
    assert board.left(90) == pytest.approx(10 / board.rows.rate)  # more tokens than were expected


def test_without_a_plan_or_a_rate_nothing_is_left_to_tell() -> None:
    assert _board([]).left(50) is None
    board = _board([], total=100)
    assert board.left(50) is None


def test_nobody_need_listen() -> None:
    Board(tell=None, rows=Meter(0.0), tokens=Meter(0.0)).show(0, settled=1, failed=0, in_flight=0, retries=0)
