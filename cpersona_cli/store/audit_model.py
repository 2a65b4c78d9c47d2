"""What an audit of a store's rows found: their dates, where they lie, and what keeps them from being recalled."""

from __future__ import annotations

from collections.abc import Mapping

from cpersona_cli.record import field, record
from cpersona_cli.store.boundary import Boundary, Newest, Penalty, Rule, Scope

#: Where rows lie: (agent, project, channel) -> how many.
Places = Mapping[tuple[str, str, str], int]


@record
class Lens:
    """How one client weakens old memories: the boundary as its release finds it, and its settings."""

    rule: Rule
    penalty: Penalty


@record(kw_only=True)
class Wants:
    """What the clients of a database make worth measuring: their scan windows (rows), and their lenses."""

    windows: tuple[int, ...] = (10_000,)
    lenses: tuple[Lens, ...] = ()


@record(kw_only=True)
class Dates:
    """``memories.timestamp``, by how it is written and by who can read it.

    ``utc``, ``offset`` (another zone) and ``naive`` (none) are told apart among those the server reads. ``undated``
    are empty. ``unread`` neither the server nor SQLite can read; ``sql_only`` SQLite can and the server cannot, such
    as ``now`` or the 30th of February. ``episodes_ahead`` are episodes that begin or end more than a day from now.
    """

    rows: int = 0
    utc: int = 0
    offset: int = 0
    naive: int = 0
    undated: int = 0
    unread: int = 0
    sql_only: int = 0
    episodes_ahead: int = 0


@record(kw_only=True)
class Beyond:
    """One agent's rows of one table that have a vector and lie outside a scan window of ``window`` rows.

    ``edge`` is the ``created_at`` of the oldest row inside it, as stored.
    """

    agent: str
    table: str
    window: int
    rows: int
    edge: str = ""

    @property
    def outside(self) -> int:
        return self.rows - self.window


@record(kw_only=True)
class Copies:
    """Memories of a project or channel that stand in a wider one too, so that one recall returns both.

    ``pairs`` are the first (id, id of the wider copy).
    """

    rows: int = 0
    pairs: tuple[tuple[int, int], ...] = ()


@record(kw_only=True)
class Burst:
    """Episodes stored within seconds of each other, each more than a day after it ended: an import.

    ``first`` and ``last`` are when they were stored, ``oldest`` and ``newest`` when they ended, in UTC.
    """

    episodes: int
    first: str
    last: str
    oldest: str
    newest: str


@record
class Moved:
    """A recall whose newest episode is of an import: when it counts as of, and what it would be by its real end.

    ``project`` None is the agent as a whole, any other project is seen with the global pool. ``healed`` is ``""``
    where nothing else tells.
    """

    agent: str
    project: str | None
    now: str
    healed: str


@record(kw_only=True)
class Effect:
    """What a lens makes of the memories of ``scope``, stored anywhere in it or, of a project, in it alone.

    ``earlier`` are weakened at all, ``at_floor`` as much as can be; ``mean`` is the mean factor of all ``rows``.
    """

    lens: Lens
    scope: Scope
    boundary: Boundary
    rows: int
    earlier: int
    at_floor: int
    mean: float


@record(kw_only=True)
class Audit:
    """What was measured; what was not is named in ``Reading.unmeasured`` by the field's name.

    ``memories`` and ``episodes`` are the places with most rows, all of them unless ``more_places``. ``profiles`` are
    agents with a profile that recall would show. ``newest`` is the newest episode of each place.
    """

    dates: Dates = field(default_factory=Dates)
    memories: Places = field(default_factory=dict)
    episodes: Places = field(default_factory=dict)
    more_places: bool = False
    profiles: tuple[str, ...] = ()
    newest: tuple[Newest, ...] = ()
    effects: tuple[Effect, ...] = ()
    beyond: tuple[Beyond, ...] = ()
    copies: Copies = field(default_factory=Copies)
    bursts: tuple[Burst, ...] = ()
    moved: tuple[Moved, ...] = ()
