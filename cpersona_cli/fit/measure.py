"""One database against one endpoint: the live side first, then what is stored, then both side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from cpersona_cli.embedding.calling import Caller, Factory, connect
from cpersona_cli.embedding.likeness import Likeness, Thresholds
from cpersona_cli.embedding.loop import run
from cpersona_cli.embedding.measured import Clock, Measured
from cpersona_cli.embedding.model import Endpoint
from cpersona_cli.fit import cost
from cpersona_cli.fit.compare import beside, compare, longest_same
from cpersona_cli.fit.foreign import foreign
from cpersona_cli.fit.labels import Standing, standing
from cpersona_cli.fit.live import Claims, answer
from cpersona_cli.fit.locate import Key, Look, locate, writer
from cpersona_cli.fit.model import TABLES, Break, Compared, Fit, Live, Located, State
from cpersona_cli.fit.past import past
from cpersona_cli.fit.states import Evidence, judge
from cpersona_cli.fit.stored import SAMPLE, Stored
from cpersona_cli.record import replace
from cpersona_cli.store.model import Census, Kind, Row, Store, StoreError

NOT_ASKED = "none were asked for (--sample 0)"
NOT_ALLOWED = "stored texts were not to leave this computer (--yes sends them)"


def measure(
    store: Store,
    endpoint: Endpoint | None,
    *,
    deadline: float,
    sample: int = SAMPLE,
    deep: bool = False,
    texts_allowed: bool = True,
    stated: Claims = (),
    wait: float = 0.0,
    factory: Factory = connect,
    clock: Clock | None = None,
    stored: Stored | None = None,
) -> Fit:
    """Whether the vectors of ``store`` still fit ``endpoint``; None asks no endpoint and judges the stored side alone.

    ``sample`` stored texts are embedded again, unless ``texts_allowed`` is False: then width and labels must do.
    ``deep`` reads the contents of every vector. ``stated`` are widths that settings claim. ``deadline`` is of
    ``time.monotonic``. ``stored`` is the stored side where reading it has begun. Raises ``StoreError`` when the store
    cannot be counted; never because of the endpoint.
    """
    clock = clock or Clock()
    if stored is None:
        stored = Stored(store=store, sample=sample, deep=deep, deadline=deadline).begin()
    live: Live | None = None
    measured: Measured | None = None
    if endpoint is not None:
        seconds = max(0.1, (deadline - clock.now()) / 2)
        live, measured = run(answer(endpoint, seconds=seconds, factory=factory, clock=clock, wait=wait, stated=stated))
    dim = None if live is None else live.dim
    stored.end(dim)
    allowed = texts_allowed and sample > 0
    work = _Work(
        store=store,
        census=stored.census,
        live=live,
        lines=Thresholds() if measured is None else measured.thresholds,
        deadline=deadline,
        clock=clock,
        texts=allowed and dim is not None,
        rows=stored.rows,
        unmeasured=stored.unmeasured,
    )
    if work.texts and endpoint is not None:
        timeout = min(endpoint.timeout, max(0.1, deadline - clock.now()))
        run(work.with_calls(Caller(endpoint=endpoint, factory=factory, deadline=timeout, clock=clock)))
    else:
        run(work.without_calls())
    why = "" if work.texts else NOT_ALLOWED if not texts_allowed else NOT_ASKED
    return work.fit(why, measured)


@dataclass(slots=True, kw_only=True)
class _Work:
    store: Store
    census: Census
    live: Live | None
    lines: Thresholds
    deadline: float
    clock: Clock
    texts: bool
    rows: list[Row] = field(default_factory=list)
    compared: list[Compared] = field(default_factory=list)
    located: list[Located] = field(default_factory=list)
    counts: dict[tuple[Kind, int, int | None], Mapping[str, int]] = field(default_factory=dict)
    sent: int = 0
    calls: int = 0
    unmeasured: list[str] = field(default_factory=list)

    @property
    def dim(self) -> int | None:
        return None if self.live is None else self.live.dim

    async def with_calls(self, caller: Caller) -> None:
        """Embed the sampled texts again, and more of them where the writers of a table changed."""
        async with caller:

            async def look(rows: Sequence[Row]) -> Sequence[Compared]:
                found, sent = await compare(caller, rows, self.dim or 0, self.lines, self._left())
                self.sent += sent
                return found if self._left() > 0 else ()

            self.compared, self.sent = await compare(caller, self.rows, self.dim or 0, self.lines, self._left())
            if longest_same(self.compared, self.lines) is None:
                await self._locate(look, writer)
            if not any(row.likeness in {Likeness.OTHER, Likeness.WIDTH} for row in self.compared):
                # a cosine that wavers about a threshold is no second writer
                self.located = [replace(found, interleaved=False, isolated=()) for found in self.located]
            self.calls = caller.calls

    async def without_calls(self) -> None:
        """Find what widths and labels show by themselves."""

        async def look(rows: Sequence[Row]) -> Sequence[Compared]:
            return [beside(row, self.dim, "its text was not sent") for row in rows]

        self.compared = list(await look(self.rows))
        await self._locate(look, self._labelled)

    def _labelled(self, row: Compared) -> str:
        """The writer of a row as its width and label tell it."""
        if self.live is not None and standing(row.label, self.live) is Standing.OTHER:
            return f"{row.width} wide, {row.label}"
        return f"{row.width} wide"

    async def _locate(self, look: Look, key: Key) -> None:
        for kind in TABLES:
            sampled = [row for row in self.compared if row.kind is kind]
            if len({key(row) for row in sampled} - {None}) < 2:
                continue

            def near(middle: int, count: int, kind: Kind = kind) -> Sequence[Row]:
                return self.store.near(kind, middle, count, deadline=self.deadline)

            try:
                found = await locate(kind, sampled, look, near, key)
            except StoreError as error:
                self.unmeasured.append(f"where the writer of {TABLES[kind]} changed: {error}")
                continue
            self.located.append(self._counted(found))

    def _counted(self, located: Located) -> Located:
        """With the rows on each side of every break."""
        if not located.breaks:
            return located
        try:
            edges = [0, *(change.before.id for change in located.breaks), None]
            counts = [sum(self.count(located.kind, after or 0, upto).values()) for after, upto in pairwise(edges)]
        except StoreError as error:
            self.unmeasured.append(f"how many {TABLES[located.kind]} stand before and after the change: {error}")
            return located
        breaks = [
            replace(change, rows_before=before, rows_after=after)
            for change, before, after in zip(located.breaks, counts, counts[1:], strict=False)
        ]
        return replace(located, breaks=tuple(breaks))

    def count(self, kind: Kind, after: int, upto: int | None) -> Mapping[str, int]:
        """Vectors by agent between two ids, counted once. Raises ``StoreError``."""
        place = (kind, after, upto)
        if place not in self.counts:
            self.counts[place] = self.store.count(kind, after=after, upto=upto, deadline=self.deadline)
        return self.counts[place]

    def _foreign(self) -> Mapping[Kind, Mapping[str, int]]:
        try:
            return foreign(self.census, self.live, self.count, compared=self.compared, located=self.located)
        except StoreError as error:
            self.unmeasured.append(f"how many rows are another model’s: {error}")
            return {}

    def _left(self) -> float:
        return self.deadline - self.clock.now()

    def fit(self, why: str, measured: Measured | None) -> Fit:
        """Everything together."""
        history = past(self.store.path, self.census, self.live)
        compared = tuple(self.compared)
        verdict = judge(
            Evidence(
                census=self.census,
                live=self.live,
                lines=self.lines,
                compared=compared,
                located=tuple(self.located),
                past=history,
                why=why or "; ".join(self.unmeasured) or _reasons(compared),
            )
        )
        cosines = [row.cosine for row in compared if row.cosine is not None]
        strange = {} if verdict.state is State.DRIFTED else self._foreign()
        live = None if self.live is None else replace(self.live, calls=self.live.calls + self.calls)
        return Fit(
            state=verdict.state,
            basis=verdict.basis,
            census=self.census,
            stored_dim=next(iter(self.census.widths(*TABLES.values())), None),
            expected_dim=self.dim,
            detail=verdict.detail,
            live=live,
            thresholds=self.lines if self.dim is not None else None,
            compared=compared,
            median=median(cosines) if cosines else None,
            lowest=min(cosines, default=None),
            breaks=_breaks(self.located),
            interleaved=tuple(located.kind for located in self.located if located.interleaved),
            isolated=tuple(row for located in self.located for row in located.isolated),
            foreign={kind: sum(agents.values()) for kind, agents in strange.items()},
            lost=cost.lost(self.census, self.dim, _by_agent(strange)),
            damaged=cost.damaged(self.census),
            advisory=cost.advisory(live, verdict.state),
            past=history,
            texts_sent=self.sent,
            unmeasured=tuple(self.unmeasured),
            measured=measured,
        )


def _reasons(compared: Sequence[Compared]) -> str:
    return next((row.why for row in compared if row.why), "there were none to compare")


def _breaks(located: Sequence[Located]) -> tuple[Break, ...]:
    return tuple(change for table in located for change in table.breaks)


def _by_agent(strange: Mapping[Kind, Mapping[str, int]]) -> Mapping[str, int]:
    agents: dict[str, int] = {}
    for rows in strange.values():
        for agent, count in rows.items():
            agents[agent] = agents.get(agent, 0) + count
    return agents
