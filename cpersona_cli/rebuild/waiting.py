"""Batches that wait: fresh ones, those to be sent again or in parts, and those that nobody understands yet."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.model import Outcome
from cpersona_cli.rebuild.batches import Item, halves, opening, pack, packed
from cpersona_cli.rebuild.intake import Intake
from cpersona_cli.rebuild.limits import Limits

#: Times a batch is sent that fails in a way that may pass.
TRIES = 2
#: Batches of the present window that are still waiting when the next one is begun.
_AHEAD = 16
#: Ends that a glitch explains: only several of them say that batches are too large.
_GLITCHES = frozenset({Kind.COUNT_MISMATCH, Kind.BAD_INDEX, Kind.RAGGED, Kind.NULL_VECTOR, Kind.BAD_VALUES})
_GLITCHES_ENOUGH = 3
#: Ends of which a smaller batch only is a step towards the text.
_TEXTS = frozenset({Kind.CONSTANT_VECTOR, Kind.ZERO_VECTOR, Kind.NAN_FOR_INPUT, Kind.INPUT_INVALID, Kind.THROTTLED})


@dataclass(slots=True)
class Split:
    """Two halves under way, of at most ``count`` texts. If both go through, it was the size and not a text."""

    kind: Kind
    count: int
    open: int = 2
    sound: bool = True


@dataclass(slots=True, eq=False)
class Batch:
    """Texts that travel together.

    It was ``throttled`` so often and failed otherwise ``tries`` times, last with ``outcome``, sent at ``sent``.
    ``alone``: it is tried for the last time, with nothing beside it.
    """

    items: list[Item]
    tries: int = 0
    throttled: int = 0
    split: Split | None = None
    alone: bool = False
    sent: float = 0.0
    outcome: Outcome | None = None


@dataclass(slots=True)
class Waiting:
    """What is to be sent, in what order.

    ``ready`` are fresh, ``again`` were sent before; ``doubted`` failed, and the canary decides over them; ``last``
    failed more than once, each a single text that is tried by itself at the end. ``trying``: the fresh ones are the
    small batches of the opening, which cost more requests than they need.
    """

    intake: Intake
    limits: Limits
    ready: deque[Batch] = field(default_factory=deque)
    again: deque[Batch] = field(default_factory=deque)
    last: deque[Batch] = field(default_factory=deque)
    doubted: list[Batch] = field(default_factory=list)
    retries: int = 0
    trying: bool = False
    _glitches: int = 0

    @property
    def hungry(self) -> bool:
        """The next window should be read on, so that it is there when the present one is used up."""
        return not self.intake.full and len(self.ready) <= _AHEAD

    @property
    def none(self) -> bool:
        """Nothing is left but the last attempts."""
        return self.intake.exhausted and not (self.again or self.ready or self.doubted or self.intake.window)

    def next(self, *, alone: bool) -> Batch | None:
        """What is sent next; ``alone``: nothing is under way, so a last attempt may be made."""
        if not self.ready and self.intake.window and self.intake.full:
            self.trying = self.intake.first
            arranged = opening if self.trying else packed
            self.ready.extend(Batch(items) for items in arranged(self.intake.take(), self.limits.ceilings))
        if self.again or self.ready:
            return (self.again or self.ready).popleft()
        if self.last and alone and self.none:
            batch = self.last.popleft()
            batch.alone = True
            return batch
        return None

    def repeat(self, batch: Batch) -> None:
        """Send it again, before anything fresh."""
        self.retries += 1
        self.again.appendleft(batch)

    def halve(self, batch: Batch) -> None:
        """Send it in halves; they are not given as many chances as it was."""
        assert batch.outcome is not None  # noqa: S101 - for the type checker: only what came back is halved
        parts = halves(batch.items)
        split = Split(batch.outcome.kind, len(parts[1]))
        tries = min(batch.tries, TRIES - 1)
        self.again.extendleft(Batch(items, tries=tries, split=split) for items in reversed(parts))
        self.retries += 1

    def resize(self, batch: Batch) -> None:
        """Send it in parts that keep the ceilings, or in halves where it kept them already."""
        parts = pack(batch.items, self.limits.ceilings)
        if len(parts) == 1:
            parts = halves(batch.items)
        self.again.extendleft(Batch(items) for items in reversed(parts))
        self.retries += 1
        self.repack()

    def repack(self) -> None:
        """Let fresh batches keep the ceilings as they are now, and be as large as these allow."""
        self.trying = False
        items = [one for batch in self.ready for one in batch.items]
        self.ready = deque(Batch(some) for some in packed(items, self.limits.ceilings))

    def went_through(self, batch: Batch) -> None:
        """Where this and its other half went through, and both together did not, the size was at fault."""
        split = batch.split
        if split is None:
            return
        split.open -= 1
        if split.open or not split.sound or split.kind in _TEXTS:
            return
        self._glitches += split.kind in _GLITCHES
        if split.kind not in _GLITCHES or self._glitches >= _GLITCHES_ENOUGH:
            self.limits.fewer(split.count)
            self.repack()
