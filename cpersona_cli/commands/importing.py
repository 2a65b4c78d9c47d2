"""One run of an import: what is read, what it would change, whether the user agrees, and the work."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cpersona_cli.commands import import_around as surroundings
from cpersona_cli.commands import import_later as later
from cpersona_cli.commands.errors import CommandError, UsageError
from cpersona_cli.commands.gate import gate
from cpersona_cli.commands.import_request import Request, again, check, times
from cpersona_cli.commands.process import crash, exit_code, impatient
from cpersona_cli.commands.rebuild_request import pointing
from cpersona_cli.commands.signals import patient
from cpersona_cli.commands.talk import Talk
from cpersona_cli.commands.workplace import Workplace, asking, find
from cpersona_cli.embedding.model import Endpoint, Mode
from cpersona_cli.fit.model import Fit
from cpersona_cli.history.bring_in import Brought, NoVectors, bring_in, why_none
from cpersona_cli.history.gather import Read, gather
from cpersona_cli.history.model import Format, HistoryError
from cpersona_cli.history.plan import Plan, know, make_plan
from cpersona_cli.history.read import read
from cpersona_cli.history.rows import UNDATED
from cpersona_cli.history.wants import Wants
from cpersona_cli.install.machine import Machine, this_machine
from cpersona_cli.install.proxies import is_loopback
from cpersona_cli.rebuild.model import Progress
from cpersona_cli.rebuild.target import Identified, identified
from cpersona_cli.record import replace
from cpersona_cli.report import backfill as page
from cpersona_cli.report import inventory
from cpersona_cli.report.backfill import Around
from cpersona_cli.report.backfill_json import document
from cpersona_cli.report.exits import Exit
from cpersona_cli.report.model import Report, Section
from cpersona_cli.report.progress import Teller, reported
from cpersona_cli.report.reembed import Step, refused_section, steps_sections
from cpersona_cli.store.job import JobError
from cpersona_cli.store.model import StoreError
from cpersona_cli.store.writing.filling import Bare
from cpersona_cli.store.writing.scratch import Scratch
from cpersona_cli.text import plural, quoted, safe, tilde


def run(request: Request, machine: Machine | None = None) -> Report:
    """Do what was asked. Raises ``CommandError`` when there can be no result."""
    check(request)
    return reported(
        lambda teller: Run(request, machine or this_machine(), teller).report(),
        chosen=request.progress,
        quiet=request.quiet,
        code=exit_code,
    )


@dataclass(slots=True)
class Run:
    """One run: what was found out so far, step by step."""

    request: Request
    machine: Machine
    teller: Teller

    @property
    def talk(self) -> Talk:
        """What is asked of the user."""
        return Talk(self.teller, str(self.machine.home), self.request.yes)

    def report(self) -> Report:
        """All of it."""
        request = self.request
        # what can be told of the request alone is told before anything is looked at
        moments = times(request, dt.datetime.now(dt.UTC))
        place = find(request.selection, self.machine, again(request), asking())
        try:
            endpoint = None if request.action else surroundings.endpoint(request, place, self.machine)
            refused = self._gated(place, endpoint)
            if refused is not None:
                return refused
            if request.action:
                return later.act(request.action, place, self)
            wanted = surroundings.wants(request, place, moments)
            with Scratch() as scratch:
                self.teller.tell(phase("reading"))
                know(place.database.path, scratch)
                source = Format(request.source) if request.source is not None else None
                found = gather(read(request.paths, moments.clock, source), wanted, scratch, tell=self._reading)
                return self._planned(place, wanted, scratch, found, endpoint)
        except HistoryError as error:
            raise surroundings.nobody(place, error) if "--agent" in str(error) else UsageError(str(error)) from error
        except StoreError as error:
            raise CommandError(str(error)) from error

    def _gated(self, place: Workplace, endpoint: Endpoint | None) -> Report | None:
        """The refusal where the result would be wrong."""
        uncalled = "" if endpoint is not None else "no endpoint is called"
        checks, findings = gate(place, named=self.request.chosen.url is not None, uncalled=uncalled)
        if not findings:
            return None
        without = "; --no-embed stores without vectors" if endpoint is not None else ""
        return self.base(
            place,
            checks=checks,
            findings=findings,
            error_code=Exit.NEGATIVE,
            summary=f"refused, because the result would be wrong; nothing was changed{without}",
            next_command=f"cpersona-cli traps explain {findings[0].trap}",
        )

    def _reading(self, conversations: int, rows: int) -> None:
        said = f"{plural(conversations, 'conversation')}, {plural(rows, 'message')}"
        self.teller.tell(phase("reading", why=said))

    def _planned(
        self, place: Workplace, wanted: Wants, scratch: Scratch, found: Read, endpoint: Endpoint | None
    ) -> Report:
        request, path = self.request, place.database.path
        target = None
        if endpoint is not None:
            self.teller.tell(phase("asking the endpoint"))
            target = identified(endpoint)
        plan = make_plan(path, scratch, found, wanted, tell=lambda name: self.teller.tell(phase(name)))
        plan = replace(
            plan,
            refusals=(*self._strictly(found), *plan.refusals),
            warnings=(
                *plan.warnings,
                *surroundings.strange(request, place),
                *surroundings.elsewhere(place),
                *surroundings.ages(place, plan, scratch.oldest()),
            ),
        )
        bare = surroundings.waiting(path) if target is not None else Bare(rows=0, characters=0)
        # stored texts, too, leave this computer only after a yes
        beside = None
        if target is not None and not (plan.empty and not bare.rows):
            allowed = request.yes or is_loopback(target.endpoint.url)
            beside = self._beside(place, plan, target) if allowed else None
        around = surroundings.around(request, place, wanted, plan, found=target, beside=beside, bare=bare)
        self.teller.clear()
        sections = list(page.plan_sections(plan, around))
        shown = {"plan": plan, "around": around}
        if plan.refusals:
            return self._refused(place, plan, around)
        command = again(request, database=path, agent=wanted.agent if request.agent is None else "")
        rows = page.by_kind(plan.rows)
        if request.dry_run:
            return self.base(
                place,
                sections=sections,
                fields=shown,
                measured=1,
                error_code=Exit.NEGATIVE if plan.empty and failed(plan) else Exit.OK,
                summary=f"{rows} would be stored{_unread(found)}; nothing was changed",
                next_command="" if plan.empty else command,
            )
        if plan.empty and not around.waiting:
            # rows of earlier imports that should have a vector, and for which there is none now either
            lacking = f", {bare.rows:,} of earlier imports without a vector" if bare.rows else ""
            return self.base(
                place,
                sections=sections,
                fields=shown,
                measured=1,
                error_code=Exit.NEGATIVE if failed(plan) or bare.rows else Exit.OK,
                summary=f"{_nothing(plan)}{lacking}; nothing was changed",
                next_command=self._vectors(place, why_none(plan, target, beside)) if bare.rows else "",
            )
        self._agree(path, sections, plan, around)
        if target is not None and beside is None:
            beside = self._beside(place, plan, target)
        return self._work(place, wanted, scratch, shown, target=target, beside=beside)

    def _refused(self, place: Workplace, plan: Plan, around: Around) -> Report:
        return self.base(
            place,
            sections=[refused_section(plan.refusals), *page.plan_sections(plan, around)],
            fields={"plan": plan, "around": around},
            measured=1,
            error_code=Exit.NEGATIVE,
            summary="refused; nothing was changed",
        )

    def _beside(self, place: Workplace, plan: Plan, target: Identified) -> Fit | None:
        self.teller.tell(phase("telling models apart"))
        return surroundings.measured(place, plan, target)

    def _strictly(self, found: Read) -> Sequence[str]:
        """Why ``--strict`` forbids it."""
        if not self.request.strict:
            return ()
        undated = _undated(found)
        parts = [f"{plural(found.unread_count, 'place')} could not be read"] if found.unread_count else []
        parts += [f"{undated:,} of what was read {'has' if undated == 1 else 'have'} no date"] if undated else []
        return [f"{' and '.join(parts)}, which --strict forbids"] if parts else []

    def _agree(self, path: Path, sections: Sequence[Section], plan: Plan, around: Around) -> None:
        """Show the plan and have it confirmed. Raises ``UsageError`` where it is not."""
        harm = (
            f"{plural(plan.changed, 'memory', 'memories')} that are there would count differently. "
            if plan.changed
            else ""
        )
        what = f"Make {around.waiting:,} missing vectors" if plan.empty else f"Store {page.by_kind(plan.rows)}"
        if around.sends:
            what = f"Send the texts there and {what[:1].lower()}{what[1:]}"
        sends = f"texts to {around.sends}" if around.sends else ""
        question = f"{harm}{what} in {self.shown(path)}?{'' if plan.empty else ' It can be undone.'}"
        self.talk.plan(sections, question, sends)

    def shown(self, path: Path) -> str:
        """A path, for a question."""
        return safe(tilde(str(path), str(self.machine.home)), 300)

    def _work(
        self,
        place: Workplace,
        wanted: Wants,
        scratch: Scratch,
        shown: Mapping[str, Any],
        *,
        target: Identified | None,
        beside: Fit | None,
    ) -> Report:
        path, plan = place.database.path, shown["plan"]
        with patient(self.talk.stopping) as patience:
            try:
                done = bring_in(
                    path,
                    scratch,
                    plan,
                    wanted,
                    identified=target,
                    beside=beside,
                    tell=self.teller.tell,
                    stop=patience.stop,
                )
            except KeyboardInterrupt as error:
                impatient()
                return self._broken(place, shown, exit_code(error), "interrupted")
            except JobError as error:
                return self._refused(place, replace(plan, refusals=(str(error),)), shown["around"])
            except StoreError as error:
                return self._broken(place, shown, Exit.NEGATIVE, "stopped", str(error))
            except Exception as error:  # noqa: BLE001 - a bug of ours must not hide what was stored
                return self._broken(
                    place, shown, Exit.NEGATIVE, "stopped", crash(error, "What was stored until then is stored.")
                )
        self.teller.clear()
        steps = self._steps(place, done)
        return self.base(
            place,
            sections=[*page.ended_sections(done, plan), *steps_sections(steps)],
            fields={**shown, "done": done},
            measured=1,
            error_code=patience.code if done.interrupted else Exit.OK if done.whole else Exit.NEGATIVE,
            summary=summary(done, plan.read),
            next_command=self._next(place, wanted, done),
        )

    def _broken(self, place: Workplace, shown: Mapping[str, Any], code: Exit, word: str, sentence: str = "") -> Report:
        """The report of a run that was cut off: each transaction until then is whole."""
        return self.base(
            place,
            fields=shown,
            unsettled=[sentence] if sentence else [],
            error_code=code,
            summary=f"{word}; what was stored until then is kept, and the same command stores the rest",
            next_command=again(self.request, database=place.database.path),
        )

    def _next(self, place: Workplace, wanted: Wants, done: Brought) -> str:
        if done.interrupted:
            agent = wanted.agent if self.request.agent is None else ""
            return again(self.request, database=place.database.path, agent=agent)
        lacking = done.without_vector and done.why_none != NoVectors.NOT_WANTED
        return self._vectors(place, done.why_none) if lacking else ""

    def _vectors(self, place: Workplace, why: str | None) -> str:
        """The command that helps where rows have no vector."""
        other = why in {NoVectors.OTHER_WIDTH, NoVectors.OTHER_MODEL}
        return " ".join(["cpersona-cli", "dimension" if other else "reembed --only missing", *self._about(place)])

    def _about(self, place: Workplace) -> list[str]:
        words = pointing(self.request)
        if self.request.selection.db is None:
            words.append(f"--db {quoted(str(place.database.path))}")
        return words

    def _steps(self, place: Workplace, done: Brought) -> Sequence[Step]:
        db = f"--db {quoted(str(place.database.path))}"
        steps = []
        if done.without_vector and done.why_none == NoVectors.NOT_WANTED and self.request.no_embed:
            known = any(goal.endpoint.mode != Mode.NONE for goal in place.goals())
            how = "give them one" if known else "name an endpoint (--url) or register one, and give them one"
            steps.append(
                Step(
                    sentence=f"rows without a vector are found by their words alone: {how}",
                    commands=(f"cpersona-cli reembed --only missing {db}",) if known else (),
                )
            )
        if done.id:
            steps.append(
                Step(
                    sentence="undo takes these rows out again, as long as they stay as they are",
                    commands=(f"cpersona-cli backfill undo {db}",),
                )
            )
        return steps

    def base(self, place: Workplace, *, fields: Mapping[str, Any] | None = None, **parts: Any) -> Report:  # noqa: ANN401
        """A report: ``parts`` of it, and the ``fields`` of this command's document."""
        path = place.database.path
        own = [value for goal in place.goals() for value in goal.endpoint.secrets]
        return Report(
            command="backfill",
            headline=str(path),
            payload=document(database=path, action=self.request.action or "import", **(fields or {})),
            home=str(self.machine.home),
            secrets=(*inventory.secrets(place.facts), *own, *self._chosen_secrets()),
            **{"notes": self.request.notes, **parts},
        )

    def _chosen_secrets(self) -> Sequence[str]:
        return surroundings.secrets(self.request, self.machine)


def failed(plan: Plan) -> bool:
    """Whether nothing came of it for no rule: something could not be read or dated, and nothing is there either."""
    read, tallies = plan.read, (plan.memories, plan.episodes)
    return bool(read.unread_count or _undated(read)) and plan.empty and not any(one.duplicates for one in tallies)


def _undated(read: Read) -> int:
    """Messages and conversations that are left out because no date of them is known."""
    return sum(one.left_out.get(UNDATED, 0) for one in (read.memories, read.episodes))


def summary(done: Brought, read: Read) -> str:
    """The last line: what became of everything that was read."""
    tallies = (done.memories, done.episodes)
    parts = [f"{page.by_kind(done.rows)} stored"]
    for count, words in (
        (sum(one.duplicates for one in tallies), "there already"),
        (sum(one.out for one in tallies), "left out"),
        (sum(one.failures for one in tallies), "failed"),
        (sum(one.rest for one in tallies), "not come to"),
    ):
        parts += [f"{count:,} {words}"] if count else []
    parts += [f"{read.unread_count:,} could not be read"] if read.unread_count else []
    parts += [f"{done.without_vector:,} without a vector"] if done.without_vector else []
    parts += ["interrupted"] if done.interrupted else []
    return ", ".join(parts)


def _nothing(plan: Plan) -> str:
    """That there is nothing to store, and whether that is good."""
    if not failed(plan):
        return f"nothing new{_unread(plan.read)}"
    read = plan.read
    of = max(read.unread_count + read.conversations + read.rows, 1)
    return f"0 of {of:,} imported"


def _unread(read: Read) -> str:
    return f", {read.unread_count:,} could not be read" if read.unread_count else ""


def phase(name: str, *, why: str = "") -> Progress:
    """A step of the work that has no end to count towards."""
    return Progress(phase=name, done=0, total=0, why=why)
