"""What recalls would be told: the events that lead there, and what each of them brings."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Literal

from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.record import record, replace
from cpersona_cli.text import redact

#: How every full text begins, the server's and ours: with an order in bold; no short one does.
IMPERATIVE = "**Notify the user:**"

#: What a recall does: a real call, a call that is made up, no call at all; ``check`` is a call that a failing
#: ``check_health`` makes, which no recall is told of.
Word = Literal["measure", "call", "idle", "check"]
Told = Literal["nothing", "full", "short"]
State = Literal["unknown", "healthy", "hint", "fault"]

#: The texts of the newest releases, the first 16 digits of their SHA-256: measured on 2.5.12 and 2.6.14.
KNOWN_TEXTS: Mapping[str, str] = {
    "FAULT_FULL": "fb69b41743645fcc",
    "FAULT_SHORT": "6e9db553af4264bb",
    "CONFIG_FULL": "4e195abc54cbbfb6",
    "CONFIG_SHORT": "1f06ea9dc724bb46",
    "HINT_FULL": "cefef2ff1ace9a33",
    "HINT_SHORT": "9bc28061e4e8db74",
}

_REMOVED = re.compile(r"\[(\d+) characters removed\]")


@record(kw_only=True)
class Event:
    """One thing that happens, and the caller's ``session_key`` (empty: it declares none).

    Of a call that is made up: ``kind`` names how it ends, ``ok`` whether the server takes it for a success, ``error``
    what the server would record, ``probe`` what releases before 2.5.9 would record (None: they notice nothing).
    """

    word: Word
    key: str = ""
    kind: Kind | None = None
    ok: bool = False
    error: str | None = None
    probe: str | None = None
    attempted: bool = True


@record(kw_only=True)
class Call:
    """How the embedding call of a recall ended, as the server sees it.

    ``overlooked``: it failed, and the server, of a release before 2.5.9, took it for a success.
    """

    attempted: bool
    ok: bool
    error: str | None = None
    overlooked: bool = False


@record(kw_only=True)
class Recall:
    """One event, and what the answer to it carries.

    ``text`` is the advisory as the server writes it into the answer, byte for byte (JSON), None where there is none.
    ``escaped`` is the exception that ends the recall with an error instead; ``state`` is the server's own after it.
    """

    number: int
    word: Word
    key: str = ""
    call: Call | None = None
    escaped: str = ""
    state: str = "unknown"
    text: str | None = None
    seconds: float = 0.0

    @property
    def advisory(self) -> Mapping[str, Any] | None:
        """The advisory as the agent gets it."""
        return None if self.text is None else json.loads(self.text)

    @property
    def told(self) -> Told:
        """Whether the caller gets the whole text, the reminder, or nothing."""
        advisory = self.advisory
        if advisory is None:
            return "nothing"
        return "full" if str(advisory.get("runbook", "")).startswith("**") else "short"


@record(kw_only=True)
class Server:
    """The server that was asked, as its own modules describe it.

    ``enabled``: it tells its agent at all. ``shared``: one process serves several sessions. ``keyed``: it knows
    ``session_key``. ``probing``: a release before 2.5.9, which learns the reason of a failure from a second request.
    ``remote``: its search goes to the embedding server first. ``texts`` are digests of its texts by name.
    """

    version: str = ""
    mode: str = ""
    enabled: bool = True
    shared: bool = False
    keyed: bool = True
    probing: bool = False
    remote: bool = False
    cap: int | None = None
    threshold: int | None = None
    texts: Mapping[str, str] | None = None

    @property
    def known_texts(self) -> bool:
        """Whether its texts are those of 2.5.12 to 2.6.14."""
        return self.texts == KNOWN_TEXTS


@record(kw_only=True)
class Preview:
    """What the recalls of one registration would be told.

    ``source``: the words are the server's own, or ours because none could be asked (``absent`` says why). ``refused``
    is the exception with which the server does not even start; ``unfinished`` says why recalls are missing.
    ``hidden`` counts the characters that were removed from the server's own words because they are secret.
    """

    source: Literal["server", "own"]
    how: Literal["live", "replay"]
    server: Server | None = None
    recalls: tuple[Recall, ...] = ()
    absent: str = ""
    refused: str = ""
    unfinished: str = ""
    hidden: int = 0

    @property
    def state(self) -> str:
        """The server's state after the last recall."""
        return self.recalls[-1].state if self.recalls else "unknown"

    @property
    def last(self) -> Recall | None:
        """The last recall that made a call, or that an exception ended."""
        return next((recall for recall in reversed(self.recalls) if recall.call or recall.escaped), None)

    @property
    def evidence(self) -> str:
        """The newest reason that the server recorded for a failure."""
        errors = (recall.call.error for recall in reversed(self.recalls) if recall.call is not None)
        return next((error for error in errors if error), "")


def digest(text: str) -> str:
    """The first 16 digits of the SHA-256 of a text."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def masked(preview: Preview, secrets: tuple[str, ...]) -> Preview:
    """The same without secrets; ``hidden`` tells how much was removed from what the agent would be told."""

    def clean(recall: Recall) -> Recall:
        call = recall.call
        return replace(
            recall,
            text=None if recall.text is None else redact(recall.text, secrets),
            escaped=redact(recall.escaped, secrets),
            call=call if call is None or call.error is None else replace(call, error=redact(call.error, secrets)),
        )

    recalls = tuple(clean(recall) for recall in preview.recalls)
    told = [(old.text or "", new.text or "") for old, new in zip(preview.recalls, recalls, strict=True)]
    hidden = max((_removed(new) - _removed(old) for old, new in told), default=0)
    return replace(
        preview,
        recalls=recalls,
        refused=redact(preview.refused, secrets),
        absent=redact(preview.absent, secrets),
        unfinished=redact(preview.unfinished, secrets),
        hidden=hidden,
    )


def _removed(text: str) -> int:
    return sum(int(size) for size in _REMOVED.findall(text))
