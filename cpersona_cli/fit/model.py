"""The vocabulary of a fit: what each stored vector looked like beside a fresh one, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

from cpersona_cli.embedding.kinds import Kind as CallKind
from cpersona_cli.embedding.likeness import Likeness, Thresholds
from cpersona_cli.record import field, record
from cpersona_cli.store.model import Census, Kind

if TYPE_CHECKING:
    from cpersona_cli.embedding.measured import Measured

#: The tables whose rows are looked for by meaning.
TABLES = {Kind.MEMORY: "memories", Kind.EPISODE: "episodes"}

__all__ = [
    "TABLES",
    "AgentCost",
    "Basis",
    "Break",
    "Compared",
    "Fit",
    "Likeness",
    "Live",
    "Located",
    "Past",
    "State",
    "Thresholds",
]


class State(StrEnum):
    """Whether stored vectors and the live endpoint go together, the most serious reason first."""

    UNREADABLE = "unreadable"  # the vectors cannot be read as vectors of any one width
    CHANGED = "changed"  # all of another width than the endpoint gives
    MIXED = "mixed"  # some fit and some do not
    SWAPPED = "swapped"  # the right width, another model
    DRIFTED = "drifted"  # the same model, built, cut or quantised differently
    UNKNOWN = "unknown"  # the live side did not answer, or nothing could be compared
    EMPTY = "empty"  # no vectors to judge
    HEALED = "healed"  # fits, and a finished re-embedding is on record
    OK = "ok"


class Basis(StrEnum):
    """What a state rests on, the strongest first."""

    VECTORS = "vectors"  # stored texts were embedded again
    LABEL = "label"  # the names beside the stored vectors against that of the endpoint
    WIDTH = "width"
    STORED = "stored"  # the stored side alone


@record(kw_only=True)
class Compared:
    """One stored row beside what the endpoint makes of its text now.

    ``characters`` is the length of the text, ``why`` says why it could not be judged, where it could not.
    """

    kind: Kind
    id: int
    created: str
    agent: str
    label: str
    width: int
    likeness: Likeness
    cosine: float | None = None
    characters: int = 0
    why: str = ""


@record(kw_only=True)
class Break:
    """Where, in order of id, the writer of a table's vectors changed.

    ``before`` and ``after`` are the last row of the one and the first of the other; between them nothing could be
    judged. ``rows_before`` and ``rows_after`` count the rows with a vector on each side up to the next break. ``exact``
    is False where time or calls ended before the two rows were neighbours.
    """

    kind: Kind
    before: Compared
    after: Compared
    rows_before: int = 0
    rows_after: int = 0
    exact: bool = True


@record(kw_only=True)
class Located:
    """Where the writers of one table's vectors changed.

    ``interleaved``: rows of both stand among each other (two clients wrote at the same time), so that no breaks were
    made up. ``isolated`` are rows that differ from all around them.
    """

    kind: Kind
    breaks: tuple[Break, ...] = ()
    interleaved: bool = False
    isolated: tuple[Compared, ...] = ()


@record(kw_only=True)
class Live:
    """What answered. ``dim`` is set only when two calls agreed on it; a failed call is never a width.

    ``model`` is the name it states, ``asked`` the one that calls ask for (mode
    api), ``configured`` the one in the settings. ``stated`` are widths that somebody claims ((who, dimensions): a
    server, a setting); they are shown, never believed. ``recorded`` tells whether CPersona would take the same call
    for a success, and ``error`` what it would record otherwise.
    """

    address: str
    mode: str
    call: CallKind
    sentence: str = ""
    dim: int | None = None
    model: str = ""
    asked: str = ""
    configured: str = ""
    fingerprint: str = ""
    stated: tuple[tuple[str, int], ...] = ()
    recorded: bool = True
    error: str = ""
    calls: int = 0

    @property
    def misstated(self) -> tuple[tuple[str, int], ...]:
        """The claims that are not what was measured."""
        return tuple((who, dim) for who, dim in self.stated if self.dim is not None and dim != self.dim)


@record(kw_only=True)
class AgentCost:
    """What one agent's recall by meaning cannot find now: of ``rows`` memories and episodes, ``lost`` of them.

    ``lost`` is the sum of those without a readable vector (``missing``), of another width (``width``) and told to be
    another model's (``foreign``, estimated where the rows of the two stand among each other).
    """

    agent: str
    rows: int
    lost: int
    missing: int = 0
    width: int = 0
    foreign: int = 0


@record(kw_only=True)
class Past:
    """A finished re-embedding on record: when, to which width and model, and how many vectors it wrote.

    ``holds``: all stored vectors still are of that width and label, and so is the endpoint.
    """

    finished: str
    dim: int
    label: str
    rows: int
    holds: bool


@record(kw_only=True)
class Fit:
    """The answer for one database and one endpoint.

    ``stored_dim`` is the width of most stored vectors, ``expected_dim`` the live one, ``detail`` the state in one
    sentence; ``basis`` says what it rests on. ``median`` and ``lowest`` are of the cosines compared. ``foreign`` counts
    the rows of the right width that are another model's, by label or by measurement. ``lost`` is what recall by meaning
    cannot find, per agent, without the ``damaged`` vectors (zero, not finite), whose agents are not known;
    ``advisory`` what the server will say about it at the next recall. ``unmeasured`` says what time did not allow.
    """

    state: State
    census: Census
    basis: Basis = Basis.STORED
    stored_dim: int | None = None
    expected_dim: int | None = None
    detail: str = ""
    live: Live | None = None
    thresholds: Thresholds | None = None
    compared: tuple[Compared, ...] = ()
    median: float | None = None
    lowest: float | None = None
    breaks: tuple[Break, ...] = ()
    interleaved: tuple[Kind, ...] = ()
    isolated: tuple[Compared, ...] = ()
    foreign: Mapping[Kind, int] = field(default_factory=dict)
    lost: tuple[AgentCost, ...] = ()
    damaged: int = 0
    advisory: str = ""
    past: Past | None = None
    texts_sent: int = 0
    unmeasured: tuple[str, ...] = ()
    measured: Measured | None = None

    @property
    def judged(self) -> tuple[Compared, ...]:
        """The rows that got a cosine."""
        return tuple(row for row in self.compared if row.likeness in {Likeness.SAME, Likeness.NEAR, Likeness.OTHER})

    @property
    def overlooked(self) -> float | None:
        """The share of foreign rows that a sample of this size misses once in twenty times (the rule of three)."""
        count = len(self.judged)
        return min(1.0, 3 / count) if count else None
