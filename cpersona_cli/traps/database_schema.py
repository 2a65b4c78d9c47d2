"""Whether the database's shape fits the server: schema number, objects, text index, calibration, index files."""

from __future__ import annotations

from collections.abc import Iterator

from cpersona_cli.install.release.version import NEWEST_KNOWN, key, older
from cpersona_cli.store.reading import Reading
from cpersona_cli.store.schema import NEWEST, RELEASES
from cpersona_cli.text import safe
from cpersona_cli.traps.model import CannotTellError, Facts, Finding, Needs, Repair, Severity, Target, Trap
from cpersona_cli.traps.shell import word
from cpersona_cli.traps.subject import measured, readable, server

#: The schema of every release before 2.6.
FIRST_LINE = min(RELEASES)

_TEXT_TABLES = {"memories_fts": "memories", "episodes_fts": "episodes"}


def schema_of(version: str | None) -> int | None:
    """The schema number that release ``version`` writes; None where it is not known."""
    if version is None or key(version) is None or older(NEWEST_KNOWN, version):
        return None
    written = [number for number, first in RELEASES.items() if not older(version, first)]
    # All of 2.4 wrote 13 as far as it was looked at, and its last releases only were.
    return max(written, default=FIRST_LINE)


def _by_release(facts: Facts) -> dict[str | None, list[Target]]:
    found: dict[str | None, list[Target]] = {}
    for target in facts.database.targets:
        found.setdefault(target.version.version, []).append(target)
    return found


def _labels(targets: list[Target]) -> str:
    return ", ".join(dict.fromkeys(target.registration.label for target in targets))


def _newer(facts: Facts) -> Iterator[Finding]:
    reading = readable(facts)
    schema = reading.schema
    if schema is None:
        return
    told = False
    for version, targets in _by_release(facts).items():
        number = schema_of(version)
        if number is None or schema <= number:
            continue
        told = True
        registration = targets[0].registration
        yield Finding(
            about="schema_version",
            place=registration.place,
            measured=f"the database has schema {schema}; {_labels(targets)} starts {version}, which writes {number}",
            repair=Repair(
                prose=f"let {_labels(targets)} start {_release_of(schema)} as the others do; there is no way back",
                commands=("uvx cpersona@latest",) if registration.launch.requirement else (),
                edit='"cpersona@latest"' if registration.launch.requirement else "",
                place=registration.place,
            ),
        )
    if schema > NEWEST and not told:
        raise CannotTellError(
            f"{reading.path} has schema {schema}, and this release of the tool knows {NEWEST} and below; update it"
        )


def _release_of(schema: int) -> str:
    first = RELEASES.get(schema)
    return f"{first} or later" if first else "a release that knows this schema"


def _older(facts: Facts) -> Iterator[Finding]:
    reading = readable(facts)
    schema = reading.schema
    if schema is None or schema <= FIRST_LINE:
        return  # from a schema of 2.5 there is no way back, and version.migration says that louder
    by_release = _by_release(facts)
    ahead = {version: targets for version, targets in by_release.items() if (schema_of(version) or schema) > schema}
    if ahead:
        listed = "; ".join(f"{_labels(targets)} starts {version}" for version, targets in ahead.items())
        numbers = max(schema_of(version) or schema for version in ahead)
        yield Finding(
            about="schema_version",
            measured=f"the database has schema {schema}, and the next start migrates it to {numbers} ({listed})",
            repair=Repair(
                prose="back it up first, then start the client once",
                commands=(_backup(facts, reading),),
            ),
        )


def _backup(facts: Facts, reading: Reading) -> str:
    target = f"{reading.path}.before-migration"
    return f"sqlite3 {word(reading.path, facts.machine)} {word(f'.backup {_inner(target)}', facts.machine)}"


def _inner(path: str) -> str:
    """A path as a word of the sqlite3 program's own commands."""
    return f'"{path}"' if " " in path or "'" in path else path


def _unnumbered(facts: Facts) -> Iterator[Finding]:
    reading = readable(facts)
    measured(reading, "schema")
    if reading.schema is None:
        yield Finding(
            about="schema_version",
            measured="there are memories, and no schema number",
            repair=Repair(
                prose="back it up, then start the client once: the server checks every table and writes the number",
                commands=(_backup(facts, reading),),
            ),
        )


def _objects(facts: Facts) -> Iterator[Finding]:
    reading = readable(facts)
    measured(reading, "missing")
    absent = [name for name in reading.missing if name != "schema_version"]
    if not absent:
        return
    unique = [name for name in absent if name.startswith("idx_memories_dedup")]
    shown = ", ".join(safe(name, 60) for name in absent[:8]) + (" …" if len(absent) > 8 else "")
    yield Finding(
        about="sqlite_master",
        measured=f"missing: {shown}",
        costs="the same memory may be stored twice" if unique == absent else "",
        repair=Repair(
            prose="start the client once, which makes what is missing; if it is still missing, ask the agent to call "
            "check_health with fix=true" + (" (duplicates keep a unique index from being made)" if unique else ""),
            commands=(_backup(facts, reading),),
        ),
    )


def _unsupported(facts: Facts) -> Iterator[Finding]:
    target = server(facts)
    python = target.version.interpreter
    if target.settings["CPERSONA_FTS_ENABLED"].value is False:
        return
    if python is None or python.problem:
        return  # which interpreter runs it is the version traps' business
    if not python.fts5 or not python.trigram:
        what = "the trigram tokenizer" if python.fts5 else "the FTS5 module"
        yield Finding(
            about="SQLite",
            place=target.registration.place,
            measured=f"SQLite {python.sqlite or '(release not told)'} of {python.python}, which would run the server, "
            f"has not got {what}",
            repair=Repair(
                prose=f"in {target.registration.place}, start the server with a Python that brings SQLite 3.34 or "
                f"later, then restart {target.registration.client_title}",
                edit='"command": "uvx", "args": ["--python", "3.13", "cpersona@latest"]',
                place=target.registration.place,
            ),
        )


def _text_index(facts: Facts) -> Iterator[Finding]:
    reading = readable(facts)
    enabled = [t for t in facts.database.targets if t.settings["CPERSONA_FTS_ENABLED"].value is not False]
    if facts.database.targets and not enabled:
        return
    measured(reading, "fts_rows", "fts_pending", "counts")
    repair = Repair(
        prose="start the client once; if it is still so, ask the agent to call check_health with fix=true and "
        "checks=[“fts_integrity”]"
    )
    if reading.fts_pending:
        yield Finding(about="user_version", measured="a rebuild of the text index is owed and not done", repair=repair)
    for table, rows in _TEXT_TABLES.items():
        indexed, stored = reading.fts_rows.get(table), reading.counts.get(rows, 0)
        if indexed is None and stored and enabled:
            yield Finding(
                about=table,
                severity=Severity.WARNING,
                measured=f"{table} does not exist, and there are {stored} {rows}",
                repair=repair,
            )
        elif indexed is not None and indexed != stored and not reading.fts_pending:
            yield Finding(
                about=table, measured=f"{table} holds {indexed} rows, and there are {stored} {rows}", repair=repair
            )


TRAPS = (
    Trap(
        id="database.schema-newer",
        title="The database is newer than the server that opens it",
        severity=Severity.FAULT,
        needs=Needs.DATABASE,
        detect=_newer,
        expected="every client starts a release of at least the database's schema",
        costs="the older server goes on with one line in its log, and what it writes or leaves out is undefined",
        repair="start the same release everywhere; a database cannot be taken back to an older schema",
        source="measured on 2.6.14; the server's upgrade page",
        rows=("C15", "C17"),
    ),
    Trap(
        id="database.schema-older",
        title="The next start migrates the database",
        severity=Severity.HINT,
        needs=Needs.DATABASE,
        detect=_older,
        expected="a backup before the first start of a newer release",
        costs="older releases cannot be used on it any more",
        repair="back it up, then start the client once",
        source="measured on 2.6.14",
        rows=("C16",),
    ),
    Trap(
        id="database.schema-unnumbered",
        title="The database has memories and no schema number",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_unnumbered,
        expected="a row in the table schema_version",
        costs="an upgrade was cut off, or another program made the tables; what this tool would write is withheld",
        repair="back it up, then start the client once",
        source="database.py of 2.6.14: the number is written last, and only when every step worked",
        rows=("C16",),
    ),
    Trap(
        id="database.objects-missing",
        title="Tables, triggers or indexes the server relies on are missing",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_objects,
        expected="every object of its schema",
        costs="text search, clean-up of vectors or the refusal of duplicates does not work as the server assumes",
        repair="start the client once; then check_health(fix)",
        source="the server's checks schema_objects and dedup_msg_id_index",
    ),
    Trap(
        id="database.fts-unsupported",
        title="The server's SQLite cannot search text",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_unsupported,
        expected="SQLite 3.34 or later with FTS5, in the interpreter that runs the server",
        costs="the server ends at its start with “no such tokenizer: trigram” or “no such module: fts5”",
        repair="start it with a Python that brings SQLite 3.34 or later, with FTS5",
        source="database.py of 2.6.14: FTS5 with the trigram tokenizer, which SQLite has since 3.34",
        rows=("C25",),
    ),
    Trap(
        id="database.fts-incomplete",
        title="The text index does not hold every row",
        severity=Severity.FAULT,
        needs=Needs.DATABASE,
        detect=_text_index,
        expected="as many rows in the text index as in its table",
        costs="rows that are not in it cannot be found by their words",
        repair="start the client once; then check_health(fix)",
        source="the server's issues bug-026, bug-060 and bug-118",
        rows=("C25",),
    ),
)
