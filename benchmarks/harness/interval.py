"""Whether rounds are enough to say who is faster."""

from __future__ import annotations

import math
from collections.abc import Sequence

DOUBT = 0.05  # that the median lies outside


def of_median(values: Sequence[float]) -> tuple[float, float]:
    """Between which values the median lies, of all rounds that there could be: whatever their distribution, each of
    them is above it as often as below. Without enough of them to say, everywhere."""
    ordered, count = sorted(values), len(values)
    below, outside = 0.0, 0
    while outside < count / 2:
        below += math.comb(count, outside) / 2**count
        if 2 * below > DOUBT:
            break
        outside += 1
    return (ordered[outside - 1], ordered[count - outside]) if outside else (0.0, math.inf)


def is_clear(theirs: Sequence[float], ours: Sequence[float]) -> bool:
    """Whether one of two is faster, by their times in the same rounds."""
    low, high = of_median([a / b for a, b in zip(theirs, ours, strict=True)])
    return low > 1 or high < 1
