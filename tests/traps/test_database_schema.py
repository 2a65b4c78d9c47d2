"""Schema, text index, calibration and index files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.traps import Case, facts, outcome, reading, registration
from support.variations import severities, with_targets

from cpersona_cli.install.model import Interpreter, Launch, LaunchKind, ServerVersion
from cpersona_cli.record import replace
from cpersona_cli.store.reading import State
from cpersona_cli.traps.database_schema import schema_of
from cpersona_cli.traps.model import Facts

DB = "/home/u/cpersona.db"
HTTP = {"CPERSONA_EMBEDDING_MODE": "http", "CPERSONA_EMBEDDING_URL": "http://127.0.0.1:8401/embed"}
INDEXED: dict[str, Any] = {"counts": {"memories": 3, "episodes": 1}, "fts_rows": {"memories_fts": 3, "episodes_fts": 1}}


def seen(
    state: State = State.OK, *, version: str | None = "2.6.14", env: dict[str, str] | None = None, **fields: object
) -> Facts:
    one = reading(DB, state, **fields)
    return facts({"CPERSONA_DB_PATH": DB, **(env or {})}, version=version, reading=one)


def two(schema: int, first: str, second: str) -> Facts:
    other = registration({"CPERSONA_DB_PATH": DB}, client="codex")
    return facts(
        {"CPERSONA_DB_PATH": DB},
        version=first,
        others=[other],
        versions={0: second},
        reading=reading(DB, schema=schema),
    )


def python(**fields: object) -> Facts:
    interpreter = Interpreter(python=Path("/opt/py/bin/python3"), sqlite="3.31.1")
    version = ServerVersion(
        version="2.6.14",
        evidence="",
        interpreter=replace(interpreter, **fields),
    )
    return with_targets(seen(), version=version)


def case(name: str, what: str, known: Facts, state: str = "findings", says: str | tuple[str, ...] = ()) -> Case:
    return Case(f"database.{name}", what, known, state, says)


CASES = (
    case("schema-newer", "22 for 2.6.14", seen(schema=22), says=("schema 22", "writes 21", "cpersona@latest")),
    case("schema-newer", "21 for 2.6.14", seen(schema=21), "pass"),
    case("schema-newer", "21 for 2.6.13", seen(schema=21, version="2.6.13"), says="2.6.14 or later"),
    case("schema-newer", "20 for 2.6.11", seen(schema=20, version="2.6.11"), "pass"),
    case("schema-newer", "20 for 2.6.10", seen(schema=20, version="2.6.10"), says="writes 19"),
    case("schema-newer", "17 for 2.5.12", seen(schema=17, version="2.5.12"), says="writes 13"),
    case("schema-newer", "one client of two", two(21, "2.6.14", "2.5.12"), says="Codex (user) starts 2.5.12"),
    case("schema-newer", "both fit", two(13, "2.6.14", "2.5.12"), "pass"),
    case("schema-newer", "no release told", seen(schema=21, version=None), "pass"),
    case("schema-newer", "newer than this tool", seen(schema=22, version=None), "unknown"),
    case("schema-newer", "a later release of the server", seen(schema=22, version="2.7.0"), "unknown"),
    case("schema-newer", "no number", seen(schema=None), "pass"),
    case("schema-newer", "unreadable", seen(State.CORRUPT, schema=22), "skipped"),
    case("schema-older", "20 for 2.6.14", seen(schema=20), says=("migrates it to 21", "sqlite3", ".backup")),
    case("schema-older", "13 is told elsewhere", seen(schema=13), "pass"),
    case("schema-older", "21 for 2.6.14", seen(), "pass"),
    case("schema-older", "20 for 2.6.13", seen(schema=20, version="2.6.13"), "pass"),
    case("schema-older", "no release told", seen(schema=20, version=None), "pass"),
    case("schema-unnumbered", "no number", seen(schema=None), says="no schema number"),
    case("schema-unnumbered", "a number", seen(), "pass"),
    case("schema-unnumbered", "no time", seen(schema=None, unmeasured=("schema",)), "unknown"),
    case("objects-missing", "a trigger", seen(missing=("memories_fts_au",)), says="missing: memories_fts_au"),
    case("objects-missing", "many", seen(missing=tuple(f"x{n}" for n in range(9))), says="x7 …"),
    case("objects-missing", "a unique index", seen(missing=("idx_memories_dedup_msg_id",)), says="stored twice"),
    case("objects-missing", "the number alone", seen(missing=("schema_version",)), "pass"),
    case("objects-missing", "none", seen(), "pass"),
    case("fts-unsupported", "no trigram", python(trigram=False), says=("3.31.1", "/opt/py", "trigram", "--python")),
    case("fts-unsupported", "no FTS5", python(fts5=False, trigram=False, sqlite=""), says=("FTS5", "not told")),
    case("fts-unsupported", "fine", python(), "pass"),
    case("fts-unsupported", "could not be asked", python(trigram=False, problem="it did not start"), "pass"),
    case("fts-unsupported", "unknown", seen(), "pass"),
    case("fts-unsupported", "switched off", seen(env={"CPERSONA_FTS_ENABLED": "false"}), "pass"),
    case(
        "fts-unsupported",
        "elsewhere",
        facts({}, launch=Launch(kind=LaunchKind.REMOTE)),
        "skipped",
    ),
    case(
        "fts-incomplete",
        "rows are missing",
        seen(**(INDEXED | {"fts_rows": {"memories_fts": 1, "episodes_fts": 1}})),
        says="1 rows",
    ),
    case("fts-incomplete", "owed", seen(**INDEXED, fts_pending=True), says="owed"),
    case("fts-incomplete", "no table", seen(counts={"memories": 3}), says="does not exist"),
    case("fts-incomplete", "no table and no rows", seen(), "pass"),
    case("fts-incomplete", "whole", seen(**INDEXED), "pass"),
    case("fts-incomplete", "switched off", seen(counts={"memories": 3}, env={"CPERSONA_FTS_ENABLED": "false"}), "pass"),
    case("fts-incomplete", "no client known", facts({}, reading=reading(DB, counts={"memories": 3})), "pass"),
    case("fts-incomplete", "no time", seen(**INDEXED, unmeasured=("fts_rows",)), "unknown"),
    case("calibration-absent", "ten vectors", seen(env=HTTP, widths={768: 10}), says="10 vectors"),
    case("calibration-absent", "nine vectors", seen(env=HTTP, widths={768: 9}), "pass"),
    case("calibration-absent", "no embedding", seen(widths={768: 10}), "pass"),
    case("calibration-absent", "there", seen(env=HTTP, widths={768: 10}, calibration={}), "pass"),
    case("calibration-absent", "broken", seen(env=HTTP, widths={768: 10}, calibration_problem="it is empty"), "pass"),
    case("calibration-absent", "no time", seen(env=HTTP, unmeasured=("widths",)), "unknown"),
    case(
        "calibration-unreadable", "empty", seen(calibration_problem="it is empty"), says=("it is empty", ".unreadable")
    ),
    case("calibration-unreadable", "fine", seen(calibration={}), "pass"),
    case(
        "calibration-of-another-width",
        "another",
        seen(widths={768: 5, 64: 1}, calibration={"embedding_dim": 384}),
        says=("384", "768"),
    ),
    case("calibration-of-another-width", "the same", seen(widths={768: 5}, calibration={"embedding_dim": 768}), "pass"),
    case(
        "calibration-of-another-width", "not told", seen(widths={768: 5}, calibration={"embedding_dim": True}), "pass"
    ),
    case("calibration-of-another-width", "no vectors", seen(calibration={"embedding_dim": 768}), "pass"),
    case(
        "calibration-of-another-width",
        "frozen is another trap",
        seen(
            widths={768: 5},
            calibration={"embedding_dim": 384},
            env={"CPERSONA_CALIBRATE_ON_MODEL_CHANGE": "false"},
        ),
        "pass",
    ),
    case("index-files-old", "no vectors", seen(files={".blocks.blockindex": 3}), says="earlier database"),
    case(
        "index-files-old",
        "schema 19",
        seen(schema=19, widths={768: 5}, files={".memories.vecindex": 3, ".blocks.blockindex": 3}),
        says=(f"beside the database lie {DB}.memories.vecindex, and schema 19", "vector_index build"),
    ),
    case("index-files-old", "schema 20", seen(schema=20, widths={768: 5}, files={".memories.vecindex": 3}), "pass"),
    case("index-files-old", "none", seen(schema=19, widths={768: 5}), "pass"),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_shapes(case: Case) -> None:
    case.check()


def test_a_missing_text_index_is_made_at_the_next_start_and_a_short_one_is_not() -> None:
    assert severities(outcome("database.fts-incomplete", seen(counts={"memories": 3}))[1]) == ["warning"]
    short = seen(**(INDEXED | {"fts_rows": {"memories_fts": 1, "episodes_fts": 0}}))
    assert severities(outcome("database.fts-incomplete", short)[1]) == ["fault", "fault"]


def test_a_path_with_a_blank_is_quoted_twice_for_the_backup() -> None:
    known = facts({"CPERSONA_DB_PATH": "/home/u/my c.db"}, reading=reading("/home/u/my c.db", schema=19))
    _, (finding,) = outcome("database.schema-older", known)
    assert finding.repair.commands == ("""sqlite3 '/home/u/my c.db' '.backup "/home/u/my c.db.before-migration"'""",)


@pytest.mark.parametrize(
    ("version", "number"),
    [
        ("2.4.41", 13),
        ("2.5.0", 13),
        ("2.5.12", 13),
        ("2.6.0", 17),
        ("2.6.2", 17),
        ("2.6.3", 18),
        ("2.6.6", 18),
        ("2.6.7", 19),
        ("2.6.10", 19),
        ("2.6.11", 20),
        ("2.6.13", 20),
        ("2.6.14", 21),
        ("2.6.15", None),
        ("nonsense", None),
        (None, None),
        ("2.4.1", 13),
    ],
)
def test_the_schema_of_each_release(version: str | None, number: int | None) -> None:
    """The numbers stand as SCHEMA_VERSION in database.py of each release."""
    assert schema_of(version) == number


def test_the_newest_is_the_installed_servers() -> None:
    from cpersona.database import SCHEMA_VERSION  # noqa: PLC0415

    from cpersona_cli.install.release.version import NEWEST_KNOWN  # noqa: PLC0415

    assert schema_of(NEWEST_KNOWN) == SCHEMA_VERSION
