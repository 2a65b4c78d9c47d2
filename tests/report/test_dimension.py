"""What ``dimension`` shows of fits made by hand."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support import fits
from support.documents import document
from support.fits import census, facts, fit, group, row

from cpersona_cli.embedding.model import Endpoint
from cpersona_cli.fit.model import AgentCost, Fit, Likeness, State
from cpersona_cli.record import replace
from cpersona_cli.report import dimension, dimension_json
from cpersona_cli.report import json as document_of
from cpersona_cli.report.layout import Style, columns
from cpersona_cli.report.model import Report
from cpersona_cli.report.text import render
from cpersona_cli.store.model import Contents, Form, IndexFile, Kind
from cpersona_cli.traps.run import run
from cpersona_cli.traps.vectors_fit import JUDGES

GOLDEN = Path(__file__).parent / "golden" / "dimension"


def report(made: Fit, left_out: str = "") -> Report:
    known = facts(made)
    checks = run(JUDGES, known)
    return Report(
        command="dimension",
        headline=dimension.headline(known.fits),
        checks=checks,
        findings=[finding for check in checks for finding in check.findings],
        sections=list(dimension.sections(known.fits[0], left_out)),
        payload=dimension_json.payload([(known.fits[0], None)], {0: left_out}, {}),
        unsettled=[made.detail] if made.state is State.UNKNOWN else [],
        rerun="cpersona-cli dimension",
        home="/home/u",
        elapsed=0.31,
    )


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", fits.ALL)
def test_golden(name: str, width: int) -> None:
    """``UPDATE_GOLDEN=1 pytest tests/report`` writes the files anew; read the difference before committing it."""
    shown = render(report(fits.ALL[name]), Style(width=width))
    file = GOLDEN / f"{name}-{width}.txt"
    if os.environ.get("UPDATE_GOLDEN") == "1":
        file.parent.mkdir(exist_ok=True)
        file.write_text(shown, "utf-8")
    assert shown == file.read_text("utf-8")
    assert [line for line in shown.splitlines() if columns(line) > width and "cpersona-cli" not in line] == []


def test_no_golden_file_is_forgotten() -> None:
    assert {file.stem for file in GOLDEN.glob("*.txt")} == {f"{n}-{w}" for n in fits.ALL for w in (80, 120)}


def shown(made: Fit, *, verbose: int = 0, left_out: str = "") -> str:
    return render(report(made, left_out), Style(width=120, verbose=verbose))


def test_agents_have_lines_of_their_own_where_all_is_asked_for() -> None:
    assert "stored vectors by agent" not in shown(fits.CHANGED)
    text = shown(fits.CHANGED, verbose=1)
    assert "  atlas     memories    384  -        40\n  borealis  episodes    384  -         5\n" in text


def test_a_strip_of_nothing_but_the_same_is_for_those_who_ask() -> None:
    assert "beside new ones of the same texts" not in shown(fits.OK)
    assert "█" * 12 in shown(fits.OK, verbose=1)
    assert "beside new ones of the same texts" not in shown(fits.DOWN, verbose=1)


def test_why_no_text_was_sent() -> None:
    assert "no stored text was embedded again: not asked for (--sample 0)" in shown(
        fits.CHANGED, left_out="not asked for (--sample 0)"
    )


def test_contents_read_in_part_or_not_at_all() -> None:
    part = census(group(9000), contents=Contents(looked=2000, total=9000, norms={1.0: 2000}))
    assert "2,000 of 9,000 vectors read: finite, none zero, of length one" in shown(fit(State.OK, part))
    none = census(group(9000), contents=Contents(looked=0, total=9000))
    assert "none of 9,000 vectors were read" in shown(fit(State.OK, none))


def test_the_rest_of_what_is_known() -> None:
    counted = census(
        group(5, None),
        group(4, 9, form=Form.ODD, oldest="", newest=""),
        group(2, 3, table="record_nodes", oldest="", newest=""),
        blank={Kind.MEMORY: 2, Kind.EPISODE: 0},
        unmeasured=("contents of record_blocks",),
        contents=Contents(looked=30, total=30, norms={n / 10: 1 for n in range(1, 31)}),
    )
    made = fit(
        State.OK,
        counted,
        unmeasured=("where memories changed",),
        past=replace(fits.HEALED.past, holds=False) if fits.HEALED.past else None,
        lost=tuple(AgentCost(agent=f"agent-{n}\x07", rows=n, lost=0) for n in range(1, 12)),
    )
    text = shown(made, verbose=1)
    assert "2 memories without a text, which never get a vector" in text
    assert "where memories changed, contents of record_blocks" in text
    assert "re-embedded 2026-03-21 10:00: 45 vectors of 768 dimensions, and no longer so" in text
    assert "; 3 more\n" in text
    assert "agent-11\\x07 11" in text
    assert "  memories        odd  -         4  -           -" in text
    lengths = text.partition("lengths of the vectors\n")[2].splitlines()[:12]
    assert len(lengths) == 12
    assert sum(int(line.split()[1]) for line in lengths) == 30


def test_marks_of_both_tables_stand_under_each_other() -> None:
    rows = (row(1), row(2, Likeness.OTHER), row(3, Likeness.UNJUDGED), row(1, kind=Kind.EPISODE))
    made = fit(State.MIXED, census(group(3), group(1, table="episodes")), compared=rows, texts_sent=4)
    text = shown(made)
    assert "  memories  █░?\n  episodes  █\n            oldest newest\n" in text
    assert "4 stored vectors beside new ones: 2 same, 1 another model’s, 1 not judged" in text


def test_the_headline_counts_what_was_done() -> None:
    assert dimension.headline(()) == "0 databases, 0 endpoints"
    assert dimension.headline(facts(fits.MIXED).fits) == "1 database, 1 endpoint, 3 calls, 14 stored texts sent"
    without = replace(fits.CHANGED, live=None)
    assert dimension.headline(facts(without).fits) == "1 database, 0 endpoints"


# ---- for machines


@pytest.mark.parametrize("name", fits.ALL)
def test_the_document_obeys_its_schema_and_names_the_four_fields(name: str) -> None:
    made = fits.ALL[name]
    found = document(document_of.render(report(made), Style()))
    assert (found["status"], found["stored_dim"], found["expected_dim"], found["detail"]) == (
        str(made.state),
        made.stored_dim,
        made.expected_dim,
        made.detail,
    )
    assert found["database"] == str(fits.DB)
    assert {entry["agent"] for entry in found["groups"]} <= {"atlas", "borealis"}


def test_the_fields_of_a_mixed_store() -> None:
    found = json.loads(document_of.render(report(fits.MIXED), Style()))
    assert found["widths"] == {"768": 45, "384": 10}
    assert found["agents"][0] == {
        "agent": "atlas", "rows": 48, "lost": 13, "missing": 3, "other_width": 10, "foreign": 0,
    }  # fmt: skip
    assert found["contents"] == {"looked": 55, "total": 55, "complete": True, "flaws": [], "norms": {"1.00": 55}}
    compared = found["compared"]
    assert (compared["rows"], compared["same"], compared["width"], compared["median"]) == (17, 14, 3, 0.9999)
    (change,) = found["breaks"]
    assert (change["table"], change["before"]["id"], change["after"]["width"], change["exact"]) == (
        "memories",
        40,
        384,
        True,
    )
    assert (found["texts_sent"], found["calls"], found["advisory"]) == (14, 3, "nothing")


def test_flaws_index_files_and_reasons() -> None:
    counted = census(
        group(4),
        flaws=fits.DAMAGED.census.contents.flaws,
        indexes=[IndexFile(name="memory.db.memories.vecindex", size=900, width=384, rows=4, format=3, unsafe="old")],
        calibration_width=384,
        calibrated_at="2026-01-01",
    )
    rows = (row(1, Likeness.OTHER), row(2, Likeness.UNJUDGED), row(3, Likeness.UNJUDGED))
    made = fit(State.SWAPPED, counted, compared=rows, foreign={Kind.MEMORY: 4}, interleaved=(Kind.EPISODE,))
    endpoint = Endpoint(mode="api", url="https://me:secret@host.example/v1?key=k1", key="0123456789", model="m")
    judged = facts(made).fits[0]
    found = dict(dimension_json.payload([(judged, endpoint)], {0: "not allowed"}, {0: ("why",)}))
    assert found["endpoint"] == {
        "mode": "api",
        "url": "https://host.example/v1",
        "model": "m",
        "key": "set (10 characters)",
        "timeout_seconds": 30.0,
    }
    compared = found["compared"]
    assert isinstance(compared, dict)
    assert compared["unjudged_because"] == {"the text is refused": 2}
    assert compared["not_made_because"] == "not allowed"
    assert [entry["id"] for entry in compared["different"]] == [1]
    assert found["unsettled_because"] == ("why",)
    assert found["foreign"] == {"memories": 4}
    assert found["interleaved"] == ["episodes"]
    assert found["calibration"] == {"dimensions": 384, "calibrated_at": "2026-01-01"}
    assert found["indexes"] == [
        {
            "name": "memory.db.memories.vecindex", "bytes": 900, "dimensions": 384, "rows": 4, "format": 3,
            "unsafe": "old",
        }
    ]  # fmt: skip


def test_several_pairs_are_targets() -> None:
    judged = facts(fits.OK).fits[0]
    found = dimension_json.payload([(judged, None), (judged, None)], {}, {})
    assert list(found) == ["targets"]
    assert dimension_json.payload([], {}, {}) == {"targets": []}
