"""Dot products of one vector with a few thousand others, quick enough without any library for numbers.

Python multiplies one element at a time; its whole numbers of any size are multiplied in C. So each dimension of the
pool becomes one long whole number with 64 bits for each vector, and the scores of a query are the sum of these
numbers, each times one element of the query: about ten times as fast as element by element. With numpy the same whole
numbers are multiplied, again ten times as fast.
"""

from __future__ import annotations

import array
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, repeat

from cpersona_cli.arrays import Matrix, scaled
from cpersona_cli.embedding.stored import FLOAT, unpack

#: Bits of an element of the pool and of a query, sign included; with 14 bits for the number of dimensions they stay
#: below the 63 of a field. A score is right to about 1e-7 of the lengths of its two vectors, as 32-bit floats are.
_POOL_BITS, _QUERY_BITS, _DIMENSION_BITS = 23, 24, 14
_POOL_TOP, _QUERY_TOP = (1 << _POOL_BITS - 1) - 1, (1 << _QUERY_BITS - 1) - 1
_SIGN = 1 << 63
#: Queries that are scored at a time: what it takes beside the vectors.
_TOGETHER = 32


class Pool:
    """Vectors of one width, to be compared with others by dot product, as the server compares them.

    Raises ``ValueError`` for vectors of several widths, of more than 16384 dimensions, or that hold what is no number.
    """

    def __init__(self, vectors: Sequence[bytes]) -> None:
        if len({len(vector) for vector in vectors}) > 1:
            raise ValueError("vectors of several widths")
        self.count = len(vectors)
        self.dim = len(vectors[0]) // FLOAT if vectors else 0
        if self.dim > 1 << _DIMENSION_BITS:
            raise ValueError(f"{self.dim} dimensions are too many")
        self._steps: list[float] = []
        self._matrix: Matrix | None = None
        found = scaled(vectors, _POOL_TOP) if vectors else None
        if found is not None:
            self._matrix, self._steps = found
            return
        rows = [self._whole(vector) for vector in vectors]
        self._columns = [
            int.from_bytes(array.array("Q", column).tobytes(), "little") for column in zip(*rows, strict=True)
        ]
        self._signs = int.from_bytes(array.array("Q", repeat(_SIGN, self.count)).tobytes(), "little")

    def _whole(self, blob: bytes) -> array.array[int]:
        """The elements as whole numbers from 0, on a scale of the vector's own."""
        values, step = _scaled(blob, _POOL_TOP)
        self._steps.append(step)
        return array.array("I", [value + _POOL_TOP for value in values])

    def scores(self, queries: Iterable[bytes]) -> Iterator[list[float]]:
        """For each query its dot product with each vector. Raises ``ValueError`` for another width or no number."""
        waiting = iter(queries)
        while group := list(islice(waiting, _TOGETHER)):
            weights, steps = zip(*map(self._weights, group), strict=True)
            products = map(self._products, weights) if self._matrix is None else self._matrix.products(weights)
            for found, step in zip(products, steps, strict=True):
                yield [product * step * own for product, own in zip(found, self._steps, strict=True)]

    def _weights(self, query: bytes) -> tuple[list[int], float]:
        if len(query) != self.dim * FLOAT:
            raise ValueError(f"a query of {len(query) // FLOAT} dimensions for vectors of {self.dim}")
        return _scaled(query, _QUERY_TOP)

    def _products(self, weights: Sequence[int]) -> list[int]:
        """The sums of products with the rows, each in its field of one long number."""
        if not self.count:
            return []
        total = self._signs
        for weight, column in zip(weights, self._columns, strict=True):
            total += weight * column
        fields = array.array("Q")
        fields.frombytes(total.to_bytes(8 * self.count, "little"))
        zero = _SIGN + _POOL_TOP * sum(weights)
        return [field - zero for field in fields]


def _scaled(blob: bytes, top: int) -> tuple[list[int], float]:
    """The elements as whole numbers from ``-top`` to ``top``, and what one of them stands for."""
    values = unpack(blob)
    largest = max(map(abs, values), default=0.0) if values is not None else math.nan
    if values is None or not math.isfinite(largest) or any(value != value for value in values):  # noqa: PLR0124 - NaN
        raise ValueError("a vector that cannot be read")
    if not largest:
        return [0] * len(values), 0.0
    times = top / largest
    return [round(value * times) for value in values], 1 / times
