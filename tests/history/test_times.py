from __future__ import annotations

import datetime as dt
import sqlite3
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpersona_cli.history import times
from cpersona_cli.history.model import HistoryError
from cpersona_cli.history.times import Clock, created_at, stored, timestamp, zone_named

NOW = dt.datetime(2026, 6, 1, 12, tzinfo=dt.UTC)
CLOCK = Clock(NOW)
INSTANTS = st.datetimes(dt.datetime(1970, 1, 2), dt.datetime(2026, 6, 1), timezones=st.just(dt.UTC))  # noqa: DTZ001


@pytest.mark.parametrize(
    ("value", "instant"),
    [
        ("2023-10-27T10:30:00Z", "2023-10-27T10:30:00+00:00"),
        ("2023-10-27T10:30:00.123456789Z", "2023-10-27T10:30:00.123456+00:00"),
        ("2024-01-01T00:00:00+05:30", "2023-12-31T18:30:00+00:00"),
        ("2024-01-01T00:00:00+0530", "2023-12-31T18:30:00+00:00"),
        ("2024-01-01T00:00:00-08", "2024-01-01T08:00:00+00:00"),
        ("20240101T000000Z", "2024-01-01T00:00:00+00:00"),
        ("2024-W01-1", "2024-01-01T00:00:00+00:00"),
        ("2024W011T10:30Z", "2024-01-01T10:30:00+00:00"),
        ("2026-01-01T00:00:00,5Z", "2026-01-01T00:00:00.500000+00:00"),
        ("2024-01-01T00:00:00z", "2024-01-01T00:00:00+00:00"),
        ("2024-01-01t00:00:00Z", "2024-01-01T00:00:00+00:00"),
        ("2024-01-01 00:00:00 UTC", "2024-01-01T00:00:00+00:00"),
        ("2024-01-01 00:00:00+00", "2024-01-01T00:00:00+00:00"),
        ("Fri, 27 Oct 2023 10:30:00 GMT", "2023-10-27T10:30:00+00:00"),
        ("27 Oct 2023 10:30 +0200", "2023-10-27T08:30:00+00:00"),
        ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59+00:00"),
        ("2016-12-31T23:59:60.75Z", "2016-12-31T23:59:59+00:00"),
        ("  2024-01-01T00:00:00Z\n", "2024-01-01T00:00:00+00:00"),
        (1698402600, "2023-10-27T10:30:00+00:00"),
        ("1698402600", "2023-10-27T10:30:00+00:00"),
        (1698402600.123, "2023-10-27T10:30:00.123000+00:00"),
        (Decimal("1698402600.123456789"), "2023-10-27T10:30:00.123456+00:00"),
        ("1698402600.123", "2023-10-27T10:30:00.123000+00:00"),
        (1698402600000, "2023-10-27T10:30:00+00:00"),
        ("1698402600123", "2023-10-27T10:30:00.123000+00:00"),
        (1698402600123456, "2023-10-27T10:30:00.123456+00:00"),
        (100_000_000, "1973-03-03T09:46:40+00:00"),
        (100_000_000_000, "1973-03-03T09:46:40+00:00"),
        ("2026-06-01T12:05:00Z", "2026-06-01T12:05:00+00:00"),
    ],
)
def test_what_has_one_meaning_is_read_as_that_instant(value: object, instant: str) -> None:
    time = CLOCK.read(value)
    assert time.at is not None, time.reason
    assert timestamp(time.at) == instant
    assert time.reason == ""


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, times.NONE),
        ("", times.NONE),
        ("  ", times.NONE),
        (0, times.TOO_SMALL),
        ("0", times.TOO_SMALL),
        (-1, times.TOO_SMALL),
        ("-1", times.TOO_SMALL),
        ("2460000.5", times.TOO_SMALL),
        (2460000.5, times.TOO_SMALL),
        (99_999_999, times.TOO_SMALL),
        (10**17, times.TOO_LARGE),
        (10**40, times.TOO_LARGE),
        (99_999_999_999, times.FUTURE),
        ("2024-01-01T24:00:00Z", times.NO_SUCH),
        ("2024-02-30T00:00:00Z", times.NO_SUCH),
        ("20240230", times.NO_SUCH),
        ("2024-01-01T00:00:61Z", times.NO_SUCH),
        ("2024-01-01T00:00:00+24:00", times.NO_SUCH),
        ("2024-W60-1", times.NO_SUCH),
        ("31 Feb 2024 10:00:00 GMT", times.NO_SUCH),
        ("0001-01-01T00:00:00+01:00", times.NO_SUCH),
        ("0001-01-01T00:00:00Z", times.TOO_EARLY),
        ("1970-01-01T00:00:00Z", times.TOO_EARLY),
        ("now", times.NO_FORM),
        ("yesterday", times.NO_FORM),
        ("2024-01", times.NO_FORM),
        ("٢٠٢٤-٠١-٠١T00:00:00Z", times.NO_FORM),
        ("2024-01-01T00:00:00 EST", times.NO_FORM),
        ("10/27/2023, 10:30 AM", times.AMBIGUOUS),
        ("01.02.2023", times.AMBIGUOUS),
        ("2099-01-01T00:00:00Z", times.FUTURE),
        ("2026-06-01T12:05:00.000001Z", times.FUTURE),
        (True, times.NOT_TIME),
        (float("nan"), times.NOT_TIME),
        (float("inf"), times.NOT_TIME),
        ({"$date": "2024-01-01"}, times.NOT_TIME),
        (["2024-01-01"], times.NOT_TIME),
        pytest.param(10**5000, times.TOO_LARGE, id="a huge number"),
    ],
)
def test_what_has_none_is_unknown_with_the_reason(value: object, reason: str) -> None:
    assert CLOCK.read(value) == times.Time(None, reason)


@pytest.mark.parametrize(
    ("zone", "instant"),
    [
        ("UTC", "2024-03-10T02:30:00+00:00"),
        ("+09:00", "2024-03-09T17:30:00+00:00"),
        ("-0330", "2024-03-10T06:00:00+00:00"),
        ("America/New_York", "2024-03-10T07:30:00+00:00"),  # an hour that the clocks left out
    ],
)
def test_a_time_without_a_zone_is_in_the_assumed_one_and_says_so(zone: str, instant: str) -> None:
    time = Clock(NOW, zone_named(zone)).read("2024-03-10T02:30:00")
    assert time.at is not None
    assert (timestamp(time.at), time.assumed) == (instant, True)


def test_without_a_zone_to_assume_it_is_utc_and_one_that_is_named_is_never_overruled() -> None:
    assert CLOCK.read("2024-03-10T02:30:00") == times.Time(dt.datetime(2024, 3, 10, 2, 30, tzinfo=dt.UTC), assumed=True)
    tokyo = Clock(NOW, zone_named("Asia/Tokyo"))
    assert tokyo.read("2024-03-10T02:30:00Z") == times.Time(dt.datetime(2024, 3, 10, 2, 30, tzinfo=dt.UTC))
    assert tokyo.read(1710037800) == times.Time(dt.datetime(2024, 3, 10, 2, 30, tzinfo=dt.UTC))
    assert stored(tokyo).read("2024-03-10 02:30:00").at == dt.datetime(2024, 3, 10, 2, 30, tzinfo=dt.UTC)


@pytest.mark.parametrize("name", ["Europe/Nowhere", "+25:00", "../etc/passwd", ""])
def test_a_zone_that_is_none_is_refused_in_one_sentence(name: str) -> None:
    with pytest.raises(HistoryError, match=r"Europe/Berlin|\+02:00"):
        zone_named(name)


@given(INSTANTS)
def test_what_is_written_reads_as_the_same_instant_in_python_in_sqlite_and_here(at: dt.datetime) -> None:
    iso, plain = timestamp(at), created_at(at)
    assert dt.datetime.fromisoformat(iso) == at
    assert CLOCK.read(iso) == times.Time(at)
    assert len(plain) == 19
    with sqlite3.connect(":memory:") as connection:
        row = connection.execute("SELECT datetime(?), datetime(?), ?", (iso, plain, plain)).fetchone()
    connection.close()
    assert row == (plain, plain, plain)


@given(INSTANTS, st.sampled_from([-5, 0, 5.5, 9, 14]))
def test_any_offset_names_the_same_instant(at: dt.datetime, hours: float) -> None:
    there = at.astimezone(dt.timezone(dt.timedelta(hours=hours)))
    for text in (there.isoformat(), there.strftime("%Y%m%dT%H%M%S.%f%z"), there.isoformat().replace(".", ",")):
        assert CLOCK.read(text).at == at


@given(st.one_of(st.text(), st.floats(), st.integers(), st.none(), st.booleans(), st.binary()))
def test_nothing_makes_it_raise(value: object) -> None:
    time = CLOCK.read(value)
    assert time.at is None or time.at <= NOW + times.SKEW


# Whether `datetime.fromisoformat` as the server calls it, and SQLite's `datetime()`, read these as the instant meant.
BOTH, PYTHON, SQLITE, NEITHER = (True, True), (True, False), (False, True), (False, False)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("2023-10-27T10:30:00.123456789Z", BOTH),
        ("2024-01-01T00:00:00+05:30", BOTH),
        ("2024-01-01T00:00:00+0530", PYTHON),
        ("20240101T000000Z", PYTHON),
        ("2024-W01-1", PYTHON),
        ("2026-01-01T00:00:00,5Z", PYTHON),
        ("2024-01-01T00:00:00z", SQLITE),
        ("1698402600", NEITHER),
        ("2024-01-01 00:00:00 UTC", NEITHER),
        ("Fri, 27 Oct 2023 10:30:00 GMT", NEITHER),
        ("2016-12-31T23:59:60Z", NEITHER),
    ],
)
def test_what_python_and_sqlite_make_of_a_text_is_why_it_is_written_anew(text: str, read: tuple[bool, bool]) -> None:
    meant = CLOCK.read(text).at
    assert meant is not None
    try:
        python = dt.datetime.fromisoformat(text.replace("Z", "+00:00"))  # noqa: FURB162 - as the server does
    except ValueError:
        python = None
    if python is not None and python.tzinfo is None:
        python = python.replace(tzinfo=dt.UTC)
    with sqlite3.connect(":memory:") as connection:
        (sqlite,) = connection.execute("SELECT datetime(?)", (text,)).fetchone()
    connection.close()
    assert (python == meant, sqlite == created_at(meant)) == read


def test_sqlite_makes_times_of_what_is_none() -> None:
    with sqlite3.connect(":memory:") as connection:
        for text in ("2024-02-30T00:00:00Z", "2460000.5", "now"):
            assert connection.execute("SELECT datetime(?)", (text,)).fetchone() != (None,)
            assert CLOCK.read(text).at is None
    connection.close()
