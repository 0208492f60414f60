"""Chunk: many steps of one or several programs, one after the other in each step, without Python in between."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..arrays import Array
from ..lower.kernel import filling_kernel
from ..room import check_room
from .frame import Frame
from .kernel_code import named
from .known_code import functions
from .memory import lines
from .ready import Ready, Result
from .rows import COLUMNS, ONCE, Entry


class Chunk:
    """The kernels of several programs as one table. Tensors of equal names are the same array.

    `advance` tells by how many bytes the address of an array moves on from one step to the next: rows of a permutation,
    numbers that differ from step to step, results kept for every step. Inputs that are updated change in place.
    """

    def __init__(self, parts: Sequence[Ready], advance: Mapping[Any, int]) -> None:
        self.names: list[Any] = []
        self.own: dict[Any, tuple[tuple[int, ...], np.dtype[Any]]] = {}  # tensors of which the caller knows nothing
        check_room(needed for part in parts for needed in part.needed)
        self.memories = [lines(part.size) for part in parts]
        for number, part in enumerate(parts):
            given = {name for other in parts if other is not part for name, _ in other.inputs}
            self.names += [name for name in _names(part, number) if name not in self.names]
            for made in part.made:
                if made.best or (made.name in part.outputs and made.name in given):
                    self.own[_shared(made, number)] = (made.shape, made.dtype)
        self.wanted = [name for name in self.names if name not in self.own]
        self.arrays = {name: np.empty(shape, dtype) for name, (shape, dtype) in self.own.items()}
        self.table, self.words, self.links = self._joined(parts, advance)
        self.work = sum(part.work for part in parts)
        self._frame: Frame | None = None

    def _joined(self, parts: Sequence[Ready], advance: Mapping[Any, int]) -> tuple[Array, Array, Array]:
        rows: list[list[int]] = []
        words: list[int] = []
        links: list[tuple[int, int, int, int]] = []
        for number, part in enumerate(parts):
            memory, names = len(self.names) + number, _names(part, number)
            for first_byte, past in part.zeros:
                self._fill(
                    rows, words, links, (memory, first_byte, 0), (past - first_byte) // 8, np.dtype(np.float64), 0
                )
            for fill in part.fills:
                self._fill(rows, words, links, (memory, fill.place, 0), math.prod(fill.shape), fill.dtype, fill.value)
            for made in part.made:
                if made.old is None and made.start is not None:
                    name = _shared(made, number)
                    where = (self.names.index(name), 0, advance.get(name, 0))
                    self._fill(rows, words, links, where, math.prod(made.shape), made.dtype, made.start)
            start = len(words)
            for row in part.table.tolist():
                row[Entry.CONTEXT] += start
                rows.append(row)
            words += part.words.tolist()
            for word, slot, offset, _ in part.links.tolist():
                if slot == part.memory_slot:
                    links.append((start + word, memory, offset, 0))
                else:
                    name = names[slot]
                    links.append((start + word, self.names.index(name), offset, advance.get(name, 0)))
        return (
            np.array(rows, np.int64).reshape(-1, COLUMNS),
            np.array(words, np.int64),
            np.array(links, np.int64).reshape(-1, 4),
        )

    @staticmethod
    def _fill(
        rows: list[list[int]],
        words: list[int],
        links: list[tuple[int, int, int, int]],
        where: tuple[int, int, int],
        count: int,
        dtype: np.dtype[Any],
        value: float | int,
    ) -> None:
        """A kernel that gives a tensor its first value in every step."""
        (filling,) = functions([named(filling_kernel(dtype, value))])
        rows.append([filling.address, 1, 1, len(words), *ONCE])
        links.append((len(words) + 2, *where))
        words += [1, 0, 0, count]

    def run(self, arrays: Mapping[str, Array], steps: int) -> None:
        """Runs the steps. `arrays` holds the inputs and results by name, contiguous and of the exact types."""
        if self._frame is None:
            self._frame = Frame(self.table, self.words, self.links, len(self.names) + len(self.memories), self.work)
        listed = [self.arrays[name] if name in self.arrays else arrays[name] for name in self.names]
        self._frame([*listed, *self.memories], steps)


def _names(part: Ready, number: int) -> list[Any]:
    """Of the arrays of a program, in their order."""
    return [*(name for name, _ in part.inputs), *(_shared(made, number) for made in part.made)]


def _shared(made: Result, number: int) -> Any:
    """What several programs call alike is one array, except what each has to itself."""
    return (made.name, number) if made.best else made.name
