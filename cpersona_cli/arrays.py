"""Arithmetic on many numbers at once, where numpy happens to be installed: the server brings it. The one place for it.

Nothing here is needed, and nothing comes out differently without it: vectors are called sound only where they clearly
are, and products are of whole numbers, which have no rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: How far from one the square of a length may be to be called one without a closer look: half the tolerance.
CLEARLY = 1e-3
#: Rows of a matrix that are worked on at a time: what it takes beside the matrix itself.
_ROWS = 256
#: Weights are taken in two parts of so many bits, so that every sum of products fits the 53 bits of a float.
_PART = 12


def quick() -> Callable[[bytes], bool]:
    """A function that says whether little-endian 32-bit floats clearly have length one; without numpy it never does."""
    numpy = _numpy()
    if numpy is None:
        return lambda _: False

    def clearly(blob: bytes) -> bool:
        numbers = numpy.frombuffer(blob, "<f4")
        with numpy.errstate(all="ignore"):
            square = float(numpy.dot(numbers, numbers))
        return abs(square - 1) <= CLEARLY

    return clearly


class Matrix:
    """Rows of whole numbers below 2**23, to be multiplied with weights below 2**23 exactly; up to 2**14 columns."""

    def __init__(self, numpy: ModuleType, numbers: NDArray[np.float32]) -> None:
        self._numpy, self._numbers = numpy, numbers

    def products(self, weights: Sequence[Sequence[int]]) -> Iterator[list[int]]:
        """For each of ``weights`` its sum of products with every row."""
        numpy = self._numpy
        whole = numpy.array(weights, dtype=float).T
        upper = numpy.floor(whole / (1 << _PART))
        lower = whole - upper * (1 << _PART)
        sums = numpy.empty((whole.shape[1], len(self._numbers)), dtype=numpy.int64)
        for start in range(0, len(self._numbers), _ROWS):
            rows = self._numbers[start : start + _ROWS].astype(float)
            found = (rows @ upper).astype(numpy.int64) * (1 << _PART) + (rows @ lower).astype(numpy.int64)
            sums[:, start : start + _ROWS] = found.T
        for row in sums:
            yield row.tolist()


def scaled(vectors: Sequence[bytes], top: int) -> tuple[Matrix, list[float]] | None:
    """Vectors of 32-bit floats as whole numbers from ``-top`` to ``top``, and what one of them stands for in each row.

    None without numpy, and where a vector is none or holds what is no number.
    """
    numpy = _numpy()
    if numpy is None or len(vectors[0]) % 4:
        return None
    whole = numpy.empty((len(vectors), len(vectors[0]) // 4), dtype=numpy.float32)
    steps = []
    for number, vector in enumerate(vectors):
        values = numpy.frombuffer(vector, "<f4").astype(float)
        largest = float(abs(values).max(initial=0.0))
        if not largest < float("inf"):
            return None
        times = top / largest if largest else 0.0
        whole[number] = numpy.rint(values * times)
        steps.append(1 / times if largest else 0.0)
    return Matrix(numpy, whole), steps


def _numpy() -> ModuleType | None:
    """The module, or None."""
    try:
        import numpy  # noqa: ICN001, PLC0415 - optional, and slow to import
    except ImportError:
        return None
    return numpy
