"""A client's file as a file: what its owner will not accept in it, and what it has not read yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby

from cpersona_cli.install.clients.table import CLIENTS
from cpersona_cli.install.model import Looked, Problem, ProblemKind, Process
from cpersona_cli.install.settings.table import is_secret
from cpersona_cli.text import plural
from cpersona_cli.traps.model import Database, Facts, Finding, Needs, Repair, Severity, SkipError, Target, Trap

_SYNTAX = {
    ProblemKind.SYNTAX,
    ProblemKind.TRUNCATED,
    ProblemKind.COMMENT,
    ProblemKind.TRAILING_COMMA,
    ProblemKind.SHAPE,
}
_ENCODING = {ProblemKind.BOM, ProblemKind.UTF16, ProblemKind.NOT_UTF8}

# Programs that stop at their own broken settings; all others go on without the file.
_REFUSES = {"codex", "gemini-cli"}

# Files a program writes by itself all the time: that they are newer than a server says nothing.
_STATE_FILES = {".claude.json", "settings.json"}


def _title(client: str) -> str:
    known = CLIENTS.get(client)
    return known.title if known else client


def _costs(looked: Looked, problem: Problem) -> str:
    title = _title(looked.client)
    if problem.kind is ProblemKind.UNREADABLE:
        return f"whether {title} reads it, and what stands in it, cannot be told from here"
    if not problem.fatal:
        return f"{title} reads the file, other programs that share it may ignore it"
    if looked.client in _REFUSES:
        return f"{title} itself will not start"
    return f"{title} ignores this whole file, and every server in it, without a word"


def _problems(facts: Facts, kinds: set[ProblemKind]) -> Iterator[tuple[Looked, list[Problem]]]:
    """Problems of ``kinds`` in files that matter here, those of one kind in one file together."""
    for looked in facts.discovery.looked:
        wanted = [p for p in looked.problems if p.kind in kinds and (looked.mentions or p.fatal)]
        for _, group in groupby(sorted(wanted, key=lambda p: p.kind), key=lambda p: p.kind):
            yield looked, list(group)


def _finding(looked: Looked, problems: list[Problem], severity: Severity | None) -> Finding:
    first = problems[0]
    more = "" if len(problems) == 1 else f" (and {plural(len(problems) - 1, 'place')} more)"
    column = f", column {first.place.column}" if first.place.line and first.place.column else ""
    where = f"line {first.place.line}{column}: " if first.place.line else ""
    return Finding(
        subject=str(looked.path),
        about=str(first.kind),
        place=first.place,
        severity=severity,
        measured=f"{where}{first.detail}{more}",
        expected=_expected(looked, first),
        costs=_costs(looked, first),
        repair=_repair(looked, first),
        evidence=tuple(("also", f"{p.place}: {p.detail}") for p in problems[1:6]),
    )


def _expected(looked: Looked, problem: Problem) -> str:
    if problem.kind not in _SYNTAX:
        return ""
    if looked.path.suffix == ".toml":
        return "valid TOML"
    return "valid JSON" if problem.kind in {ProblemKind.SYNTAX, ProblemKind.TRUNCATED} else ""


def _repair(looked: Looked, problem: Problem) -> Repair:
    if problem.kind is ProblemKind.UNREADABLE:
        return Repair(prose=problem.advice or f"put a regular file at {problem.place}", place=problem.place)
    advice = problem.advice or "repair the text"
    return Repair(prose=f"in {problem.place}, {advice}, then restart {_title(looked.client)}", place=problem.place)


def _syntax(facts: Facts) -> Iterator[Finding]:
    for looked, problems in _problems(facts, _SYNTAX):
        fatal = problems[0].fatal
        yield _finding(looked, problems, None if fatal and looked.mentions else Severity.WARNING)


def _empty(facts: Facts) -> Iterator[Finding]:
    for looked, problems in _problems(facts, {ProblemKind.EMPTY}):
        # Claude Code and Claude Desktop never leave these files empty: what stood in them is lost.
        lost = looked.client in {"claude-code", "claude-desktop"}
        yield _finding(looked, problems, None if lost else Severity.WARNING)


def _encoding(facts: Facts) -> Iterator[Finding]:
    for looked, problems in _problems(facts, _ENCODING):
        fatal = problems[0].fatal
        yield _finding(looked, problems, None if fatal and looked.mentions else Severity.WARNING)


def _unreadable(facts: Facts) -> Iterator[Finding]:
    for looked, problems in _problems(facts, {ProblemKind.UNREADABLE}):
        yield _finding(looked, problems, None)


def _duplicate(facts: Facts) -> Iterator[Finding]:
    for looked, problems in _problems(facts, {ProblemKind.DUPLICATE}):
        fatal = problems[0].fatal
        yield _finding(looked, problems, Severity.FAULT if fatal and looked.mentions else None)


def _not_restarted(facts: Facts) -> Iterator[Finding]:
    database = facts.database
    if not database.reading.holders_known:
        raise SkipError("this system does not tell which processes have the database open")
    for process in database.reading.holders:
        if process.environment is not None:
            if "cpersona" not in process.command and not any(n.startswith("CPERSONA_") for n in process.environment):
                continue  # another program that reads the database
            yield from _other_settings(database, process, process.environment)
        else:
            yield from _older_than_file(facts, database, process)


def _other_settings(database: Database, process: Process, environment: Mapping[str, str]) -> Iterator[Finding]:
    """A live server whose settings no registration would give it today."""
    if not database.targets:
        return
    nearest = min(
        ((_differences(target, environment), target) for target in database.targets), key=lambda pair: len(pair[0])
    )
    names, target = nearest
    if names:
        yield Finding(
            about=f"process of {target.registration.label}",
            place=target.registration.place,
            measured=f"process {process.pid} has the database open with other settings than any registration: "
            + ", ".join(_said(name, environment, target) for name in names[:6]),
            repair=Repair(prose=f"restart {target.registration.client_title}, or end process {process.pid}"),
        )


def _differences(target: Target, environment: Mapping[str, str]) -> list[str]:
    wanted = {
        name: value.text
        for name, value in target.environment.values.items()
        if name.startswith(("CPERSONA_", "EMBEDDING_")) and not value.unresolved
    }
    unknown = {name for name, value in target.environment.values.items() if value.unresolved}
    return sorted(
        name for name in (wanted.keys() | environment.keys()) - unknown if wanted.get(name) != environment.get(name)
    )


def _said(name: str, environment: Mapping[str, str], target: Target) -> str:
    now = target.environment.get(name)
    if is_secret(name):
        return f"{name} differs"
    return f"{name} is {environment.get(name, 'unset')}, the file says {'nothing' if now is None else now}"


def _older_than_file(facts: Facts, database: Database, process: Process) -> Iterator[Finding]:
    """Without a look at its environment, only the clock speaks, and only for files that people edit by hand."""
    times = {looked.path: looked.mtime for looked in facts.discovery.looked}
    files = {target.registration.place.file for target in database.targets}
    edited = [times.get(file) for file in files if file is not None and file.name not in _STATE_FILES]
    if process.started is None or not files or len(edited) < len(files):
        return
    if all(time is not None and time > process.started for time in edited):
        registration = database.targets[0].registration
        yield Finding(
            about=f"process of {registration.label}",
            place=registration.place,
            severity=Severity.HINT,
            measured=f"process {process.pid} has the database open since before {registration.place.file} was changed",
            repair=Repair(prose=f"restart {registration.client_title} if its settings were changed"),
        )


TRAPS = (
    Trap(
        id="registration.file-syntax",
        title="The client's file cannot be parsed",
        severity=Severity.FAULT,
        needs=Needs.MACHINE,
        detect=_syntax,
        expected="JSON without comments and trailing commas, except where the client allows them; TOML for Codex",
        costs="the client ignores the whole file, or does not start",
        repair="repair the text at the line and column named",
        source="parsed as the owning client parses it",
        rows=("G6",),
    ),
    Trap(
        id="registration.file-empty",
        title="The client's file is empty",
        severity=Severity.FAULT,
        needs=Needs.MACHINE,
        detect=_empty,
        expected="a file with at least {}",
        costs="every server that stood in it is gone",
        repair="restore the file from a backup, or register the server again",
        source="an interrupted write leaves zero bytes behind",
        rows=("G6",),
    ),
    Trap(
        id="registration.file-encoding",
        title="The client's file is not plain UTF-8",
        severity=Severity.FAULT,
        needs=Needs.MACHINE,
        detect=_encoding,
        expected="UTF-8 without a byte order mark",
        costs="some clients ignore the whole file",
        repair="save the file as UTF-8 without a byte order mark",
        source="Windows PowerShell 5 writes UTF-16, or UTF-8 with a mark, unless told otherwise",
        rows=("G6",),
    ),
    Trap(
        id="registration.file-unreadable",
        title="The client's file cannot be read",
        severity=Severity.WARNING,
        needs=Needs.MACHINE,
        detect=_unreadable,
        expected="a regular file that you may read",
        costs="what the client does with it cannot be told from here",
        repair="give yourself the right to read it",
        source="the operating system refused",
        rows=("G6",),
    ),
    Trap(
        id="registration.file-duplicate",
        title="A key stands twice in one object",
        severity=Severity.WARNING,
        needs=Needs.MACHINE,
        detect=_duplicate,
        expected="every key once",
        costs="the last one counts and the first is dropped without a word; in TOML the whole file is refused",
        repair="remove one of the two",
        source="JSON parsers keep the last value; TOML forbids it",
        rows=("G6",),
    ),
    Trap(
        id="registration.not-restarted",
        title="A live server runs with settings that no file has any more",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_not_restarted,
        expected="live servers that were started after the last change",
        costs="the change has no effect yet, and two sets of settings write one database",
        repair="restart the client",
        source="a server reads its environment once, when it starts",
        rows=("G14",),
    ),
)
