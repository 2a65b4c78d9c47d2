"""What ``reembed`` shows of plans and ends made by hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.documents import document
from support.rebuilt import DATABASE, DONE, ENDS, HOME, PARTLY, PLAN, PLANS, SMALL, STOPPED, TARGET

from cpersona_cli.commands.aftermath import summary
from cpersona_cli.install.model import Place
from cpersona_cli.record import replace
from cpersona_cli.report import json as machine
from cpersona_cli.report import reembed as page
from cpersona_cli.report import reembed_json
from cpersona_cli.report.exits import Exit
from cpersona_cli.report.layout import Style, columns
from cpersona_cli.report.model import Report
from cpersona_cli.report.reembed import Step, size
from cpersona_cli.report.reembed_job import job_payload, job_rows, job_sentence
from cpersona_cli.report.text import render
from cpersona_cli.store.job import JobState
from cpersona_cli.store.model import Kind
from cpersona_cli.store.writing.finished import Finished
from cpersona_cli.store.writing.settling import CutOver
from cpersona_cli.store.writing.stagingfile import Meta, StagingCounts
from cpersona_cli.store.writing.status import JobStatus
from cpersona_cli.store.writing.undofile import UndoMeta

GOLDEN = Path(__file__).parent / "golden" / "reembed"

STEPS = (
    Step(
        sentence=f"Claude Code (user): in {HOME}/.claude.json, line 12, add to its environment, then restart it",
        edit='"CPERSONA_EMBEDDING_MODE": "api",\n"CPERSONA_EMBEDDING_API_URL": "https://api.example.com/v1/embeddings"',
        place=Place(file=Path(HOME, ".claude.json"), line=12),
    ),
    Step(sentence="the old vectors are kept", commands=("cpersona-cli reembed undo", "cpersona-cli reembed forget")),
)

REPORTS = {
    **{
        name: Report(
            command="reembed",
            headline=str(DATABASE),
            sections=[page.plan_section(plan, waiting=left)],
            measured=1,
            summary="rows would be embedded anew; nothing was changed",
            home=HOME,
            elapsed=0.4,
        )
        for name, (plan, left) in PLANS.items()
    },
    **{
        name: Report(
            command="reembed",
            headline=str(DATABASE),
            sections=[*page.ended_sections(ended), *(page.steps_sections(STEPS) if ended.switched else ())],
            payload=reembed_json.document(database=DATABASE, action="rebuild", plan=PLAN, ended=ended, steps=STEPS),
            measured=1,
            error_code=Exit.OK if ended.complete else Exit.NEGATIVE,
            summary=summary(ended),
            next_command=f"cpersona-cli reembed --db {DATABASE}",
            home=HOME,
            elapsed=241.9,
        )
        for name, ended in ENDS.items()
    },
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
    assert all("cpersona-cli" in line or "CPERSONA_" in line for line in long), long


def test_no_golden_file_is_forgotten() -> None:
    assert {file.stem for file in GOLDEN.glob("*.txt")} == {
        f"{name}-{width}" for name in REPORTS for width in (80, 120)
    }


def test_a_document_has_every_field_whatever_came_of_it() -> None:
    empty = reembed_json.document(database=DATABASE, action="status")
    for ended in ENDS.values():
        full = reembed_json.document(
            database=DATABASE, action="rebuild", plan=SMALL, target=TARGET, ended=ended, steps=STEPS, job={}
        )
        assert list(full) == list(empty)
        found = document(machine.render(Report(command="reembed", payload=full, measured=1), Style()))
        assert found["done"] == ended.counts.done
        assert found["ids"] == [f"{entry.kind}:{entry.id}" for entry in ended.failed]


def test_what_is_complete() -> None:
    assert DONE.complete
    assert not PARTLY.complete
    assert not STOPPED.complete
    assert not replace(DONE, held=DONE.held - 1).complete
    assert not replace(DONE, missed=1).complete
    assert not replace(DONE, counts=replace(DONE.counts, nothing=0)).complete


def test_a_switch_of_an_earlier_run_is_told_as_such() -> None:
    (section, *_) = page.ended_sections(replace(DONE, cut=CutOver(recovered=True)))
    assert ("switched", "by the earlier run, which ended before it could say so", "") in section.rows


@pytest.mark.parametrize(
    ("count", "shown"),
    [(950, "950 bytes"), (1024, "1.0 KiB"), (12_000, "12 KiB"), (3 << 20, "3.0 MiB"), (3 << 42, "12,288 GiB")],
)
def test_sizes(count: int, shown: str) -> None:
    assert size(count) == shown


# --- a job from outside

META = Meta(
    job="ab", target=TARGET, only="all", cut_texts=False, state=JobState.STAGING, started=1_000_000.0,
    heartbeat=1_000_100.0,
)  # fmt: skip
COUNTS = StagingCounts(rows={Kind.MEMORY: 37}, refused={"too_long": 2})


def rows(job: JobStatus) -> dict[str, str]:
    return {name: value for name, value, _ in job_rows(job, now=1_000_103.0)}


def test_a_job_at_work() -> None:
    job = JobStatus(meta=META, counts=COUNTS, kept={"planned": 100}, running=12, sizes={DATABASE: 2048})
    assert job_sentence(job) == "37 of 100 new vectors and counting; the old ones are in use"
    found = rows(job)
    assert found["works"] == "process 12 works on it, last heard of 3 s ago"
    assert (found["rows"], found["without"]) == ("37 of 100 have their new vector", "2 too long")
    assert found["file"] == "cpersona.db, 2.0 KiB"
    payload = job_payload(job)
    assert (payload["state"], payload["running_pid"], payload["staged"], payload["planned"]) == ("staging", 12, 37, 100)


def test_a_job_left_behind() -> None:
    job = JobStatus(meta=META, counts=COUNTS)
    assert job_sentence(job) == "37 new vectors are kept; the old ones are in use"
    assert rows(job)["works"] == "nobody works on it, last heard of 3 s ago"
    assert rows(replace(job, running=0))["works"] == "a process works on it, last heard of 3 s ago"


def test_a_job_that_is_over() -> None:
    undo = UndoMeta(job="ab", target=TARGET, only="all", started=1.0, state="cut", cut=1_000_090.0, last={}, counts={})
    done = Finished(
        job="ab", started=1.0, finished=1_000_090.0, only="all", mode="api", url="u", model="m", dim=1536, label="l",
        rows=37, undone=1_000_095.0,
    )  # fmt: skip
    job = JobStatus(meta=replace(META, state=JobState.CUT), counts=COUNTS, undo=undo, finished=done)
    assert job_sentence(job) == "the database holds the new vectors (37 new vectors)"
    found = rows(job)
    assert "works" not in found, "nobody is expected to"
    assert "works" in rows(replace(job, running=12))
    assert found["undo"].startswith("possible: the vectors of before ")
    assert "37 vectors of 1536 dimensions, label l, undone " in found["last"]
    assert job_payload(job)["undo_possible"] is True


def test_a_job_that_cannot_be_read() -> None:
    job = JobStatus(problem="the file is a ruin")
    assert job_sentence(job) == "the staging file cannot be read"
    assert rows(job) == {"problem": "the file is a ruin"}
    assert job_sentence(JobStatus()) == "no job is under way"
    assert job_payload(job)["state"] is None
