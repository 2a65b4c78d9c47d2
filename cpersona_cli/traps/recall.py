"""Recall settings that do not do what their names suggest, held against what the store really holds."""

from __future__ import annotations

from collections.abc import Iterator

from cpersona_cli.install.release.version import NEWEST_KNOWN
from cpersona_cli.install.settings.effective import Effective
from cpersona_cli.text import plural
from cpersona_cli.traps.model import (
    Database,
    Facts,
    Finding,
    Needs,
    Severity,
    SkipError,
    Target,
    Trap,
)
from cpersona_cli.traps.repairs import remove_variable, set_variable
from cpersona_cli.traps.subject import server
from cpersona_cli.traps.version import upgrade

#: A scan window this much larger than the default trades recent answers for old ones.
_WIDE = 20_000


def number(setting: Effective) -> int:
    return int(setting.value) if isinstance(setting.value, int | float) else 0


def database_of(facts: Facts, target: Target) -> Database | None:
    """The database that ``target`` opens, where it could be read."""
    return next((d for d in facts.databases if any(t is target for t in d.targets)), None)


def memories(database: Database | None) -> int | None:
    """Rows in ``memories``, or None where they could not be counted."""
    return None if database is None else database.reading.counts.get("memories")


def _window(facts: Facts) -> Iterator[Finding]:
    target = server(facts)
    setting = target.settings["CPERSONA_MAX_MEMORIES"]
    rows = memories(database_of(facts, target))
    if not setting.given or setting.invalid:
        return
    window, registration = number(setting), target.registration
    if rows is not None and rows > window and window < 10_000:
        measured = f"{setting.name}={window} and {rows} memories: {rows - window} of them are outside the window"
        severity = None
    elif window >= _WIDE:
        measured = f"{setting.name}={window}" + ("" if rows is None else f" over {plural(rows, 'memory', 'memories')}")
        severity = None if rows is None or rows > 10_000 else Severity.HINT
    else:
        return
    yield Finding(
        about=setting.name,
        place=setting.place,
        severity=severity,
        measured=measured,
        repair=remove_variable(registration, setting.name, at=setting.place),
    )


def _reach(facts: Facts) -> Iterator[Finding]:
    target = server(facts)
    reach, window = target.settings["CPERSONA_VECTOR_REACH"], target.settings["CPERSONA_MAX_MEMORIES"]
    why = ""
    if number(reach) <= 0 or not reach.given:
        return
    if number(reach) <= number(window):
        why = f"{reach.name}={number(reach)} is not above {window.setting.name}={number(window)}"
    elif target.settings["CPERSONA_RECALL_MODE"].value == "cascade":
        why = f"{reach.name} is set and CPERSONA_RECALL_MODE is cascade, which has no far list"
    elif target.settings["CPERSONA_VECTOR_SEARCH_MODE"].value == "remote":
        why = f"{reach.name} is set and CPERSONA_VECTOR_SEARCH_MODE is remote, which has no far list"
    if why:
        yield Finding(
            about=reach.name,
            place=reach.place,
            measured=why,
            repair=set_variable(target.registration, reach.name, str(number(window) * 4), at=reach.place),
        )


def _limit_window(facts: Facts) -> Iterator[Finding]:
    target = server(facts)
    if str(target.settings["CPERSONA_EMBEDDING_MODE"].value) == "none":
        raise SkipError("nothing is searched by meaning in mode none")
    rows = memories(database_of(facts, target))
    if rows is None or rows > 100:
        yield Finding(
            about="version",
            place=target.registration.place,
            measured=f"CPersona {target.version.version}"
            + ("" if rows is None else f" and {plural(rows, 'memory', 'memories')}"),
            repair=upgrade(target),
        )


def _confidence_order(facts: Facts) -> Iterator[Finding]:
    target = server(facts)
    setting = target.settings["CPERSONA_CONFIDENCE_ENABLED"]
    if setting.value is True and target.settings["CPERSONA_CONFIDENCE_ORDERING"].value != "legacy":
        yield Finding(
            about=setting.name,
            place=setting.place,
            measured=f"{setting.name}=true and CPERSONA_CONFIDENCE_ORDERING is fusion",
            repair=set_variable(target.registration, "CPERSONA_CONFIDENCE_ORDERING", "legacy"),
        )


def _mode(facts: Facts) -> Iterator[Finding]:
    target = server(facts)
    mode, confidence = target.settings["CPERSONA_RECALL_MODE"], target.settings["CPERSONA_CONFIDENCE_ENABLED"]
    ordering = target.settings["CPERSONA_CONFIDENCE_ORDERING"]
    orders = confidence.value is True and (ordering.value == "legacy" or not _reads(target, ordering))
    if orders and mode.given and mode.value in {"rrf", "rsf"}:
        yield Finding(
            about=mode.name,
            place=mode.place,
            measured=f"{mode.name}={mode.text} and {confidence.name}=true, which orders the results",
            repair=remove_variable(target.registration, mode.name, at=mode.place),
        )


def _reads(target: Target, setting: Effective) -> bool:
    """Whether the release that starts reads the setting at all."""
    return setting.setting.known_to(target.version.version or NEWEST_KNOWN)


def _undated(facts: Facts) -> Iterator[Finding]:
    target = server(facts)
    database = database_of(facts, target)
    undated = 0 if database is None else database.reading.invalid_timestamps
    if target.settings["CPERSONA_CONFIDENCE_ENABLED"].value is True and undated:
        yield Finding(
            about="memories.timestamp",
            place=target.settings["CPERSONA_CONFIDENCE_ENABLED"].place,
            measured=f"confidence is on and {plural(undated, 'memory has', 'memories have')} no date that can be read",
            repair=upgrade(target),
        )


def _autocut(facts: Facts) -> Iterator[Finding]:
    target = server(facts)
    mode = target.settings["CPERSONA_RECALL_MODE"].value
    for name in ("CPERSONA_AUTOCUT_ENABLED", "CPERSONA_AUTOCUT_MIN_GAP_RATIO", "CPERSONA_AUTOCUT_MIN_RESULTS"):
        setting = target.settings[name]
        off = name == "CPERSONA_AUTOCUT_ENABLED" and setting.value is False
        if setting.given and not off and mode in {"rrf", "rsf"}:
            yield Finding(
                about=name,
                place=setting.place,
                measured=f"{setting.name}={setting.text} and CPERSONA_RECALL_MODE is {mode}",
                repair=remove_variable(target.registration, setting.name, at=setting.place),
            )


def _similarity(facts: Facts) -> Iterator[Finding]:
    target = server(facts)
    setting = target.settings["CPERSONA_VECTOR_MIN_SIMILARITY"]
    if not setting.given or setting.invalid or not isinstance(setting.value, int | float):
        return
    value = float(setting.value)
    if 0 <= value <= 0.6:
        return
    effect = "keeps everything" if value < 0 else "no pair of texts reaches that" if value > 1 else "few memories do"
    yield Finding(
        about=setting.name,
        place=setting.place,
        measured=f"{setting.name}={setting.text}: without a calibrated threshold only memories this similar are found; "
        f"{effect}",
        repair=remove_variable(target.registration, setting.name, at=setting.place),
    )


def _task_queue(facts: Facts) -> Iterator[Finding]:
    target = server(facts)
    setting = target.settings["CPERSONA_TASK_QUEUE_ENABLED"]
    if setting.value is False:
        yield Finding(
            about=setting.name,
            place=setting.place,
            measured=f"{setting.name}={setting.text}",
            repair=remove_variable(target.registration, setting.name, at=setting.place),
        )


TRAPS = (
    Trap(
        id="recall.scan-window",
        title="The scan window was taken for a limit on what is kept",
        severity=Severity.WARNING,
        needs=Needs.REGISTRATION,
        detect=_window,
        expected="CPERSONA_MAX_MEMORIES unset; it is how many of the newest rows are searched by meaning",
        costs="a small window hides older memories from the search by meaning; a large one lets old rows push recent "
        "answers out (measured on 237,654 rows, 10,000 to 200,000: 20.2 points lost on recent answers, 4.9 won on old)",
        repair="unset it; to reach further back, set CPERSONA_VECTOR_REACH",
        source="config.MAX_MEMORIES and the measurement described beside VECTOR_REACH",
        rows=("F1",),
    ),
    Trap(
        id="recall.reach-inert",
        title="CPERSONA_VECTOR_REACH has no effect",
        severity=Severity.HINT,
        needs=Needs.REGISTRATION,
        detect=_reach,
        expected="a reach above CPERSONA_MAX_MEMORIES, with RECALL_MODE rrf or rsf and local vectors",
        costs="older memories are not reached, although it was asked for",
        repair="raise it above the window",
        source="config.VECTOR_REACH: at or below the window the far list is empty",
        rows=("F2",),
        since="2.5",
    ),
    Trap(
        id="recall.limit-window",
        title="This release searches only the newest hundred memories by meaning",
        severity=Severity.FAULT,
        needs=Needs.REGISTRATION,
        detect=_limit_window,
        expected="release 2.4.40 or newer",
        costs="older memories are never found by meaning: the window was derived from the number of results asked for",
        repair="start a newer release",
        source="the changelog of 2.4.40",
        rows=("F4",),
        until="2.4.40",
    ),
    Trap(
        id="recall.confidence-order",
        title="Confidence is on and does not order anything",
        severity=Severity.HINT,
        needs=Needs.REGISTRATION,
        detect=_confidence_order,
        expected="CPERSONA_CONFIDENCE_ORDERING=legacy where confidence is to order the results",
        costs="it only adds a number to each result",
        repair="set CPERSONA_CONFIDENCE_ORDERING=legacy and calibrate, or leave confidence off",
        source="config.CONFIDENCE_ORDERING, new in 2.6.0",
        rows=("F6",),
        since="2.6.0",
    ),
    Trap(
        id="recall.mode-inert",
        title="The recall mode has no effect on the order",
        severity=Severity.HINT,
        needs=Needs.REGISTRATION,
        detect=_mode,
        expected="CPERSONA_RECALL_MODE unset where confidence orders the results",
        costs="rrf and rsf then only pick the candidates; results come in the order of their confidence in both",
        repair="remove it, or leave confidence off",
        source="the server's behaviour contracts: both modes gave the same rows in 394 of 394 recalls",
    ),
    Trap(
        id="recall.undated-confidence",
        title="Memories without a date count as brand new",
        severity=Severity.HINT,
        needs=Needs.REGISTRATION,
        detect=_undated,
        expected="release 2.5.4 or newer, which gives them the age of their neighbours",
        costs="they come first in every recall",
        repair="start a newer release",
        source="the changelog of 2.5.4",
        rows=("F7",),
        until="2.5.4",
    ),
    Trap(
        id="recall.autocut-inert",
        title="Autocut is set and has no effect in this mode",
        severity=Severity.HINT,
        needs=Needs.REGISTRATION,
        detect=_autocut,
        expected="autocut settings only with CPERSONA_RECALL_MODE=cascade",
        costs="the number of results does not change",
        repair="remove it; CPERSONA_RECALL_PRECISION is the setting that shortens results",
        source="the cpersona-memory skill: under rrf and rsf the fused gate decides",
        rows=("F8",),
    ),
    Trap(
        id="recall.min-similarity",
        title="The least similarity is out of reach",
        severity=Severity.WARNING,
        needs=Needs.REGISTRATION,
        detect=_similarity,
        expected="CPERSONA_VECTOR_MIN_SIMILARITY unset, or between 0 and 0.6, and a calibrated threshold",
        costs="recall by meaning comes back empty, or full of noise",
        repair="remove it and let calibrate_threshold measure one",
        source="vector.py: the fallback where no calibrated threshold is stored; models differ in what a score means",
        rows=("F10",),
    ),
    Trap(
        id="recall.task-queue-off",
        title="Background work is switched off",
        severity=Severity.HINT,
        needs=Needs.REGISTRATION,
        detect=_task_queue,
        expected="CPERSONA_TASK_QUEUE_ENABLED=true",
        costs="missing vectors and blocks are never made up for",
        repair="remove the setting",
        source="config.TASK_QUEUE_ENABLED",
        rows=("F13",),
    ),
)
