"""What ``backfill`` shows of plans and ends made by hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.documents import document
from support.planned import (
    AROUND,
    BEHIND,
    DATABASE,
    DONE,
    EMPTY,
    HARM,
    HOME,
    LACKING,
    MENDED,
    MOVING,
    PLAN,
    REFUSED,
    STOPPED,
    TAKEN,
)  # fmt: skip

from cpersona_cli.commands.importing import summary
from cpersona_cli.history.bring_in import Brought
from cpersona_cli.record import replace
from cpersona_cli.report import backfill as page
from cpersona_cli.report import backfill_json
from cpersona_cli.report import json as machine
from cpersona_cli.report.exits import Exit
from cpersona_cli.report.layout import Style, columns
from cpersona_cli.report.model import Report, Section
from cpersona_cli.report.reembed import refused_section
from cpersona_cli.report.text import render
from cpersona_cli.store.boundary import Boundary, Scope
from cpersona_cli.store.model import Kind

GOLDEN = Path(__file__).parent / "golden" / "backfill"


def report(*sections: Section, says: str, code: Exit = Exit.OK) -> Report:
    return Report(
        command="backfill",
        headline=str(DATABASE),
        sections=sections,
        measured=1,
        error_code=code,
        summary=says,
        home=HOME,
        elapsed=3.2,
    )


def ended(done: Brought) -> Report:
    code = Exit.OK if done.whole else Exit.NEGATIVE
    return report(*page.ended_sections(done, PLAN), says=summary(done, PLAN.read), code=code)


WOULD = "rows would be stored; nothing was changed"

REPORTS = {
    "plan": report(*page.plan_sections(PLAN, AROUND), says=WOULD),
    "plan-behind": report(*page.plan_sections(replace(PLAN, scopes=()), BEHIND), says=WOULD),
    "plan-empty": report(*page.plan_sections(EMPTY, BEHIND), says="nothing new; nothing was changed"),
    "plan-moving": report(*page.plan_sections(MOVING, AROUND), says=WOULD),
    "plan-refused": report(
        refused_section(REFUSED.refusals),
        *page.plan_sections(REFUSED, AROUND),
        says="refused; nothing was changed",
        code=Exit.NEGATIVE,
    ),
    "done": ended(DONE),
    "lacking": ended(LACKING),
    "stopped": ended(STOPPED),
    "harm": report(*page.harm_sections(HARM), says="3 episodes would be dated back; nothing was changed"),
    "mended": report(page.mended_section(MENDED), says="3 episodes dated back"),
    "undone": report(page.taken_section(TAKEN), says="6 rows taken out, 1 left", code=Exit.NEGATIVE),
}


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", REPORTS)
def test_golden(name: str, width: int) -> None:
    """``UPDATE_GOLDEN=1 pytest tests/report`` writes the files anew; read the difference before committing it."""
    shown = render(REPORTS[name], Style(width=width))
    file = GOLDEN / f"{name}-{width}.txt"
    if os.environ.get("UPDATE_GOLDEN") == "1":
        file.parent.mkdir(exist_ok=True)
        file.write_text(shown, "utf-8")
    assert shown == file.read_text("utf-8")
    long = [line for line in shown.splitlines() if columns(line) > width]
    assert not long, long


def test_no_golden_file_is_forgotten() -> None:
    assert {file.stem for file in GOLDEN.glob("*.txt")} == {
        f"{name}-{width}" for name in REPORTS for width in (80, 120)
    }


def test_a_document_has_every_field_whatever_came_of_it() -> None:
    empty = backfill_json.document(database=DATABASE, action="import")
    for done in (DONE, LACKING, STOPPED):
        full = backfill_json.document(
            database=DATABASE, action="import", plan=REFUSED, around=AROUND, done=done, harm=HARM, mended=MENDED,
            undone=TAKEN,
        )  # fmt: skip
        assert list(full) == list(empty)
        found = document(machine.render(Report(command="backfill", payload=full, measured=1), Style()))
        assert found["result"]["rows"] == {str(kind): count for kind, count in done.rows.items()}
        for kind in ("memories", "episodes"):
            counts = found[kind]
            assert counts["read"] == sum(counts[part] for part in ("stored", "duplicate", "left_out", "failed", "rest"))


def test_long_lists_go_on_with_v() -> None:
    places = [f"export.json, line {number}: it is not JSON" for number in range(25)]
    first, second = page.listed("could not be read", places, 1_200)
    assert (len(first.rows), first.rows[-1][1], first.verbosity) == (11, "and 1,190 more", 0)
    assert (len(second.rows), second.rows[-1][1], second.verbosity) == (16, "and 1,175 more", 1)
    (only,) = page.listed("could not be read", places[:10], 10)
    assert len(only.rows) == 10


@pytest.mark.parametrize(
    ("scope", "said"),
    [
        (Scope("atlas"), "atlas"),
        (Scope("atlas", ""), "atlas, global pool"),
        (Scope("atlas", "ferry", "north"), "atlas, ferry, channel north"),
        (Scope(""), "''"),
    ],
)
def test_recalls(scope: Scope, said: str) -> None:
    assert page.recall(scope) == said
    assert page.recall(Scope("atlas"), name=False) == "everywhere"


def test_boundaries_that_are_no_time_are_shown_as_they_stand() -> None:
    assert page.when(Boundary()) == "none"
    assert page.when(Boundary("soon", None)) == "soon"


def test_what_is_stored_in_words() -> None:
    assert page.by_kind({}) == "nothing"
    assert page.by_kind({Kind.MEMORY: 1, Kind.EPISODE: 0}) == "1 memory"
    assert page.by_kind({Kind.EPISODE: 2, Kind.MEMORY: 1_200}) == "1,200 memories and 2 episodes"
