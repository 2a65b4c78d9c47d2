"""What a user wants of an import."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from enum import StrEnum

from cpersona_cli.record import field, record
from cpersona_cli.store.audit_model import Lens
from cpersona_cli.store.boundary import Penalty, Rule

#: Characters of a text that the server stores where ``CPERSONA_MAX_CONTENT_LENGTH`` is not set (2.4.41 to 2.5.3, and
#: since 2.5.4): longer ones it cuts.
FORMER_LIMIT, LIMIT = 2_000, 16_000


class Form(StrEnum):
    """What talk becomes. Rows of CPersona's own export stay what they are."""

    MEMORIES = "memories"
    EPISODES = "episodes"
    BOTH = "both"


@record(kw_only=True)
class Wants:
    """One import.

    ``agent`` empty: rows of an export keep their own, and conversations have none, so that they cannot be brought in.
    ``keep_agents``: rows of an export that name an agent keep it all the same, and ``agent`` is for all others.
    ``project`` and ``channel`` None: rows of an export keep their own, conversations are in the global pool.
    ``since`` counts, ``until`` does not. ``undated`` is where messages without a date are put; None leaves them out.
    ``limit`` is in characters. ``no_penalty``: no memory that is there may count for less than before; ``clamp``:
    episodes that are too new for that are dated back, not refused. ``lens`` is how the client weakens memories.
    ``summaries`` are the user's own, by the id of the conversation.
    """

    agent: str
    keep_agents: bool = False
    project: str | None = None
    channel: str | None = None
    form: Form = Form.MEMORIES
    since: dt.datetime | None = None
    until: dt.datetime | None = None
    undated: dt.datetime | None = None
    limit: int = LIMIT
    no_penalty: bool = False
    clamp: bool = False
    lens: Lens = Lens(Rule(), Penalty())
    now: dt.datetime = field(default_factory=lambda: dt.datetime.now(dt.UTC))
    summaries: Mapping[str, str] = field(default_factory=dict)
