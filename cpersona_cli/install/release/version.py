"""Release numbers of the server, compared the way its index orders them."""

from __future__ import annotations

import re
from functools import lru_cache

_PATTERN = re.compile(r"^v?(\d+(?:\.\d+)*)(?:(a|b|rc)(\d+))?(?:\.post(\d+))?(?:\.dev(\d+))?(?:\+.*)?$")
_STAGE = {"a": 0, "b": 1, "rc": 2}

#: The release whose behaviour this tool was measured against.
NEWEST_KNOWN = "2.6.14"

Key = tuple[tuple[int, ...], tuple[int, int], int, int]


@lru_cache(512)
def key(text: str) -> Key | None:
    """A sortable key for a release number (``2.5.6a1`` before ``2.5.6``), or None when it is not one."""
    match = _PATTERN.match(text.strip())
    if match is None:
        return None
    release, stage, number, post, dev = match.groups()
    digits = [int(part) for part in release.split(".")]
    while len(digits) > 1 and digits[-1] == 0:
        digits.pop()
    pre = (_STAGE[stage], int(number)) if stage else (3, 0)
    if dev is not None and not stage:
        pre = (-1, 0)
    return tuple(digits), pre, int(post or 0), int(dev) if dev is not None else 1 << 30


def older(left: str, right: str) -> bool:
    """Whether release ``left`` comes before ``right``; unreadable numbers compare as not older."""
    a, b = key(left), key(right)
    return a is not None and b is not None and a < b
