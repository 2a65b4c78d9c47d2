"""What a user may ask of a rebuild, what of it goes together, and the command line that asks for it again."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from cpersona_cli.commands.chosen import Chosen
from cpersona_cli.commands.chosen import check as check_chosen
from cpersona_cli.commands.errors import UsageError
from cpersona_cli.rebuild.model import Only
from cpersona_cli.record import field, record
from cpersona_cli.report.progress import Form
from cpersona_cli.text import bare_url, nearest, quoted, safe
from cpersona_cli.traps.gather import Selection

NAME = "cpersona-cli reembed"


@record(kw_only=True)
class Request:
    """What the user asked of one run, as it was typed."""

    selection: Selection
    action: str = ""
    chosen: Chosen = field(default_factory=Chosen)
    notes: tuple[str, ...] = ()
    only: str | None = None
    concurrency: int | None = None
    batch_size: int | None = None
    max_errors: int | None = None
    max_tokens: int | None = None
    cut_long: bool = False
    live: bool = False
    yes: bool = False
    dry_run: bool = False
    compare_only: bool = False
    sample: int | None = None
    progress: str | None = None
    quiet: bool = False

    @property
    def rows(self) -> Only:
        return Only(self.only or Only.ALL)


#: Options that say how a rebuild goes about it; the words that are about an earlier one take none of them.
_ABOUT_REBUILDING = ("only", "batch_size", "max_errors", "max_tokens", "cut_long", "live", "dry_run", "compare_only")
#: The greatest numbers that are taken.
_MOST = {"concurrency": 256, "batch_size": 2048, "max_errors": 10**9, "max_tokens": 10**7, "sample": 2000}


def check(request: Request) -> None:
    """Refuse what makes no sense. Raises ``UsageError``."""
    check_chosen(request.chosen, request.selection, beside=True)
    if request.only is not None and request.only not in set(Only):
        near = nearest(request.only, list(Only))
        hint = f"did you mean {near}?" if near else f"it takes {', '.join(Only)}"
        raise UsageError(f"--only does not know {safe(repr(request.only), 40)}; {hint}")
    if request.progress is not None and request.progress not in set(Form):
        raise UsageError(f"--progress takes text, json or none, not {safe(repr(request.progress), 40)}")
    for name, most in _MOST.items():
        number = getattr(request, name)
        least = 0 if name in {"max_errors", "sample"} else 1
        if number is not None and not least <= number <= most:
            raise UsageError(f"{_option(name)} takes a number from {least} to {most}, not {number}")
    for one, other in (("dry_run", "compare_only"), ("dry_run", "live"), ("compare_only", "live")):
        if getattr(request, one) and getattr(request, other):
            raise UsageError(f"{_option(one)} and {_option(other)} do not go together")
    if request.compare_only and request.sample == 0:
        raise UsageError("--compare-only judges search by a sample, so it does not go with --sample 0")
    if request.action:
        given = [name for name in _ABOUT_REBUILDING if getattr(request, name) not in {None, False}]
        if given:
            raise UsageError(f"{_option(given[0])} does not go with `reembed {request.action}`")
        if request.action != "finish" and request.chosen.url is not None:
            raise UsageError(f"--url does not go with `reembed {request.action}`, which calls no endpoint")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


class Pointing(Protocol):
    """A request that says which database and endpoint are meant."""

    @property
    def selection(self) -> Selection: ...

    @property
    def chosen(self) -> Chosen: ...


def pointing(request: Pointing) -> list[str]:
    """The options that say which database and endpoint are meant, as they may be shown."""
    selection = request.selection
    words = [f"--client {quoted(name)}" for name in selection.clients]
    words += [f"--registration {quoted(spec)}" for spec in selection.registrations]
    words += ["--env"] if selection.env else []
    words += [f"--db {quoted(str(selection.db))}"] if selection.db is not None else []
    return words + naming(request.chosen)


def naming(chosen: Chosen) -> list[str]:
    """The options that name an endpoint, without what may be secret in its address."""
    words = [f"--url {quoted(bare_url(chosen.url))}"] if chosen.url is not None else []
    words += [f"--mode {quoted(chosen.mode)}"] if chosen.mode is not None else []
    words += [f"--model {quoted(chosen.model)}"] if chosen.model is not None else []
    words += [f"--api-key-file {quoted(str(chosen.key_file))}"] if chosen.key_file is not None else []
    return words


def again(request: Request, *, database: Path | None = None) -> str:
    """The command that asks for the same rebuild, without what only looks; ``database`` where it was chosen since."""
    words = [NAME, *pointing(request)]
    if database is not None and request.selection.db is None:
        words.append(f"--db {quoted(str(database))}")
    words += [f"--only {request.only}"] if request.only not in {None, Only.ALL} else []
    for name in ("concurrency", "batch_size", "max_errors", "max_tokens", "sample"):
        number = getattr(request, name)
        words += [f"{_option(name)} {number}"] if number is not None else []
    words += [_option(name) for name in ("cut_long", "live", "yes") if getattr(request, name)]
    return " ".join(words)
