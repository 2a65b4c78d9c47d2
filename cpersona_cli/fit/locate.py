"""Where in a table the writer of its vectors changed: found by halving, with a handful of rows looked at each time.

Rows are looked at in small groups of neighbours. That costs no more calls than single rows would, ends the search
early, and tells a change of writer from rows of two that stand among each other, for which no change is made up.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from cpersona_cli.embedding.likeness import Likeness
from cpersona_cli.fit.model import Break, Compared, Located
from cpersona_cli.store.model import Kind, Row

#: Rows of one look: enough for one odd one out among them to show.
NEIGHBOURS = 5
#: More changes than this in one table are two writers at the same time.
MOST_BREAKS = 8
#: Fewer rows of one writer among those of another are odd ones out, and no two changes.
_RUN = 4
#: Rows around one place that are looked at before it is given up because none of them can be judged.
_PATIENCE = 80

#: What was written by one writer has one key; None is a row that cannot be told.
Key = Callable[[Compared], str | None]
Look = Callable[[Sequence[Row]], Awaitable[Sequence[Compared]]]
Near = Callable[[int, int], Sequence[Row]]


def writer(row: Compared) -> str | None:
    """The writer of a row as a comparison tells it: this model, another one, or one of another width."""
    if row.likeness is Likeness.WIDTH:
        return f"{row.width} wide"
    if row.likeness is Likeness.UNJUDGED:
        return None
    return "this" if row.likeness is Likeness.SAME else "another"


async def locate(kind: Kind, sampled: Sequence[Compared], look: Look, near: Near, key: Key = writer) -> Located:
    """The changes of writer between the ``sampled`` rows of one table.

    ``near`` reads stored rows around an id, ``look`` compares them; it returns fewer rows than it was given, or none,
    once time is over, and then the changes not yet found to the row are not ``exact``.
    """
    search = _Search(kind=kind, look=look, near=near, key=key)
    search.take(sampled)
    return await search.run()


class _InterleavedError(Exception):
    """Rows of two writers stand among each other."""


@dataclass(slots=True, kw_only=True)
class _Search:
    """``ids`` are of the rows that can be told and are no odd ones out, in order; ``odd`` are of those that are."""

    kind: Kind
    look: Look
    near: Near
    key: Key
    over: bool = False
    rows: dict[int, Compared] = field(default_factory=dict)
    ids: list[int] = field(default_factory=list)
    odd: list[int] = field(default_factory=list)

    def take(self, rows: Sequence[Compared]) -> int:
        """Note ``rows``; how many new ones can be told."""
        told = 0
        for row in rows:
            if row.kind is self.kind and row.id not in self.rows:
                self.rows[row.id] = row
                if self.key(row) is not None:
                    insort(self.ids, row.id)
                    told += 1
        return told

    async def run(self) -> Located:
        if self._changes() > MOST_BREAKS:
            return Located(kind=self.kind, interleaved=True)
        try:
            await self._look_around_loners()
            exact = await self._close_in()
        except _InterleavedError:
            return Located(kind=self.kind, interleaved=True)
        self._trim()
        breaks = tuple(
            Break(kind=self.kind, before=self.rows[left], after=self.rows[right], exact=(left, right) in exact)
            for left, right in self._steps()
        )
        odd = tuple(self.rows[identifier] for identifier in sorted(self.odd))
        interleaved = len(odd) > max(1, 3 * len(breaks))
        return Located(kind=self.kind, breaks=() if interleaved else breaks, interleaved=interleaved, isolated=odd)

    async def _look_around_loners(self) -> None:
        """Tell whether a sampled row that differs from both its neighbours stands for a run or for itself."""
        for left, loner, right in list(zip(self.ids, self.ids[1:], self.ids[2:], strict=False)):
            if self._told(left) != self._told(loner) != self._told(right):
                await self._look(self._unknown(loner))
                if self._alone(loner, -1) and self._alone(loner, 1):
                    self._set_aside(loner)

    async def _close_in(self) -> set[tuple[int, int]]:
        """Halve every gap across which rows differ until nothing is left between; the steps between neighbours."""
        exact: set[tuple[int, int]] = set()
        given_up: set[tuple[int, int]] = set()
        while not self.over:
            step = next((step for step in self._steps() if step not in exact | given_up), None)
            if step is None:
                break
            if self._changes() > MOST_BREAKS or len(self.odd) > MOST_BREAKS:
                raise _InterleavedError
            left, right = step
            told = await self._look_between(left, right)
            if told:
                self._settle(left, right)
            elif told is None:
                given_up.add(step)
            elif await self._stands(left, right):
                exact.add(step)
        return exact

    async def _look_between(self, left: int, right: int) -> bool | None:
        """Look at rows in the middle of a gap: whether one could be told; None when it was given up."""
        count = NEIGHBOURS
        while count <= _PATIENCE:
            close = self.near((left + right) // 2, count)
            # these come before any other, as they lie nearer to the middle
            inside = [row for row in close if left < row.id < right]
            if await self._look([row for row in inside if row.id not in self.rows]):
                return True
            if self.over:
                return None
            if len(inside) < count:
                return False
            count *= 2
        return None

    async def _look(self, rows: Sequence[Row]) -> int:
        if not rows or self.over:
            return 0
        seen = await self.look(rows)
        self.over = len(seen) < len(rows)
        return self.take(seen)

    def _settle(self, left: int, right: int) -> None:
        """Make sense of the neighbours found between two rows: one odd one out is set aside, two are a writer."""
        inside = self.ids[bisect_left(self.ids, left) + 1 : bisect_left(self.ids, right)]
        loners = [
            middle
            for before, middle, after in zip(inside, inside[1:], inside[2:], strict=False)
            if self._told(before) == self._told(after) != self._told(middle)
        ]
        if len(loners) > 1:
            raise _InterleavedError
        for identifier in loners:
            self._set_aside(identifier)

    async def _stands(self, left: int, right: int) -> bool:
        """Whether enough rows on both sides of a change agree with it; the few that do not stand are set aside."""
        around = {row.id: row for end in (left, right) for row in self.near(end, 2 * _RUN)}
        await self._look([row for row in around.values() if row.id not in self.rows])
        for identifier, step in ((left, -1), (right, 1)):
            run, ended = self._run(identifier, step)
            if len(run) < _RUN and not ended:
                for odd in run:
                    self._set_aside(odd)
                return False
        return True

    def _trim(self) -> None:
        """Where odd rows were found, a few at an end of the table are odd ones too, and no change."""
        for end, step in ((0, 1), (-1, -1)):
            run, ended = self._run(self.ids[end], step) if self.odd and self.ids else ([], False)
            if len(run) < _RUN and not ended:
                for odd in run:
                    self._set_aside(odd)

    def _run(self, identifier: int, step: int) -> tuple[list[int], bool]:
        """The rows in one direction that are of one writer, at most ``_RUN``, and whether the table ends with them.

        One odd row among them is let pass.
        """
        place = bisect_left(self.ids, identifier)
        onward = self.ids[place : place + _RUN + 1] if step > 0 else self.ids[max(0, place - _RUN) : place + 1][::-1]
        own = [other for other in onward if self._told(other) == self._told(identifier)]
        if len(onward) - len(own) > 1:
            own = list(takewhile(lambda other: self._told(other) == self._told(identifier), onward))
        return own[:_RUN], len(own) >= len(onward) - 1 and len(onward) <= _RUN

    def _unknown(self, identifier: int) -> Sequence[Row]:
        """The neighbours of a row that were not looked at."""
        return [row for row in self.near(identifier, NEIGHBOURS) if row.id not in self.rows]

    def _alone(self, identifier: int, step: int) -> bool:
        """Whether there are two known rows further on, and both differ."""
        place = bisect_left(self.ids, identifier)
        beyond = [place + step, place + 2 * step]
        if not all(0 <= other < len(self.ids) for other in beyond):
            return False
        return all(self._told(self.ids[other]) != self._told(identifier) for other in beyond)

    def _set_aside(self, identifier: int) -> None:
        self.ids.remove(identifier)
        self.odd.append(identifier)

    def _told(self, identifier: int) -> str | None:
        return self.key(self.rows[identifier])

    def _steps(self) -> Iterator[tuple[int, int]]:
        """Neighbours among the known rows that differ."""
        for left, right in zip(self.ids, self.ids[1:], strict=False):
            if self._told(left) != self._told(right):
                yield left, right

    def _changes(self) -> int:
        return sum(1 for _ in self._steps())
