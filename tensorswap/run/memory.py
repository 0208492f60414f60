"""Memory of one run: buffers that live at different times share a place."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

ALIGN = 64  # bytes: a line of the cache
NEAR = 4096  # bytes


@dataclass(frozen=True)
class Buffer:
    """Bytes that are needed from one kernel to another, both included."""

    name: Hashable
    size: int
    first: int
    last: int


def lines(size: int) -> np.ndarray[Any, Any]:
    """So many bytes from the start of a line of the cache on: a vector that spans two lines takes twice as long."""
    memory = np.empty(size + ALIGN, np.uint8)
    start = -memory.ctypes.data % ALIGN
    return memory[start : start + size]


def spans(parts: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Parts of memory, each from a byte up to another, in whole lines; those that nearly touch as one: it is quicker to
    write a page more than to begin anew, and what lies between them holds nothing yet."""
    found: list[tuple[int, int]] = []
    for first, end in sorted(parts):
        past = -(-end // ALIGN) * ALIGN
        if found and first - found[-1][1] <= NEAR:
            found[-1] = found[-1][0], max(past, found[-1][1])
        else:
            found.append((first, past))
    return found


def place(buffers: list[Buffer]) -> tuple[dict[Hashable, int], int]:
    """Where each buffer starts, and how much memory they take together: the largest are placed first."""
    placed: list[tuple[int, Buffer]] = []
    for buffer in sorted(buffers, key=lambda b: -b.size):
        size = -(-buffer.size // ALIGN) * ALIGN
        busy = sorted(
            (start, start + -(-other.size // ALIGN) * ALIGN)
            for start, other in placed
            if other.first <= buffer.last and buffer.first <= other.last
        )
        start = 0
        for low, high in busy:
            if start + size <= low:
                break
            start = max(start, high)
        placed.append((start, buffer))
    total = max((start + -(-b.size // ALIGN) * ALIGN for start, b in placed), default=0)
    return {b.name: start for start, b in placed}, total
