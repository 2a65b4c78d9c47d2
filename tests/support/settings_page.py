"""The page of all settings, made from the table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cpersona_cli.install.release.version import NEWEST_KNOWN
from cpersona_cli.install.settings.model import Earlier, Invalid, Kind, Reader, Setting
from cpersona_cli.install.settings.table import GROUPS

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"

_INTRODUCTION = f"""\
# Settings

Every environment variable that CPersona {NEWEST_KNOWN} reads, those of the embedding server and the HTTP client that
change its work, and names that look right and are read by nobody. Measured on the released packages 2.4.41 to
{NEWEST_KNOWN}; the tests compare this table with the installed server.

* The server reads its environment once, at its start, and nothing else: no `.env` file, no configuration file.
* A name that is not here is ignored without a word. So is one that is newer than the release.
* Where a second name is given, the first one that is not empty counts.
* *type* — **int**, **float**: as Python reads them (`1_000`, `nan` and `inf` included). **bool**: `true`, `1`, `yes`,
  `on` and `false`, `0`, `no`, `off` in any case; before 2.6.11 `true` alone was on, and everything else off, also an
  empty value. **choice**: case and surrounding spaces do not count. **exact choice**: they do. **only true**,
  **only off**: any other value is the opposite.
* *a bad value* — what the reader does with a value it cannot use. “Default” means one line on stderr, which clients
  hide. Before 2.5.0 a malformed or empty number ended the start.
* *since* — nothing: in 2.4 already.

This page is generated; change the table in `cpersona_cli/install/` and run `make docs`.
"""

_BAD = {
    Invalid.UNCHECKED: "not checked",
    Invalid.DEFAULT: "default",
    Invalid.OFF: "off",
    Invalid.CLAMPED: "nearest bound",
    Invalid.REFUSES: "does not start",
    Invalid.IGNORED: "ignored",
}


def page() -> str:
    """The whole page as Markdown."""
    groups = [line for title, rows in GROUPS for line in _group(title, rows)]
    return "\n".join([_INTRODUCTION, *groups, *_earlier()])


def _group(title: str, rows: tuple[Setting, ...]) -> Iterator[str]:
    yield f"## {title}\n"
    if rows[0].reader is Reader.NOBODY:
        yield "| name | meant is | why |"
        yield "|---|---|---|"
        for row in rows:
            yield f"| `{row.name}` | {f'`{row.instead}`' if row.instead else '—'} | {_cell(row.note)} |"
    else:
        yield "| variable | type | default | a bad value | since | meaning |"
        yield "|---|---|---|---|---|---|"
        yield from (_row(row) for row in rows)
    yield ""


def _earlier() -> Iterator[str]:
    """What former releases did otherwise, beyond what the introduction says of all numbers and switches."""
    yield "## Earlier releases\n"
    yield "| variable | before | it was |"
    yield "|---|---|---|"
    for _, rows in GROUPS:
        for row in rows:
            for change in row.earlier:
                was = "; ".join(_differences(row, change))
                if was:
                    yield f"| `{row.name}` | {change.until} | {_cell(was)} |"
    yield ""


def _differences(row: Setting, change: Earlier) -> Iterator[str]:
    if change.default is not None:
        yield f"by default `{change.default}`"
    if not change.bounded:
        yield "any number was taken"
    if change.kind is not None and row.kind is not Kind.BOOL:
        yield change.kind.value
    if change.invalid is not None and row.kind is not Kind.BOOL and change.until != "2.5.0":
        yield f"a bad value: {_BAD[change.invalid]}"
    if change.fallback:
        yield f"a malformed number counted as `{change.fallback}`"
    if change.aliases == ():
        yield "read from its first name only"
    if change.empty_is_unset is False and row.kind not in {Kind.BOOL, Kind.INT, Kind.FLOAT}:
        yield "an empty value was taken literally"
    if change.effect:
        yield change.effect


def _row(row: Setting) -> str:
    names = f"`{row.name}`"
    if row.aliases:
        names += f", {'before it' if row.alias_first else 'then'} {', '.join(f'`{alias}`' for alias in row.aliases)}"
    since = row.since if row.since not in {"", "2.4"} else ""
    cells = (names, _type(row), _default(row), _bad(row), since, row.note)
    return f"| {' | '.join(_cell(cell) for cell in cells)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _type(row: Setting) -> str:
    if row.choices:
        words = ", ".join(f"`{choice}`" for choice in row.choices)
        return words if row.kind is Kind.CHOICE else f"{row.kind.value}: {words}"
    return "`auto`, `true`, `false`" if row.kind is Kind.TRISTATE else row.kind.value


def _default(row: Setting) -> str:
    parts = [row.derived or (f"`{row.default}`" if row.default else "—")]
    parts += [f"`{old.default}` before {old.until}" for old in row.earlier if old.default is not None]
    return "; ".join(parts)


def _bad(row: Setting) -> str:
    parts = [] if row.kind in {Kind.TEXT, Kind.OFF_ONLY} else [_BAD[row.invalid]]
    if row.above is not None:
        parts.append(f"{row.above:g} or less: {_BAD[row.outside]}")
    if row.low is not None:
        parts.append(f"below {row.low:g}: {_BAD[row.outside]}")
    if row.high is not None:
        parts.append(f"above {row.high:g}: {_BAD[row.outside]}")
    if row.floor is not None:
        parts.append(f"below {row.floor:g}: {row.floor:g}")
    if row.ceiling is not None:
        parts.append(f"above {row.ceiling:g}: {row.ceiling:g}")
    return "; ".join(parts)
