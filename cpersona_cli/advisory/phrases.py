"""Our own sentences about an advisory, in English; in Japanese: ``japanese``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cpersona_cli.advisory import japanese
from cpersona_cli.embedding.kinds import MEANINGS, Kind
from cpersona_cli.text import plural

if TYPE_CHECKING:
    from cpersona_cli.advisory.texts import Language


def phrase(language: Language, name: str, /, **fields: object) -> str:
    """The sentence ``name`` with its gaps filled."""
    return (japanese.PHRASES if language == "ja" else PHRASES)[name].format(**fields)


def sentence(language: Language, kind: Kind) -> str:
    """What a kind of outcome stands for."""
    return japanese.KINDS[kind][0] if language == "ja" else MEANINGS[kind].sentence


def advice(language: Language, kind: Kind, mode: str = "") -> str:
    """What helps against it, in this mode of the server."""
    if kind is Kind.AUTH and mode == "http":
        return phrase(language, "advice.no-key")
    return japanese.KINDS[kind][1] if language == "ja" else MEANINGS[kind].advice


def quoted(language: Language, sentence: str, message: str) -> str:
    """A sentence with what the endpoint itself said, if it said anything."""
    return phrase(language, "quoted", sentence=sentence, message=message) if message else sentence


def counted(language: Language, count: int, noun: str) -> str:
    """``2 checks``."""
    return f"{word(language, noun)} {count} 件" if language == "ja" else plural(count, noun)


def word(language: Language, text: str) -> str:
    """A word or a sentence without gaps that stands elsewhere in English; what has no translation stays as it is."""
    return japanese.WORDS.get(text, text) if language == "ja" else text


PHRASES: Mapping[str, str] = {
    # the labels of rows
    "label.source": "whose words",
    "label.state": "state at the end",
    "label.means": "what it means",
    "label.advice": "what helps",
    "label.ours": "our own call",
    "label.redacted": "redacted",
    "label.switch": "switched off",
    "label.refused": "does not start",
    "label.unfinished": "not finished",
    "label.carrier": "where it appears",
    "label.caller": "callers",
    "title.target": "{label}: mode {mode}, {address}, {transport}",
    "title.recalls": "what each recall tells",
    "title.unsaid": "what is not said",
    "mark.broken": "broken",
    "kind.full": "the whole text",
    "kind.short": "the reminder",
    # whose words they are
    "source.server": "the server’s own, {release}, word for word as its next process would send them",
    "source.live": "; measured now through its own client",
    "source.probing": "; measured now through its own client and the second request that this release adds",
    "source.replay": "; replayed, nothing was called",
    "source.own": "ours, not the server’s: {why}",
    # the table
    "table.recall": "recall",
    "table.caller": "caller",
    "table.call": "embedding call",
    "table.state": "state after",
    "table.told": "the agent is told",
    "caller.none": "no key",
    "call.ok": "succeeds",
    "call.failed": "fails",
    "call.overlooked": "fails, taken for a success",
    "call.none": "none",
    "call.check": "fails in check_health",
    "call.escaped": "ends the recall with an error",
    "told.nothing": "nothing",
    "told.full": "the whole text, {size}",
    "told.short": "the reminder, {size}",
    "told.error": "an error in place of memories",
    "size": "{count:,} characters",
    # the panel
    "panel.first": "recall {number}, {told}",
    "panel.facts": "severity {severity}; scope {scope}; reason: {reason}",
    "panel.silent": "None of these recalls tells the agent anything.",
    "carrier": "in the field `advisory` of the answer to the next recall, best effort: the server cannot speak first",
    "redacted": "this text differs from the server’s in {count} characters that are secret; --raw shows them",
    "ours.ok": "{sentence}, a moment later",
    "ours.differs": (
        "{sentence}; the server’s own call ended otherwise, so the endpoint wavers, or the two call it differently"
    ),
    "quoted": "{sentence}: “{message}”",
    "healthy": "the endpoint answered the server",
    "hint": "supported and not broken: search by words alone, until a mode and a URL are set",
    "switch.off": "{setting}={text}: whatever happens, the agent is told nothing, and recall is no better for it",
    "switch.no-effect": "{setting}={text} does not switch the notice off in this release; false does",
    "switch.taken": "{setting}={text} switches the notice off in this release, which takes nothing but true for on",
    "keys.unknown": "this release knows no session_key, so all callers count as one",
    # the findings
    "found.no-start": "it refuses to start: {error}",
    "found.leaks": "{characters} of the server’s words are of a key, a password or a query",
    "found.fault": "{evidence}; that is: {means}",
    "found.no-reason": "no reason was recorded",
    "found.between": "; ",
    "found.switched-off": "{switch}, and {means}",
    "found.no-meaning": "recall by meaning does not work",
    "found.hint": "the mode is none: a hint comes with the first recall of each process",
    # repairs; those that another part of this tool knows exactly bring their own English
    "repair.no-start": "correct what it names",
    "repair.leaks": "correct the setting in which it stands; then change the secret",
    "repair.hint": "set {mode}=http and CPERSONA_EMBEDDING_URL; or {switch}=false, which only silences the hint",
    "repair.remove": "{prose}",
    "repair.edit": "{prose}",
    "repair.setting": "{prose}",
    "repair.general": "{prose}",
    "repair.silent": "see what is wrong with the vectors, then rebuild them",
    "repair.look": "see what the stored vectors are",
    "repair.probe": "see what answers at the endpoint",
    "advice.no-key": "turn the token of the embedding server off: in mode http CPersona sends no key",
    # why the server was not asked, or not to the end
    "absent.start": "{python} could not be started ({why})",
    "absent.nul": "{python} could not be started (a variable holds a NUL character)",
    "absent.release": (
        "this release of CPersona tells its agent nothing about its embedding endpoint (2.4.33 and later do)"
    ),
    "absent.module": "the server’s Python cannot import {module}",
    "absent.container": "the server runs in a container",
    "absent.wsl": "the server runs in WSL",
    "absent.install": "{why}",
    "absent.python": "{why}",
    "absent.other": "{python} is no Python of this machine",
    "refused.settings": "{why}",
    "unfinished.time": "{done} of {count} recalls were over when the time was up; --timeout allows more",
    "unfinished.ended": "{done} of {count} recalls were over when the server’s Python ended: {said}",
    "unfinished.silent": "it said nothing",
    "unfinished.closed": "the run was over",
    # why there is no verdict
    "unsettled.of": "{label}: {why}",
    "unsettled.look": "{why}",
    "unsettled.far": "its server runs elsewhere; run this command there",
    "unsettled.late": "was not asked in time",
    "unsettled.program": "whether its server starts was not seen: {why}",
    "unsettled.failed": "{why}",
    "unsettled.network": "its server stands on another network than this command; {sentence} from here",
    "unsettled.none": "no registration of CPersona was found; --env takes this process’s environment",
    "unsettled.inactive": "{registrations} found, and no client would start a server here",
    "skipped": "no server was asked",
    "note.override": "{name}={value} in place of its own, for this replay",
    "note.tool": "{note}",
    # the first line and the last
    "headline": "{registrations}, {recalls}",
    "summary": "{verdict}; {counts}.",
    "summary.between": ", ",
    "verdict.several": "{registrations}",
    "verdict.refused": "the server does not start",
    "verdict.none": "no recall could be shown",
    "verdict.told": "{state}, the agent is told from recall {number} on{replayed}",
    "verdict.broken": "the agent is told nothing, and recall is broken{replayed}",
    "verdict.quiet": "{state}, the agent is told nothing{replayed}",
    "verdict.replayed": " (replayed)",
    # the command line
    "raw.asks": "The server’s words may hold a key or a password. Type yes to see them as they are:",
    "usage.raw": "--raw may show a key or a password; add --yes to allow it",
    "usage.yes": "--yes goes with --raw: nothing else is asked here",
    "usage.transport": "--transport takes {known}, not {word}",
    "usage.or": " or ",
    "usage.timeout": "--timeout takes a number of seconds above 0 and up to {most}, not {given}",
    "usage.live": "--live measures, so it does not go with {option}",
    "usage.counted": "--sequence says how many recalls there are, so it does not go with --recalls",
    "usage.recalls": "--recalls takes a number from 1 to {most}, not {given}",
    "usage.words": "--sequence takes up to {most} words, not {given}",
    "usage.none": "--sequence: a server has one mode for its lifetime, so none does not stand beside other words",
    "usage.key": "a session key has up to {most} characters, and one of these has {given}",
    "usage.meant": "{option} takes no {word}; did you mean {near}?",
    "usage.kind": "{option} takes no {word}; known words: none, {known}",
    # why the stored vectors were not looked at
    "why.none": "no database is known",
    "why.absent": "there is no database yet",
    "why.unreadable": "the database cannot be read: {state}",
    "why.store": "{why}",
    "why.call": "{detail}",
    "why.model": "{detail}",
    # what the server does not say
    "unsaid.width": (
        "the stored vectors have {stored} dimensions and the endpoint makes {live}: no memory is found by meaning, "
        "and a server that is started now takes this for healthy"
    ),
    "unsaid.mixed": "{lost} of {rows} memories and episodes have vectors that do not go with the endpoint",
    "unsaid.swapped": "the stored vectors are another model’s, of the same width: searches by meaning return anything",
    "unsaid.drifted": "the stored vectors differ a little from what the endpoint makes now of the same texts",
    "unsaid.unreadable": "the stored vectors cannot be read as vectors of any one width",
    "unsaid.missing": "{missing} of {rows} memories and episodes have no vector and are not found by meaning",
    "unsaid.damaged": "{count} stored vectors are all zeros or hold no finite numbers",
    "unsaid.meaningless": "the endpoint answers, and its vectors are worth nothing: {sentence}",
    "unsaid.overlooked": (
        "the call fails, and this release takes it for a success, because its second request gets an answer"
    ),
    "unsaid.escaped": (
        "the call ends with {error}, which the server does not catch: the recall fails, and no advisory comes with it"
    ),
    "unsaid.first": (
        "the first failed recall: it finds memories by shared words only, and the agent is not told; the second in "
        "a row is announced"
    ),
    "unsaid.stores": (
        "memories that are stored during an outage: they get no vector, and storing them counts for nothing here"
    ),
    "unsaid.cached": (
        "a question asked again within some minutes: it is answered from the cache and shows neither failure nor "
        "recovery"
    ),
    "unsaid.remote": (
        "search is remote: an answer of the embedding server’s /search counts as success, which was not tried here"
    ),
    "unsaid.unknown": "whether the stored vectors go with the endpoint: that could not be found out ({why})",
    "unsaid.not-asked": "whether the stored vectors go with the endpoint: a replay calls nothing",
}
