"""The vocabulary of embedding calls: where to, and how one ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from cpersona_cli.embedding.kinds import MEANINGS, Kind, Stage


class Mode(StrEnum):
    """How the server talks to its backend: its own contract, or the OpenAI-compatible one."""

    NONE = "none"
    HTTP = "http"
    API = "api"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One embedding endpoint as configured, nothing corrected.

    ``url`` and ``mode`` are raw text (a wrong mode is a finding, not an exception); ``timeout`` is the server's own
    setting in seconds, which it applies to each phase of a call; ``environment`` holds the variables its HTTP client
    reads for itself (proxies, certificates); ``source`` says where the configuration stands.
    """

    mode: str
    url: str
    key: str = field(default="", repr=False)
    model: str = ""
    timeout: float = 30.0
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    source: str = ""

    @property
    def secrets(self) -> tuple[str, ...]:
        """Everything that must never leave this process: the key, and user info and query of the URL."""
        inside = self.url.partition("//")[2]
        info = inside.split("/", 1)[0].rpartition("@")[0]
        query = self.url.partition("?")[2].partition("#")[0]
        values = [pair.partition("=")[2] or pair for pair in query.split("&")]
        parts = (self.key, self.key.strip(), info, info.partition(":")[2], query, *values)
        return tuple(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class ServerView:
    """What CPersona 2.6.14 itself would record for the same reply: the three fields of its ``EmbedOutcome``.

    ``error`` has secrets removed; ``leaks`` tells that the server's own text carries one. ``crash`` names the
    exception class where the server would not record anything because the call escapes its failure boundary.
    """

    attempted: bool
    ok: bool
    error: str | None = None
    leaks: bool = False
    crash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One HTTP reply as received: the body is at most ``cap`` bytes after decompression, ``overflow`` tells of more."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    reason: str = ""
    overflow: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one call ended.

    ``attempted``: a connection was tried. ``ok``: contract-valid vectors came back (they may still be meaningless:
    then ``kind`` is of stage ``meaning``). ``vectors`` are in the order of the texts, ``dim`` their width, ``norms``
    their Euclidean lengths as received. ``retry_after`` and ``elapsed`` are seconds. ``server_message`` is a readable
    sentence of the server's own, safe to show as a quotation. ``evidence`` are (name, value) pairs of what was seen.
    ``limit`` is a number the server stated (largest batch, window in tokens).
    """

    kind: Kind
    attempted: bool
    server_view: ServerView
    status: int | None = None
    retry_after: float | None = None
    server_message: str = ""
    vectors: Sequence[Sequence[float]] = ()
    dim: int | None = None
    norms: Sequence[float] = ()
    model: str = ""
    elapsed: float = 0.0
    limit: int | None = None
    via_proxy: str = ""
    evidence: tuple[tuple[str, str], ...] = ()

    @property
    def stage(self) -> Stage:
        return MEANINGS[self.kind].stage

    @property
    def ok(self) -> bool:
        return self.stage in {Stage.MEANING, Stage.DONE}

    @property
    def retryable(self) -> bool:
        return MEANINGS[self.kind].retryable
