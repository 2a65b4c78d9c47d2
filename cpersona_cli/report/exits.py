"""The exit codes, apart from the rest so that an error can be raised without importing what a result is made of."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """What a caller may rely on. Any other code must be treated as failure."""

    OK = 0
    NEGATIVE = 1
    USAGE = 2
    NO_VERDICT = 3
    INTERRUPTED = 130
    TERMINATED = 143
