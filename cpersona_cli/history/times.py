"""Times of sources, read as instants in UTC or refused with the reason; and times as the server writes them.

Nothing is guessed: what two readers could take for different times is no time. Python and SQLite disagree on a dozen
spellings (one of them reads them, or reads another time), so every time is written anew from the instant.
"""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal

from cpersona_cli.history.model import HistoryError
from cpersona_cli.record import record

#: How far ahead of the clock a time may lie: the server's own allowance (2.6.14, utils.py, ``future_timestamp_issue``).
SKEW = dt.timedelta(seconds=300)
#: Earlier than this is a clock that was never set: zero, the first day of Unix, the first year of .NET and Go.
EARLIEST = dt.datetime(1970, 1, 2, tzinfo=dt.UTC)

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
# Seconds, milliseconds or microseconds since 1970, by size: each of the three ranges reads as 1973 to 5138.
_UNITS = ((10**8, 10**11, 10**6), (10**11, 10**14, 10**3), (10**14, 10**17, 1))

_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?")
_DAY = r"(?P<year>[0-9]{4})(?:-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})|-?W(?P<week>[0-9]{2})-?(?P<weekday>[1-7]))"
_PLAIN_DAY = r"(?P<year>[0-9]{4})(?P<month>[0-9]{2})(?P<day>[0-9]{2})"
_CLOCK = (
    r"(?:(?:[Tt]|[ ]+)(?P<hour>[0-9]{2})(?::?(?P<minute>[0-9]{2})(?::?(?P<second>[0-9]{2})(?:[.,](?P<part>[0-9]+))?)?)?"
    r"[ ]?(?P<zone>[Zz]|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2}(?::?[0-9]{2})?)?)?)?"
)
_ISO = (re.compile(_DAY + _CLOCK), re.compile(_PLAIN_DAY + _CLOCK))
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
# As mail and HTTP write it (RFC 5322, RFC 9110).
_MAIL = re.compile(
    rf"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), )?(?P<day>[0-9]{{1,2}}) (?P<name>{'|'.join(_MONTHS)}) (?P<year>[0-9]{{4}}) "
    r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2}))? (?P<zone>Z|UT|UTC|GMT|[+-][0-9]{4})"
)
# Day and month in an order that depends on where it was written.
_LOCAL = re.compile(r"[0-9]{1,4}[/.][0-9]{1,2}[/.][0-9]{1,4}\b.*", re.DOTALL)
_OFFSET = re.compile(r"(?P<sign>[+-])(?P<hours>[0-9]{2}):?(?P<minutes>[0-9]{2})?:?(?P<seconds>[0-9]{2})?")

# Reasons read well after a number of messages: "3 without a time". They never quote the source.
NONE = ""
NO_SUCH = "no such day or hour"
NO_FORM = "not in a form that has one meaning"
AMBIGUOUS = "day and month in an order that cannot be told"
TOO_SMALL = "a number too small for a time"
TOO_LARGE = "a number too large for a time"
NOT_TIME = "neither a number nor a text"
TOO_EARLY = "before 1970: a clock that was not set"
FUTURE = "in the future"

#: Under this readers count, in ``altered``, times that named no zone.
ASSUMED = "times without a zone"


@record
class Time:
    """``at`` in UTC; without one ``reason`` says why, and is empty where nothing was given.

    ``assumed``: the source named no zone, and the one of the ``Clock`` was taken.
    """

    at: dt.datetime | None = None
    reason: str = NONE
    assumed: bool = False


@record
class Clock:
    """How times are read in one run. ``zone`` is taken where a source names none, UTC where that is None, too.

    ``now`` is aware; what lies more than ``SKEW`` after it is refused.
    """

    now: dt.datetime
    zone: dt.tzinfo | None = None

    def read(self, value: object) -> Time:
        """The instant ``value`` names: text in ISO 8601 or as in mail, a number since 1970, or nothing.

        Numbers, also written as text, are seconds, milliseconds or microseconds by their size. Fractions are cut to
        microseconds, a leap second counts as the second before it, a day alone as its first moment. Never raises.
        """
        if value is None or value == "":
            return Time()
        if isinstance(value, bool) or not isinstance(value, (str, int, float, Decimal)):
            return Time(reason=NOT_TIME)
        try:
            time = _text(value.strip(), self.zone or dt.UTC) if isinstance(value, str) else _number(value)
        except (ValueError, OverflowError):
            return Time(reason=NO_SUCH)
        if time.at is None:
            return time
        if time.at < EARLIEST:
            return Time(reason=TOO_EARLY)
        return Time(reason=FUTURE) if time.at > self.now + SKEW else time


def stored(clock: Clock) -> Clock:
    """The clock by which times of a CPersona database are read: those without a zone are in UTC by its own rule."""
    return Clock(clock.now, dt.UTC)


def _number(number: float | Decimal) -> Time:
    # A float by its shortest spelling, as it stood in the source.
    value = Decimal(str(number)) if isinstance(number, float) else Decimal(number)
    if not value.is_finite():
        return Time(reason=NOT_TIME)
    for least, end, factor in _UNITS:
        if value < least:
            return Time(reason=TOO_SMALL)
        if value < end:
            return Time(_EPOCH + dt.timedelta(microseconds=int(value * factor)))
    return Time(reason=TOO_LARGE)


def _text(text: str, zone: dt.tzinfo) -> Time:
    if not text:
        return Time()
    iso = next((found for found in (pattern.fullmatch(text) for pattern in _ISO) if found), None)
    if iso is None and _NUMBER.fullmatch(text):
        return _number(Decimal(text))
    found = iso or _MAIL.fullmatch(text)
    if found is None:
        return Time(reason=AMBIGUOUS if _LOCAL.fullmatch(text) else NO_FORM)
    parts = found.groupdict()
    second, part = int(parts["second"] or 0), parts.get("part") or ""
    if second == 60:  # a leap second
        second, part = 59, ""
    clock = dt.time(int(parts["hour"] or 0), int(parts["minute"] or 0), second, int(f"{part}000000"[:6]))
    named = _offset(parts["zone"]) if parts.get("zone") else None
    at = dt.datetime.combine(_day(parts), clock, zone if named is None else named).astimezone(dt.UTC)
    return Time(at, assumed=named is None)


def _day(parts: dict[str, str | None]) -> dt.date:
    year = int(parts["year"] or 0)
    if parts.get("week"):
        return dt.date.fromisocalendar(year, int(parts["week"] or 0), int(parts["weekday"] or 0))
    name = parts.get("name")
    month = _MONTHS.index(name) + 1 if name else int(parts["month"] or 0)
    return dt.date(year, month, int(parts["day"] or 0))


def _offset(zone: str) -> dt.tzinfo:
    found = _OFFSET.fullmatch(zone)
    if found is None:
        return dt.UTC
    hours, minutes, seconds = (int(found[part] or 0) for part in ("hours", "minutes", "seconds"))
    if hours > 23 or minutes > 59 or seconds > 59:
        raise ValueError("no such offset")
    ahead = dt.timedelta(hours=hours, minutes=minutes, seconds=seconds)
    return dt.timezone(-ahead if found["sign"] == "-" else ahead)


def zone_named(name: str) -> dt.tzinfo:
    """The zone a user named: ``Europe/Berlin``, ``UTC`` or ``+02:00``.

    Raises ``HistoryError`` for a name that is none here.
    """
    if _OFFSET.fullmatch(name):
        try:
            return _offset(name)
        except ValueError:
            raise HistoryError(f"{name} is no offset from UTC; write it as +02:00") from None
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - rarely asked for

    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        message = f"no time zone is called {name!r} here; name one as Europe/Berlin, or its offset as +02:00"
        raise HistoryError(message) from None


def timestamp(at: dt.datetime) -> str:
    """An instant as the server keeps it in ``timestamp``, ``start_time``, ``end_time``: ISO 8601, UTC as ``+00:00``."""
    return at.astimezone(dt.UTC).isoformat()


def created_at(at: dt.datetime) -> str:
    """An instant as the server keeps it in ``created_at``: 19 characters in UTC, so that text order is time order."""
    return at.astimezone(dt.UTC).replace(tzinfo=None).isoformat(sep=" ", timespec="seconds")
