"""Chunk: many steps of one or several programs, one after the other in each step, without Python in between."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..lower.kernel import filling_kernel
from ..lower.layout import BestOf, Tensor
from ..room import check_room
from .execute import Context, Executable
from .memory import lines
from .rows import COLUMNS, ONCE, Entry

if TYPE_CHECKING:
    from .frame import Frame

Array = NDArray[Any]


class Chunk:
    """The kernels of several executables as one table. Tensors of equal names are the same array.

    `advance` tells by how many bytes the address of an array moves on from one step to the next: rows of a permutation,
    numbers that differ from step to step, results kept for every step. Inputs that are updated change in place.
    """

    def __init__(self, parts: Sequence[Executable], advance: Mapping[Any, int]) -> None:
        contexts = [part.context for part in parts]
        self.names: list[Any] = []
        self.own: dict[Any, tuple[tuple[int, ...], np.dtype[Any]]] = {}  # tensors of which the caller knows nothing
        check_room(needed for part in parts for needed in part.needed)
        self.memories = [lines(context.size) for context in contexts]
        for number, (part, context) in enumerate(zip(parts, contexts, strict=True)):
            for name in context.slots:
                shared = _shared(name, number)
                if shared not in self.names:
                    self.names.append(shared)
                if isinstance(name, BestOf):
                    self.own[shared] = (part.sizes.shapes[name.tensor], part.best(part.loops, name.tensor))
                elif name in part.loops.outputs and any(name in p.loops.inputs for p in parts if p is not part):
                    self.own[name] = (part.sizes.shapes[name], part.stored(name))
        self.wanted = [name for name in self.names if name not in self.own]
        self.arrays = {name: np.empty(shape, dtype) for name, (shape, dtype) in self.own.items()}
        self.table, self.words, self.links = self._joined(parts, contexts, advance)
        self.work = sum(part.work for part in parts)
        self._frame: Frame | None = None

    def _joined(
        self, parts: Sequence[Executable], contexts: Sequence[Context], advance: Mapping[Any, int]
    ) -> tuple[Array, Array, Array]:
        rows: list[list[int]] = []
        words: list[int] = []
        links: list[tuple[int, int, int, int]] = []
        for number, (part, context) in enumerate(zip(parts, contexts, strict=True)):
            memory = len(self.names) + number
            by_slot = {slot: name for name, slot in context.slots.items()}
            for first_byte, past in context.zeros:
                self._fill(
                    rows, words, links, (memory, first_byte, 0), (past - first_byte) // 8, np.dtype(np.float64), 0
                )
            for place, shape, dtype, value in context.fills:
                self._fill(rows, words, links, (memory, place, 0), math.prod(shape), dtype, value)
            for name, slot in context.slots.items():
                if slot >= len(part.inputs):
                    old, shape, dtype, first = context.results[slot - len(part.inputs)]
                    if old is None and first is not None:
                        where = (self._slot(name, number), 0, advance.get(name, 0))
                        self._fill(rows, words, links, where, math.prod(shape), dtype, first)
            start = len(words)
            for row in part.table.tolist():
                row[Entry.CONTEXT] += start
                rows.append(row)
            words += [int(word) for word in context.words]
            for word, slot, offset, _ in context.links:
                if slot == context.memory_slot:
                    links.append((start + int(word), memory, int(offset), 0))
                else:
                    name = by_slot[int(slot)]
                    links.append((start + int(word), self._slot(name, number), int(offset), advance.get(name, 0)))
        return (
            np.array(rows, np.int64).reshape(-1, COLUMNS),
            np.array(words, np.int64),
            np.array(links, np.int64).reshape(-1, 4),
        )

    def _slot(self, name: Tensor, number: int) -> int:
        return self.names.index(_shared(name, number))

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
        from .compile import compiled  # Numba is imported when something is first compiled

        (filling,) = compiled([filling_kernel(dtype, value)])
        rows.append([filling.address, 1, 1, len(words), *ONCE])
        links.append((len(words) + 2, *where))
        words += [1, 0, 0, count]

    def run(self, arrays: Mapping[str, Array], steps: int) -> None:
        """Runs the steps. `arrays` holds the inputs and results by name, contiguous and of the exact types."""
        from .frame import Frame

        if self._frame is None:
            self._frame = Frame(self.table, self.words, self.links, len(self.names) + len(self.memories), self.work)
        listed = [self.arrays[name] if name in self.arrays else arrays[name] for name in self.names]
        self._frame([*listed, *self.memories], steps)


def _shared(name: Tensor, number: int) -> Any:
    """What several programs call alike is one array, except what each has to itself."""
    return (name, number) if isinstance(name, BestOf) else name
