"""The files that belong to a database: its calibration, and the index files of its vectors."""

from __future__ import annotations

from collections.abc import Iterator

from cpersona_cli.store.reading import Reading
from cpersona_cli.store.schema import NEWEST
from cpersona_cli.text import plural
from cpersona_cli.traps.model import Facts, Finding, Needs, Repair, Severity, Trap
from cpersona_cli.traps.shell import move, word
from cpersona_cli.traps.subject import measured, readable

#: Embedded memories below which the server does not calibrate.
CALIBRATED_FROM = 10

_VECTOR_INDEXES = (".memories.vecindex", ".episodes.vecindex")
_INDEXES = (*_VECTOR_INDEXES, ".memories.coarseindex", ".blocks.blockindex")


def _embedded(reading: Reading) -> int:
    return sum(reading.widths.values())


def _embeds(facts: Facts) -> bool:
    return any(t.settings["CPERSONA_EMBEDDING_MODE"].value in {"http", "api"} for t in facts.database.targets)


def _no_calibration(facts: Facts) -> Iterator[Finding]:
    reading = readable(facts)
    measured(reading, "widths")
    absent = reading.calibration is None and not reading.calibration_problem
    if absent and _embeds(facts) and _embedded(reading) >= CALIBRATED_FROM:
        sidecar = f"{reading.path}.calibration.json"
        yield Finding(
            about=".calibration.json",
            measured=f"there are {plural(_embedded(reading), 'vector')} and no {sidecar}",
            repair=Repair(
                prose="if the database was copied from elsewhere, copy that file too, with the clients ended; "
                "otherwise restart the client once, which calibrates, and set each agent's recall precision again",
            ),
        )


def _broken_calibration(facts: Facts) -> Iterator[Finding]:
    reading = readable(facts)
    if reading.calibration_problem:
        sidecar = f"{reading.path}.calibration.json"
        yield Finding(
            about=".calibration.json",
            measured=f"{sidecar}: {reading.calibration_problem}",
            repair=Repair(
                prose="restore it from the backup, or move it aside and restart the client, which calibrates anew",
                commands=(move(sidecar, f"{sidecar}.unreadable", facts.machine),),
            ),
        )


def modal_width(reading: Reading) -> int | None:
    """The width most vectors have, which is the one the server takes for the corpus's own; None without vectors."""
    return max(reading.widths, key=lambda width: (reading.widths[width], width), default=None)


def calibrated_width(reading: Reading) -> int | None:
    """The width the calibration file was measured at, where it says."""
    width = (reading.calibration or {}).get("embedding_dim")
    return width if isinstance(width, int) and not isinstance(width, bool) else None


def _other_width(facts: Facts) -> Iterator[Finding]:
    reading = readable(facts)
    measured(reading, "widths")
    width, stored = calibrated_width(reading), modal_width(reading)
    if width is None or stored is None or width == stored:
        return
    if any(t.settings["CPERSONA_CALIBRATE_ON_MODEL_CHANGE"].value is False for t in facts.database.targets):
        return  # vectors.calibration-frozen
    yield Finding(
        about=".calibration.json",
        measured=f"it was measured on vectors of {width} numbers, and the database holds vectors of {stored}",
        repair=Repair(prose="restart the client, which calibrates anew and keeps each agent's recall precision"),
    )


def _indexes(facts: Facts) -> Iterator[Finding]:
    reading = readable(facts)
    measured(reading, "widths", "schema")
    found = [name for name in _INDEXES if name in reading.files]
    if found and not _embedded(reading):
        why = "and no memory has a vector, so they belong to an earlier database"
    else:
        found = [name for name in found if name in _VECTOR_INDEXES] if (reading.schema or NEWEST) < 20 else []
        why = f"and schema {reading.schema} cannot tell them from stale ones after a change from outside"
    if found:
        paths = [f"{reading.path}{name}" for name in found]
        yield Finding(
            about="index files",
            measured=f"beside the database lie {', '.join(paths)}, {why}",
            repair=Repair(
                prose="after a change from outside, move them aside; the server then reads the database itself, and "
                "they can be built again",
                commands=(
                    *(move(path, f"{path}.old", facts.machine) for path in paths),
                    f"python -m cpersona.vector_index build --db {word(reading.path, facts.machine)}",
                ),
            ),
        )


TRAPS = (
    Trap(
        id="database.calibration-absent",
        title="The calibration file is not beside the database",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_no_calibration,
        expected="DATABASE.calibration.json beside the database",
        costs="thresholds, gates and each agent's recall precision are back at their defaults without a word",
        repair="copy the file along with its database, or calibrate anew",
        source="the server's operations and upgrade pages; it calibrates at a start with ten vectors or more",
        rows=("C19",),
    ),
    Trap(
        id="database.calibration-unreadable",
        title="The calibration file cannot be used",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_broken_calibration,
        expected="a JSON object as the server writes it",
        costs="none of its thresholds are applied",
        repair="restore it, or calibrate anew",
        source="the server's issues bug-095, bug-184 and bug-347",
        rows=("C20",),
    ),
    Trap(
        id="database.calibration-of-another-width",
        title="The calibration belongs to vectors of another width",
        severity=Severity.WARNING,
        needs=Needs.DATABASE,
        detect=_other_width,
        expected="the width of the stored vectors",
        costs="it is of another model or another database; until a restart calibrates anew, recall keeps too much or "
        "too "
        "little",
        repair="restart the client",
        source="admin_handlers.py of 2.6.14: compared at the start with the width most vectors have",
        rows=("C20", "C21"),
    ),
    Trap(
        id="database.index-files-old",
        title="Index files that may answer for another state of the database",
        severity=Severity.HINT,
        needs=Needs.DATABASE,
        detect=_indexes,
        expected="index files built from the present vectors",
        costs="recall may answer from vectors that are no longer in the database",
        repair="move them aside and build them again",
        source="measured on 2.5.12: with schema 19 and below the index keeps answering after a change from outside",
        rows=("C23",),
    ),
)
