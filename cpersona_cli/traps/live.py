"""The endpoints of a machine, asked: one trap for each way a call can end and each remark about one that ends well.

Asking is done here once, concurrently, before the traps run; the traps themselves only look at what was measured.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from cpersona_cli.embedding.endpoints import configured
from cpersona_cli.embedding.kinds import MEANINGS, Kind
from cpersona_cli.embedding.model import Endpoint, Mode
from cpersona_cli.install.model import LaunchKind
from cpersona_cli.install.proxies import ProxyError, is_loopback, proxy_for
from cpersona_cli.record import record, replace
from cpersona_cli.store.reading import Reading, State
from cpersona_cli.traps.concurrent import concurrently
from cpersona_cli.traps.endpoint import UNDECIDED, findings, trap_id, unsettled
from cpersona_cli.traps.endpoint_remarks import REMARKS
from cpersona_cli.traps.model import CannotTellError, Detect, Facts, Finding, Needs, Severity, Subject, Target, Trap
from cpersona_cli.traps.shell import registration, tool

if TYPE_CHECKING:
    from pathlib import Path

    from cpersona_cli.embedding.measured import Measured
    from cpersona_cli.install.machine import Machine
    from cpersona_cli.store.model import Row

#: Stored memories that are embedded again for comparison, where the endpoint is on this computer.
SAMPLES = 6


@record(kw_only=True)
class Goal:
    """One endpoint to measure, whose it is, and the database its vectors are meant for.

    ``options`` choose it among several endpoints of one database, ``rebuild`` is the command that makes its vectors.
    """

    endpoint: Endpoint
    label: str
    targets: tuple[Target, ...] = ()
    reading: Reading | None = None
    options: tuple[str, ...] = ()
    rebuild: tuple[str, ...] = ()

    def subject(self, measured: Measured) -> Subject:
        """What was measured, for whom it was."""
        target = self.targets[0] if self.targets else None
        return Subject(label=self.label, measured=measured, target=target, reading=self.reading, rebuild=self.rebuild)


def goals(facts: Facts) -> list[Goal]:
    """The endpoints of all registrations whose server runs by their own command; those called alike come once."""
    groups: dict[tuple[object, ...], list[Target]] = {}
    endpoints: dict[tuple[object, ...], Endpoint] = {}
    for target in facts.targets:
        if target.registration.launch.kind in {LaunchKind.REMOTE, LaunchKind.PROXY}:
            continue
        endpoint = configured(target.settings, target.environment)
        key = _key(endpoint)
        endpoints.setdefault(key, endpoint)
        groups.setdefault(key, []).append(target)
    readings = {id(target): database.reading for database in facts.databases for target in database.targets}
    found = [
        Goal(
            endpoint=endpoints[key],
            label=", ".join(dict.fromkeys(target.registration.label for target in targets)),
            targets=tuple(targets),
            reading=next((readings[id(target)] for target in targets if id(target) in readings), None),
        )
        for key, targets in groups.items()
    ]
    shared = Counter(goal.reading.path for goal in found if goal.reading is not None)
    return [_commanded(goal, shared, facts.machine) for goal in found]


def _commanded(goal: Goal, shared: Mapping[Path, int], machine: Machine) -> Goal:
    """With the command about its database; among several endpoints of one it names a registration."""
    if goal.reading is None:
        return goal
    path = goal.reading.path
    options = registration(goal.targets[0], machine) if shared[path] > 1 else ()
    return replace(goal, options=options, rebuild=tool("reembed", path, machine, *options))


def _key(endpoint: Endpoint) -> tuple[object, ...]:
    """What makes two calls alike: key and model, proxies and certificates count only where they have a part in it."""
    api = (endpoint.key, endpoint.model) if endpoint.mode == Mode.API else ()
    try:
        way: object = proxy_for(endpoint.url, endpoint.environment)
    except ProxyError as error:
        way = str(error)
    secure = endpoint.url.lower().startswith("https:")
    trust = tuple(endpoint.environment.get(name) for name in ("SSL_CERT_FILE", "SSL_CERT_DIR")) if secure else ()
    return endpoint.mode, endpoint.url, endpoint.timeout, way, trust, *api


def ask(facts: Facts, end: float, wait: float = 0.0) -> tuple[tuple[Subject, ...], tuple[str, ...]]:
    """Measure every endpoint that can be called at all, until the monotonic time ``end``.

    An endpoint that is loading or not up yet is asked again for up to ``wait`` seconds.
    Returns what was measured, and a sentence for each endpoint that was not done in time. What keeps a call from being
    made is left to the traps about settings, which say it with file and line.
    """
    from cpersona_cli.embedding.configuration import objection  # noqa: PLC0415 - brings the HTTP client along

    wanted = [goal for goal in goals(facts) if objection(goal.endpoint) is None]
    asked, missed = concurrently(lambda goal: _measured(goal, end, wait), wanted, end, late="was not measured in time")
    return tuple(asked), tuple(f"the endpoint of {goal.label} {why}" for goal, why in missed)


def _measured(goal: Goal, end: float, wait: float) -> Subject:
    from cpersona_cli.embedding.measured import Plan, StoredText  # noqa: PLC0415 - as above
    from cpersona_cli.embedding.probe import probe  # noqa: PLC0415
    from cpersona_cli.embedding.stored import unpack  # noqa: PLC0415

    samples = tuple(StoredText(str(row.id), row.text, unpack(row.vector) or ()) for row in _stored(goal))
    left = max(0.5, end - time.monotonic() - 1.0)
    plan = Plan(
        timeout=min(goal.endpoint.timeout, left),
        wait=min(wait, left),
        samples=samples,
        light=True,
        budget=left / 2,
    )
    (measured,) = probe([goal.endpoint], plan)
    return goal.subject(measured)


def _stored(goal: Goal) -> Sequence[Row]:
    """A few stored memories, unless they would have to leave this computer."""
    from cpersona_cli.store.cpersona.store import CPersonaStore  # noqa: PLC0415 - only where one is asked
    from cpersona_cli.store.model import StoreError  # noqa: PLC0415

    reading = goal.reading
    if reading is None or reading.state is not State.OK or not is_loopback(goal.endpoint.url):
        return ()
    try:
        return CPersonaStore(reading.path).texts(SAMPLES, deadline=time.monotonic() + 2.0)
    except StoreError:
        return ()


def _detect(name: str) -> Detect:
    def detect(facts: Facts) -> Iterator[Finding]:
        for finding in findings(facts.endpoint):
            if finding.trap == name:
                yield finding

    return detect


def _undecided(facts: Facts) -> Iterator[Finding]:
    reasons = list(unsettled(facts.endpoint))
    if reasons:
        raise CannotTellError("; ".join(reasons))
    yield from ()


# Catalogue rows that only a call decides.
_ROWS: Mapping[str, tuple[str, ...]] = {
    "refused": ("B1", "B6"),
    "connect_timeout": ("B20",),
    "slow-start": ("B21",),
    "not_normalized": ("B24",),
    "bad_values": ("B26",),
    "model_mismatch": ("B27", "B28"),
    "dimension_mismatch": ("D1",),
}

_SOURCE = "the partition of embedding calls (docs/probe.md), each end measured beside the server's own client"


def _title(sentence: str) -> str:
    return f"{sentence[:1].upper()}{sentence[1:]}"


def _of_kind(kind: Kind) -> Trap:
    meaning = MEANINGS[kind]
    return Trap(
        id=trap_id(kind),
        title=_title(meaning.sentence),
        severity=Severity.FAULT,
        needs=Needs.ENDPOINT,
        detect=_detect(trap_id(kind)),
        expected="vectors in the contract of this mode, finite, different for different texts",
        costs="memories get no vector, or a worthless one, and are not found by meaning",
        repair=meaning.advice,
        source=_SOURCE,
        rows=_ROWS.get(str(kind), ()),
    )


def _of_remark(name: str) -> Trap:
    advice = REMARKS[name]
    return Trap(
        id=trap_id(name),
        title=_title(f"{name.replace('-', ' ')} at the embedding endpoint"),
        severity=advice.severity,
        needs=Needs.ENDPOINT,
        detect=_detect(trap_id(name)),
        expected=advice.expected,
        costs=advice.costs,
        repair=advice.repair,
        source=_SOURCE,
        rows=_ROWS.get(name, ()),
    )


def _of_texts(name: str, title: str, repair: str) -> Trap:
    return Trap(
        id=trap_id(name),
        title=title,
        severity=Severity.WARNING,
        needs=Needs.ENDPOINT,
        detect=_detect(trap_id(name)),
        expected="a vector for every stored text",
        costs="these memories get no vector; a re-embedding stops or skips them",
        repair=repair,
        source=_SOURCE,
    )


_KINDS = [kind for kind, meaning in MEANINGS.items() if meaning.fatal and kind not in UNDECIDED | {Kind.DISABLED}]

TRAPS: tuple[Trap, ...] = (
    Trap(
        id="endpoint.undecided",
        title="The endpoint gave no verdict",
        severity=Severity.FAULT,
        needs=Needs.ENDPOINT,
        detect=_undecided,
        expected="an answer in time",
        costs="whether memories are found by meaning is not known",
        repair="wait until the model is loaded and the server is idle, then ask again",
        source=_SOURCE,
    ),
    *(_of_kind(kind) for kind in _KINDS),
    *(_of_remark(name) for name in REMARKS if name not in {kind.replace("_", "-") for kind in _KINDS}),
    _of_texts(
        "nan-for-some-inputs",
        "The model makes no number of some stored texts",
        "use another build or server of the model, or shorten these memories",
    ),
    _of_texts("some-texts-fail", "The endpoint refuses some stored texts", "read why, and raise the server’s limits"),
)
