"""What was measured at one endpoint: the steps, what they showed, and how much they may cost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.likeness import Thresholds, thresholds
from cpersona_cli.embedding.model import Endpoint, Outcome
from cpersona_cli.embedding.texts import Separation
from cpersona_cli.record import field as field_of
from cpersona_cli.record import record

State = Literal["pass", "findings", "unknown", "skipped"]
Evidence = tuple[tuple[str, str], ...]


@record
class StoredText:
    """One memory to be embedded again: its id, its text, and the vector it has in the database, if any."""

    id: str
    text: str
    vector: Sequence[float] = ()


@record(kw_only=True)
class Plan:
    """What to measure, and the bounds of it.

    ``timeout`` bounds each call in seconds in place of the server's own setting. ``wait`` seconds may pass until the
    endpoint is ready; ``count`` further calls show what the server would make of a row of them; ``samples`` are
    stored texts with their stored vectors. ``full`` measures all of a remote endpoint too, ``light`` no more than a few
    short texts of any. ``budget`` are the seconds after which no optional measurement is begun.
    The sizes are those the server itself uses: 32 texts when it fills missing vectors, 64 for the blocks of a long
    memory, and a body a little below 1 MiB, where the reference server ends;
    no such request is made with ``body`` 0.
    """

    timeout: float | None = None
    wait: float = 0.0
    count: int = 0
    identify: bool = False
    full: bool = False
    light: bool = False
    role: str = ""
    samples: tuple[StoredText, ...] = ()
    budget: float = 90.0
    batches: tuple[int, ...] = (32, 64)
    words: int = 1200
    body: int = 1_000_000
    bisections: int = 6
    experiments: int = 8


@record
class Clock:
    """Time and waiting, so that a test needs neither."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


@record(kw_only=True)
class Step:
    """One thing measured, or the reason why it was not; ``name`` is stable, ``detail`` is for people."""

    name: str
    state: State
    detail: str = ""


@record(kw_only=True)
class Remark:
    """Something that deserves a finding although the endpoint answered; ``name`` is stable.

    ``fatal``: memory does not work like this. ``subject`` is the kind of outcome behind it, if there is one.
    """

    name: str
    measured: str
    fatal: bool = False
    kind: Kind | None = None
    evidence: Evidence = ()


@record(kw_only=True)
class Experiment:
    """One extra request with one thing changed, and how it ended."""

    changed: str
    mode: str
    url: str
    kind: Kind
    status: int | None = None
    message: str = ""
    helped: bool = False


@record(kw_only=True)
class Solution:
    """What a real call showed to work: the pair of mode and URL, and what else must differ.

    ``model`` is another name to ask for, ``no_proxy`` the host to list there. ``key`` tells that the server needs any
    non-empty key besides, ``trim_key`` that the configured one works without the white space around it.
    """

    mode: str
    url: str
    model: str = ""
    no_proxy: str = ""
    key: bool = False
    trim_key: bool = False


@record
class Refinement:
    """The experiments made on a failed call, and what they found to work, if anything."""

    experiments: tuple[Experiment, ...] = ()
    solution: Solution | None = None
    remark: str = ""


@record(kw_only=True)
class Identity:
    """What the server says of itself. ``role_from`` is who decided over ``role``; ``asked`` are the requests made."""

    family: str = ""
    version: str = ""
    model: str = ""
    models: tuple[str, ...] = ()
    dimensions: int | None = None
    window: int | None = None
    largest_batch: int | None = None
    fingerprint: str = ""
    role: Literal["chat", "embedding", "unknown"] = "unknown"
    role_from: str = ""
    asked: tuple[tuple[str, str], ...] = ()


@record(kw_only=True)
class Health:
    """What the server's own two-failures rule makes of a row of calls: one (kind, state afterwards) for each."""

    state: Literal["unknown", "healthy", "hint", "fault"]
    calls: tuple[tuple[Kind, str], ...] = ()


@record(kw_only=True)
class Window:
    """How much of a long text counts. ``words`` and ``characters`` are usable; ``cut`` tells that the rest is lost.

    ``refused`` is the kind with which longer texts fail, when they do; ``at_least``: no end was found.
    """

    words: int
    characters: int
    cut: bool = False
    refused: Kind | None = None
    at_least: bool = False
    limit: int | None = None


@record(kw_only=True)
class Batch:
    """One batch size tried: how it ended, and the seconds it took."""

    size: int
    kind: Kind
    seconds: float
    limit: int | None = None


@record(kw_only=True)
class Sampled:
    """Stored texts tried: how many, and those that failed as (id, kind).

    ``compared`` of them have a stored vector as wide as the new one; ``agreement`` is the median cosine of the two,
    and ``differing`` are the ids of those that are not alike by ``thresholds``.
    """

    tried: int
    failed: tuple[tuple[str, Kind], ...] = ()
    unfinished: int = 0
    compared: int = 0
    agreement: float | None = None
    differing: tuple[str, ...] = ()
    thresholds: Thresholds = field_of(default_factory=Thresholds)


@dataclass(slots=True, kw_only=True)
class Measured:
    """Everything one run found out about one endpoint. ``outcome`` is the call that decides.

    ``repeat`` is the lowest cosine of one text's vectors in two replies: again, alone, and among many others.
    """

    endpoint: Endpoint
    outcome: Outcome
    steps: list[Step] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    calls: int = 0
    dropped: int = 0
    seconds: float = 0.0
    ready_after: float | None = None
    first_call: float | None = None
    second_call: float | None = None
    out_of_order: bool = False
    largest_batch: int | None = None
    batches: list[Batch] = field(default_factory=list)
    window: Window | None = None
    repeat: float | None = None
    separation: Separation | None = None
    refinement: Refinement = field(default_factory=Refinement)
    identity: Identity | None = None
    health: Health | None = None
    sampled: Sampled | None = None

    @property
    def thresholds(self) -> Thresholds:
        """From which cosine a stored vector counts as one of this endpoint's."""
        strangers = None if self.separation is None else self.separation.strangers
        return thresholds(1.0 if self.repeat is None else self.repeat, strangers)
