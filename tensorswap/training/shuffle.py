"""The order of examples: a permutation for each epoch, of which any part is computed when it is needed.

A position goes through a few rounds that mix its bits one half into the other, which can be undone, so no two positions
meet; a result beyond the last example goes through again. Nothing is stored, so ten million examples need no memory,
and a run that goes on later finds the same order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array, Integers

Rows = Integers
ROUNDS = 6


def shuffled(positions: Array, count: int, seed: int, epoch: int) -> Rows:
    """The examples at these positions of an epoch's order."""
    half = max((max(count - 1, 1).bit_length() + 1) // 2, 1)
    keys = np.random.SeedSequence([seed & (2**64 - 1), epoch]).generate_state(ROUNDS, np.uint64).astype(np.uint64)
    found = np.asarray(positions, np.uint64)
    found = _mixed(found, half, keys)
    while True:
        beyond = found >= count
        if not beyond.any():
            return found.astype(np.int64)
        found[beyond] = _mixed(found[beyond], half, keys)


def _mixed(values: NDArray[np.uint64], half: int, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    width, mask = np.uint64(half), np.uint64(2**half - 1)
    left, right = values >> width, values & mask
    for key in keys:
        bits = (right + key) * np.uint64(0x9E3779B97F4A7C15)
        bits = (bits ^ (bits >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        left, right = right, left ^ ((bits ^ (bits >> np.uint64(32))) & mask)
    return (left << width) | right
