"""How much a count of a sample says: an interval for a share, and whether a difference is more than luck."""

from __future__ import annotations

import math

#: Standard deviations to each side of a 95 % interval.
_Z = 1.959963984540054
#: Below this probability a difference counts as one.
SIGNIFICANT = 0.05


def wilson(found: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a share, by Wilson's score; (0, 1) for an empty sample."""
    if of == 0:
        return 0.0, 1.0
    share, spread = found / of, _Z * _Z / of
    middle = share + spread / 2
    half = _Z * math.sqrt(share * (1 - share) / of + spread / (4 * of))
    return max(0.0, (middle - half) / (1 + spread)), min(1.0, (middle + half) / (1 + spread))


def sign_test(better: int, worse: int) -> float:
    """The probability that fair coins fall at least as unevenly as ``better`` to ``worse`` (exact, two-sided)."""
    count, fewer = better + worse, min(better, worse)
    tail = sum(math.comb(count, number) for number in range(fewer + 1))
    return min(1.0, float(2 * tail / (1 << count))) if count < 1000 else _normal(better, worse)


def _normal(better: int, worse: int) -> float:
    """The same by the normal distribution, for counts that floats would not hold."""
    z = max(0.0, abs(better - worse) - 1) / math.sqrt(better + worse)
    return math.erfc(z / math.sqrt(2))
