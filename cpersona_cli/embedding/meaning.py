"""What well-formed vectors are worth: lengths, zeros, sameness. Numbers decide, nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import mul

from cpersona_cli.embedding.kinds import Kind
from cpersona_cli.embedding.model import Mode
from cpersona_cli.record import record

#: A vector shorter than this is no direction at all.
ZERO = 1e-6
#: How far from one the server's own deep check lets a stored vector's length be.
NORM_TOLERANCE = 1e-3
#: Different texts whose vectors agree to more than this got the same vector.
SAME = 0.9999

Vectors = Sequence[Sequence[float]]


@record
class Worth:
    """The first thing wrong with the vectors of one reply, or ``ok``."""

    kind: Kind
    evidence: tuple[tuple[str, str], ...] = ()


def norms(vectors: Vectors) -> tuple[float, ...]:
    """Euclidean lengths."""
    return tuple(math.hypot(*vector) for vector in vectors)


def cosine(left: Sequence[float], right: Sequence[float]) -> float:
    """The cosine of two vectors of one width; 0.0 where one has no length, or none that is finite.

    Raises ``ValueError`` when the widths differ.
    """
    if len(left) != len(right):
        raise ValueError(f"vectors of {len(left)} and {len(right)} dimensions have no cosine")
    scale = math.hypot(*left) * math.hypot(*right)
    if not 0 < scale < math.inf:
        return 0.0
    return math.fsum(map(mul, left, right)) / scale


def judge_vectors(mode: str, texts: Sequence[str], vectors: Vectors, lengths: Sequence[float]) -> Worth:
    """Zeros, then sameness of different texts, then length one (which only http mode relies on)."""
    zero = [position for position, length in enumerate(lengths) if length < ZERO]
    if zero:
        return Worth(Kind.ZERO_VECTOR, (("zero", f"{len(zero)} of {len(lengths)} vectors"),))
    distinct = dict(zip(texts, vectors, strict=True))
    if len(distinct) > 1:
        first, *others = distinct.values()
        if all(cosine(first, other) > SAME for other in others):
            return Worth(Kind.CONSTANT_VECTOR, (("same", f"{len(distinct)} different texts"),))
    low, high = min(lengths), max(lengths)
    if mode == Mode.HTTP and (abs(low - 1) > NORM_TOLERANCE or abs(high - 1) > NORM_TOLERANCE):
        return Worth(Kind.NOT_NORMALIZED, (("lengths", f"{low:.4g} to {high:.4g}"),))
    return Worth(Kind.OK)
