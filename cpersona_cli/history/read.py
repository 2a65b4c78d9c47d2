"""Old conversations from whatever the user gave: sources, the format of each, and its reader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path

from cpersona_cli.history.detect import HEAD, NAMES, detect
from cpersona_cli.history.model import Aside, Conversation, Format, HistoryError, Looked, Reader, Stored, Unread
from cpersona_cli.history.sources import READ_ALREADY, UNNAMED, Found, find
from cpersona_cli.history.times import Clock
from cpersona_cli.history.unpack import StreamError

#: The module of each reader; it has ``reader()``, which makes one for a whole run (it may remember across files).
MODULES: Mapping[Format, str] = {
    Format.CHATGPT: "chatgpt",
    Format.CLAUDE: "claude",
    Format.CLAUDE_CODE: "claude_code",
    Format.CODEX: "codex",
    Format.CPERSONA: "cpersona_export",
    Format.OPEN_WEBUI: "open_webui",
    Format.PLAIN: "plain",
}

#: What readers find; what is passed over or done comes as ``Looked`` beside it.
Item = Conversation | Stored | Aside | Unread

READS = f"exports that can be read: {', '.join(NAMES.values())}"

# How many files are named where a folder or an archive holds none that can be read.
_SHOWN = 5


def read(paths: Sequence[Path], clock: Clock, wanted: Format | None = None) -> Iterator[Item | Looked]:
    """All that stands in the files, folders and archives at ``paths``, in their order; after each file its ``Looked``.

    ``wanted`` is the format the user says it is: what plainly is another one is refused, a given file of which it
    cannot be told is read as that. A file that cannot be opened comes as ``Unread``, too. Raises ``HistoryError`` at
    once for a path that cannot be read or a given file of no known kind, later for a folder or archive in which nothing
    could be read.
    """
    for path in paths:
        found = next(find(path, set()), None)
        if isinstance(found, Found) and found.source.path == path and not found.source.entry:
            _format(found, wanted, given=True)
    return _all(paths, clock, wanted)


def _all(paths: Sequence[Path], clock: Clock, wanted: Format | None) -> Iterator[Item | Looked]:
    seen: set[tuple[int, int]] = set()
    readers: dict[Format, Reader] = {}
    for path in paths:
        taken, passed = 0, []
        for found in find(path, seen):
            looked = _looked(found, wanted, path)
            if isinstance(found, Found) and looked.format is not None:
                yield from _one(found, _reader(looked.format, readers), clock)
            if looked.format is not None or looked.reason == READ_ALREADY:
                taken += 1
            elif not taken:
                passed.append(looked)
            if looked.lost:
                yield Unread(where=looked.where, reason=looked.reason)
            yield looked
        if not taken:
            raise HistoryError(_nothing(path, passed))


def _looked(found: Found | Looked, wanted: Format | None, path: Path) -> Looked:
    if isinstance(found, Looked):
        return found
    source = found.source
    try:
        given = source.path == path and not source.entry
        return Looked(where=source.where, size=source.size, format=_format(found, wanted, given=given))
    except UnfitError as error:
        return Looked(where=source.where, size=source.size, reason=error.reason)
    except StreamError as error:
        return Looked(where=source.where, size=source.size, reason=error.what, lost=True)
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
        return Looked(where=source.where, size=source.size, reason=reason, lost=True)


class UnfitError(HistoryError):
    """A file is not of the kind it should be; ``reason`` says what it is instead, without its name."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


def _format(found: Found, wanted: Format | None, *, given: bool) -> Format:
    where = found.source.where
    with found.open() as stream:
        seen = detect(stream.read(HEAD))
    if seen.format is not None and wanted not in (None, seen.format):
        found_is, said = NAMES[seen.format], NAMES[wanted or seen.format]
        what = f"comes from {found_is} ({seen.words()}), not from {said}"
        raise UnfitError(f"{where} {what}: name {seen.format} as its format, or none.", what)
    # beside the conversations of an export stand other files
    chosen = seen.format or (wanted if seen.objects and given else None)
    if chosen is None:
        raise UnfitError(f"{where} cannot be read here, for it is {seen.words()}; {READS}.", seen.words())
    return chosen


def _reader(format_: Format, readers: dict[Format, Reader]) -> Reader:
    if format_ not in readers:
        readers[format_] = import_module(f"cpersona_cli.history.{MODULES[format_]}").reader()
    return readers[format_]


def _one(found: Found, reader: Reader, clock: Clock) -> Iterator[Item]:
    where = found.source.where
    try:
        with found.open() as stream:
            yield from reader(stream, where, clock)
    except StreamError as error:
        yield Unread(where=where, reason=error.what)
    except OSError as error:
        yield Unread(where=where, reason=f"cannot be read: {error.strerror or error}")


def _nothing(path: Path, passed: Sequence[Looked]) -> str:
    """The sentence about a folder or an archive in which nothing could be read; it names the likeliest files."""
    if not passed:
        return f"{path} holds no files; {READS}."
    likely = [looked for looked in passed if looked.reason != UNNAMED] or passed
    shown = "; ".join(f"{looked.where}: {looked.reason}" for looked in likely[:_SHOWN])
    more = f"; and {len(likely) - _SHOWN:,} more" if len(likely) > _SHOWN else ""
    return f"{path} holds no conversations that can be read here ({shown}{more}); {READS}."
