"""Lent memory: large results take the memory of earlier ones that nobody holds any more.

What the system's library gives back to the system when it is freed is new the next time: the system empties it page by
page while kernels write to it, which takes several times as long as to write it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Array
from .memory import lines

LARGE = 2**25  # bytes of a result from which that is so: of smaller ones the library keeps what is freed, as a rule
ROOM = 2**28  # bytes of all pieces that wait
HUGE = ROOM // 2  # bytes of a result of which no two could wait


class Piece:
    """Memory that waits to be lent, or is. Two are never equal, so that a list finds one at once."""

    def __init__(self, size: int) -> None:
        self.size, self.memory = size, lines(size)


_waiting: list[Piece] = []  # the oldest first; a list's methods are safe between threads, and where an array dies


class Loan:
    """What an array holds of its memory: it ends with the array, and with all that are views of it."""

    def __init__(self, piece: Piece, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.piece = piece
        data = piece.memory.ctypes.data, False  # it may be written
        self.__array_interface__ = {"version": 3, "shape": shape, "typestr": dtype.str, "data": data}

    def __del__(self) -> None:
        _waiting.append(self.piece)
        while sum(piece.size for piece in tuple(_waiting)) > ROOM:
            try:
                _waiting.pop(0)
            except IndexError:  # others were quicker
                return


def is_lent(size: int) -> bool:
    return LARGE <= size < HUGE


def lent(shape: tuple[int, ...], dtype: np.dtype[Any], size: int) -> Array:
    """An array of so many bytes, whose elements are whatever there was."""
    for piece in tuple(_waiting):
        if piece.size == size:
            try:
                _waiting.remove(piece)
            except ValueError:  # another thread has it
                continue
            return np.asarray(Loan(piece, shape, dtype))
    return np.asarray(Loan(Piece(size), shape, dtype))


def forget() -> None:
    """Gives up all that waits."""
    _waiting.clear()
