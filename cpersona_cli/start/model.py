"""What a start of a registration showed."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from cpersona_cli.install.model import Registration
from cpersona_cli.record import record

#: The tools without which there is no memory.
TOOLS = ("store", "recall", "check_health")


class Failure(StrEnum):
    """Why a process never answered the handshake."""

    ABSENT = "absent"  # the program could not be started at all
    DIED = "died"  # it ended first
    SILENT = "silent"  # it said nothing for as long as was waited
    REFUSED = "refused"  # it answered with an error
    UNUSABLE = "unusable"  # it answered with something that no client understands
    FLOODED = "flooded"  # it wrote so much that reading was given up


@record(kw_only=True)
class Limit:
    """How many seconds a client waits for the handshake, and where that is known from."""

    seconds: float
    origin: str


@record(kw_only=True)
class Noise:
    """One line on stdout that is no message: its text, made harmless, and whether the handshake was still to come."""

    text: str
    before: bool


@record(kw_only=True)
class Run:
    """One process of the registered command, from its start to its end.

    ``ready`` are the seconds from its start to the answered handshake, ``waited`` those that were waited in vain.
    ``said`` are the last lines of its stderr, secrets removed. ``lines`` counts the lines that are no messages,
    ``noise`` holds the first of them. ``ended`` are the seconds from the end of its stdin to its own end, None when it
    had to be killed; ``left`` are processes that it left behind, which were killed; ``code`` is its exit code.
    """

    ready: float | None = None
    waited: float = 0.0
    failure: Failure | None = None
    detail: str = ""
    protocol: str = ""
    tools: tuple[str, ...] | None = None
    noise: tuple[Noise, ...] = ()
    lines: int = 0
    said: tuple[str, ...] = ()
    ended: float | None = None
    left: tuple[int, ...] = ()
    code: int | None = None


@record(kw_only=True)
class Stored:
    """The answer of the ``store`` tool; ``problem`` says why there is none, or that it is a refusal."""

    embedded: bool | None = None
    problem: str = ""


@record(kw_only=True)
class Recalled:
    """The answer of the ``recall`` tool in the second process.

    ``found``: for the words that were stored. ``listed``: it came at least without any words, so it was kept.
    ``advisory`` is what the agent is told besides: its ``severity`` and ``reason``.
    """

    found: bool = False
    listed: bool = False
    advisory: Mapping[str, str] | None = None
    problem: str = ""


@record(kw_only=True)
class Start:
    """One registration, started twice.

    ``refusal`` says why nothing was started, ``late`` what there was no time for, ``astray`` that the server did not
    open the database it was given (nothing was stored then). ``mode`` is the embedding mode in force, ``replaced``
    which settings were given other values.
    """

    registration: Registration
    limit: Limit
    command: str = ""
    mode: str = ""
    refusal: str = ""
    late: str = ""
    astray: str = ""
    replaced: tuple[str, ...] = ()
    first: Run | None = None
    second: Run | None = None
    stored: Stored | None = None
    recalled: Recalled | None = None

    @property
    def runs(self) -> tuple[Run, ...]:
        return tuple(run for run in (self.first, self.second) if run is not None)

    @property
    def embeds(self) -> bool:
        """Whether a vector is to be expected."""
        return self.mode in {"http", "api"}
