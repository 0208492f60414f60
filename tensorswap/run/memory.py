"""Memory of one run: buffers that live at different times share a place."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

ALIGN = 64  # bytes: a line of the cache


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
