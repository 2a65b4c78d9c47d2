"""How the database's path is written, and which file the server makes of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum

from cpersona_cli.install.database_candidates import DEFAULT_TEXT, HOME_WORDS
from cpersona_cli.install.machine import Machine
from cpersona_cli.install.model import System, Variable
from cpersona_cli.install.release.version import older
from cpersona_cli.record import replace
from cpersona_cli.store.reading import Reading, State
from cpersona_cli.text import plural, safe
from cpersona_cli.traps.model import CannotTellError, Facts, Finding, Needs, Severity, SkipError, Target, Trap
from cpersona_cli.traps.repairs import set_variable
from cpersona_cli.traps.subject import missing, prompted, server, untyped

DB = "CPERSONA_DB_PATH"

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PLACEHOLDER = re.compile(r"\$\{[^}]*\}|\$[A-Za-z_]\w*|%[A-Za-z_]\w*%|<[^<>/\\]+>|\{\{[^{}]*\}\}")
_WINDOWS = re.compile(r"^(?:[A-Za-z]:[\\/]|\\\\)")
_NAMES = {"\t": "a tab", "\n": "a line feed", "\r": "a carriage return", "\b": "a backspace", "\f": "a form feed"}


class _Form(StrEnum):
    """What is first wrong with a path's text; each is one trap."""

    FINE = "fine"
    EMPTY = "empty"
    MEMORY = "memory"
    CONTROL = "control"
    URI = "uri"
    QUOTED = "quoted"
    TILDE = "tilde"
    PLACEHOLDER = "placeholder"
    OTHER_SYSTEM = "other-system"
    SPACES = "spaces"
    RELATIVE = "relative"


def _system(target: Target, machine: Machine) -> System:
    """The system whose rules the path must follow: the one the server runs on."""
    return machine.system if target.registration.launch.inside == "host" else "linux"


def _form(text: str, system: System, machine: Machine) -> _Form:
    bare = text.strip()
    absolute = Machine(system=system, home=machine.home, cwd=machine.cwd).pure(text).is_absolute() if text else False
    checks = (
        (_Form.EMPTY, not text),
        (_Form.MEMORY, bare == ":memory:"),
        (_Form.CONTROL, bool(_CONTROL.search(text))),
        (_Form.URI, bare.lower().startswith("file:")),
        (_Form.QUOTED, bare[:1] in {'"', "'"} or bare[-1:] in {'"', "'"}),
        (_Form.TILDE, bare.startswith("~")),
        (_Form.PLACEHOLDER, bool(_PLACEHOLDER.search(bare))),
        (_Form.OTHER_SYSTEM, system != "windows" and bool(_WINDOWS.match(bare))),
        (_Form.SPACES, text != bare),
        (_Form.RELATIVE, not absolute),
    )
    return next((form for form, holds in checks if holds), _Form.FINE)


def _path_form(facts: Facts) -> tuple[Target, str, _Form]:
    """The target, the text the server would open and what is wrong with it.

    Raises ``CannotTellError`` where the text is asked for at every start.
    """
    target = server(facts)
    setting = target.settings[DB]
    if untyped(target, setting.name):
        raise SkipError(f"{DB} is no text, which is a finding of its own")
    if prompted(setting):
        raise CannotTellError(f"{DB} is asked for when the client starts, so which database it opens stands in no file")
    text = setting.text if setting.text is not None else target.database.text
    return target, text, _form(text, _system(target, facts.machine), facts.machine)


def well_formed(target: Target, machine: Machine) -> bool:
    """Whether the path is written as a path should be; if not, what it leads to is only a consequence."""
    setting = target.settings[DB]
    text = setting.text if setting.text is not None else target.database.text
    return _form(text, _system(target, machine), machine) is _Form.FINE


def memories(reading: Reading) -> str:
    """How many memories a database holds, in words."""
    if reading.state is State.OK:
        return plural(reading.counts.get("memories", 0), "memory", "memories")
    words = {
        State.EMPTY: "empty",
        State.LOCKED: "locked just now",
        State.MISSING: "not made yet",
        State.NO_FOLDER: "not made yet",
    }
    return words.get(reading.state, "could not be read")


def _fullest(target: Target) -> Reading | None:
    """The database among the candidates that has memories, where exactly one has the most."""
    filled = sorted(
        (r for r in target.candidates if r.counts.get("memories", 0) > 0), key=lambda r: -r.counts["memories"]
    )
    if not filled or (len(filled) > 1 and filled[0].counts["memories"] == filled[1].counts["memories"]):
        return None
    return filled[0]


def _known(target: Target) -> tuple[str, tuple[tuple[str, str], ...]]:
    """A clause about the databases that exist at the places meant, and the same as evidence."""
    if not target.candidates:
        return "", ()
    listed = tuple((str(reading.path), memories(reading)) for reading in target.candidates)
    words = "; ".join(f"{path} ({count})" for path, count in listed)
    noun = "a database is" if len(listed) == 1 else f"{len(listed)} databases are"
    return f"; {noun} found where it may have led: {words}", listed


def _meant(target: Target, text: str, machine: Machine, stray: Sequence[Variable] = ()) -> str:
    """An absolute path to propose: the database that has the memories, what was meant, or the usual place."""
    if target.registration.launch.inside == "container":
        return "/data/cpersona.db"
    best = _fullest(target)
    if best is not None:
        return str(best.path)
    if not text or text == DEFAULT_TEXT:
        kept = [
            v.text for v in stray if v.name == DB and _form(v.text, _system(target, machine), machine) is _Form.FINE
        ]
        if kept:
            return kept[0]
    plain = text.strip().strip("\"'")
    expanded = HOME_WORDS.sub(lambda _: str(machine.home), plain)
    if expanded != plain and not _PLACEHOLDER.search(expanded) and not _CONTROL.search(expanded):
        return expanded
    if machine.pure(plain).is_absolute() and not _PLACEHOLDER.search(plain) and not _CONTROL.search(plain):
        return plain
    return str(machine.home / ".claude" / "cpersona.db")


def _finding(facts: Facts, target: Target, text: str, measured: str) -> Finding:
    setting = target.settings[DB]
    clause, evidence = _known(target)
    written = setting.text is not None
    proposed = _meant(target, text, facts.machine, facts.stray)
    repair = set_variable(target.registration, DB, proposed, at=setting.place if written else None)
    if _fullest(target) is None and target.registration.launch.inside == "host":
        # The proposed file may not exist: with it a memory that is only misplaced would be replaced by an empty one.
        repair = replace(repair, prose=f"{repair.prose}; if anything was remembered before, look for that file first")
    return Finding(
        about=DB,
        place=setting.place if written else target.registration.place,
        measured=measured + clause,
        repair=repair,
        evidence=evidence,
    )


def _shown(target: Target, text: str) -> str:
    return f"{target.settings[DB].name or DB}={safe(text, 160)}"


def _unset(facts: Facts) -> Iterator[Finding]:
    target, text, _ = _path_form(facts)
    setting = target.settings[DB]
    folder = target.registration.cwd
    if setting.given or (setting.text is None and facts.machine.pure(target.database.text).is_absolute()):
        return
    if _empty_is_temporary(target):
        return  # database.path-empty
    fixed = bool(folder) and facts.machine.pure(folder).is_absolute()
    where = f"the fixed folder {folder}" if fixed else "whatever folder the client starts it in"
    finding = _finding(facts, target, text, f"{DB} is not set, so the server opens {DEFAULT_TEXT} below {where}")
    yield missing(_milder(finding) if fixed else finding, target)


def _milder(finding: Finding) -> Finding:
    return replace(finding, severity=Severity.WARNING)


def _empty_is_temporary(target: Target) -> bool:
    """Before 2.6.11 an empty text reached SQLite, which takes it for a private temporary database."""
    version = target.version.version
    return target.settings[DB].text == "" and version is not None and older(version, "2.6.11")


def _empty(facts: Facts) -> Iterator[Finding]:
    target, text, form = _path_form(facts)
    if form is _Form.EMPTY and target.settings[DB].text == "":
        yield _finding(facts, target, text, f"{DB} is set to an empty text")


def _relative(facts: Facts) -> Iterator[Finding]:
    target, text, form = _path_form(facts)
    if form is not _Form.RELATIVE or not target.settings[DB].given:
        return
    folder = target.registration.cwd
    fixed = bool(folder) and facts.machine.pure(folder).is_absolute()
    where = f"the fixed folder {folder}" if fixed else "whatever folder the client starts it in"
    finding = _finding(facts, target, text, f"{_shown(target, text)}, taken from {where}")
    yield _milder(finding) if fixed else finding


def _tilde(facts: Facts) -> Iterator[Finding]:
    target, text, form = _path_form(facts)
    if form is _Form.TILDE:
        yield _finding(facts, target, text, f"{_shown(target, text)}, which makes a folder named “~”")


def _placeholder(facts: Facts) -> Iterator[Finding]:
    target, text, form = _path_form(facts)
    if form is not _Form.PLACEHOLDER:
        return
    unresolved = target.settings[DB].unresolved
    if "${workspaceFolder" in text:
        raise CannotTellError(f"{DB} depends on the folder that is open in the editor: {safe(text, 160)}")
    yield _finding(facts, target, text, f"{_shown(target, text)}" + (f" ({unresolved})" if unresolved else ""))


def _quoted(facts: Facts) -> Iterator[Finding]:
    target, text, form = _path_form(facts)
    if form in {_Form.QUOTED, _Form.SPACES}:
        what = "quotation marks" if form is _Form.QUOTED else "a space at its start or end"
        yield _finding(facts, target, text, f"{DB}=[{safe(text, 160)}], with {what} inside the value")


def _uri(facts: Facts) -> Iterator[Finding]:
    target, text, form = _path_form(facts)
    if form is _Form.URI:
        yield _finding(facts, target, text, _shown(target, text))


def _other_system(facts: Facts) -> Iterator[Finding]:
    target, text, form = _path_form(facts)
    if form is _Form.OTHER_SYSTEM:
        where = {"container": "in a container", "wsl": "inside WSL"}.get(target.registration.launch.inside, "here")
        yield _finding(facts, target, text, f"{_shown(target, text)}, a Windows path, and the server runs {where}")


def _control(facts: Facts) -> Iterator[Finding]:
    target, text, form = _path_form(facts)
    if form is _Form.CONTROL:
        match = _CONTROL.search(text)
        char = match.group() if match else ""
        name = _NAMES.get(char, f"the control character U+{ord(char or ' '):04X}")
        yield _finding(facts, target, text, f"{_shown(target, text)}, which holds {name}")


def _memory(facts: Facts) -> Iterator[Finding]:
    target, text, form = _path_form(facts)
    if form is _Form.MEMORY:
        yield _finding(facts, target, text, _shown(target, text))


TRAPS = (
    Trap(
        id="database.path-unset",
        title="No database path is configured",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_unset,
        expected="an absolute path, the same for every client",
        costs="each client, and each folder it is started in, gets an empty memory of its own; some clients start "
        "servers in a folder that cannot be written",
        repair="write the absolute path of the database",
        source="config.py of 2.6.14: data/cpersona.db below the process's working folder",
        rows=("C1",),
    ),
    Trap(
        id="database.path-relative",
        title="The database path is relative",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_relative,
        expected="an absolute path, the same for every client",
        costs="the server opens a new, empty database somewhere else, and everything seems forgotten",
        repair="write the absolute path of the database",
        source="the server's getting-started page",
        rows=("C2",),
    ),
    Trap(
        id="database.path-tilde",
        title="The database path begins with “~”",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_tilde,
        expected="an absolute path, the same for every client",
        costs="the server opens a new, empty database somewhere else, and everything seems forgotten",
        repair="write the absolute path of the database",
        source="measured on 2.6.14: neither the client nor the server expands it",
        rows=("C3",),
    ),
    Trap(
        id="database.path-unexpanded",
        title="The database path holds a variable that nothing expands",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_placeholder,
        expected="an absolute path, the same for every client",
        costs="a file or folder of that literal name is made, and everything seems forgotten",
        repair="write the absolute path of the database",
        source="measured on 2.6.14: the server takes the text literally; each client's own rule for its file",
        rows=("C4",),
    ),
    Trap(
        id="database.path-quoted",
        title="Quotation marks or spaces stand inside the database path",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_quoted,
        expected="an absolute path, the same for every client",
        costs="a file or folder of that literal name is made, and everything seems forgotten",
        repair="write the absolute path of the database",
        source="measured on 2.6.14: the server takes the text literally",
        rows=("C4",),
    ),
    Trap(
        id="database.path-uri",
        title="The database path is a file: URI",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_uri,
        expected="a plain path",
        costs="a folder named “file:” is made, or the server ends with an error",
        repair="write the absolute path of the database",
        source="measured on 2.6.14: the server takes the text literally",
        rows=("C5",),
    ),
    Trap(
        id="database.path-of-another-system",
        title="A Windows path where the server runs on another system",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_other_system,
        expected="an absolute path, the same for every client",
        costs="the server opens a new, empty database somewhere else, and everything seems forgotten",
        repair="write the absolute path of the database",
        source="measured on 2.6.14: the text becomes the name of a file in the working folder",
        rows=("C5",),
    ),
    Trap(
        id="database.path-control-character",
        title="A control character stands in the database path",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_control,
        expected="an absolute path, the same for every client",
        costs="the server opens a path of another name, or fails",
        repair="write / or \\\\ in place of each single backslash",
        source="JSON and TOML: a single backslash begins an escape, so C:\\temp is read with a tab",
        rows=("C6",),
    ),
    Trap(
        id="database.path-memory",
        title="The database exists only while the server runs",
        severity=Severity.WARNING,
        needs=Needs.REGISTRATION,
        detect=_memory,
        expected="a file",
        costs="every memory is gone when the client ends the server",
        repair="write the absolute path of the database",
        source="measured on 2.6.14",
        rows=("C7",),
    ),
    Trap(
        id="database.path-empty",
        title="An empty database path",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_empty,
        expected="an absolute path, the same for every client",
        costs="SQLite makes a private temporary database for each connection, and nothing is kept",
        repair="write the absolute path of the database",
        source="config.py before 2.6.11 handed the empty text to SQLite",
        rows=("C8",),
        until="2.6.11",
    ),
)
