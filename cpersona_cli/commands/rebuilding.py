"""One run of a rebuild: what is worked on, whether it can be, what it takes, whether the user agrees, and the work."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cpersona_cli.commands import aftermath, jobs
from cpersona_cli.commands.beforehand import former
from cpersona_cli.commands.chosen import named
from cpersona_cli.commands.errors import CommandError, UsageError
from cpersona_cli.commands.gate import gate
from cpersona_cli.commands.process import crash, exit_code, impatient
from cpersona_cli.commands.rebuild_plan import COUNTING, planned
from cpersona_cli.commands.rebuild_request import Request, again, check, pointing
from cpersona_cli.commands.signals import Patience, patient
from cpersona_cli.commands.talk import Talk
from cpersona_cli.commands.workplace import Workplace, asking, find
from cpersona_cli.embedding.capabilities import counts_tokens
from cpersona_cli.embedding.loop import run as in_loop
from cpersona_cli.embedding.model import Endpoint
from cpersona_cli.install.machine import Machine, this_machine
from cpersona_cli.rebuild.finish import finish
from cpersona_cli.rebuild.job import Job, settle, told
from cpersona_cli.rebuild.judge import QUERIES, ROWS, Item, judged
from cpersona_cli.rebuild.judgement import Verdict
from cpersona_cli.rebuild.model import Plan, Progress
from cpersona_cli.rebuild.select import Selector
from cpersona_cli.rebuild.target import Identified, identified
from cpersona_cli.rebuild.work import Ended, Why, Work
from cpersona_cli.record import replace
from cpersona_cli.report import inventory
from cpersona_cli.report import reembed as page
from cpersona_cli.report.exits import Exit
from cpersona_cli.report.model import Report
from cpersona_cli.report.progress import Teller, reported
from cpersona_cli.report.reembed_json import document
from cpersona_cli.store.cpersona.store import CPersonaStore
from cpersona_cli.store.job import JobError, Target
from cpersona_cli.store.model import StoreError
from cpersona_cli.text import plural


def rebuild(request: Request, machine: Machine | None = None) -> Report:
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
    talk: Talk = field(init=False)

    def __post_init__(self) -> None:
        self.talk = Talk(self.teller, str(self.machine.home), self.request.yes)

    def report(self) -> Report:
        """All of it."""
        request = self.request
        place = find(request.selection, self.machine, again(request), asking())
        try:
            if request.action:
                return jobs.act(request.action, place, self)
            return self._gated(place)
        except JobError as error:
            return self.refused(place, str(error), jobs.status_command(place.database.path))
        except StoreError as error:
            raise CommandError(str(error)) from error

    def _gated(self, place: Workplace) -> Report:
        request = self.request
        checks, findings = gate(place, named=request.chosen.url is not None)
        if findings:
            return self.base(
                place,
                checks=checks,
                findings=findings,
                error_code=Exit.NEGATIVE,
                summary="refused, because the result would be wrong; nothing was changed",
                next_command=f"cpersona-cli traps explain {findings[0].trap}",
            )
        endpoint = self.endpoint(place)
        store = CPersonaStore(place.database.path)
        if not request.dry_run and not request.compare_only:
            settled = settle(place.database.path, store, self.teller.tell)
            if settled is not None:
                return self._done(place, endpoint, settled)
        self.teller.tell(_phase("asking the endpoint"))
        found = identified(endpoint)
        self.teller.clear()
        if not found.ok:
            return self._unusable(place, found)
        if request.compare_only:
            return self._compared(place, store, found)
        return self._planned(place, store, found)

    def endpoint(self, place: Workplace) -> Endpoint:
        """The endpoint whose vectors are wanted. Raises ``UsageError`` where none is known."""
        goals = place.goals()
        configured = goals[0].endpoint if goals else None
        chosen = self.request.chosen
        if chosen.url is not None:
            endpoint = named(chosen, self.machine.env)
            if chosen.model is not None:
                return replace(endpoint, named=True)
            # what the registration that will call it says of the model
            return endpoint if configured is None else replace(endpoint, model=configured.model, named=configured.named)
        if configured is None:
            path = place.database.path
            raise UsageError(f"no registration opens {path}, so nothing says where its vectors come from; add --url")
        return configured

    def _unusable(self, place: Workplace, found: Identified) -> Report:
        probe = " ".join(["cpersona-cli probe", *pointing(self.request)])
        if found.no_verdict:
            return self.base(
                place, unsettled=found.refusals, summary="not begun; nothing was changed", next_command=probe
            )
        return self.base(
            place,
            sections=[page.refused_section(found.refusals)],
            fields={"refusals": found.refusals},
            error_code=Exit.NEGATIVE,
            summary="refused; nothing was changed",
            next_command=probe,
        )

    def _compared(self, place: Workplace, store: CPersonaStore, found: Identified) -> Report:
        """Only the question whether search gets better."""
        self.talk.consent(found.endpoint, "a sample of stored texts")
        old = former(self.request, place, found.endpoint)
        self.teller.tell(_phase("comparing search"))
        rows = store.sample(ROWS, deadline=time.monotonic() + COUNTING)
        items = [Item(text=row.text, old=row.vector) for row in rows]
        judgement = judged(items, new=found.endpoint, old=old, queries=self._sample())
        self.teller.clear()
        unknown = judgement.verdict is Verdict.UNKNOWN
        worse = judgement.verdict is Verdict.WORSE
        return self.base(
            place,
            sections=[page.judgement_section(judgement)],
            fields={"action": "compare", "target": _target(found), "search": judgement},
            measured=1,
            error_code=Exit.NO_VERDICT if unknown else Exit.NEGATIVE if worse else Exit.OK,
            summary=f"search with the new model: {judgement.verdict}; nothing was changed",
            next_command="" if unknown or worse else again(self.request),
        )

    def _planned(self, place: Workplace, store: CPersonaStore, found: Identified) -> Report:
        request, target = self.request, _target(found)
        path = place.database.path
        made = planned(self, place, store, found, target)
        plan, left = made.plan, made.left
        section = page.plan_section(plan, waiting=left)
        shown = {"plan": plan, "target": target}
        if plan.refusals:
            return self.base(
                place,
                sections=[page.refused_section(plan.refusals), section],
                fields={**shown, "refusals": plan.refusals},
                error_code=Exit.NEGATIVE,
                summary="refused; nothing was changed",
                next_command="" if made.begun is None else jobs.status_command(path),
            )
        total = sum(plan.rows.values())
        if request.dry_run:
            return self.base(
                place,
                sections=[section],
                fields=shown,
                measured=1,
                summary=f"{plural(total, 'row')} would be embedded anew; nothing was changed",
                next_command=again(request),
            )
        if not total and made.begun is None:
            return self.base(
                place, sections=[section], fields=shown, measured=1, summary="nothing to do; nothing was changed"
            )
        verb = "Send the texts there and rebuild" if plan.consent else "Rebuild"
        sends = f"stored texts to {plan.consent}" if plan.consent else ""
        self.talk.plan([section], f"{verb}? Nothing is lost, and it can be undone.", sends)
        return self._work(place, found, plan, made.select, shown)

    def _sample(self) -> int:
        return QUERIES if self.request.sample is None else self.request.sample

    def _work(
        self,
        place: Workplace,
        found: Identified,
        plan: Plan,
        select: Selector,
        shown: Mapping[str, Any],
    ) -> Report:
        request = self.request
        work = Work(
            database=place.database.path,
            store=CPersonaStore(place.database.path),
            endpoint=found.endpoint,
            identified=found,
            plan=plan,
            select=select,
            cut_texts=request.cut_long,
            **{
                name: number
                for name, number in (
                    ("concurrency", request.concurrency),
                    ("batch", request.batch_size),
                    ("batch_tokens", request.max_tokens),
                    ("max_errors", request.max_errors),
                )
                if number is not None
            },
            old=former(self.request, place, found.endpoint),
            live=request.live,
            sample=self._sample(),
            tokens=in_loop(counts_tokens(found.endpoint)),
        )
        with patient(self.talk.stopping) as patience:
            job = Job(work, patience.stop, self.teller.tell, agree=self.talk.better, wait=self.talk.wait)
            try:
                ended = job.run()
            except KeyboardInterrupt as error:
                impatient()
                return self._interrupted(place, exit_code(error))
            except JobError:
                raise
            except StoreError as error:
                return self._broken(place, str(error))
            except Exception as error:  # noqa: BLE001 - a bug of ours must not hide what was kept
                return self._broken(place, crash(error, "The database is all old or all new."))
        return self._done(place, found.endpoint, ended, patience=patience, shown=shown)

    def _done(
        self,
        place: Workplace,
        endpoint: Endpoint,
        ended: Ended,
        *,
        patience: Patience | None = None,
        shown: Mapping[str, Any] | None = None,
    ) -> Report:
        """The report of a run that came to an end of its own."""
        request, path = self.request, place.database.path
        stopped = ended.reason == Why.INTERRUPTED
        steps = aftermath.steps(request, place, endpoint, ended) if ended.switched and not request.action else ()
        if ended.switched:
            told(path)
        code = Exit.OK if ended.complete else Exit.NEGATIVE
        return self.base(
            place,
            sections=[*page.ended_sections(ended), *page.steps_sections(steps)],
            fields={**(shown or {}), "ended": ended, "steps": steps},
            measured=1,
            notes=(*request.notes, *ended.notes),
            error_code=patience.code if stopped and patience is not None else code,
            summary=aftermath.summary(ended),
            next_command=aftermath.following(request, place, ended),
        )

    def _interrupted(self, place: Workplace, code: Exit) -> Report:
        """The report of a run that was stopped at once: what was kept until then."""
        return self.base(
            place,
            error_code=code,
            summary=f"interrupted; {jobs.kept(place.database.path)}",
            next_command=again(self.request, database=place.database.path),
        )

    def _broken(self, place: Workplace, sentence: str) -> Report:
        """The report of a run that something kept from going on."""
        return self.base(
            place,
            unsettled=[sentence],
            error_code=Exit.NEGATIVE,
            summary=f"stopped; {jobs.kept(place.database.path)}",
            next_command=again(self.request, database=place.database.path),
        )

    def refused(self, place: Workplace, sentence: str, next_command: str) -> Report:
        """The report of a run that was not begun, because of how things stand."""
        self.teller.clear()
        return self.base(
            place,
            sections=[page.refused_section([sentence])],
            fields={"refusals": (sentence,)},
            error_code=Exit.NEGATIVE,
            summary="refused; nothing was changed",
            next_command=next_command,
        )

    def finish(self, place: Workplace) -> Report:
        """Embed what a live server wrote with the former model after the switch."""
        endpoint = self.endpoint(place)
        self.talk.consent(endpoint, "stored texts")
        self.teller.tell(_phase("asking the endpoint"))
        found = identified(endpoint)
        if not found.ok:
            return self._unusable(place, found)
        tokens = in_loop(counts_tokens(endpoint))
        with patient(self.talk.stopping) as patience:
            try:
                store = CPersonaStore(place.database.path)
                ended = finish(place.database.path, store, found, self.teller.tell, patience.stop, tokens=tokens)
            except KeyboardInterrupt as error:
                impatient()
                return self._interrupted(place, exit_code(error))
        return self._done(place, endpoint, ended, patience=patience)

    def base(self, place: Workplace, *, fields: Mapping[str, Any] | None = None, **parts: Any) -> Report:  # noqa: ANN401
        """A report: ``parts`` of it, and the ``fields`` of this command's document."""
        path = place.database.path
        return Report(
            command="reembed",
            headline=str(path),
            payload=document(**{"database": path, "action": self.request.action or "rebuild", **(fields or {})}),
            home=str(self.machine.home),
            secrets=(*inventory.secrets(place.facts), *self._secrets(place)),
            **{"notes": self.request.notes, **parts},
        )

    def _secrets(self, place: Workplace) -> tuple[str, ...]:
        chosen = self.request.chosen
        own = named(chosen, self.machine.env).secrets if chosen.url is not None else ()
        return (*own, *(value for goal in place.goals() for value in goal.endpoint.secrets))


def _phase(name: str, *, why: str = "") -> Progress:
    return Progress(phase=name, done=0, total=0, why=why)


def _target(found: Identified) -> Target:
    assert found.target is not None  # noqa: S101 - for the type checker; ``ok`` was asked
    return found.target
