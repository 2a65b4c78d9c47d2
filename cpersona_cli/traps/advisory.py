"""What the agent would be told about its memory: traps over previews that ``advisory-preview`` made."""

from __future__ import annotations

from collections.abc import Iterator

from cpersona_cli.advisory.phrases import phrase, word
from cpersona_cli.install.model import Place
from cpersona_cli.record import replace
from cpersona_cli.text import plural, safe
from cpersona_cli.traps.model import Facts, Finding, Needs, Previewed, Repair, Severity, Trap
from cpersona_cli.traps.repairs import remove_variable

SWITCH = "CPERSONA_DEGRADED_ADVISORY"
_MODE = "CPERSONA_EMBEDDING_MODE"


def _no_start(facts: Facts) -> Iterator[Finding]:
    found = facts.previewed
    if found.refused:
        prose = phrase(found.language, "repair.no-start")
        yield Finding(
            place=_registered(found),
            measured=phrase(found.language, "found.no-start", error=_first(found.refused)),
            repair=Repair(prose=prose, commands=("cpersona-cli doctor",), place=_registered(found)),
        )


def _leaks(facts: Facts) -> Iterator[Finding]:
    found = facts.previewed
    if found.hidden:
        characters = plural(found.hidden, "character")
        yield Finding(
            place=_registered(found),
            measured=phrase(found.language, "found.leaks", characters=characters, count=found.hidden),
            repair=Repair(prose=phrase(found.language, "repair.leaks")),
        )


def _fault(facts: Facts) -> Iterator[Finding]:
    found = facts.previewed
    if found.live and found.state == "fault" and found.enabled and not found.refused:
        evidence = safe(found.evidence) or phrase(found.language, "found.no-reason")
        means = phrase(found.language, "found.fault", evidence=evidence, means=found.means)
        yield Finding(place=_registered(found), measured=means if found.means else evidence, repair=found.repair)


def _silent(facts: Facts) -> Iterator[Finding]:
    found = facts.previewed
    if found.live and found.silent and not found.refused:
        measured = phrase(found.language, "found.between").join(found.silent)
        yield Finding(place=_registered(found), measured=measured, repair=found.repair)


def _switched_off(facts: Facts) -> Iterator[Finding]:
    found, say = facts.previewed, facts.previewed.language
    broken = found.state == "fault" or bool(found.silent)
    if not found.live or found.enabled or not broken or found.refused:
        return
    setting = found.target.settings[SWITCH]
    place = setting.place if setting.given else _registered(found)
    name = setting.name or SWITCH
    repair = remove_variable(found.target.registration, name, at=place)
    prose = phrase(say, "repair.remove", prose=repair.prose, name=name, place=word(say, str(place)))
    yield Finding(
        about=SWITCH,
        place=place,
        measured=phrase(
            say,
            "found.switched-off",
            switch=found.switch or SWITCH,
            means=found.means or phrase(say, "found.no-meaning"),
        ),
        repair=replace(repair, prose=prose),
    )


def _hint(facts: Facts) -> Iterator[Finding]:
    found = facts.previewed
    if found.live and found.state == "hint" and not found.chosen and not found.refused:
        setting = found.target.settings[_MODE]
        yield Finding(
            about=_MODE,
            place=setting.place if setting.given else _registered(found),
            measured=phrase(found.language, "found.hint"),
            repair=Repair(prose=phrase(found.language, "repair.hint", mode=_MODE, switch=SWITCH)),
        )


def _registered(found: Previewed) -> Place:
    return found.target.registration.place


def _first(refused: str) -> str:
    return safe(refused.splitlines()[0]) if refused else ""


_SOURCE = "cpersona.health of the installed server, asked in its own interpreter; measured on 2.4.41, 2.5.12, 2.6.14"

TRAPS: tuple[Trap, ...] = (
    Trap(
        id="advisory.no-start",
        title="The server does not start with these settings",
        severity=Severity.FAULT,
        needs=Needs.ADVISORY,
        detect=_no_start,
        expected="a server that starts",
        costs="there is no memory at all, and nobody who could tell the agent why",
        repair="correct the setting that the server’s own exception names",
        source=_SOURCE,
    ),
    Trap(
        id="advisory.leaks-secret",
        title="The words for the agent carry a secret",
        severity=Severity.FAULT,
        needs=Needs.ADVISORY,
        detect=_leaks,
        expected="no key, password or query of an address in what an agent reads",
        costs="the secret goes into the conversation, to its provider, and perhaps into a memory",
        repair="correct the key or the address, change the secret, and update the server",
        source=_SOURCE,
    ),
    Trap(
        id="advisory.fault",
        title="The agent will be told that recall is degraded",
        severity=Severity.FAULT,
        needs=Needs.ADVISORY,
        detect=_fault,
        expected="an endpoint that answers the server with usable vectors",
        costs="memories are found only by shared words, from the first recall on; the agent is told at the second",
        repair="see `cpersona-cli probe`, which names what answers at the address",
        source=_SOURCE,
    ),
    Trap(
        id="advisory.silent",
        title="Recall by meaning is broken and the agent will not be told",
        severity=Severity.FAULT,
        needs=Needs.ADVISORY,
        detect=_silent,
        expected="stored vectors and an endpoint that go together, or an agent that is told",
        costs="memories are not found by meaning, and nothing says so: silence looks like health",
        repair="see `cpersona-cli dimension`; `cpersona-cli reembed` rebuilds the vectors",
        source=_SOURCE,
    ),
    Trap(
        id="advisory.switched-off",
        title="The notice is switched off while recall is broken",
        severity=Severity.FAULT,
        needs=Needs.ADVISORY,
        detect=_switched_off,
        expected=f"{SWITCH} unset while an endpoint is configured",
        costs="recall finds memories only by shared words, and the agent is never told",
        repair=f"remove {SWITCH}, then mend the endpoint",
        source=_SOURCE,
    ),
    Trap(
        id="advisory.hint",
        title="The agent will be told that there is no embedding backend",
        severity=Severity.HINT,
        needs=Needs.ADVISORY,
        detect=_hint,
        expected=f"{_MODE}=http or api, or {SWITCH}=false where search by words alone is wanted",
        costs="memories are found only by the words they share with the question; that is supported, and not broken",
        repair=f"set {_MODE} and a URL, or {SWITCH}=false",
        source=_SOURCE,
    ),
)
