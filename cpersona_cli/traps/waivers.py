"""Findings somebody decided to live with: for a stated reason, until a stated day, always counted and shown.

A waivers file is TOML::

    [[waiver]]
    id = "recall.gate-off"
    fingerprint = "0123456789ab"   # optional: only this one finding of the trap
    reason = "the gate is on in production"
    expires = 2027-01-31
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from cpersona_cli.install.model import Place
from cpersona_cli.record import record
from cpersona_cli.text import nearest, safe
from cpersona_cli.traps.model import Facts, Finding, Needs, Repair, Severity, SkipError, Trap
from cpersona_cli.traps.run import Check, State
from cpersona_cli.traps.toolfile import ToolFile, ToolFileError, load

#: Days for which a written waiver holds unless somebody changes it.
DAYS = 90

_KEYS = ("id", "fingerprint", "reason", "expires")


@record(kw_only=True)
class Waiver:
    """One entry; ``expires`` is the last day on which it holds. Without ``fingerprint`` it covers all of the trap."""

    id: str
    reason: str
    expires: dt.date
    place: Place
    fingerprint: str = ""

    def covers(self, finding: Finding) -> bool:
        return finding.trap == self.id and self.fingerprint in {"", finding.fingerprint}


class Applied(NamedTuple):
    """What waivers make of a run: the findings that count, those that do not, and the checks of the file itself.

    The findings of the file's own checks are not among ``findings``.
    """

    findings: tuple[Finding, ...]
    waived: tuple[tuple[Finding, Waiver], ...]
    checks: tuple[Check, ...]


def read(path: Path) -> tuple[Waiver, ...]:
    """The waivers in ``path``. Raises ``ToolFileError`` for a file that cannot be used as it stands."""
    file = load(path)
    file.expect_keys(file.data, ("waiver",))
    entries = file.data.get("waiver", [])
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        raise file.error("waivers are written as [[waiver]] tables", file.line(r"\s*\[?\s*waiver"))
    return tuple(_waiver(file, number, entry) for number, entry in enumerate(entries))


def _waiver(file: ToolFile, number: int, entry: Mapping[str, object]) -> Waiver:
    line = file.line(r"\s*\[\[\s*waiver\s*\]\]", number)
    above = line or 0
    file.expect_keys(entry, _KEYS, above)
    texts = {}
    for key in ("id", "reason", "fingerprint"):
        value = entry.get(key, "")
        if not isinstance(value, str):
            raise file.error(f"{key} must be a text", file.key_line(key, above))
        texts[key] = value.strip()
        if not texts[key] and key != "fingerprint":
            raise file.error(f"waiver {number + 1} has no {key}", line)
    return Waiver(
        id=texts["id"],
        reason=texts["reason"],
        fingerprint=texts["fingerprint"],
        expires=_day(file, entry, number, above),
        place=Place(file=file.path, line=line),
    )


def _day(file: ToolFile, entry: Mapping[str, object], number: int, above: int) -> dt.date:
    value = entry.get("expires")
    if value is None:
        raise file.error(f"waiver {number + 1} has no expires: the last day on which it holds", above or None)
    if isinstance(value, dt.datetime):
        return value.date()
    if isinstance(value, dt.date):
        return value
    try:
        return dt.date.fromisoformat(str(value))
    except ValueError:
        raise file.error("expires must be a day such as 2027-01-31", file.key_line("expires", above)) from None


def apply(waivers: Sequence[Waiver], checks: Sequence[Check], known: Collection[str], today: dt.date) -> Applied:
    """Sort the findings of ``checks``; ``known`` are the ids that a waiver may name."""
    counting: list[Finding] = []
    waived: list[tuple[Finding, Waiver]] = []
    in_force = [waiver for waiver in waivers if waiver.expires >= today]
    for finding in (finding for check in checks for finding in check.findings):
        waiver = next((waiver for waiver in in_force if waiver.covers(finding)), None)
        if waiver is None:
            counting.append(finding)
        else:
            waived.append((finding, waiver))
    told = {check.trap.id for check in checks if check.state in {State.PASS, State.FINDINGS}}
    unknown = [waiver for waiver in waivers if waiver.id not in known]
    expired = [waiver for waiver in waivers if waiver.expires < today and waiver.id in known]
    unused = [
        waiver
        for waiver in in_force
        if waiver.id in told and not any(waiver.covers(finding) for check in checks for finding in check.findings)
    ]
    own = (
        _check(_EXPIRED, (_expired(waiver) for waiver in expired)),
        _check(_UNKNOWN, (_unknown(waiver, known) for waiver in unknown)),
        _check(_UNUSED, (_unused(waiver) for waiver in unused)),
    )
    return Applied(tuple(counting), tuple(waived), own)


def _check(trap: Trap, findings: Iterable[Finding]) -> Check:
    stamped = tuple(trap.stamp(finding, "") for finding in findings)
    return Check(trap=trap, state=State.FINDINGS if stamped else State.PASS, findings=stamped, subjects=1)


def _finding(waiver: Waiver, measured: str, repair: str) -> Finding:
    return Finding(
        measured=measured,
        repair=Repair(prose=repair, place=waiver.place),
        subject=str(waiver.place.file),
        about=waiver.id,
        place=waiver.place,
        evidence=(("reason", waiver.reason),),
    )


def _expired(waiver: Waiver) -> Finding:
    measured = f"the waiver for {waiver.id} ended on {waiver.expires.isoformat()}"
    return _finding(waiver, measured, "mend what it covers and remove it, or give it a new day and a reason that holds")


def _unknown(waiver: Waiver, known: Collection[str]) -> Finding:
    near = nearest(waiver.id, known, 3)
    hint = f"write {near}" if near else "take the id from: cpersona-cli traps list"
    return _finding(waiver, f"there is no trap {safe(waiver.id, 60)}, so this waiver covers nothing", hint)


def _unused(waiver: Waiver) -> Finding:
    which = f" with the fingerprint {safe(waiver.fingerprint, 60)}" if waiver.fingerprint else ""
    return _finding(waiver, f"{waiver.id} found nothing{which}: the waiver is not needed", "remove it from the file")


def write(path: Path, findings: Iterable[tuple[Finding, str]], today: dt.date) -> None:
    """Write a new waivers file for ``findings``, each with what may be said of it in a comment.

    Raises ``ToolFileError`` when the file exists already or cannot be made.
    """
    import tomli_w  # noqa: PLC0415 - only this needs it

    until = today + dt.timedelta(days=DAYS)
    reason = f"accepted as found on {today.isoformat()}; replace this by your own reason"
    parts = [f"# Written by cpersona-cli doctor --write-waivers on {today.isoformat()}.\n"]
    for finding, comment in findings:
        entry = {"id": finding.trap, "fingerprint": finding.fingerprint, "reason": reason, "expires": until}
        parts.append(f"\n# {safe(comment)}\n[[waiver]]\n{tomli_w.dumps(entry)}")
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write("".join(parts))
    except FileExistsError:
        raise ToolFileError(f"{safe(str(path))}: the file exists; --write-waivers never overwrites one") from None
    except (OSError, ValueError) as error:
        raise ToolFileError(f"{safe(str(path))}: cannot be written: {getattr(error, 'strerror', error)}") from error


def _nothing(_facts: Facts) -> Sequence[Finding]:
    raise SkipError("no waivers file was given")


def _trap(name: str, title: str, expected: str, costs: str, repair: str) -> Trap:
    return Trap(
        id=f"tool.{name}",
        title=title,
        severity=Severity.WARNING,
        needs=Needs.MACHINE,
        detect=_nothing,
        expected=expected,
        costs=costs,
        repair=repair,
        source="this tool: a waiver names a trap, a reason and a last day",
    )


_EXPIRED = _trap(
    "waiver-expired",
    "A waiver has passed its last day",
    "every waiver holds until a day that is still to come",
    "it covers nothing any more; what it covered counts again",
    "mend what it covers and remove it, or give it a new day",
)
_UNKNOWN = _trap(
    "waiver-unknown",
    "A waiver names no trap",
    "the id of a trap of this release",
    "what it was meant to cover is not covered",
    "correct the id, or remove the waiver of a retired trap",
)
_UNUSED = _trap(
    "waiver-unused",
    "A waiver covers nothing",
    "every waiver covers a finding of this run",
    "it would silently cover the same fault when it comes back",
    "remove the waiver",
)

#: The checks of a waivers file itself.
TRAPS = (_EXPIRED, _UNKNOWN, _UNUSED)
