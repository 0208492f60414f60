"""Ready: all that runs of a program need, for inputs of given types and sizes. Nothing in it tells how it was planned,
so that it can be kept for the next process."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array
from ..lazy import cached_property
from ..room import SETTING, SMALL, Needed, check_room, of_tensor
from .frame import Frame
from .known_code import kernels
from .lent import forget, is_lent, lent
from .memory import lines
from .rows import COLUMNS

NOTHING = np.empty(0, np.uint8)


class Undecided(Exception):
    """Kernels met something that the interpreter must look at."""


class Result(NamedTuple):
    """An array that a run makes: a copy of an input, by its number, or new, with a first value if it needs one.

    `best` tells that it holds the values of winners, of which no caller knows.
    """

    name: str
    best: bool
    old: int | None
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    start: float | int | None

    @property
    def size(self) -> int:
        """In bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


class Fill(NamedTuple):
    """A first value for what lies between kernels, at a place in their memory."""

    place: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    value: float | int

    @property
    def size(self) -> int:
        """In bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


class Row(NamedTuple):
    """A kernel of the table: the key of its machine code, and the words that follow its address, of what rows.Entry
    says."""

    code: str
    words: tuple[int, ...]


@dataclass(frozen=True)
class Runs:
    """Something that runs on arrays of the types and shapes that it was made for."""

    inputs: tuple[tuple[str, np.dtype[Any]], ...]
    outputs: tuple[str, ...]
    work: float  # nanoseconds that it takes on one thread, by a guess: whether a signal must be heard meanwhile

    def conversions(self, inputs: Mapping[str, Any]) -> list[int]:
        """The positions of inputs that kernels cannot read as they are."""
        arrays = [inputs[name] for name, _ in self.inputs]
        return [
            k
            for k, (array, (_, dtype)) in enumerate(zip(arrays, self.inputs, strict=True))
            if type(array) is not np.ndarray or array.dtype != dtype or not array.flags.c_contiguous
        ]

    def run(self, inputs: Mapping[str, Any], convert: list[int] | None = None) -> dict[str, Array]:
        """The outputs, for inputs of these types and shapes.

        `convert` are the positions of inputs that are not plain contiguous arrays of the right type; None: find out.
        """
        arrays = [inputs[name] for name, _ in self.inputs]
        convert = self.conversions(inputs) if convert is None else convert
        check_room(of_tensor(self.inputs[k][0], np.shape(arrays[k]), self.inputs[k][1].itemsize) for k in convert)
        for k in convert:
            with np.errstate(over="ignore"):  # a number too large for the type of the others is infinite
                arrays[k] = np.array(arrays[k], self.inputs[k][1], order="C")
        return self.results(arrays)

    def results(self, arrays: list[Array]) -> dict[str, Array]:
        """The outputs, for arrays as they are read."""
        raise NotImplementedError

    def release(self) -> None:
        """Gives up the memory that waits for the next run."""


@dataclass(frozen=True)
class Ready(Runs):
    """Kernels, and how to fill the words that they get.

    The arrays of a run are the inputs, the results, and memory for what lies between kernels. A link is a word, the
    array whose address it gets, and bytes from the array's start.
    """

    made: tuple[Result, ...]
    scalars: tuple[str, ...]  # outputs that say, above zero, that the others may be wrong
    rows: tuple[Row, ...]
    words: Array
    links: Array
    size: int  # of the memory, in bytes
    zeros: tuple[tuple[int, int], ...]  # where it must be zero before the kernels start: from one byte to another
    fills: tuple[Fill, ...]
    between: Needed  # what the memory is for

    @cached_property
    def places(self) -> tuple[tuple[str, int], ...]:
        """The outputs, with their numbers among the arrays."""
        numbers = {result.name: k for k, result in enumerate(self.made, len(self.inputs)) if not result.best}
        return tuple((name, numbers[name]) for name in self.outputs)

    @cached_property
    def memory_slot(self) -> int:
        return len(self.inputs) + len(self.made)

    @cached_property
    def dtypes(self) -> dict[str, np.dtype[Any]]:
        """Of inputs and results, by their names."""
        return {**dict(self.inputs), **{result.name: result.dtype for result in self.made if not result.best}}

    @cached_property
    def table(self) -> Array:
        """A row for each kernel, of what rows.Entry says."""
        rows = [(kernels[row.code].address, *row.words) for row in self.rows]
        return np.array(rows, np.int64).reshape(-1, COLUMNS)

    @cached_property
    def frame(self) -> Frame:
        return Frame(self.table, self.words, self.links, self.memory_slot + 1, self.work)

    @cached_property
    def needed(self) -> list[Needed]:
        """The memory that a run takes."""
        return [*(of_tensor(_told(made), made.shape, made.dtype.itemsize) for made in self.made), self.between]

    @cached_property
    def limited(self) -> bool:
        """Whether a run must ask for room. The setting is looked up once: microseconds count."""
        return sum(part.bytes for part in self.needed) >= SMALL or SETTING in os.environ

    @cached_property
    def spare(self) -> list[Array]:
        """Memory of earlier runs: a list's pop and append are safe between threads."""
        return []

    def release(self) -> None:
        """Gives up the memory that waits for the next run."""
        self.spare.clear()
        forget()

    def memory(self) -> Array:
        """Memory for what is neither input nor output, with first values where they are needed."""
        if not self.size:
            return NOTHING
        try:
            memory = self.spare.pop()
        except IndexError:
            memory = lines(self.size)
        for first, past in self.zeros:
            memory[first:past] = 0
        for fill in self.fills:
            memory[fill.place : fill.place + fill.size].view(fill.dtype)[...] = fill.value
        return memory

    def results(self, arrays: list[Array]) -> dict[str, Array]:
        results = self.complete(arrays, self.frame)
        assert results is not None
        return results

    def complete(self, arrays: list[Array], frame: Callable[[list[Array]], bool]) -> dict[str, Array] | None:
        """Runs the kernels on inputs, to which memory for everything else is added. None if the frame refuses them."""
        if self.limited:
            check_room(self.needed)
        for made in self.made:
            if made.old is not None:  # an update: the caller's array stays as it is
                arrays.append(np.array(arrays[made.old], made.dtype, order="C"))
            elif is_lent(made.size):
                arrays.append(lent(made.shape, made.dtype, made.size))
                if made.start is not None:
                    arrays[-1].fill(made.start)
            elif made.start is None:
                arrays.append(np.empty(made.shape, made.dtype))
            elif made.start:
                arrays.append(np.full(made.shape, made.start, made.dtype))
            else:
                arrays.append(np.zeros(made.shape, made.dtype))
        memory = self.memory()
        arrays.append(memory)
        done = frame(arrays)
        if self.size:
            self.spare.append(memory)
        if not done:
            return None
        results = {name: arrays[k] for name, k in self.places}
        for name in self.scalars:
            if results.pop(name) > 0:
                raise Undecided
        return results


def _told(result: Result) -> str:
    return f"the best values for {result.name}" if result.best else result.name
