"""Whether it is still the same model that answers. Pure.

Every reply shows its width, the length of its vectors and perhaps the model's name. A model of the same width in the
place of another shows none of that: for it, one fixed text is embedded again from time to time.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from cpersona_cli.embedding.likeness import SAME
from cpersona_cli.embedding.meaning import NORM_TOLERANCE, ZERO, cosine
from cpersona_cli.embedding.model import Mode, Outcome
from cpersona_cli.embedding.stored import pack, unpack
from cpersona_cli.store.job import Target

#: The fixed text. Nobody's memory; its vector is kept with the job, so it must not be changed.
CANARY = "Seven grey geese crossed the frozen lake before the first snow."


@dataclass(slots=True)
class Sameness:
    """What the target was measured to be, and what the first answer of this run (or ``canary``) showed."""

    target: Target
    canary: bytes = b""
    served: str = field(init=False)
    _unit: bool | None = None

    def __post_init__(self) -> None:
        self.served = self.target.served

    def changed(self, outcome: Outcome) -> str:
        """What a successful reply shows to be another model; empty where nothing does."""
        if outcome.dim != self.target.dim:
            return f"vectors have {outcome.dim} dimensions now, and {self.target.dim} at the beginning"
        if outcome.model and self.served and outcome.model != self.served:
            return f"replies name the model “{outcome.model}” now, and “{self.served}” at the beginning"
        self.served = self.served or outcome.model
        return self._habit(outcome)

    def other(self, outcome: Outcome) -> str:
        """The same for a reply to the canary, whose vector must be the one it was."""
        seen = self.changed(outcome)
        if seen:
            return seen
        vector = outcome.vectors[0]
        before = unpack(self.canary)
        if before is None:
            self.canary = pack(self.target.mode, vector)
            return ""
        if len(before) != len(vector):
            return f"vectors have {len(vector)} dimensions now, and {len(before)} in the run before"
        likeness = cosine(before, vector)
        return "" if likeness >= SAME else f"the same text gets another vector than before (cosine {likeness:.2f})"

    def _habit(self, outcome: Outcome) -> str:
        """Length one or not, by the middle vector of a reply; mode ``api`` scales them in any case."""
        lengths = [length for length in outcome.norms if length > ZERO]
        if not lengths or self.target.mode == Mode.API:
            return ""
        middle = statistics.median(lengths)
        unit = abs(middle - 1) <= NORM_TOLERANCE
        if self._unit is None:
            self._unit = unit
        if unit == self._unit:
            return ""
        was, now = ("one", f"{middle:.3g}") if self._unit else ("another length", "length one")
        return f"vectors have a length of {now} now, and of {was} at the beginning"
