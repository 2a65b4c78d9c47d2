"""Values that the server cannot use, uses otherwise than they read, or refuses to start with."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

from cpersona_cli.install.model import Registration, Variable
from cpersona_cli.install.settings.effective import Effective
from cpersona_cli.install.settings.model import Invalid, Kind, Reader
from cpersona_cli.install.settings.parse import FALSE_WORDS, TRUE_WORDS
from cpersona_cli.install.settings.refusals import refusals
from cpersona_cli.install.settings.table import BY_NAME, is_secret
from cpersona_cli.text import nearest, safe
from cpersona_cli.traps.model import Facts, Finding, Needs, Repair, Severity, Target, Trap
from cpersona_cli.traps.names import API_URL, KEY, MODE, URL, mode
from cpersona_cli.traps.repairs import remove_variable, set_variable
from cpersona_cli.traps.subject import server

_TIMEOUT = "CPERSONA_EMBEDDING_TIMEOUT_SECS"
_BODY_LIMIT = "CPERSONA_HTTP_BODY_LIMIT_MODE"
_OPEN_HTTP = "CPERSONA_ALLOW_UNAUTHENTICATED_HTTP"
_TRUE_ALONE = ("CPERSONA_CUE_COARSE_ENABLED", _OPEN_HTTP)
#: A cold model on a CPU may take this long for its first answer (seconds).
_PATIENT = 10

_NUMBERS = {Kind.INT, Kind.FLOAT, Kind.OPTIONAL_INT}
_WORDS = {Kind.CHOICE, Kind.LOWER, Kind.EXACT, Kind.BOOL, Kind.TRUE_ONLY, Kind.OFF_ONLY, Kind.TRISTATE}
# Settings whose values other groups judge.
_ELSEWHERE = {
    "CPERSONA_AUTH_TOKEN",
    "CPERSONA_DB_PATH",
    "CPERSONA_HTTP_PORT",
    "CPERSONA_TRANSPORT",
    "CPERSONA_UPDATE_CHECK",
}
# Settings of this group whose own traps look for quotation marks too.
_OWN_TRAPS = {MODE, URL, API_URL, KEY}


def _written(target: Target) -> Iterator[Effective]:
    """The server's settings that somebody wrote, whose text is known, and which this release reads."""
    for name, found in target.settings.values.items():
        mine = BY_NAME[name].reader is Reader.SERVER and name not in _ELSEWHERE
        if mine and found.given and not (found.unresolved or found.ignored):
            yield found


def _quoted_text(text: str) -> bool:
    return len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"


def _wrong(target: Target, kinds: set[Kind]) -> Iterator[Effective]:
    """The settings of these kinds whose text the server cannot use and starts with all the same."""
    for found in _written(target):
        unusable = found.invalid and found.outcome is not Invalid.REFUSES
        if unusable and found.setting.kind in kinds and not _quoted_text(str(found.text)):
            yield found


def _unusable(found: Effective, repair: Repair, severity: Severity | None = None, costs: str = "") -> Finding:
    return Finding(
        about=found.setting.name,
        place=found.place,
        measured=f"{found.name}: {found.invalid}",
        repair=repair,
        severity=severity,
        costs=costs,
    )


def _bool_words(facts: Facts) -> Iterator[Finding]:
    target = server(facts)
    for found in _written(target):
        if BY_NAME[found.setting.name].kind is Kind.BOOL and _means_true(found):
            yield Finding(
                about=found.setting.name,
                place=found.place,
                measured=f"{found.name} is “{safe(str(found.text), 20)}”, which counts as off here",
                repair=set_variable(target.registration, found.name, "true", at=found.place),
            )


def _means_true(found: Effective) -> bool:
    """Whether the text says yes to a reader, and not in the one word that every release understands."""
    text = str(found.text).lower()
    return text.strip() in TRUE_WORDS and text != "true"


def _only_true(facts: Facts) -> Iterator[Finding]:
    target = server(facts)
    refused = {name for refusal in refusals(target.settings, target.version.version) for name in refusal.settings}
    for name in _TRUE_ALONE:
        found = target.settings[name]
        if found.invalid and _means_true(found):
            yield _unusable(
                found,
                set_variable(target.registration, found.name, "true", at=found.place),
                Severity.FAULT if name in refused else None,
                costs="the server refuses to start and the client shows it as failed" if name in refused else "",
            )


def _not_text(facts: Facts) -> Iterator[Finding]:
    entry = facts.target.registration
    for variable in entry.variables:
        if isinstance(variable.raw, str) or variable.place.file is None:
            continue
        number = isinstance(variable.raw, int | float) and not isinstance(variable.raw, bool)
        if entry.client == "vscode" and (number or variable.raw is None):
            continue  # its format allows numbers, and null to take a variable away
        kind = _KIND_WORDS.get(type(variable.raw), "null")
        yield Finding(
            about=variable.name,
            place=variable.place,
            measured=f"{safe(variable.name)} is {kind}, not a text in quotes",
            expected="env_vars one level up, beside command" if _one_level_up(entry, variable) else "",
            repair=_lifted(entry, variable) if _one_level_up(entry, variable) else _as_text(facts.target, variable),
        )


def _one_level_up(entry: Registration, variable: Variable) -> bool:
    """Whether Codex's list of names to hand on was put among the variables themselves."""
    return entry.client == "codex" and variable.name == "env_vars" and isinstance(variable.raw, list)


def _lifted(entry: Registration, variable: Variable) -> Repair:
    place = variable.place
    return Repair(
        prose=f"in {place.file}, line {place.line}, remove env_vars, and write it below "
        f"[mcp_servers.{entry.name}] instead, then restart {entry.client_title}",
        edit=f"env_vars = {json.dumps(variable.raw, ensure_ascii=False)}",
        place=place,
    )


_KIND_WORDS = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}


def _as_text(target: Target, variable: Variable) -> Repair:
    raw = variable.raw
    if raw is None:
        return remove_variable(target.registration, variable.name, at=variable.place)
    if is_secret(variable.name):
        text = "<the same value>"
    elif isinstance(raw, bool | int | float):
        text = json.dumps(raw)
    else:
        text = "<the value as one text>"
    return set_variable(target.registration, variable.name, text, at=variable.place)


def _quoted(facts: Facts) -> Iterator[Finding]:
    target = server(facts)
    for found in _written(target):
        text, name = str(found.text), found.setting.name
        if name in _OWN_TRAPS or not _quoted_text(text):
            continue
        inner = text[1:-1].strip("\"'")
        plain = found.setting.kind is Kind.TEXT or found.outcome is Invalid.REFUSES
        yield Finding(
            about=name,
            place=found.place,
            measured=f"{found.name} holds quotation marks that are part of the value",
            repair=set_variable(target.registration, found.name, inner, at=found.place)
            if inner
            else remove_variable(target.registration, found.name, at=found.place),
            severity=None if plain else Severity.WARNING,
        )


def _number(facts: Facts) -> Iterator[Finding]:
    target = server(facts)
    for found in _wrong(target, _NUMBERS):
        severity = Severity.HINT if found.outcome is Invalid.CLAMPED else None
        yield _unusable(found, _number_repair(target, found), severity)


def _number_repair(target: Target, found: Effective) -> Repair:
    digits = str(found.text).strip().replace(",", "").replace("_", "").replace(" ", "")
    head = digits.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ%")
    factor = {"k": 1000, "m": 1000_000}.get(digits[len(head) :].lower(), 1)
    if head.isascii() and head.isdecimal() and len(head) < 10 and _in_bounds(found, int(head) * factor):
        return set_variable(target.registration, found.name, str(int(head) * factor), at=found.place)
    if found.value is None or isinstance(found.value, str):
        return remove_variable(target.registration, found.name, at=found.place)
    usual = str(float(found.value) if found.setting.kind is Kind.FLOAT else int(found.value))
    return set_variable(target.registration, found.name, usual, at=found.place)


def _in_bounds(found: Effective, value: int) -> bool:
    row = found.setting
    least = max(x for x in (row.low, row.floor, row.above, -math.inf) if x is not None)
    most = min(x for x in (row.high, row.ceiling, math.inf) if x is not None)
    return least <= value <= most and value != row.above


def _word(facts: Facts) -> Iterator[Finding]:
    target = server(facts)
    for found in _wrong(target, _WORDS):
        row, name = BY_NAME[found.setting.name], found.setting.name
        if name in {MODE, _BODY_LIMIT} or ((row.kind is Kind.BOOL or name in _TRUE_ALONE) and _means_true(found)):
            continue
        yield _unusable(found, _word_repair(target, found))


def _word_repair(target: Target, found: Effective) -> Repair:
    row = BY_NAME[found.setting.name]
    text = str(found.text).strip().lower()
    choices = ("auto", "true", "false") if row.kind is Kind.TRISTATE else row.choices or ("true", "false")
    if text in TRUE_WORDS or text in FALSE_WORDS:
        meant: str | None = "true" if text in TRUE_WORDS else "false"
        meant = meant if meant in choices else None
    else:
        meant = text if text in choices else nearest(text, choices)
    if meant is None:
        return remove_variable(target.registration, found.name, at=found.place)
    return set_variable(target.registration, found.name, meant, at=found.place)


def _body_limit(facts: Facts) -> Iterator[Finding]:
    target = server(facts)
    found = target.settings[_BODY_LIMIT]
    if found.invalid and not found.ignored and not _quoted_text(str(found.text)):
        yield _unusable(found, _word_repair(target, found))


def _timeout(facts: Facts) -> Iterator[Finding]:
    target, found = server(facts), facts.setting(_TIMEOUT)
    value = found.value
    if mode(facts) not in {"http", "api"} or not found.given or found.invalid or found.unresolved:
        return
    if isinstance(value, int) and value < _PATIENT:
        yield Finding(
            about=_TIMEOUT,
            place=found.place,
            measured=f"{found.name}={value}",
            repair=set_variable(target.registration, found.name, str(found.setting.default), at=found.place),
            severity=None if value <= 0 else Severity.WARNING,
            costs=""
            if value <= 0
            else "the first calls of a model that is still loading fail, and those memories are"
            " stored without a vector",
        )


def _refused(facts: Facts) -> Iterator[Finding]:
    target = server(facts)
    told: set[str] = set()
    for refusal in refusals(target.settings, target.version.version):
        given = [name for name in refusal.settings if target.settings[name].given]
        if not given or given[0] in told or refusal.settings[0] in _ELSEWHERE | {MODE}:
            continue  # with none given it only follows from another refusal
        name, found = given[0], target.settings[given[0]]
        told.add(name)
        yield Finding(
            about=name,
            place=found.place,
            measured=refusal.sentence,
            repair=remove_variable(target.registration, found.name, at=found.place),
        )


def _not_finite(facts: Facts) -> Iterator[Finding]:
    target = server(facts)
    for found in _written(target):
        value = found.value
        if not found.invalid and isinstance(value, float) and not math.isfinite(value):
            yield Finding(
                about=found.setting.name,
                place=found.place,
                measured=f"{found.name} is “{safe(str(found.text), 20)}”",
                repair=remove_variable(target.registration, found.name, at=found.place),
            )


TRAPS = (
    Trap(
        id="names.bool-words",
        title="1, yes or on with a release that knows only true",
        severity=Severity.WARNING,
        needs=Needs.REGISTRATION,
        detect=_bool_words,
        expected="the word true, which every release understands",
        costs="what you switched on is off",
        repair="write true or false",
        source="config.py of 2.6.10 and 2.6.11, compared: before 2.6.11 only the word true is on",
        rows=("A23",),
        until="2.6.11",
    ),
    Trap(
        id="names.only-true",
        title="1, yes or on where only true counts",
        severity=Severity.WARNING,
        needs=Needs.REGISTRATION,
        detect=_only_true,
        expected="the word true",
        costs="what you switched on is off",
        repair="write true",
        source="measured on 2.6.14: these two settings do not go through the common reader of switches",
        rows=("A24",),
    ),
    Trap(
        id="names.not-text",
        title="Environment value without quotes",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_not_text,
        expected="every value of the environment block is a text in quotes",
        costs="the client rejects the entry or its whole file, or hands on another text than you wrote",
        repair="put the value into quotes",
        source="the clients' own formats: environment values are strings (Claude Code’s issue tracker, 4109)",
        rows=("A25",),
    ),
    Trap(
        id="names.quoted",
        title="Quotation marks inside a value",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_quoted,
        expected="the value alone; what reads the file takes its own quotes away, and docker's --env-file has none",
        costs="the server takes the marks as part of the value, which then names another file or model, or is no value",
        repair="remove the inner quotation marks",
        source="measured on 2.6.14: values are used as they stand",
        rows=("A26",),
    ),
    Trap(
        id="names.number-unreadable",
        title="Number the server cannot use",
        severity=Severity.WARNING,
        needs=Needs.REGISTRATION,
        detect=_number,
        expected="digits only, within the bounds of the setting",
        costs="another value than you wrote is in force; the only word about it goes to a log that clients hide",
        repair="write digits only, without units and separators",
        source="config.py of 2.6.14, the common readers of numbers",
        rows=("A27",),
    ),
    Trap(
        id="names.word-unreadable",
        title="Word the server cannot use",
        severity=Severity.WARNING,
        needs=Needs.REGISTRATION,
        detect=_word,
        expected="one of the words the setting knows",
        costs="another value than you wrote is in force; the only word about it, if any, goes to a log nobody sees",
        repair="write one of the words the setting knows",
        source="config.py of 2.4.41 to 2.6.14, the common readers of words and switches",
        rows=("A29",),
    ),
    Trap(
        id="names.body-limit-mode",
        title="Body limit mode that matches nothing",
        severity=Severity.HINT,
        needs=Needs.REGISTRATION,
        detect=_body_limit,
        expected=f"{_BODY_LIMIT} is warn, reject or off",
        costs="large requests are neither refused nor warned about, and nothing says so",
        repair="write warn, reject or off",
        source="config.py of 2.6.14: this one setting is not checked",
        rows=("A30",),
    ),
    Trap(
        id="names.timeout",
        title="Embedding timeout too short",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_timeout,
        expected=f"{_TIMEOUT} is {_PATIENT} seconds or more",
        costs="every call times out at once: memories are found only by shared words",
        repair=f"remove {_TIMEOUT}, or set it to 30",
        source="measured on 2.6.14: 0 and negative numbers are accepted",
        rows=("A28",),
    ),
    Trap(
        id="names.refused",
        title="Settings the server refuses to start with",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_refused,
        expected="settings that do not contradict each other, and caps of at least 1",
        costs="the server exits at start and the client shows it as failed",
        repair="remove the setting, or correct it",
        source="measured on 2.6.14: its start-up checks, in its own order",
        rows=("A31",),
    ),
    Trap(
        id="names.not-finite",
        title="nan or inf as a number",
        severity=Severity.WARNING,
        needs=Needs.REGISTRATION,
        detect=_not_finite,
        expected="a finite number",
        costs="comparisons with it are always false or always true: what it steers never happens, or always",
        repair="remove the setting, or write a number",
        source="measured on 2.6.14: float() accepts these words",
        rows=("A32",),
    ),
)
