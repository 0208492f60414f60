"""Loop: training steps on batches of data in compiled chunks. Python comes in between for what people need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..debug import switches
from ..errors import ArgumentError, BoundsError, Fault, NumberError
from ..interpret import reference
from ..language import ir
from ..program import Program
from ..run.arguments import Bound, bind
from ..run.call import threads
from ..run.chunk import Chunk
from ..run.execute import Executable
from ..run.safe import needs_interpreter, ranges_of
from .data import Data, picker
from .order import Rows
from .update import Update

Array = NDArray[Any]

EXAMPLES = 8  # of a batch that an error names


@dataclass(frozen=True)
class Stretch:
    """Steps of one batch size that follow each other: the examples of each, in a row."""

    rows: Rows

    @property
    def steps(self) -> int:
        return len(self.rows)


class Loop:
    """Steps on batches of one set of data. Parameters and state are changed in place."""

    def __init__(self, made: Update, data: Data, batch: str, arrays: dict[str, Array]) -> None:
        self.update = made
        self.data = data
        self.batch = batch
        self.arrays = arrays
        self.picker = picker(made.model.loops, data, batch)
        self.chunks: dict[int, tuple[Chunk, dict[str, np.dtype[Any]]]] = {}
        self.fixed: dict[str, Array] = {}
        self.ranges = ranges_of(data.examples)  # of all batches

    def arguments(self, rows: Array) -> dict[str, Any]:
        """What one step would be called with."""
        return {**self.arrays, **self.update.numbers(1.0, 1), **self.data.fixed, **self.data.batch(rows)}

    def check(self, size: int) -> None:
        """Refuses examples that a step would refuse, wherever they stand: first by the range of all whole numbers."""
        rows = np.arange(min(size, self.data.count))
        first = self.arguments(rows)
        bind(self.update.program.loops, first)
        whole = {n: a for n, a in self.data.examples.items() if a.dtype.kind in "iu"}
        if not whole:
            self._check(first)
            return
        try:
            for extreme in ("min", "max"):
                filled = {n: np.full_like(first[n], getattr(a, extreme)()) for n, a in whole.items()}
                if self._check({**first, **filled}):
                    break
            else:
                return
        except BoundsError:  # extremes together may be refused where no example is: then all of them are looked at
            pass
        for start in range(0, self.data.count, size):
            self._check(self.arguments(np.arange(start, min(start + size, self.data.count))))

    def _check(self, arguments: Mapping[str, Any]) -> bool:
        bound = bind(self.update.model.loops, {n: v for n, v in arguments.items() if n in self.update.model.inputs})
        return reference.check(bound.loops, bound.arrays, bound.sizes, bound.kinds)

    def chunk(self, size: int) -> tuple[Chunk, dict[str, np.dtype[Any]]]:
        """The compiled steps for a batch size."""
        if size not in self.chunks:
            step = self._executable(self.update.program, self.arguments(np.arange(size) % self.data.count))
            whole = {f"{name}_all": array for name, array in self.data.examples.items()}
            picked = self._executable(self.picker, {**whole, "rows": np.zeros(size, np.int64)})
            types = {
                name: step.stored(name) for name in ("lr", "step", *self.update.results) if name in step.types.tensors
            }
            advance = {name: dtype.itemsize for name, dtype in types.items()} | {"rows": 8 * size}
            self.fixed = {
                name: np.array(value, step.stored(name), order="C")
                for name, value in self.data.fixed.items()
                if name in step.loops.inputs
            }
            self.chunks[size] = Chunk([picked, step], advance), types
        return self.chunks[size]

    def _executable(self, program: Program, arguments: Mapping[str, Any]) -> Executable:
        program = program._for_call(arguments)
        bound: Bound = bind(program.loops, arguments)
        reason = needs_interpreter(bound, self.ranges)
        if reason:
            raise ArgumentError(f"this program cannot be trained in compiled steps: {reason}", hint="use ts.step")
        program.certify(bound)
        if program is self.update.program:
            self.update.gradient.certify(bound, planned=False)
        return Executable(program._in_steps(bound), threads())

    def run(self, stretch: Stretch, rates: Array, first: int) -> dict[str, Array]:
        """Makes the steps; gives the loss and the metrics of each."""
        if switches().looking:
            return self.watched(stretch, rates, first)
        steps, size = stretch.rows.shape
        chunk, types = self.chunk(size)
        told = {name: np.zeros(steps, types[name]) for name in self.update.results}
        numbers = {"lr": rates, "step": np.arange(first + 1, first + steps + 1)}
        arrays = {
            **{f"{name}_all": array for name, array in self.data.examples.items()},
            **self.arrays,
            **self.fixed,
            **told,
            **{name: np.ascontiguousarray(values, types[name]) for name, values in numbers.items() if name in types},
            "rows": np.ascontiguousarray(stretch.rows, np.int64),
        }
        chunk.run(arrays, steps)
        return told

    def watched(self, stretch: Stretch, rates: Array, first: int) -> dict[str, Array]:
        """The same steps as calls of the program, one by one, under `ts.debug`: an error names step and examples."""
        told: dict[str, list[Any]] = {name: [] for name in self.update.results}
        for number, (rows, rate) in enumerate(zip(stretch.rows, rates, strict=True), first + 1):
            given = {**self.arrays, **self.update.numbers(rate, number), **self.data.fixed, **self.data.batch(rows)}
            try:
                results = self.update.program(given)
            except (NumberError, BoundsError) as error:
                shown = ", ".join(map(str, rows[:EXAMPLES])) + (", ..." if len(rows) > EXAMPLES else "")
                head = Fault(f"step {number}, on the examples {shown}")
                raise type(error)([head, *error.faults]) from None
            for name, array in self.arrays.items():
                array[...] = results[name]
            for name, values in told.items():
                values.append(results[name])
        return {name: np.array(values) for name, values in told.items()}


def stretches(rows: Rows, size: int) -> Iterator[Stretch]:
    """Examples in their order -> full batches, then what is left."""
    whole = len(rows) // size * size
    if whole:
        yield Stretch(rows[:whole].reshape(-1, size))
    if whole < len(rows):
        yield Stretch(rows[whole:].reshape(1, -1))


def inputs_missing(model: ir.Loops, have: set[str]) -> list[str]:
    return [name for name in model.inputs if name not in have]
