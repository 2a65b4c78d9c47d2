"""The vocabulary of a fit: what each stored vector looked like beside a fresh one, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from cpersona_cli.embedding.kinds import Kind as CallKind
from cpersona_cli.record import field, record
from cpersona_cli.store.model import Census, Kind


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


class Likeness(StrEnum):
    """What the cosine of a stored vector and a fresh one of the same text says."""

    SAME = "same"
    NEAR = "near"  # between: truncation, quantisation, another build
    OTHER = "other"
    WIDTH = "width"  # of another width, so no cosine
    UNJUDGED = "unjudged"


@record(kw_only=True)
class Compared:
    """One stored row embedded again. ``why`` says why it could not be judged, where it could not."""

    kind: Kind
    id: int
    created: str
    agent: str
    label: str
    width: int
    likeness: Likeness
    cosine: float | None = None
    why: str = ""


@record(kw_only=True)
class Thresholds:
    """From which cosine vectors count as the same model's, and below which as another's.

    ``repeat`` is the lowest cosine of the same texts embedded twice, alone and in a batch: what the endpoint itself
    makes of one text. ``strangers`` is the median cosine of different texts, above which ``other`` means little.
    """

    same: float
    other: float
    repeat: float
    strangers: float | None = None


@record(kw_only=True)
class Break:
    """Where, in order of id, the writer of a table's vectors changed.

    ``before`` and ``after`` are the last row of the one and the first of the other; between them nothing could be
    judged. ``earlier`` and ``later`` say what the rows on each side are; ``rows_before`` and ``rows_after`` count the
    rows on each side up to the next break.
    """

    kind: Kind
    before: Compared
    after: Compared
    rows_before: int = 0
    rows_after: int = 0


@record(kw_only=True)
class Live:
    """What answered. ``dim`` is set only when two calls agreed on it; a failed call is never a width."""

    label: str
    address: str
    mode: str
    call: CallKind
    sentence: str = ""
    dim: int | None = None
    model: str = ""
    fingerprint: str = ""
    stated_dim: int | None = None  # what a reply or a setting claims; shown, never believed
    calls: int = 0


@record(kw_only=True)
class AgentCost:
    """What one agent's recall by meaning cannot find now: of ``rows`` memories and episodes, ``lost`` of them."""

    agent: str
    rows: int
    lost: int


@record(kw_only=True)
class Past:
    """A finished re-embedding on record: when, to which width and model, and how many vectors it wrote."""

    finished: str
    dim: int
    label: str
    rows: int
    holds: bool


@record(kw_only=True)
class Fit:
    """The answer for one database and one endpoint.

    ``stored_dim`` is the width of most stored vectors, ``expected_dim`` the live one. ``lost`` is what recall by
    meaning cannot find, per agent; ``advisory`` what the server will say about it at the next recall.
    """

    state: State
    census: Census
    stored_dim: int | None = None
    expected_dim: int | None = None
    detail: str = ""
    live: Live | None = None
    thresholds: Thresholds | None = None
    compared: tuple[Compared, ...] = ()
    breaks: tuple[Break, ...] = ()
    foreign: Mapping[Kind, int] = field(default_factory=dict)  # rows told to be another model's, estimated from breaks
    lost: tuple[AgentCost, ...] = ()
    advisory: str = ""
    past: Past | None = None
    texts_sent: int = 0
