"""What may be asked about earlier imports: taken out again, or the harm they did mended."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from cpersona_cli.commands.errors import UsageError
from cpersona_cli.commands.import_around import lens
from cpersona_cli.commands.workplace import Workplace, asking
from cpersona_cli.rebuild.model import Progress
from cpersona_cli.report import backfill as page
from cpersona_cli.report.exits import Exit
from cpersona_cli.report.model import Report
from cpersona_cli.report.output import show
from cpersona_cli.report.reembed import Step, steps_sections
from cpersona_cli.store.cpersona.store import CPersonaStore
from cpersona_cli.store.writing.imports import Action, Import
from cpersona_cli.store.writing.mending import find, mend
from cpersona_cli.store.writing.taking_back import take_back, which
from cpersona_cli.text import plural, quoted

if TYPE_CHECKING:
    from cpersona_cli.commands.importing import Run


def act(action: str, place: Workplace, run: Run) -> Report:
    """Do what the first word asks for. Raises ``StoreError`` and ``CommandError``."""
    return _ACTIONS[action](place, run)


def _undo(place: Workplace, run: Run) -> Report:
    path = place.database.path
    chosen = which(path)
    run.talk.confirm(f"{_what(chosen)} would be taken back from {run.shown(path)}.")
    done = take_back(path, chosen.id, tell=_telling(run, "taking back"))
    run.teller.clear()
    whole = not done.left
    rows = plural(done.removed, "row")
    verb = "dated as before" if done.of.action is Action.REPAIR else "taken out"
    return run.base(
        place,
        sections=[page.taken_section(done)],
        fields={"undone": done},
        measured=1,
        error_code=Exit.OK if whole else Exit.NEGATIVE,
        summary=f"{rows} {verb}" + ("" if whole else f", {done.left:,} left, because they changed since"),
    )


def _what(chosen: Import) -> str:
    """An import or a repair, for a question."""
    when = f"{dt.datetime.fromtimestamp(chosen.started).astimezone():%Y-%m-%d %H:%M}"
    kind = "The repair" if chosen.action is Action.REPAIR else "The import"
    return f"{kind} of {when} ({page.by_kind(chosen.rows)})"


def _repair(place: Workplace, run: Run) -> Report:
    path, request = place.database.path, run.request
    run.teller.tell(Progress(phase="looking", done=0, total=0))
    harm = find(CPersonaStore(path), lens(place))
    run.teller.clear()
    sections = list(page.harm_sections(harm))
    db = f"--db {quoted(str(path))}"
    if not harm.episodes:
        return run.base(
            place,
            sections=sections,
            fields={"harm": harm},
            measured=1,
            summary="no harm of an import was found; nothing was changed",
        )
    if request.dry_run:
        return run.base(
            place,
            sections=sections,
            fields={"harm": harm},
            measured=1,
            summary=f"{plural(harm.episodes, 'episode')} would be dated back; nothing was changed",
            next_command=f"cpersona-cli backfill repair {db}",
        )
    if not request.yes:
        if asking() is None:
            raise UsageError("nobody is here to confirm the repair; look at it with --dry-run, then add --yes")
        show(sections, str(run.machine.home))
        episodes = plural(harm.episodes, "episode")
        run.talk.confirm(f"{episodes} would be dated back to when they ended, in {run.shown(path)}.")
    done = mend(path, tell=_telling(run, "dating back"))
    run.teller.clear()
    steps = [
        Step(sentence="undo dates them again as they were", commands=(f"cpersona-cli backfill undo {db}",)),
    ]
    return run.base(
        place,
        sections=[page.mended_section(done), *sections, *steps_sections(steps if done.id else ())],
        fields={"harm": harm, "mended": done},
        measured=1,
        error_code=Exit.NEGATIVE if done.left else Exit.OK,
        summary=f"{plural(done.mended, 'episode')} dated back" + (f", {done.left:,} left" if done.left else ""),
    )


def _telling(run: Run, name: str) -> Callable[[int, int], None]:
    return lambda done, total: run.teller.tell(Progress(phase=name, done=done, total=total))


_ACTIONS: Mapping[str, Callable[[Workplace, Run], Report]] = {"undo": _undo, "repair": _repair}
