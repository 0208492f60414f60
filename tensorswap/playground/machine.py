"""The machine: how many operations and bytes a second it gives at best, measured once, for a roofline."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

SIDE, LENGTH, ROUNDS = 384, 4_000_000, 3


@dataclass(frozen=True)
class Machine:
    operations: float  # a second, in float64
    bytes: float  # a second, read or written


@cache
def machine() -> Machine:
    """A matrix product in cache, and a copy of what is in none; the best of a few rounds."""
    a, source, target = np.ones((SIDE, SIDE)), np.ones(LENGTH), np.empty(LENGTH)
    product = _best(lambda: a @ a)
    copy = _best(lambda: np.copyto(target, source))
    return Machine(2 * SIDE**3 / product, 16 * LENGTH / copy)


def _best(call: Callable[[], Any]) -> float:
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)
