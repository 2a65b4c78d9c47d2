"""Telling vectors of length one from others quickly, where numpy happens to be installed: the server brings it.

Only what is well within the tolerance is answered here; everything else is measured exactly, so that the results are
the same without numpy.
"""

from __future__ import annotations

from collections.abc import Callable

#: How far from one a length may be to be called one without a closer look: clearly less than the tolerance.
CLEARLY = 9e-4


def quick() -> Callable[[bytes], bool]:
    """A function that says whether little-endian 32-bit floats clearly have length one; without numpy it never does."""
    try:
        import numpy  # noqa: ICN001, PLC0415 - optional, and slow to import
    except ImportError:
        return lambda _: False
    wide, dot = numpy.dtype("<f4"), numpy.dot

    def clearly(blob: bytes) -> bool:
        numbers = numpy.frombuffer(blob, wide).astype(float)
        norm: float = float(dot(numbers, numbers)) ** 0.5
        return abs(norm - 1) <= CLEARLY

    return clearly
