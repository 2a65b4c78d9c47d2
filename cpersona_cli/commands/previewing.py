"""One run of ``advisory-preview``: from a request over the registrations and their servers to the report."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import cast

from cpersona_cli.advisory import unsaid as unsaying
from cpersona_cli.advisory.model import Preview, masked
from cpersona_cli.advisory.phrases import advice, phrase, sentence
from cpersona_cli.advisory.texts import Language
from cpersona_cli.commands.asking import Asked, ask_all
from cpersona_cli.commands.chosen import Chosen, terminal
from cpersona_cli.commands.errors import UsageError
from cpersona_cli.commands.options import LONGEST_WAIT
from cpersona_cli.commands.pairing import look, rerun
from cpersona_cli.commands.scenario import Step, steps
from cpersona_cli.commands.workplace import by_registration
from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.install.machine import Machine, this_machine
from cpersona_cli.record import record, replace
from cpersona_cli.report import advisory, inventory
from cpersona_cli.report.advisory import Panel
from cpersona_cli.report.model import Report
from cpersona_cli.report.output import say
from cpersona_cli.text import plural, safe
from cpersona_cli.traps.advisory import SWITCH, TRAPS
from cpersona_cli.traps.endpoint import Subject, findings
from cpersona_cli.traps.gather import Selection
from cpersona_cli.traps.model import Facts, Finding, Previewed, Repair, Severity, Target
from cpersona_cli.traps.run import run
from cpersona_cli.traps.shell import registration, word

_NAME = "cpersona-cli advisory-preview"

#: Seconds for a run, and for finding out what there is.
_SECONDS, _GATHERING = 120.0, 20.0
_TRANSPORTS = ("stdio", "streamable-http")
_LANGUAGES = ("en", "ja")
#: Words that mean "on" to people, and not to the releases that take nothing but ``true`` for on.
_ON = frozenset({"1", "yes", "on", "y", "t", "enable", "enabled"})


@record(kw_only=True)
class Request:
    """What the user asked of one run, as it was typed."""

    selection: Selection
    notes: tuple[str, ...] = ()
    live: bool = False
    replay: str | None = None
    sequence: str | None = None
    recalls: int | None = None
    keys: tuple[str, ...] = ()
    transport: str | None = None
    language: str = "en"
    raw: bool = False
    yes: bool = False
    timeout: float | None = None


def examine(request: Request, machine: Machine | None = None) -> Report:
    """Ask every server, look at what it will not say, and judge. Raises ``CommandError`` when there is no result."""
    start = time.monotonic()
    made = _check(request)
    _agree(request)
    machine = machine or this_machine()
    language = cast("Language", request.language)
    seconds = request.timeout or _SECONDS
    facts = look(request.selection, machine, min(seconds, _GATHERING))
    targets = by_registration(facts.targets)
    asked, late = ask_all(
        targets, facts, made, transport=request.transport, language=language, end=start + seconds, machine=machine
    )
    secrets = (*inventory.secrets(facts), *(secret for one in asked for secret in one.secrets))
    shown = [_panel(one, made, language, request, machine) for one in asked]
    known = replace(facts, previews=tuple(previewed for _, previewed in shown))
    checks = run(TRAPS, known, skip=lambda _: "" if shown else "no server was asked")
    found = [finding for check in checks for finding in check.findings]
    again = _rerun(request, machine)
    return Report(
        command="advisory-preview",
        headline=_headline(asked),
        checks=checks,
        findings=found,
        unsettled=[*facts.unfinished, *late, *_nothing(facts), *(s for one in asked for s in _unsettled(one))],
        sections=[section for panel, _ in shown for section in advisory.sections(panel)],
        notes=[*request.notes, *dict.fromkeys(note for one in asked for note in one.notes)],
        payload=advisory.payload([panel for panel, _ in shown]),
        measured=sum(len(one.preview.recalls) for one in asked),
        next_command=_next(found, shown, asked),
        rerun=again,
        summary=_summary(shown, found),
        elapsed=time.monotonic() - start,
        home=str(machine.home),
        # what was to be hidden is hidden already, and what was to be seen must stay
        secrets=() if request.raw else secrets,
    )


def _check(request: Request) -> tuple[Step, ...]:
    """Refuse what makes no sense. Raises ``UsageError``."""
    if request.transport not in {None, *_TRANSPORTS}:
        raise UsageError(f"--transport takes {' or '.join(_TRANSPORTS)}, not {safe(repr(request.transport), 40)}")
    if request.language not in _LANGUAGES:
        raise UsageError(f"--lang takes {' or '.join(_LANGUAGES)}, not {safe(repr(request.language), 40)}")
    if request.yes and not request.raw:
        raise UsageError("--yes goes with --raw: nothing else is asked here")
    if request.timeout is not None and not 0 < request.timeout <= LONGEST_WAIT:
        raise UsageError(
            f"--timeout takes a number of seconds above 0 and up to {LONGEST_WAIT:g}, not {request.timeout:g}"
        )
    return steps(
        replay=request.replay,
        sequence=request.sequence,
        recalls=request.recalls,
        keys=request.keys,
        live=request.live,
    )


def _agree(request: Request) -> None:
    """Secrets are shown only to somebody who says so."""
    if not request.raw or request.yes:
        return
    refusal = UsageError("--raw may show a key or a password; add --yes to allow it")
    if not (terminal(sys.stdin) and terminal(sys.stderr)):
        raise refusal
    say("The server’s words may hold a key or a password. Type yes to see them as they are:")
    if sys.stdin.readline().strip().lower() != "yes":
        raise refusal


def _panel(
    one: Asked, made: Sequence[Step], language: Language, request: Request, machine: Machine
) -> tuple[Panel, Previewed]:
    """What is shown of one registration, and what the traps look at."""
    target, hidden = one.target, masked(one.preview, one.secrets)
    kind = _kind(one, made)
    unsaid = unsaying.unsaid(
        unsaying.Known(preview=hidden, mode=one.mode, kind=one.kind, fit=one.fit, why=one.why, enabled=one.enabled),
        language,
    )
    commands = _commands(target, request.selection, machine)
    panel = Panel(
        label=target.registration.label,
        place=target.registration.place,
        preview=replace(one.preview, hidden=hidden.hidden) if request.raw else hidden,
        raw=request.raw,
        mode=one.mode,
        address=one.endpoint.address,
        transport=one.transport,
        language=language,
        events=one.events,
        kind=kind,
        ours=_ours(one, language),
        enabled=one.enabled,
        switch=_switch(one, language),
        unsaid=unsaid,
        commands=commands,
        fit=None if one.fit is None else str(one.fit.state),
    )
    broken = [part for part in unsaid if part.broken]
    first = commands.get(broken[0].shows, "") if broken else ""
    previewed = Previewed(
        label=target.registration.label,
        target=target,
        # our own call, from another network or without an answer in time, is no verdict
        live=one.preview.how == "live" and not (one.preview.source == "own" and one.undecided),
        state=hidden.state,
        evidence=hidden.evidence,
        means="" if kind is None or hidden.state != "fault" else sentence(language, kind),
        hidden=hidden.hidden,
        refused=hidden.refused,
        enabled=one.enabled,
        switch=f"{SWITCH}={safe(target.settings[SWITCH].text or '', 40)}" if not one.enabled else "",
        silent=tuple(part.measured for part in broken),
        repair=_repair(one, kind, language, first, commands),
        chosen=not one.enabled,
    )
    return panel, previewed


def _kind(one: Asked, made: Sequence[Step]) -> Kind | None:
    """How the calls end, as we name it: by our own call, or as a replay was asked for."""
    if one.preview.how == "live":
        return one.kind
    kinds = [step.kind for step in made if step.kind is not None and step.word != "recall"]
    return kinds[-1] if kinds else None


def _ours(one: Asked, language: Language) -> str:
    """What our own call adds to what the server's own showed."""
    last = one.preview.last
    if one.kind is None or one.preview.source == "own" or last is None or last.call is None or one.recorded is None:
        return ""
    said = sentence(language, one.kind)
    agree = last.call.ok == one.recorded
    return phrase(language, "ours.ok" if agree else "ours.differs", sentence=said)


def _switch(one: Asked, language: Language) -> str:
    """What the switch does, or does not do although somebody wrote it."""
    setting = one.target.settings[SWITCH]
    if setting.text is None:
        return ""
    fields = {"setting": setting.name or SWITCH, "text": safe(setting.text, 40)}
    if not one.enabled:
        taken = setting.text.strip().lower() in _ON
        return phrase(language, "switch.taken" if taken else "switch.off", **fields)
    meant = setting.text.strip().lower() not in {"true", "", *_ON}
    return phrase(language, "switch.no-effect", **fields) if meant else ""


def _commands(target: Target, selection: Selection, machine: Machine) -> dict[str, str]:
    """The commands that show or mend what is not said, on the same registration."""
    words = list(registration(target, machine))
    beside = [] if selection.db is None else ["--db", word(selection.db, machine)]
    return {
        "dimension": " ".join(["cpersona-cli dimension", *words, *beside]),
        "reembed": " ".join(["cpersona-cli reembed", *words, *beside, "--only mismatched"]),
        "missing": " ".join(["cpersona-cli reembed", *words, *beside, "--only missing"]),
        "probe": " ".join(["cpersona-cli probe", *words]),
    }


def _repair(one: Asked, kind: Kind | None, language: Language, first: str, commands: dict[str, str]) -> Repair:
    """What mends it: the change that the endpoint's own finding knows, else advice and the command that shows it."""
    if one.measured is not None and kind is not None:
        subject = Subject(label=one.target.registration.label, measured=one.measured, target=one.target)
        decisive: Finding | None = next(findings(subject), None)
        if decisive is not None:
            return decisive.repair
    if first:
        return Repair(prose=phrase(language, "repair.silent"), commands=(first,))
    prose = advice(language, kind) if kind not in {None, Kind.OK} and kind is not None else ""
    return Repair(prose=prose or phrase(language, "repair.probe"), commands=(commands["probe"],))


def _headline(asked: Sequence[Asked]) -> str:
    recalls = sum(len(one.preview.recalls) for one in asked)
    return f"{plural(len(asked), 'registration')}, {plural(recalls, 'recall')}"


def _unsettled(one: Asked) -> Sequence[str]:
    """Why there is no verdict on a registration."""
    if one.preview.refused:
        return ()
    label = one.target.registration.label
    if one.preview.unfinished:
        return (f"{label}: {one.preview.unfinished}",)
    return tuple(f"{label}: {sentence}" for sentence in one.undecided)


def _nothing(facts: Facts) -> list[str]:
    if facts.targets:
        return []
    if facts.registrations:
        return [f"{plural(len(facts.registrations), 'registration')} found, and no client would start a server here"]
    return ["no registration of CPersona was found; --env takes this process’s environment"]


def _rerun(request: Request, machine: Machine) -> str:
    words = [rerun(_NAME, request.selection, Chosen(), machine)]
    for option, value in (
        ("--replay", request.replay),
        ("--sequence", request.sequence),
        ("--recalls", request.recalls),
        ("--transport", request.transport),
    ):
        words += [option, word(str(value), machine)] if value is not None else []
    words += [text for key in request.keys for text in ("--session-key", word(key, machine))]
    return " ".join(words)


def _next(found: Sequence[Finding], shown: Sequence[tuple[Panel, Previewed]], asked: Sequence[Asked]) -> str:
    """The one command that helps most now."""
    faults = [finding for finding in found if finding.severity is Severity.FAULT]
    if faults:
        commands = (command for finding in faults for command in finding.repair.commands)
        own = next((command for command in commands if command.startswith("cpersona-cli ")), "")
        return own or next((panel.commands["probe"] for panel, _ in shown if panel.preview.state == "fault"), "")
    if not asked:
        return "cpersona-cli doctor"
    undecided = [panel.commands["dimension"] for panel, _ in shown if any(u.name == "unknown" for u in panel.unsaid)]
    return undecided[0] if undecided and asked[0].preview.how == "live" else ""


def _summary(shown: Sequence[tuple[Panel, Previewed]], found: Sequence[Finding]) -> str:
    """The verdict in the words of the question; silence is never called good news while recall is broken."""
    if not shown:
        return ""
    counts = {severity: sum(finding.severity is severity for finding in found) for severity in Severity}
    told = ", ".join(
        plural(counts[severity], str(severity)) for severity in Severity if counts[severity] or severity != "hint"
    )
    if len(shown) > 1:
        return f"{plural(len(shown), 'registration')}; {told}."
    panel, previewed = shown[0]
    return f"{_word(panel.preview, previewed)}; {told}."


def _word(preview: Preview, previewed: Previewed) -> str:
    if preview.refused:
        return "the server does not start"
    if not preview.recalls:
        return "no recall could be shown"
    replayed = "" if previewed.live else " (replayed)"
    first = next((recall.number for recall in preview.recalls if recall.text is not None), None)
    if first is not None:
        return f"{preview.state}, the agent is told from recall {first} on{replayed}"
    if previewed.live and (previewed.silent or preview.state == "fault"):
        return "the agent is told nothing, and recall is broken"
    return f"{preview.state}, the agent is told nothing{replayed}"
