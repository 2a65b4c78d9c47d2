"""What a user may ask of an import, what of it goes together, and the command line that asks for it again."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from pathlib import Path

from cpersona_cli.commands.chosen import Chosen
from cpersona_cli.commands.chosen import check as check_chosen
from cpersona_cli.commands.errors import UsageError
from cpersona_cli.commands.rebuild_request import pointing
from cpersona_cli.history.model import Format, HistoryError
from cpersona_cli.history.times import Clock, zone_named
from cpersona_cli.history.wants import Form as As
from cpersona_cli.record import field, record
from cpersona_cli.report.progress import Form
from cpersona_cli.text import nearest, quoted, safe
from cpersona_cli.traps.gather import Selection

NAME = "cpersona-cli backfill"

#: What the first word may ask for in place of a path.
ACTIONS = ("repair", "undo")

#: Later than any bound that makes sense.
_FAR = dt.datetime(9998, 12, 31, tzinfo=dt.UTC)
#: The most characters of an agent, a project or a channel that the server takes.
_LONGEST = 256


@record(kw_only=True)
class Request:
    """What the user asked of one run, as it was typed. ``words`` are paths, or one of ``ACTIONS``."""

    selection: Selection
    words: tuple[str, ...] = ()
    chosen: Chosen = field(default_factory=Chosen)
    notes: tuple[str, ...] = ()
    agent: str | None = None
    project: str | None = None
    channel: str | None = None
    form: str | None = None
    no_penalty: bool = False
    clamp: bool = False
    source: str | None = None
    since: str | None = None
    until: str | None = None
    undated: str | None = None
    assume_tz: str | None = None
    summaries: Path | None = None
    no_embed: bool = False
    strict: bool = False
    yes: bool = False
    dry_run: bool = False
    progress: str | None = None
    quiet: bool = False

    @property
    def action(self) -> str:
        """The first word where it is no path."""
        return self.words[0] if self.words and self.words[0] in ACTIONS else ""

    @property
    def paths(self) -> tuple[Path, ...]:
        return () if self.action else tuple(Path(word) for word in self.words)


@record(kw_only=True)
class Times:
    """The times of a request, read: ``clock`` reads those of the sources."""

    clock: Clock
    since: dt.datetime | None = None
    until: dt.datetime | None = None
    undated: dt.datetime | None = None


#: Options that say what an import is to be like; the words about an earlier one take none of them.
_ABOUT_IMPORTING = (
    "agent", "project", "channel", "form", "no_penalty", "clamp", "source", "since", "until", "undated", "assume_tz",
    "summaries", "no_embed", "strict",
)  # fmt: skip
#: Options whose name is not that of the field.
_OPTIONS = {"form": "--as", "source": "--from"}


def check(request: Request) -> None:
    """Refuse what makes no sense. Raises ``UsageError``."""
    check_chosen(request.chosen, request.selection, beside=True)
    _check_words(request)
    for name, choices in (("form", list(As)), ("source", list(Format)), ("progress", list(Form))):
        _check_choice(_option(name), getattr(request, name), choices)
    for name in ("agent", "project", "channel"):
        _check_name(name, getattr(request, name))
    if request.agent == "@me":
        raise UsageError("--agent @me is the server's word for whoever calls it; name the agent itself")
    if request.clamp and not request.no_penalty:
        raise UsageError("--clamp goes with --no-penalty: without that, every date is kept as it is")
    if request.no_embed and request.chosen.url is not None:
        raise UsageError("--no-embed and --url contradict each other: without vectors no endpoint is called")
    if request.summaries is not None and request.form in {None, As.MEMORIES}:
        raise UsageError("--summaries goes with --as episodes or --as both: only an episode has a summary")


def _check_words(request: Request) -> None:
    if request.action:
        if len(request.words) > 1:
            raise UsageError(f"`backfill {request.action}` takes no path; for a file of that name, ./{request.action}")
        given = [name for name in _ABOUT_IMPORTING if getattr(request, name) not in {None, False}]
        if given:
            raise UsageError(f"{_option(given[0])} does not go with `backfill {request.action}`")
        if request.chosen.url is not None:
            raise UsageError(f"--url does not go with `backfill {request.action}`, which calls no endpoint")
        if request.action == "undo" and request.dry_run:
            raise UsageError("--dry-run does not go with `backfill undo`, which asks before it does anything")
        return
    for word in request.words:
        if word in ACTIONS:
            raise UsageError(f"`{word}` is a command of its own; for a file of that name, ./{word}")
    near = nearest(request.words[0], ACTIONS) if len(request.words) == 1 else None
    if near and not Path(request.words[0]).exists():
        raise UsageError(f"there is no file {safe(request.words[0], 60)}; did you mean `backfill {near}`?")


def _check_choice(option: str, value: str | None, choices: Sequence[str]) -> None:
    if value is not None and value not in choices:
        near = nearest(value, choices)
        hint = f"did you mean {near}?" if near else f"it takes {', '.join(choices)}"
        raise UsageError(f"{option} does not know {safe(repr(value), 40)}; {hint}")


def _check_name(name: str, value: str | None) -> None:
    if value is None:
        return
    if name == "agent" and not value.strip():
        raise UsageError("--agent is empty; is a variable not set?")
    if len(value) > _LONGEST or value != value.strip() or not value.isprintable():
        raise UsageError(
            f"--{name} takes at most {_LONGEST} printable characters without spaces around them,"
            f" not {safe(repr(value), 60)}"
        )


def times(request: Request, now: dt.datetime) -> Times:
    """Read the times of a request. Raises ``UsageError``."""
    try:
        clock = Clock(now, zone_named(request.assume_tz) if request.assume_tz is not None else None)
    except HistoryError as error:
        raise UsageError(f"--assume-tz: {error}") from None
    since, until, undated = (_moment(clock, name, getattr(request, name)) for name in ("since", "until", "undated"))
    if since is not None and until is not None and since >= until:
        raise UsageError(f"--since {request.since} is not before --until {request.until}: nothing can lie between them")
    return Times(clock=clock, since=since, until=until, undated=undated)


def _moment(clock: Clock, name: str, text: str | None) -> dt.datetime | None:
    if text is None:
        return None
    # a bound may lie in the future, a date may not
    read = (clock if name == "undated" else Clock(_FAR, clock.zone)).read(text)
    if read.at is None:
        why = read.reason or "it is empty"
        raise UsageError(
            f"--{name} {safe(repr(text), 60)} is no day or time: {why}; write it as 2025-03-01 or"
            " 2025-03-01T09:30:00+00:00"
        )
    return read.at


def _option(name: str) -> str:
    return _OPTIONS.get(name, f"--{name.replace('_', '-')}")


def again(request: Request, *, database: Path | None = None, agent: str = "") -> str:
    """The command that asks for the same, without what only looks; what was chosen since is named."""
    words = [NAME, *(quoted(word) for word in request.words), *pointing(request)]
    if database is not None and request.selection.db is None:
        words.append(f"--db {quoted(str(database))}")
    return " ".join([*words, *_said(request, agent)])


def _said(request: Request, agent: str) -> Iterator[str]:
    for name in _ABOUT_IMPORTING:
        value = getattr(request, name)
        if name == "agent" and value is None and agent:
            value = agent
        if value is True:
            yield _option(name)
        elif value not in {None, False}:
            yield f"{_option(name)} {quoted(str(value))}"
    if request.yes:
        yield "--yes"
