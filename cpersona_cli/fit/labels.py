"""What the name beside a stored vector says about who made it. Evidence, and never more than a measurement."""

from __future__ import annotations

import re
from enum import StrEnum

from cpersona_cli.embedding.identify import plain_name
from cpersona_cli.fit.model import Live

# Made of digests: "1:0208acbb..." or a bare hexadecimal number. Nothing follows from comparing one with a name.
_FINGERPRINT = re.compile(r"(\d+:)?[0-9a-f]{16,}", re.IGNORECASE)


class Standing(StrEnum):
    """How a label stands to the endpoint."""

    SAME = "same"  # its fingerprint
    NAMED = "named"  # its name, which may stand for other builds too
    OTHER = "other"
    UNTOLD = "untold"  # nothing follows: no label, or nothing to compare it with


def standing(label: str, live: Live) -> Standing:
    """What ``label`` says of the model behind ``live``.

    The server writes the fingerprint, else the configured or sent name, else nothing, and takes a row with none or
    with the configured name for its own (generation.py of 2.6.14).
    """
    if not label:
        return Standing.UNTOLD
    if live.fingerprint and label == live.fingerprint:
        return Standing.SAME
    digest = _FINGERPRINT.fullmatch(label) is not None
    if digest:
        return Standing.OTHER if live.fingerprint else Standing.UNTOLD
    stated = [name for name in (live.model, live.asked) if name]
    if any(_alike(label, name) for name in stated):
        return Standing.NAMED
    if stated:
        return Standing.OTHER
    # what was written before the endpoint could be asked says nothing of the model that answers now
    return Standing.OTHER if live.fingerprint and label != live.configured else Standing.UNTOLD


def _alike(left: str, right: str) -> bool:
    """Whether two names may stand for one model: equal, or one within the other, but for publisher and marks."""
    one, other = (re.sub(r"[^a-z0-9]", "", plain_name(name)) for name in (left, right))
    return bool(one and other) and (one in other or other in one)
