"""One run of ``advisory-preview``: from a request over the registrations and their servers to the report."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import cast

from cpersona_cli.advisory import unsaid as unsaying
from cpersona_cli.advisory.model import masked
from cpersona_cli.advisory.phrases import advice, counted, phrase, quoted, sentence
from cpersona_cli.advisory.phrases import word as told
from cpersona_cli.advisory.texts import Language
from cpersona_cli.advisory.unsaid import Unsaid
from cpersona_cli.commands.asking import Asked, ask_all
from cpersona_cli.commands.chosen import Chosen, terminal
from cpersona_cli.commands.errors import UsageError
from cpersona_cli.commands.options import LONGEST_WAIT
from cpersona_cli.commands.pairing import look, rerun
from cpersona_cli.commands.scenario import Step, steps
from cpersona_cli.commands.workplace import by_registration
from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.install.machine import Machine, this_machine
from cpersona_cli.install.model import Place
from cpersona_cli.record import record, replace
from cpersona_cli.report import advisory, inventory
from cpersona_cli.report.advisory import Panel
from cpersona_cli.report.model import Report
from cpersona_cli.report.output import say
from cpersona_cli.text import plural, safe
from cpersona_cli.traps.advisory import SWITCH, TRAPS
from cpersona_cli.traps.endpoint import findings
from cpersona_cli.traps.gather import Selection
from cpersona_cli.traps.model import Facts, Finding, Previewed, Repair, Severity, Subject, Target
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
    language = _language(request)
    made = _check(request, language)
    _agree(request, language)
    machine = machine or this_machine()
    seconds = request.timeout or _SECONDS
    facts = look(request.selection, machine, min(seconds, _GATHERING))
    targets = by_registration(facts.targets)
    asked, late = ask_all(
        targets, facts, made, transport=request.transport, language=language, end=start + seconds, machine=machine
    )
    secrets = (*inventory.secrets(facts), *(secret for one in asked for secret in one.secrets))
    shown = [_panel(one, made, language, request, machine) for one in asked]
    known = replace(facts, previews=tuple(previewed for _, previewed in shown))
    checks = run(TRAPS, known, skip=lambda _: "" if shown else phrase(language, "skipped"))
    found = [_told(finding, language) for check in checks for finding in check.findings]
    again = _rerun(request, machine)
    return Report(
        command="advisory-preview",
        headline=_headline(asked, language),
        checks=checks,
        findings=found,
        unsettled=[
            *dict.fromkeys(phrase(language, "unsettled.look", why=why) for why in facts.unfinished),
            *late,
            *_nothing(facts, language),
            *(sentence for one in asked for sentence in _unsettled(one, language)),
        ],
        sections=[section for panel, _ in shown for section in advisory.sections(panel)],
        notes=[
            *dict.fromkeys(phrase(language, "note.tool", note=note) for note in request.notes),
            *dict.fromkeys(note for one in asked for note in one.notes),
        ],
        payload=advisory.payload([panel for panel, _ in shown]),
        measured=sum(len(one.preview.recalls) for one in asked),
        next_command=_next(found, shown, asked),
        rerun=again,
        summary=_summary(shown, found, language),
        elapsed=time.monotonic() - start,
        home=str(machine.home),
        # what was to be hidden is hidden already, and what was to be seen must stay
        secrets=() if request.raw else secrets,
        language=language,
    )


def _language(request: Request) -> Language:
    if request.language not in _LANGUAGES:
        raise UsageError(f"--lang takes {' or '.join(_LANGUAGES)}, not {safe(repr(request.language), 40)}")
    return cast("Language", request.language)


def _check(request: Request, language: Language) -> tuple[Step, ...]:
    """Refuse what makes no sense. Raises ``UsageError``."""

    def no(name: str, **fields: object) -> UsageError:
        return UsageError(phrase(language, f"usage.{name}", **fields), language)

    if request.transport not in {None, *_TRANSPORTS}:
        known = phrase(language, "usage.or").join(_TRANSPORTS)
        raise no("transport", known=known, word=safe(repr(request.transport), 40))
    if request.yes and not request.raw:
        raise no("yes")
    if request.timeout is not None and not 0 < request.timeout <= LONGEST_WAIT:
        raise no("timeout", most=f"{LONGEST_WAIT:g}", given=f"{request.timeout:g}")
    return steps(
        replay=request.replay,
        sequence=request.sequence,
        recalls=request.recalls,
        keys=request.keys,
        live=request.live,
        language=language,
    )


def _agree(request: Request, language: Language) -> None:
    """Secrets are shown only to somebody who says so."""
    if not request.raw or request.yes:
        return
    refusal = UsageError(phrase(language, "usage.raw"), language)
    if not (terminal(sys.stdin) and terminal(sys.stderr)):
        raise refusal
    say(phrase(language, "raw.asks"))
    if sys.stdin.readline().strip().lower() != "yes":
        raise refusal


def _told(finding: Finding, language: Language) -> Finding:
    """With what its trap says of it in the language of the run."""
    return replace(finding, expected=told(language, finding.expected), costs=told(language, finding.costs))


def _panel(
    one: Asked, made: Sequence[Step], language: Language, request: Request, machine: Machine
) -> tuple[Panel, Previewed]:
    """What is shown of one registration, and what the traps look at."""
    target, hidden = one.target, masked(one.preview, one.secrets)
    kind = _kind(one, made)
    unsaid = unsaying.unsaid(
        unsaying.Known(preview=hidden, mode=one.mode, kind=kind, fit=one.fit, why=one.why),
        language,
    )
    commands = _commands(target, request.selection, machine)
    message = "" if one.measured is None or kind is not one.kind else one.measured.outcome.server_message
    panel = Panel(
        label=one.label,
        place=target.registration.place,
        preview=replace(one.preview, hidden=hidden.hidden) if request.raw else hidden,
        raw=request.raw,
        mode=one.mode,
        address=one.endpoint.address,
        transport=one.transport,
        language=language,
        events=one.events,
        kind=kind,
        message=message,
        ours=_ours(one, language),
        enabled=one.enabled,
        switch=_switch(one, language),
        unsaid=unsaid,
        commands=commands,
        fit=None if one.fit is None else str(one.fit.state),
    )
    broken = [part for part in unsaid if part.broken]
    previewed = Previewed(
        label=target.registration.label,
        target=target,
        # our own call, from another network or without an answer in time, is no verdict
        live=one.preview.how == "live" and not (one.preview.source == "own" and one.undecided),
        state=hidden.state,
        evidence=hidden.evidence,
        means="" if kind is None or hidden.state != "fault" else quoted(language, sentence(language, kind), message),
        hidden=hidden.hidden,
        refused=hidden.refused,
        enabled=one.enabled,
        switch=f"{SWITCH}={safe(target.settings[SWITCH].text or '', 40)}" if not one.enabled else "",
        silent=tuple(part.measured for part in broken),
        repair=_repair(one, kind, language, broken, commands),
        chosen=not one.enabled,
        language=language,
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


def _wavering(one: Asked, language: Language) -> Sequence[str]:
    """That our own call failed where the server's succeeded: then nothing is proven of the endpoint."""
    last = one.preview.last
    healthy = one.preview.source == "server" and last is not None and last.call is not None and last.call.ok
    return (_ours(one, language),) if healthy and one.recorded is False else ()


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


def _repair(
    one: Asked, kind: Kind | None, language: Language, broken: Sequence[Unsaid], commands: dict[str, str]
) -> Repair:
    """What mends it: the change that the endpoint's own finding knows, else advice and the command that shows it."""
    helps = "" if kind in {None, Kind.OK} or kind is None else advice(language, kind, one.mode)
    if one.measured is not None and kind is not None:
        subject = Subject(label=one.target.registration.label, measured=one.measured, target=one.target)
        decisive: Finding | None = next(findings(subject), None)
        if decisive is not None:
            return _translated(decisive, helps, language)
    if broken:
        part = broken[0]
        name = "repair.silent" if part.mends else "repair.probe" if part.shows == "probe" else "repair.look"
        known = tuple(commands[command] for command in (part.shows, part.mends) if command)
        return Repair(prose=phrase(language, name), commands=known)
    return Repair(prose=helps or phrase(language, "repair.probe"), commands=(commands["probe"],))


def _translated(finding: Finding, helps: str, language: Language) -> Repair:
    """A repair of the endpoint's own; what another language says of it is more general, and its lines are the same."""
    repair = finding.repair
    place = told(language, str(repair.place or Place()))
    name = "repair.edit" if repair.edit else "repair.setting" if repair.place else "repair.general"
    prose = phrase(language, name, prose=repair.prose, advice=helps, name=finding.about, place=place)
    return replace(repair, prose=prose)


def _headline(asked: Sequence[Asked], language: Language) -> str:
    targets, count = len(asked), sum(len(one.preview.recalls) for one in asked)
    registrations, recalls = plural(targets, "registration"), plural(count, "recall")
    return phrase(language, "headline", registrations=registrations, recalls=recalls, targets=targets, count=count)


def _unsettled(one: Asked, language: Language) -> Sequence[str]:
    """Why there is no verdict on a registration."""
    if one.preview.refused:
        return ()
    reasons = (one.preview.unfinished,) if one.preview.unfinished else (*_wavering(one, language), *one.undecided)
    problem = one.target.version.program_problem
    if one.preview.source == "own" and problem and one.target.registration.launch.inside == "host":
        reasons += (phrase(language, "unsettled.program", why=problem),)
    return tuple(phrase(language, "unsettled.of", label=one.label, why=why) for why in reasons)


def _nothing(facts: Facts, language: Language) -> list[str]:
    if facts.targets:
        return []
    count = len(facts.registrations)
    name = "unsettled.inactive" if count else "unsettled.none"
    return [phrase(language, name, registrations=plural(count, "registration"), count=count)]


def _rerun(request: Request, machine: Machine) -> str:
    words = [rerun(_NAME, request.selection, Chosen(), machine)]
    for option, value in (
        ("--replay", request.replay),
        ("--sequence", request.sequence),
        ("--recalls", request.recalls),
        ("--transport", request.transport),
        ("--lang", None if request.language == "en" else request.language),
        ("--timeout", None if request.timeout is None else f"{request.timeout:g}"),
    ):
        words += [option, word(str(value), machine)] if value is not None else []
    words += [text for key in request.keys for text in ("--session-key", word(key, machine))]
    return " ".join(words)


def _next(found: Sequence[Finding], shown: Sequence[tuple[Panel, Previewed]], asked: Sequence[Asked]) -> str:
    """The one command that helps most now: of a repair the last, which mends."""
    faults = [finding for finding in found if finding.severity is Severity.FAULT]
    if faults:
        commands = (command for finding in faults for command in reversed(finding.repair.commands))
        own = next((command for command in commands if command.startswith("cpersona-cli ")), "")
        return own or next((panel.commands["probe"] for panel, _ in shown if panel.preview.state == "fault"), "")
    if not asked:
        return "cpersona-cli doctor"
    undecided = [panel.commands["dimension"] for panel, _ in shown if any(u.name == "unknown" for u in panel.unsaid)]
    return undecided[0] if undecided and asked[0].preview.how == "live" else ""


def _summary(shown: Sequence[tuple[Panel, Previewed]], found: Sequence[Finding], language: Language) -> str:
    """The verdict in the words of the question; silence is never called good news while recall is broken."""
    if not shown:
        return ""
    if len(shown) > 1:
        verdict = phrase(
            language, "verdict.several", registrations=plural(len(shown), "registration"), targets=len(shown)
        )
    else:
        verdict = _verdict(*shown[0], language)
    counts = {severity: sum(finding.severity is severity for finding in found) for severity in Severity}
    listed = [
        counted(language, count, str(severity)) for severity, count in counts.items() if count or severity != "hint"
    ]
    return phrase(language, "summary", verdict=verdict, counts=phrase(language, "summary.between").join(listed))


def _verdict(panel: Panel, previewed: Previewed, language: Language) -> str:
    preview = panel.preview
    if preview.refused:
        return phrase(language, "verdict.refused")
    if not preview.recalls:
        return phrase(language, "verdict.none")
    replayed = "" if previewed.live else phrase(language, "verdict.replayed")
    first = next((recall.number for recall in preview.recalls if recall.text is not None), None)
    if first is not None:
        return phrase(language, "verdict.told", state=preview.state, number=first, replayed=replayed)
    name = "verdict.broken" if previewed.silent or preview.state == "fault" else "verdict.quiet"
    return phrase(language, name, state=preview.state, replayed=replayed)
