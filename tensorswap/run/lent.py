"""Lent memory: large results take the memory of earlier ones that nobody holds any more.

What the system's library takes from the system at once, and gives back when it is freed, is new each time: the system
empties it page by page while kernels write to it, which takes longer than to write it twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Array
from .memory import lines

LARGE = 2**25  # bytes from which that is so
HUGE = 2**28  # bytes that should not wait: others may want them
MOST = 2  # pieces of a size that wait for the next call


def is_lent(size: int) -> bool:
    return LARGE <= size < HUGE


class Loan:
    """A piece of memory that is an array's. When the array dies, and all that are views of it, it waits for the next
    one."""

    def __init__(self, memory: Array, waiting: list[Array], shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.memory, self.waiting = memory, waiting
        data = memory.ctypes.data, False  # it may be written
        self.__array_interface__ = {"version": 3, "shape": shape, "typestr": dtype.str, "data": data}

    def __del__(self) -> None:
        if len(self.waiting) < MOST:
            self.waiting.append(self.memory)


def lent(shape: tuple[int, ...], dtype: np.dtype[Any], size: int, waiting: list[Array]) -> Array:
    """An array whose elements are whatever there was, of so many bytes."""
    try:
        memory = waiting.pop()
    except IndexError:
        memory = lines(size)
    return np.asarray(Loan(memory, waiting, shape, dtype))
