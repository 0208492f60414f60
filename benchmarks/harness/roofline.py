"""What the machine can do at most, measured: arithmetic by a large matrix product, bandwidth by a large copy."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROUNDS = 5


def measure(threads: int, quick: bool) -> dict[str, float]:
    """FLOP/s by type, and bytes/s read and written. The best of several rounds: it is to be a limit."""
    edge, length = (256, 2**20) if quick else (2048, 2**27)
    found = {dtype: arithmetic(edge, np.dtype(dtype)) for dtype in ("float32", "float64")}
    return {**found, "bandwidth": bandwidth(length, threads)}


def arithmetic(edge: int, dtype: np.dtype[Any]) -> float:
    left, right = np.ones((edge, edge), dtype), np.ones((edge, edge), dtype)
    out = np.empty_like(left)
    return 2 * edge**3 / shortest(lambda: np.matmul(left, right, out=out))


def bandwidth(length: int, threads: int) -> float:
    """Each thread copies a part of its own; numpy lets go of the interpreter's lock for it."""
    source, target = np.ones(length, np.uint8), np.zeros(length, np.uint8)
    parts = list(zip(np.array_split(source, threads), np.array_split(target, threads), strict=True))

    def copy(part: tuple[NDArray[np.uint8], NDArray[np.uint8]]) -> None:
        np.copyto(part[1], part[0])

    with ThreadPoolExecutor(threads) as pool:
        return 2 * length / shortest(lambda: list(pool.map(copy, parts)))


def shortest(action: Callable[[], object]) -> float:
    action()
    seconds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return min(seconds)
