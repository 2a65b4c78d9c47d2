"""Starting servers: two processes of each registration's own command, at most two registrations at a time.

The first process stores one made-up memory, the second one must find it: that is what a new session of a client needs.
"""

from __future__ import annotations

import queue
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cpersona_cli.install.machine import Machine
from cpersona_cli.record import record, replace
from cpersona_cli.start.limits import limit
from cpersona_cli.start.model import Failure, Recalled, Run, Start, Stored
from cpersona_cli.start.plan import Candidate, Plan, plan
from cpersona_cli.start.process import Child, ClosedError, Family
from cpersona_cli.start.session import CallError, Quote, Session
from cpersona_cli.text import redact, safe

#: Registrations that are started at one time.
AT_ONCE = 2
#: Seconds that a server gets to end after its stdin was closed, for one answer, and to leave the room when time is up.
GRACE, ANSWER, SLACK = 5.0, 60.0, 3.0
#: Whose memory it is; it lives in the scratch database only.
AGENT = "cpersona-cli-start"
TEXT = "The spare key of the lighthouse hangs behind the blue door of the boat shed."
#: Lines of stderr that are kept of a process, and their characters.
_SAID, _WIDE = 4, 200
_ROUTINE = re.compile(r"\b(?:INFO|DEBUG)\b")

Tell = Callable[[str], None]


@record(kw_only=True)
class Work:
    """How starts are made: the monotonic time at which all must be over, and who is told what is going on.

    ``tell`` is called about every second with one sentence.
    """

    end: float
    tell: Tell | None = None
    grace: float = GRACE


def start_all(candidates: Sequence[Candidate], machine: Machine, work: Work) -> tuple[list[Start], list[Candidate]]:
    """Start each candidate; returns what it showed, and the candidates that there was no time for.

    Whatever happens, also an interruption, no process and no scratch folder is left.
    """
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in range(len(candidates)):
        waiting.put(number)
    done: dict[int, Start] = {}
    busy: dict[int, str] = {}
    family = Family()

    def job(folder: Path) -> None:
        with suppress(queue.Empty, ClosedError):
            while True:
                number = waiting.get_nowait()
                candidate = candidates[number]
                busy[number] = _doing(candidate)
                try:
                    done[number] = _one(candidate, machine, folder / str(number), work, family)
                except OSError as error:
                    if family.closed:  # the run is over, and its scratch folder went with it
                        return
                    done[number] = _known(candidate, machine, f"nothing could be started: {type(error).__name__}")
                del busy[number]

    with _scratch() as folder:
        count = min(AT_ONCE, len(candidates))
        threads = [threading.Thread(target=job, args=(folder,), daemon=True) for _ in range(count)]
        try:
            for thread in threads:
                thread.start()
            while any(thread.is_alive() for thread in threads) and time.monotonic() < work.end + SLACK:
                if work.tell is not None:
                    work.tell("; ".join(list(busy.values())))
                next((thread for thread in threads if thread.is_alive()), threads[0]).join(0.25)
        finally:
            finished = dict(done)
            family.close()
            for thread in threads:
                thread.join(1.0)
    starts = [finished[number] for number in sorted(finished)]
    return starts, [candidate for number, candidate in enumerate(candidates) if number not in finished]


def _doing(candidate: Candidate) -> str:
    registration = candidate.registration
    fetching = registration.launch.kind in {"uvx", "pipx"}
    more = f", and {registration.launch.program} may download it first" if fetching else ""
    return f"starting the server of {registration.label}{more}"


@contextmanager
def _scratch() -> Iterator[Path]:
    """A folder that only this user can look into."""
    folder = Path(tempfile.mkdtemp(prefix="cpersona-cli-"))
    try:
        yield folder.resolve()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _known(candidate: Candidate, machine: Machine, refusal: str = "") -> Start:
    """What is known of a candidate before it is started, or why it is not."""
    mode = candidate.settings["CPERSONA_EMBEDDING_MODE"]
    return Start(
        registration=candidate.registration,
        limit=limit(candidate.registration, machine),
        mode="" if mode.invalid else str(mode),
        refusal=refusal,
    )


def _one(candidate: Candidate, machine: Machine, folder: Path, work: Work, family: Family) -> Start:
    known = _known(candidate, machine)
    planned = plan(candidate, machine, folder)
    if isinstance(planned, str):
        return replace(known, refusal=planned)
    folder.mkdir()
    return _Attempt(known, planned, work, family).made()


class _Attempt:
    """One registration on its way through both processes."""

    def __init__(self, known: Start, planned: Plan, work: Work, family: Family) -> None:
        self._plan, self._work, self._family = planned, work, family
        self._quote: Quote = lambda text, most: safe(redact(text, planned.secrets), most)
        command = self._quote(" ".join(planned.command), 300)
        self._known = replace(known, command=command, replaced=planned.replaced)

    def made(self) -> Start:
        known, first = self._first()
        known = replace(known, first=first)
        if first.ready is None or known.stored is None or known.stored.problem or known.late:
            return known
        known, second = self._second(known)
        return replace(known, second=second)

    def _left(self) -> float:
        return self._work.end - time.monotonic()

    def _first(self) -> tuple[Start, Run]:
        known = self._known
        with self._process() as talk:
            if talk.session is None or talk.run.ready is None:
                return replace(known, late=self._late(talk.run)), talk.ended()
            talk.tools(self._answer())
            if not self._plan.database.exists():
                # Nothing may be stored anywhere else.
                astray = "the server did not open the database it was given, so nothing was stored"
                return replace(known, astray=astray), talk.ended()
            stored = _store(talk.session, self._answer(), self._quote)
            late = self._late_answer(stored.problem)
            return replace(known, stored=stored, late=late), talk.ended()

    def _second(self, known: Start) -> tuple[Start, Run]:
        with self._process() as talk:
            if talk.session is None or talk.run.ready is None:
                return replace(known, late=self._late(talk.run)), talk.ended()
            recalled = _recall(talk.session, self._answer(), self._quote)
            late = self._late_answer(recalled.problem)
            return replace(known, recalled=recalled, late=late), talk.ended()

    def _answer(self) -> float:
        return max(0.1, min(ANSWER, self._left() - self._work.grace))

    def _patience(self) -> float:
        """Seconds to wait for a handshake: beyond the client's limit, to tell slow from silent, but not for ever."""
        own = self._left() if self._plan.download else 2 * self._known.limit.seconds
        return max(0.1, min(own, self._left() - self._work.grace))

    def _late(self, run: Run) -> str:
        if run.failure is Failure.SILENT and run.waited < self._known.limit.seconds:
            return f"it did not answer within the {run.waited:.3g} seconds there were"
        return ""

    def _late_answer(self, problem: str) -> str:
        return problem if problem and self._left() < self._work.grace + 1 else ""

    @contextmanager
    def _process(self) -> Iterator[_Talk]:
        talk = _Talk(self._quote, self._work.grace)
        try:
            talk.begin(self._family, self._plan, self._patience())
            yield talk
        finally:
            talk.ended()


class _Talk:
    """One process: begun, spoken to, ended; ``run`` tells of it so far."""

    def __init__(self, quote: Quote, grace: float) -> None:
        self._quote, self._grace = quote, grace
        self._child: Child | None = None
        self.session: Session | None = None
        self.run = Run()

    def begin(self, family: Family, planned: Plan, patience: float) -> None:
        """Start it and shake hands."""
        if planned.absent:
            self.run = Run(failure=Failure.ABSENT, detail=self._quote(planned.absent, 300))
            return
        try:
            self._child = family.start(planned.command, planned.env, planned.cwd)
        except (OSError, ValueError) as error:
            said = getattr(error, "strerror", None) or "a word or a variable holds a NUL character"
            where = getattr(error, "filename", None) or planned.command[0]
            self.run = Run(failure=Failure.ABSENT, detail=self._quote(f"{where}: {said}", 300))
            return
        self.session = Session(self._child, self._quote)
        begun = self._child.started
        try:
            protocol = self.session.initialize(patience)
        except CallError as error:
            waited = time.monotonic() - begun
            self.run = Run(failure=error.failure, detail=error.sentence, waited=waited)
        else:
            self.run = Run(ready=time.monotonic() - begun, protocol=protocol)

    def tools(self, seconds: float) -> None:
        """Ask for its tools; none where it does not say."""
        assert self.session is not None  # noqa: S101 - asked only after the handshake
        with suppress(CallError):
            self.run = replace(self.run, tools=self.session.tools(seconds))

    def ended(self) -> Run:
        """End it, if it has not been ended; what is known then."""
        if self._child is None or self.session is None:
            return self.run
        child, self._child = self._child, None
        self.session.drain()
        # One that said nothing in all that time gets no more.
        ending = child.end(0.0 if self.run.failure is Failure.SILENT else self._grace)
        self.run = replace(
            self.run,
            noise=tuple(self.session.noise),
            lines=self.session.lines,
            said=tuple(self._quote(line, _WIDE) for line in _telling(child.errors)),
            ended=ending.seconds,
            left=ending.left,
            code=ending.code,
        )
        return self.run


def _telling(errors: str) -> list[str]:
    """The last lines of a log, without what only tells that all is well if there is anything else."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    return ([line for line in lines if not _ROUTINE.search(line)] or lines)[-_SAID:]


def _store(session: Session, seconds: float, quote: Quote) -> Stored:
    try:
        answer = session.call("store", {"agent_id": AGENT, "message": {"content": TEXT}}, seconds)
    except CallError as error:
        return Stored(problem=error.sentence)
    if answer.get("result", "stored" if answer.get("ok") else "") != "stored":
        said = answer.get("reason") or answer.get("error") or answer.get("result")
        return Stored(problem=f"store answered “{quote(str(said), 120)}”")
    embedded = answer.get("embedded")
    return Stored(embedded=embedded if isinstance(embedded, bool) else None)


def _recall(session: Session, seconds: float, quote: Quote) -> Recalled:
    try:
        answer = session.call("recall", {"agent_id": AGENT, "query": TEXT}, seconds)
        found = _holds(answer)
        listed = found or _holds(session.call("recall", {"agent_id": AGENT, "query": ""}, seconds))
    except CallError as error:
        return Recalled(problem=error.sentence)
    said = answer.get("advisory")
    advisory = None
    if isinstance(said, dict):
        advisory = {name: quote(str(said.get(name, "")), 300) for name in ("severity", "reason", "evidence")}
    return Recalled(found=found, listed=listed, advisory=advisory)


def _holds(answer: Mapping[str, Any]) -> bool:
    messages = answer.get("messages")
    rows = messages if isinstance(messages, list) else []
    return any(isinstance(row, dict) and row.get("content") == TEXT for row in rows)
