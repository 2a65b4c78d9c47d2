"""The vocabulary of embedding calls: where to, and how one ended."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from urllib.parse import quote, unquote

from cpersona_cli.embedding.kinds import MEANINGS, Kind, Stage
from cpersona_cli.record import field, record
from cpersona_cli.text import bare_url, redact, safe


class Mode(StrEnum):
    """How the server talks to its backend: its own contract, or the OpenAI-compatible one."""

    NONE = "none"
    HTTP = "http"
    API = "api"


@record(kw_only=True)
class Endpoint:
    """One embedding endpoint as configured, nothing corrected.

    ``url`` and ``mode`` are raw text (a wrong mode is a finding, not an exception); ``timeout`` is the server's own
    setting in seconds, which it applies to each phase of a call; ``environment`` holds the variables its HTTP client
    reads for itself (proxies, certificates). ``named`` tells that ``model`` was configured, and is not the server's
    default: only then does mode http write it beside vectors.
    """

    mode: str
    url: str = field(repr=False)
    key: str = field(default="", repr=False)
    model: str = ""
    timeout: float = 30.0
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    named: bool = False

    @property
    def address(self) -> str:
        """The URL as it may be shown: without user info, query and fragment."""
        return safe(redact(bare_url(self.url), self.secrets))

    @property
    def secrets(self) -> tuple[str, ...]:
        """Everything that must never leave this process, in each form it may take on its way.

        These are the key, user info, query and fragment of the URL, and the user info of proxies. A key of several
        lines or words gives each of its parts too.
        """
        parts = [self.key, *_url_secrets(self.url)]
        for name, text in self.environment.items():
            if name.lower().endswith("_proxy") and name.lower() != "no_proxy":
                parts.extend(_user_info(text))
        parts.extend(word for part in tuple(parts) for word in part.split() if len(word) >= _SHORTEST)
        return tuple(dict.fromkeys(form for part in parts for form in _forms(part) if form))


#: A shorter piece of a secret is no secret by itself, and masking it would tear words apart.
_SHORTEST = 6


def _url_secrets(url: str) -> Iterator[str]:
    yield from _user_info(url)
    _, _, rest = url.partition("?")
    query, _, fragment = rest.partition("#")
    fragment = fragment or url.partition("#")[2]
    yield from (query, fragment)
    for pair in (*query.split("&"), *fragment.split("&")):
        yield pair.partition("=")[2] or pair


def _user_info(url: str) -> Iterator[str]:
    """User name with password, and the password, also of an address too malformed for the rules."""
    inside = re.sub(r"^[\s\"']*(?:[A-Za-z][A-Za-z0-9+.-]*:(?=/)/{1,3}|/{2})?", "", url)
    authority = re.split(r"[/?#]", inside, maxsplit=1)[0]
    if "@" not in authority and "@" in inside and re.search(r":(?!\d*$)", authority):
        # a slash or a question mark inside the password: everything before the last @ is meant
        authority = inside
    info = authority.rpartition("@")[0]
    yield info
    # a message about such an address may hold a part of the password only
    yield from re.split(r"[/?#]", info.partition(":")[2])
    yield info.partition(":")[2]
    if info:
        yield base64.b64encode(unquote(info).encode("utf-8", "surrogatepass")).decode()


def _forms(value: str) -> Iterator[str]:
    r"""``value`` as messages may render it: stripped, decoded, percent-encoded, and with ``\x`` or ``\u`` escapes."""
    from html import escape  # noqa: PLC0415 - brings a table of all characters, for messages of some servers only

    for text in dict.fromkeys((value, value.strip(), unquote(value))):
        raw = text.encode("utf-8", "surrogatepass")
        yield from (
            text,
            quote(raw, safe=""),
            quote(raw),
            json.dumps(text)[1:-1],
            json.dumps(text, ensure_ascii=False)[1:-1],
        )
        yield from (repr(text)[1:-1], repr(raw)[2:-1], raw.decode("latin-1"), escape(text))


@record
class ServerView:
    """What CPersona 2.6.14 itself would record for the same reply: the three fields of its ``EmbedOutcome``.

    ``error`` has secrets removed and is raw otherwise: a server's reason phrase stands in it, so it must pass
    ``text.safe`` before it is shown; ``leaks`` tells that the server's own text carries a secret. ``crash`` names the
    exception class where the server records nothing because the failure escapes the call (or ends its start).
    ``pending``: the server, which has no deadline for a call as a whole, would still be waiting.
    """

    attempted: bool
    ok: bool
    error: str | None = None
    leaks: bool = False
    crash: str = ""
    pending: bool = False


@record(kw_only=True)
class Reply:
    """One HTTP reply as received; header names in small letters.

    ``overflow``: more than ``cap`` bytes came after decompression, and ``body`` holds only their beginning.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    reason: str = ""
    overflow: bool = False
    cap: int = 64 << 20


@record(kw_only=True)
class Outcome:
    """How one call ended.

    ``attempted``: a connection was tried. ``ok``: contract-valid vectors came back (they may still be meaningless:
    then ``kind`` is of stage ``meaning``). ``vectors`` are in the order of the texts, ``dim`` their width, ``norms``
    their Euclidean lengths as received. ``retry_after`` and ``elapsed`` are seconds. ``server_message`` is a readable
    sentence of the server's own, safe to show as a quotation. ``evidence`` are (name, value) pairs of what was seen.
    ``limit`` is a number the server stated (largest batch, window in tokens), ``stated_dim`` the dimensions it claims
    beside its vectors: no more than a claim.
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
    stated_dim: int | None = None
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
