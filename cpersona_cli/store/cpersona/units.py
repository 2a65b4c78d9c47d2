"""Telling vectors of length one from others quickly, where numpy happens to be installed: the server brings it.

Only what is well within the tolerance is answered here; everything else is measured exactly, so that the results are
the same without numpy.
"""

from __future__ import annotations

from collections.abc import Callable

#: How far from one the square of a length may be to be called one without a closer look: half the tolerance.
CLEARLY = 1e-3


def quick() -> Callable[[bytes], bool]:
    """A function that says whether little-endian 32-bit floats clearly have length one; without numpy it never does."""
    try:
        import numpy  # noqa: ICN001, PLC0415 - optional, and slow to import
    except ImportError:
        return lambda _: False

    def clearly(blob: bytes) -> bool:
        numbers = numpy.frombuffer(blob, "<f4")
        with numpy.errstate(all="ignore"):
            square = float(numpy.dot(numbers, numbers))
        return abs(square - 1) <= CLEARLY

    return clearly
