"""TOML files that people write for this tool: read strictly, every complaint with file and line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from cpersona_cli.install.files.bounded import read_bounded
from cpersona_cli.install.model import Place
from cpersona_cli.record import record
from cpersona_cli.text import nearest, safe


class ToolFileError(ValueError):
    """A file of this tool that cannot be used: one sentence with file and line."""


@record(kw_only=True)
class ToolFile:
    """A parsed file, and its text to find lines in."""

    path: Path
    data: Mapping[str, object]
    text: str

    def line(self, pattern: str, number: int = 0, after: int = 0) -> int | None:
        """The one-based line of the ``number``-th match of ``pattern`` at a line's start, below line ``after``."""
        lines = [line for line, text in enumerate(self.text.split("\n"), 1) if line > after and re.match(pattern, text)]
        return lines[number] if number < len(lines) else None

    def key_line(self, key: str, after: int = 0) -> int | None:
        """The one-based line on which ``key`` is first set or opens a table, below line ``after``."""
        return self.line(rf"""\s*(?:\[\[?\s*)?["']?{re.escape(key)}["']?\s*[=.\]]""", after=after)

    def error(self, sentence: str, line: int | None = None) -> ToolFileError:
        """The exception that says ``sentence`` of this file."""
        return ToolFileError(f"{safe(str(Place(file=self.path, line=line)))}: {sentence}")

    def expect_keys(self, table: Mapping[str, object], known: Iterable[str], after: int = 0) -> None:
        """Raise ``ToolFileError`` for the first key that nobody reads, with the one that was probably meant."""
        names = list(known)
        for key in table:
            if key not in names:
                near = nearest(key, names)
                hint = f"did you mean {near}?" if near else f"known are {', '.join(names)}"
                raise self.error(f"unknown key {safe(key, 60)!r}; {hint}", self.key_line(key, after))


def load(path: Path) -> ToolFile:
    """Read and parse ``path``. Raises ``ToolFileError`` when that cannot be done."""
    import tomllib  # noqa: PLC0415 - only runs with such a file pay for it

    content = read_bounded(path)
    if content.state == "absent":
        raise ToolFileError(f"{safe(str(path))}: there is no such file")
    if content.problem:
        raise ToolFileError(f"{safe(str(path))}: {content.problem}")
    try:
        data = tomllib.loads(content.text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        found = re.search(r"\(at line (\d+), column \d+\)", str(error))
        reason = "nested too deep" if isinstance(error, RecursionError) else re.sub(r" \(at [^)]*\)$", "", str(error))
        place = Place(file=path, line=int(found[1]) if found else content.text.rstrip("\n").count("\n") + 1)
        raise ToolFileError(f"{safe(str(place))}: this is not valid TOML: {safe(reason)}") from error
    return ToolFile(path=path, data=data, text=content.text)
