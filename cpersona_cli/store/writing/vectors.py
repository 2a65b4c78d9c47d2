"""Vectors as bytes: little-endian 32-bit floats."""

from __future__ import annotations

import math
import sys
from array import array


def finite(vector: bytes) -> bool:
    """Whether every component is a finite number; ``vector`` is a whole number of 32-bit floats."""
    values = array("f")
    values.frombytes(vector)
    if sys.byteorder == "big":  # pragma: no cover
        values.byteswap()
    # Sums of 32-bit floats fit a 64-bit one, so only an infinity or a NaN among them can make one.
    return math.isfinite(sum(values))
