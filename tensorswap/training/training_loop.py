"""Loop: training steps on batches of data in compiled chunks. Python comes in between for what people need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from ..arrays import Array
from ..debug import switches
from ..errors import ArgumentError, BoundsError, DtypeError, Fault, NumberError
from ..interpret import reference
from ..language import ir
from ..language.bound import Bound
from ..language.word import WORD
from ..program import Program
from ..rules.activity import integer_uses
from ..run.arguments import bind
from ..run.call import threads
from ..run.chunk import Chunk
from ..run.kept import Plans
from ..run.ready import Ready
from ..run.safe import Secured, secured
from .data import Data, picker
from .shuffle import Rows
from .update import Update

LAST_STEP = 2**53

EXAMPLES = 8  # of a batch that an error names


class Elsewhere(Protocol):
    """Who makes steps in parts: each for all parts together, or several for each part by itself."""

    average_every: int | None  # steps that the parts make by themselves

    @property
    def steps_at_a_time(self) -> int: ...

    def together(
        self, loop: Loop, batches: Rows, numbers: Sequence[Mapping[str, float]], given: Mapping[str, Any]
    ) -> Mapping[str, Array]: ...

    def apart(
        self, loop: Loop, batches: Rows, numbers: Sequence[Mapping[str, float]], given: Mapping[str, Any]
    ) -> Mapping[str, Array]: ...


class UndecidedStep(Exception):
    """The kernels of a step met something that the interpreter must look at; what came after it is worth nothing."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


class Loop:
    """Steps on batches of one set of data. Parameters and state are changed in place."""

    def __init__(
        self, made: Update, data: Data, batch: str, arrays: dict[str, Array], elsewhere: Elsewhere | None = None
    ) -> None:
        self.update = made
        self.elsewhere = elsewhere  # who makes the steps, if it is not this loop
        self.data = data
        self.batch = batch
        self.arrays = arrays
        self.picker = picker(made.program.loops.names, data, batch)
        self.chunks: dict[int, tuple[Chunk, dict[str, np.dtype[Any]]]] = {}
        self.scalars: dict[int, tuple[str, ...]] = {}  # by batch size: what kernels tell of the values that they met
        self.fixed: dict[str, Array] = {}
        self.ranges: dict[str, tuple[int, int]] = {}  # of whole numbers for which every access is in bounds
        self.filled: Rows = np.zeros(0, np.int64)  # the examples that stand in the window, if there is one
        self.exact = False  # whether it takes the numbers themselves to show it
        self.placed = False  # and where each example stands in its batch, too

    def arguments(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """What one step would be called with."""
        own = {name: array for name, array in self.arrays.items() if name in self.update.program.inputs}
        return {**own, **self.update.numbers(1.0, 1), **self.data.fixed, **batch}

    def check(self, size: int) -> None:
        """Refuses examples that a step would refuse, wherever they stand: first by the range of all whole numbers."""
        self.ranges = self.data.ranges()
        full = min(size, self.data.count)
        here = self.data.fill(np.arange(full))
        self._prove(here, {full, self.data.count % full or full})
        if self.exact:
            for batch in self.data.batches(full):
                self._check(self.arguments(batch))

    def _prove(self, here: Rows, lengths: set[int]) -> None:
        """Shows for batches of these lengths that no access leaves its tensor for whole numbers within the ranges."""
        for length in lengths:
            step = self.arguments(self.data.batch(here[:length]))
            self._check_types(bind(self.update.program.loops, step))
            for program in (self.update.model, self.update.program):
                bound = bind(program.loops, {n: v for n, v in step.items() if n in program.inputs})
                self._secured(bound)
                for use in bound.unproven(self.ranges):
                    parts = [*use.access.indices, *use.conditions]
                    self.exact = True
                    self.placed = self.placed or any(self._tells_place(part) for part in parts)

    def _secured(self, bound: Bound) -> Secured:
        """What kernels may run of a call, whatever the batch."""
        beyond = next((name for name, (_, high) in self.ranges.items() if high > WORD), None)
        if beyond is not None:
            raise ArgumentError(f"{beyond} holds whole numbers beyond 2**63", hint="use ts.step")
        steps = {"step": (1, LAST_STEP)} if "step" in self.update.model.inputs else {}
        made = secured(bound, {**self.ranges, **steps})
        if isinstance(made, str):
            raise ArgumentError(f"this program cannot be trained in compiled steps: {made}", hint="use ts.step")
        return made

    def _check_types(self, bound: Bound) -> None:
        """Parameters and state keep their type: kernels write them where they stand."""
        types = bound.types.tensors
        for name, array in self.arrays.items():
            if types[name].dtype != array.dtype:
                whole = [n for n, a in self.data.examples.items() if a.dtype.kind in "iu" and a.dtype.itemsize >= 4]
                used = [n for n in whole if n not in integer_uses(bound.loops)] or whole
                raise DtypeError(
                    f"{name} is {array.dtype}, but a step computes it in {types[name].dtype}",
                    hint=f"pass whole numbers that are computed with as {array.dtype}"
                    + (f": {used[0]}.astype(np.{array.dtype})" if used else ""),
                )

    def _tells_place(self, node: ir.Expr) -> bool:
        """Whether the batch index counts as a number: what is read at it belongs to the example, wherever it stands."""
        if isinstance(node, ir.Access):
            return False
        return node == ir.Index(self.batch) or any(self._tells_place(part) for part in ir.children(node))

    def _check(self, arguments: Mapping[str, Any]) -> None:
        for program in (self.update.model, self.update.program):
            reference.check(bind(program.loops, {n: v for n, v in arguments.items() if n in program.inputs}))

    def fill(self, rows: Rows, size: int) -> Rows:
        """Brings examples in, and checks them: a file may have changed since all of it was, and so may the order."""
        here, self.filled = self.data.fill(rows), rows
        known = not self.data.sources or self._in_ranges(len(rows))
        if self.placed or (self.data.sources and (self.exact or not known)):
            for start in range(0, len(rows), size):
                self._check(self.arguments(self.data.batch(here[start : start + size])))
        if not known:
            self._prove(here, {min(size, len(rows)), len(rows) % size or min(size, len(rows))})
        return here

    def _in_ranges(self, count: int) -> bool:
        """Whether what was shown holds for the examples at hand; the ranges grow to hold them."""
        before = dict(self.ranges)
        for name, (low, high) in before.items():
            part = np.moveaxis(self.data.examples[name], self.data.axes[name], 0)[:count]
            self.ranges[name] = min(low, int(part.min())), max(high, int(part.max()))
        return before == self.ranges

    def chunk(self, size: int) -> tuple[Chunk, dict[str, np.dtype[Any]]]:
        """The compiled steps for a batch size."""
        if size not in self.chunks:
            step = self._ready(self.update.program, self.arguments(self.data.batch(np.zeros(size, np.int64))))
            picked = self._ready(self.picker.program, {**self.whole, self.picker.rows: np.zeros(size, np.int64)})
            told = ("lr", "step", *self.update.results, *step.scalars)
            types = {name: step.dtypes[name] for name in told if name in step.dtypes}
            assert not picked.scalars, "rows are numbers of examples"
            self.scalars[size] = step.scalars
            advance = {name: dtype.itemsize for name, dtype in types.items()} | {self.picker.rows: 8 * size}
            self.fixed = {
                name: np.array(value, step.dtypes[name], order="C")
                for name, value in self.data.fixed.items()
                if name in dict(step.inputs)
            }
            given = {**self.whole, **self.arrays, **self.fixed}
            for part in (picked, step):  # kernels trust in this
                for name, dtype in part.inputs:
                    assert name not in given or (given[name].dtype == dtype and given[name].flags.c_contiguous), name
            self.chunks[size] = Chunk([picked, step], advance), types
        return self.chunks[size]

    @property
    def whole(self) -> dict[str, Array]:
        """All examples, by the names that the picker has for them."""
        return {self.picker.whole[name]: array for name, array in self.data.examples.items()}

    def _ready(self, program: Program, arguments: Mapping[str, Any]) -> Ready:
        program = program._for_call(arguments)
        bound: Bound = bind(program.loops, arguments)
        safe = self._secured(program._in_steps(bound))
        plans = Plans(safe.bound, threads(), safe.scalars, bound.loops.inputs, program.certifies)
        ready = plans.ready(partial(program.certify, bound))
        if program is self.update.program:
            self.update.gradient.certify(bound, None)
        return ready

    def run(self, batches: Rows, rates: Array, first: int) -> dict[str, Array]:
        """Makes the steps, one for each row of examples; gives the loss and the metrics of each."""
        if switches().looking:
            return self.watched(batches, rates, first)
        if self.elsewhere is not None:
            return self.in_parts(batches, rates, first, self.elsewhere)
        steps, size = batches.shape
        chunk, types = self.chunk(size)
        told = {name: np.zeros(steps, types[name]) for name in (*self.update.results, *self.scalars[size])}
        numbers = {"lr": rates, "step": np.arange(first + 1, first + steps + 1)}
        arrays = {
            **self.whole,
            **self.arrays,
            **self.fixed,
            **told,
            **{name: np.ascontiguousarray(values, types[name]) for name, values in numbers.items() if name in types},
            self.picker.rows: np.ascontiguousarray(batches, np.int64),
        }
        chunk.run(arrays, steps)
        wrong = sum((told.pop(name) > 0 for name in self.scalars[size]), np.zeros(steps, bool))
        if wrong.any():
            raise UndecidedStep(int(np.argmax(wrong)))
        return told

    def watched(self, batches: Rows, rates: Array, first: int) -> dict[str, Array]:
        """The same steps as calls of the program, one by one: under `ts.debug`, where an error names step and
        examples."""
        told: dict[str, list[Any]] = {name: [] for name in self.update.results}
        for number, (rows, rate) in enumerate(zip(batches, rates, strict=True), first + 1):
            numbers = self.update.numbers(rate, number)
            try:
                results = self.update.program(self.arguments(self.data.batch(rows)) | numbers)
            except (NumberError, BoundsError) as error:
                raise type(error)([self.named(number, rows), *error.faults]) from None
            for name, array in self.arrays.items():
                array[...] = results[name]
            for name, values in told.items():
                values.append(results[name])
        return {name: np.array(values) for name, values in told.items()}

    def named(self, number: int, rows: Rows) -> Fault:
        """Which step it was."""
        named = self.filled[rows[:EXAMPLES]] if self.data.sources else rows[:EXAMPLES]
        shown = ", ".join(map(str, named)) + (", ..." if len(rows) > EXAMPLES else "")
        return Fault(f"step {number}, on the examples {shown}")

    def in_parts(self, batches: Rows, rates: Array, first: int, elsewhere: Elsewhere) -> dict[str, Array]:
        """The steps on a cluster, some at a time."""
        told: dict[str, list[Array]] = {name: [] for name in self.update.results}
        own = {name: value for name, value in self.arguments({}).items() if name not in ("lr", "step")}
        make = elsewhere.together if elsewhere.average_every is None else elsewhere.apart
        start, most = 0, elsewhere.steps_at_a_time
        while start < len(batches):
            count = min(most, len(batches) - start)
            numbers = [self.update.numbers(rates[k], first + k + 1) for k in range(start, start + count)]
            try:
                results = make(self, batches[start : start + count], numbers, own)
            except (NumberError, BoundsError) as error:
                if count > 1 and elsewhere.average_every is None:
                    most = 1  # one by one, to tell which it is
                    continue
                raise type(error)([self.named(first + start + 1, batches[start]), *error.faults]) from None
            for name, array in self.arrays.items():
                array[...] = results[name]
            for name, values in told.items():
                values.append(results[name])
            start += count
        return {name: np.concatenate(values) for name, values in told.items()}


def stretches(rows: Rows, size: int) -> Iterator[Rows]:
    """Examples in their order -> those of steps of one batch size, a row each: full batches, then what is left."""
    whole = len(rows) // size * size
    if whole:
        yield rows[:whole].reshape(-1, size)
    if whole < len(rows):
        yield rows[whole:].reshape(1, -1)
