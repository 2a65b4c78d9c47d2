"""How long work is told on stderr while it goes on: one line at a terminal, lines elsewhere, events for machines."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TextIO

from cpersona_cli.rebuild.model import Progress
from cpersona_cli.record import replace
from cpersona_cli.report.exits import Exit
from cpersona_cli.report.layout import columns
from cpersona_cli.report.model import Report
from cpersona_cli.report.output import say
from cpersona_cli.text import plural, redact, safe

#: Seconds between two lines where nobody sits at a terminal, and the share of the work that is worth one earlier.
EVERY, SHARE = 10.0, 0.05
#: Seconds between two lines at the least, however fast the work is.
_LEAST = 2.0
#: Seconds between two events for machines.
_EVENT = 0.5


class Form(StrEnum):
    """How progress is told."""

    TEXT = "text"
    JSON = "json"
    NONE = "none"


@dataclass(slots=True)
class Teller:
    """Hears of progress and tells it. Nothing that goes wrong with stderr ever reaches the work.

    ``secrets`` are removed from every sentence. ``now`` is a clock in seconds.
    """

    form: Form
    stream: TextIO | None
    terminal: bool
    now: Callable[[], float] = time.monotonic
    secrets: Sequence[str] = ()
    _last: Progress | None = None
    _when: float = field(default=float("-inf"))
    _drawn: bool = False
    _pending: str = ""

    def tell(self, progress: Progress) -> None:
        """Hear how far the work is."""
        if self.form is Form.NONE:
            return
        self._say_pending()
        if self.form is Form.JSON:
            self._event_of(progress)
        elif self.terminal:
            self._draw(self._clean(line_of(progress)))
        elif self._due(progress):
            self._line(self._clean(line_of(progress)))

    def note(self, sentence: str) -> None:
        """Say something that happened, on a line of its own."""
        if self.form is Form.NONE:
            return
        if self.form is Form.JSON:
            self.event("note", sentence=sentence)
        else:
            self._line(self._clean(sentence))

    def soon(self, sentence: str) -> None:
        """Say it with whatever is said next: for signal handlers, which must not write where others are writing."""
        self._pending = sentence

    def event(self, event: str, **fields: object) -> None:
        """One event for machines, where they listen."""
        if self.form is Form.JSON:
            said = {name: self._clean(value) if isinstance(value, str) else value for name, value in fields.items()}
            self._write(json.dumps({"event": event, **said}) + "\n")

    def error(self, reason: str) -> None:
        """Why the work ends badly; ``done`` follows."""
        self._say_pending()
        self.event("error", reason=reason)

    def done(self, code: int) -> None:
        """The last word: the exit code of the run."""
        self._say_pending()
        self.clear()
        self.event("done", exit_code=int(code))

    def clear(self) -> None:
        """Take the line at the terminal away, for something else to be written there."""
        if self._drawn:
            self._write("\r\x1b[K")
            self._drawn = False

    def _say_pending(self) -> None:
        sentence, self._pending = self._pending, ""
        if sentence:
            self.note(sentence)

    def _event_of(self, progress: Progress) -> None:
        now, last = self.now(), self._last
        whole = progress.total and progress.done >= progress.total
        if last is None or last.phase != progress.phase or whole or now - self._when >= _EVENT:
            self._last, self._when = progress, now
            self.event("progress", **fields_of(progress))

    def _due(self, progress: Progress) -> bool:
        now, last = self.now(), self._last
        if last is not None and last.phase == progress.phase:
            passed = now - self._when
            step = (progress.done - last.done) / progress.total if progress.total else 0.0
            news = bool(progress.why) and progress.why != last.why
            if passed < _LEAST or (passed < EVERY and step < SHARE and not news):
                return False
        self._last, self._when = progress, now
        return True

    def _draw(self, text: str) -> None:
        width = shutil.get_terminal_size((80, 24)).columns - 1
        while text and columns(text) > width:
            text = text[:-1]
        self._write(f"\r{text}\x1b[K")
        self._drawn = True

    def _line(self, text: str) -> None:
        self.clear()
        if self.stream is sys.stderr:
            say(text)
        else:
            self._write(f"{text}\n")

    def _clean(self, text: str) -> str:
        return safe(redact(text, self.secrets))

    def _write(self, text: str) -> None:
        if self.stream is None:
            return
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError):  # nobody reads it any more
            self.stream = None


@contextmanager
def telling(form: Form, *, secrets: Sequence[str] = (), code: Callable[[BaseException], int]) -> Iterator[Teller]:
    """A teller on stderr that says ``done`` however the block ends, and before it ``error`` when it ends badly.

    ``code`` is the exit code that an exception will become. After a block that ends well its user says ``done``.
    """
    teller = Teller(form=form, stream=sys.stderr, terminal=_terminal(sys.stderr), secrets=secrets)
    try:
        yield teller
    except BaseException as error:
        number = code(error)
        teller.error(_reason(error, number))
        teller.done(number)
        raise


def reported(
    make: Callable[[Teller], Report], *, chosen: str | None, quiet: bool, code: Callable[[BaseException], int]
) -> Report:
    """The report of long work, timed, with its progress told as ``chosen`` (``--progress``; text unless ``quiet``)."""
    start = time.monotonic()
    form = Form.NONE if quiet and chosen is None else Form(chosen or Form.TEXT)
    with telling(form, code=code) as teller:
        report = replace(make(teller), elapsed=time.monotonic() - start)
        teller.done(report.exit_code)
    return report


def _reason(error: BaseException, code: int) -> str:
    named = {Exit.INTERRUPTED: "interrupted", Exit.TERMINATED: "terminated"}
    if code in named:
        return named[Exit(code)]
    # what a bug quotes may not leave; a sentence for the user is one
    return str(error) if code in {Exit.USAGE, Exit.NO_VERDICT} and _meant(error) else type(error).__name__


def _meant(error: BaseException) -> bool:
    return hasattr(error, "code")


def _terminal(stream: TextIO | None) -> bool:
    """Whether a line can be drawn over and over."""
    try:
        return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"
    except ValueError:  # closed
        return False


def line_of(progress: Progress) -> str:
    """One line for people: ``embedding 37/100 37 %, 412/s, ..., 0:12 left``."""
    parts = [f"{progress.phase} {progress.done:,}/{progress.total:,}" if progress.total else progress.phase]
    if progress.total:
        parts[0] += f"  {_percent(progress)} %"
    if progress.left is not None:
        parts.append(f"{duration(progress.left)} left")
    if progress.rate:
        parts.append(f"{progress.rate:,.0f}/s" if progress.rate >= 10 else f"{progress.rate:.1f}/s")
    if progress.tokens:
        parts.append(f"{short(progress.tokens)} tokens")
    if progress.in_flight:
        parts.append(f"{progress.in_flight} in flight")
    if progress.retries:
        parts.append(plural(progress.retries, "retry", "retries"))
    if progress.failed:
        parts.append(f"{progress.failed:,} failed")
    text = ", ".join(parts)
    return f"{text}  ({progress.why})" if progress.why else text


def fields_of(progress: Progress) -> dict[str, object]:
    """The same for machines."""
    return {
        "phase": progress.phase,
        "done": progress.done,
        "total": progress.total,
        "failed": progress.failed,
        "tokens": progress.tokens,
        "per_second": round(progress.rate, 2),
        "in_flight": progress.in_flight,
        "retries": progress.retries,
        "seconds_left": None if progress.left is None else round(progress.left, 1),
        "why": progress.why or None,
    }


def _percent(progress: Progress) -> int:
    """Rounded down: 100 means that all is done."""
    return min(100, 100 * progress.done // progress.total)


def duration(seconds: float) -> str:
    """``0:07``, ``12:30``, ``3:02:05``."""
    whole = max(0, round(seconds))
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def spoken(seconds: float) -> str:
    """``less than a second``, ``12 s``, ``3 min 20 s``, ``2 h 5 min``."""
    whole = round(seconds)
    if whole < 1:
        return "less than a second"
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole // 60 % 60} min"


def short(number: int) -> str:
    """``950``, ``18k``, ``2.4M``."""
    if number < 1000:
        return str(number)
    return f"{number / 1000:.0f}k" if number < 999_500 else f"{number / 1_000_000:.1f}M"
