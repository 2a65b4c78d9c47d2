"""Servers started as their clients start them: the handshake, the tools, one memory kept and found again, the end.

The starting is done before the traps run (``start/check.py``); the traps only look at what it showed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from cpersona_cli.start.model import TOOLS, Failure, Run, Start
from cpersona_cli.text import plural
from cpersona_cli.traps.model import CannotTellError, Facts, Finding, Needs, Repair, Severity, SkipError, Trap
from cpersona_cli.traps.repairs import restart


def _undecided(facts: Facts) -> Iterator[Finding]:
    start = facts.start
    who = f"{start.registration.label}, {start.registration.place}"
    if start.refusal:
        raise CannotTellError(f"{who}: not started, because {start.refusal}")
    said = start.late or start.astray
    if said:
        raise CannotTellError(f"{who}: {said}")
    yield from ()


def _made(facts: Facts) -> Start:
    """The start, if there was one."""
    if facts.start.refusal:
        raise SkipError("the server was not started")
    return facts.start


def _answered(facts: Facts) -> Start:
    """The start, if both sides shook hands."""
    start = _made(facts)
    if start.first is None or start.first.ready is None:
        raise SkipError("the server did not answer")
    return start


def _no_handshake(facts: Facts) -> Iterator[Finding]:
    start = _made(facts)
    for number, run in enumerate(start.runs):
        silent = run.failure is Failure.SILENT and run.waited < start.limit.seconds
        if run.failure is None or silent:  # the latter is no verdict
            continue
        yield Finding(
            about="command",
            place=start.registration.place,
            measured=("when started a second time: " if number else "") + _failed(run),
            repair=_handshake_repair(start, run),
            evidence=_evidence(start, run),
        )


def _failed(run: Run) -> str:
    match run.failure:
        case Failure.ABSENT:
            return f"it cannot be started: {run.detail}"
        case Failure.DIED:
            code = "" if run.code is None else f", exit code {run.code}"
            return f"it ended before the handshake{code}" + (f"; its last words: “{run.said[-1]}”" if run.said else "")
        case Failure.SILENT:
            return f"no answer within {run.waited:.3g} seconds"
        case _:
            return run.detail


def _handshake_repair(start: Start, run: Run) -> Repair:
    registration = start.registration
    if run.failure is Failure.ABSENT:
        said = f"in {registration.place}, write a command that can be started{restart(registration)}"
    elif run.noise:
        said = f"in {registration.place}, start a command that writes nothing but messages to stdout"
    else:
        said = "mend what it complains of, and ask again"
    return Repair(prose=said, place=registration.place)


def _evidence(start: Start, run: Run) -> tuple[tuple[str, str], ...]:
    told = [("command", start.command), *(("stderr", line) for line in run.said)]
    return (*told, *(("stdout", noise.text) for noise in run.noise))


def _noise(facts: Facts) -> Iterator[Finding]:
    start = _made(facts)
    run = next((run for run in start.runs if run.lines), None)
    if run is None:
        if not any(run.ready for run in start.runs):
            raise SkipError("the server did not answer")
        return
    first = run.noise[0]
    when = "before the first message" if first.before else "between the messages"
    more = f", and {plural(run.lines - 1, 'more line')}" if run.lines > 1 else ""
    shown = f"“{first.text}”" if first.text.strip() else "an empty line"
    yield Finding(
        about="stdout",
        place=start.registration.place,
        measured=f"{shown} on stdout {when}{more}",
        repair=Repair(
            prose="what writes it stands in front of the server or in it: let it write to stderr (>&2), or not at all",
            place=start.registration.place,
        ),
        evidence=_evidence(start, run),
    )


def _slow(facts: Facts) -> Iterator[Finding]:
    start = _answered(facts)
    times = [run.ready for run in start.runs if run.ready is not None]
    limit = start.limit.seconds
    if times[0] <= limit and max(times) <= limit:
        return
    again = times[1:] and times[1] <= limit
    slowest = max(times)
    waits = f"{start.registration.client_title} waits {limit:g} s ({start.limit.origin})"
    yield Finding(
        about="startup time",
        place=start.registration.place,
        severity=Severity.WARNING if again else None,
        measured=f"ready after {slowest:.1f} s; {waits}"
        + (f"; the second time after {times[1]:.1f} s" if again else ""),
        repair=_patience(start, slowest),
        evidence=(("command", start.command),),
    )


def _patience(start: Start, slowest: float) -> Repair:
    registration = start.registration
    seconds = max(60, 10 * math.ceil(slowest / 5))
    place, after = registration.place, restart(registration)
    match registration.client:
        case "codex":
            prose = f"in {place}, below [mcp_servers.{json.dumps(registration.name)}], set this{after}"
            return Repair(prose=prose, edit=f"startup_timeout_sec = {seconds}", place=place)
        case "gemini-cli":
            prose = f"in {place}, set this in the entry{after}"
            return Repair(prose=prose, edit=f'"timeout": {1000 * seconds}', place=place)
        case "claude-code":
            return Repair(
                prose="start Claude Code with a longer limit", commands=(f"MCP_TIMEOUT={1000 * seconds} claude",)
            )
        case _:
            prose = f"in {place}, start an installed server, not one that is fetched or built at every start{after}"
            return Repair(prose=prose, place=place)


def _tools(facts: Facts) -> Iterator[Finding]:
    start = _answered(facts)
    found = start.first.tools if start.first is not None else None
    missing = [name for name in TOOLS if name not in (found or ())]
    if missing:
        yield Finding(
            about="tools",
            place=start.registration.place,
            measured="it does not say which tools it has"
            if found is None
            else f"{plural(len(found), 'tool')}, without {', '.join(missing)}",
            repair=Repair(
                prose=f"in {start.registration.place}, start CPersona itself", place=start.registration.place
            ),
            evidence=_evidence(start, start.runs[0]),
        )


def _not_stored(facts: Facts) -> Iterator[Finding]:
    start = _answered(facts)
    if start.stored is None:
        raise SkipError("nothing was stored")
    if start.stored.problem and not start.late:
        yield _of_memory(start, "store", start.stored.problem, start.runs[0])


def _not_embedded(facts: Facts) -> Iterator[Finding]:
    start = _stored(facts)
    if not start.embeds:
        raise SkipError("no vectors are configured, so none was expected (mode none)")
    if start.stored is not None and start.stored.embedded is not True:
        answer = "embedded: false" if start.stored.embedded is False else "nothing about a vector"
        yield _of_memory(start, "store", f"the memory was kept, and the answer says {answer}", start.runs[0])


def _stored(facts: Facts) -> Start:
    start = _answered(facts)
    if start.stored is None or start.stored.problem:
        raise SkipError("nothing was stored")
    return start


def _recalled(facts: Facts) -> Start:
    start = _stored(facts)
    if start.recalled is None:
        raise SkipError("no second process answered")
    return start


def _not_recalled(facts: Facts) -> Iterator[Finding]:
    start = _recalled(facts)
    recalled = start.recalled
    if recalled is None or recalled.found or start.late:
        return
    if recalled.problem:
        yield _of_memory(start, "recall", recalled.problem, start.runs[-1])
    elif recalled.listed:
        mode = "" if start.embeds else ", without vectors"
        said = f"the second process has the memory, and does not find it by its own words{mode}"
        yield _of_memory(start, "recall", said, start.runs[-1], None if start.embeds else Severity.WARNING)
    else:
        yield _of_memory(start, "recall", "the second process does not have it", start.runs[-1])


def _advisory(facts: Facts) -> Iterator[Finding]:
    start = _recalled(facts)
    advisory = start.recalled.advisory if start.recalled is not None else None
    if not advisory:
        return
    if not start.embeds:
        raise SkipError("the advisory says what is configured: no vectors (mode none)")
    severity = Severity.FAULT if advisory.get("severity") == "fault" else None
    said = f"recall answers with an advisory: “{advisory.get('reason', '')}”"
    yield _of_memory(start, "advisory", said, start.runs[-1], severity)


def _of_memory(start: Start, about: str, measured: str, run: Run, severity: Severity | None = None) -> Finding:
    asked = start.registration.label
    return Finding(
        about=about,
        place=start.registration.place,
        severity=severity,
        measured=measured,
        repair=Repair(prose=f"read what the server of {asked} said, mend that, and ask again", place=None),
        evidence=_evidence(start, run),
    )


def _not_ended(facts: Facts) -> Iterator[Finding]:
    start = _answered(facts)
    for run in start.runs:
        if run.ready is None or (run.ended is not None and not run.left):
            continue
        left = ", ".join(f"process {pid}" for pid in run.left)
        said = f"it ended, and left {left} behind" if run.ended is not None else "it went on when its stdin was closed"
        yield Finding(
            about="end",
            place=start.registration.place,
            measured=f"{said}, and was killed",
            repair=Repair(
                prose=f"in {start.registration.place}, start the server itself, or with exec, so that nothing stays"
                " between it and the client",
                place=start.registration.place,
            ),
            evidence=_evidence(start, run),
        )
        return


_SOURCE = "two processes of the registered command, started over stdio with a scratch database"


def _trap(
    name: str,
    title: str,
    detect: Callable[[Facts], Iterable[Finding]],
    *,
    expected: str,
    costs: str,
    repair: str,
    severity: Severity = Severity.FAULT,
    rows: Sequence[str] = (),
) -> Trap:
    return Trap(
        id=f"start.{name}",
        title=title,
        severity=severity,
        needs=Needs.START,
        detect=detect,
        expected=expected,
        costs=costs,
        repair=repair,
        source=_SOURCE,
        rows=tuple(rows),
    )


TRAPS: tuple[Trap, ...] = (
    _trap(
        "undecided",
        "The server was not started, or not to the end",
        _undecided,
        expected="a command whose database can be replaced by a scratch one, and time enough",
        costs="whether the client gets a working memory is not known",
        repair="read why; what only needs time gets it with --timeout",
    ),
    _trap(
        "no-handshake",
        "The registered command does not answer a client",
        _no_handshake,
        expected="an answer to initialize within the client's own limit",
        costs="the client shows the server as failed, and the agent has no memory",
        repair="read what it said last, and mend that",
        rows=("G7",),
    ),
    _trap(
        "stdout-noise",
        "Something other than messages is written to stdout",
        _noise,
        expected="nothing but JSON-RPC messages on stdout",
        costs="strict clients give the server up; others lose messages",
        repair="let wrappers, start files and banners write to stderr",
        rows=("G19",),
    ),
    _trap(
        "slow",
        "The server is ready later than its client waits",
        _slow,
        expected="a handshake within the client's own limit",
        costs="the client gives the server up before it is ready",
        repair="raise the client's limit, or install the server so that nothing is fetched at a start",
        rows=("G10",),
    ),
    _trap(
        "tools-missing",
        "The server lacks the tools of a memory",
        _tools,
        expected=", ".join(TOOLS),
        costs="the agent cannot store or recall",
        repair="register CPersona itself",
    ),
    _trap(
        "not-stored",
        "The server does not keep a memory",
        _not_stored,
        expected="store answers result: stored",
        costs="nothing the agent stores is kept",
        repair="read what the server answered, and mend that",
    ),
    _trap(
        "not-embedded",
        "A stored memory gets no vector",
        _not_embedded,
        expected="store answers embedded: true",
        costs="memories are found only by shared words",
        repair="see what cpersona-cli probe says of the endpoint",
    ),
    _trap(
        "not-recalled",
        "A second process does not find what the first one stored",
        _not_recalled,
        expected="a new session finds what an earlier one stored",
        costs="the agent forgets between sessions",
        repair="read what the server said, and look at its database settings and thresholds",
    ),
    _trap(
        "advisory",
        "The agent is told that its memory is degraded",
        _advisory,
        expected="a recall without an advisory",
        costs="the agent trusts its memory less, and tells its user so",
        repair="see what cpersona-cli probe says of the endpoint",
        severity=Severity.WARNING,
    ),
    _trap(
        "not-ended",
        "The server outlives its client",
        _not_ended,
        expected="the end of every process soon after stdin is closed",
        costs="old servers pile up, with old settings and the database open",
        repair="start the server directly, or with exec",
        severity=Severity.WARNING,
    ),
)
