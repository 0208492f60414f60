"""Execute: a program for inputs of given types and sizes, as kernels, and their run on arrays."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..kernel.ir import Role
from ..language.bound import Bound
from ..language.types import Types, identity, infer_types
from ..lazy import cached_property
from ..lower.expression import Expressions
from ..lower.kernel import KernelWriter, Lowered, joining_kernel
from ..lower.layout import BestOf, CopiesOf, Layout, Tensor, constant_indices
from ..plan.blas import matrix_products
from ..plan.first_writes import Planned
from ..plan.nest import Nest, Nester
from ..plan.prepare import prepare
from ..room import SETTING, SMALL, Needed, check_room, of_tensor
from .alone import is_alone
from .expected_time import nanoseconds, without_vectors
from .interrupt import LONG, STOP, interruptibly
from .memory import Buffer, lines, place, spans
from .rows import COLUMNS, ONCE, Rounds
from .wide_steps import steps_of

if TYPE_CHECKING:
    from .frame import Frame

PARALLEL = 20_000  # nanoseconds of work below which the other threads would come too late
IN_STEP = 0.15  # of that is enough in the steps of a block, where they wait for it
PIECE = 2**31  # products of two numbers in one call of a library

Array = NDArray[Any]
NOTHING = np.empty(0, np.uint8)


class Undecided(Exception):
    """Kernels met something that the interpreter must look at."""


class Executable:
    """The kernels of a program, and how to fill their context."""

    def __init__(
        self, bound: Bound, threads: int, scalars: tuple[str, ...] = (), order: tuple[str, ...] = (),
        deciding: frozenset[str] = frozenset(),
    ) -> None:  # fmt: skip
        self.threads = threads
        self.deciding = deciding  # tensors whose whole numbers decide where accesses go
        self.scalars = scalars  # outputs that say, above zero, that the others may be wrong
        same = {array.dtype for array in bound.arrays.values()} == {bound.dtype} and bound.dtype.kind == "f"
        self.products = matrix_products(bound.loops, bound.sizes) if same and not is_alone() else None
        work = prepare(bound)
        self.loops, self.sizes = work.loops, work.sizes
        known = {**bound.types.tensors, **work.kinds}  # a plan changes no type
        self.types: Types = infer_types(self.loops, bound.kinds, known)
        self.default = bound.dtype
        self.constant = constant_indices(self.loops)
        self.kernels: list[Lowered] = []
        layout = self.layout()
        self.stored, self.best = layout.stored, Expressions(layout).best
        self.winners = [BestOf(s.target.tensor) for s in self.loops.statements if s.operator.startswith("arg")]
        kept = {*self.loops.outputs, *self.loops.inputs, *(best.tensor for best in self.winners)}
        nester = Nester(self.sizes, kept, work.copies, lambda name: self.stored(name).itemsize, layout.weight)
        groups = [[nest] for nest in nester.kernels(self.loops.body)]
        if threads > 1:
            groups = [steps_of(nest, nester, self.nanoseconds, IN_STEP * PARALLEL) or [nest] for (nest,) in groups]
        nests = [nest for group in groups for nest in group]
        self.filled = self.first_values(nests)
        self.producer: dict[int, int] = {}  # the kernel that made the copies which another one adds up
        self.rounds: list[Rounds] = []
        for group in groups:
            first, block = len(self.kernels), group[0].block
            for nest in group:
                self.add_kernels(nest)
            if block is not None:
                count = self.sizes.index[block.index]
                self.rounds.append(Rounds(first, len(self.kernels) - 1, count, block.down))
        given = [name for name in order if name in self.loops.inputs]  # as the caller's program has them
        self.inputs = [(name, self.stored(name)) for name in given or self.loops.inputs]
        self.results = [name for name in self.loops.outputs if name not in scalars]

    def add_kernels(self, nest: Nest) -> None:
        """Those of a nest, and of each tensor of which threads have copies, one that adds them up."""
        continued = frozenset(name for name in nest.private if not self.begins(nest, name))
        self.kernels += KernelWriter(self.loops, nest, self.layout(), continued).kernels()
        position = len(self.kernels) - 1
        for name in nest.private:
            self.producer[len(self.kernels)] = position
            operator = next(s.operator for s in nest.statements if s.target.tensor == name)
            joining = joining_kernel(name, operator, self.layout())
            self.kernels.append(replace(joining, nest=replace(joining.nest, block=nest.block)))

    def layout(self) -> Layout:
        results = frozenset(self.loops.outputs)
        return Layout(self.sizes, self.constant, self.types, self.default, results, len(self.kernels))

    def first_writer(self, name: str) -> Planned:
        found = next(s for s in self.loops.statements if s.target.tensor == name)
        assert isinstance(found, Planned)
        return found

    def multiply(self, arrays: dict[str, Array]) -> dict[str, Array]:
        """The outputs of a program that is nothing but large matrix products."""
        for product in self.products or ():
            left, right = arrays[product.left], arrays[product.right]
            result = _product(left.T if product.turn_left else left, right.T if product.turn_right else right)
            arrays[product.target] = result if product.sign > 0 else np.negative(result, out=result)
        return {name: arrays[name] for name in self.loops.outputs}

    def begins(self, nest: Nest, name: str) -> bool:
        """Whether nothing before the nest writes the tensor."""
        first = self.first_writer(name)
        return nest.block is None and name not in self.loops.updated and any(s is first for s in nest.statements)

    def first_values(self, nests: list[Nest]) -> dict[str, float | int]:
        """Tensors that must hold their first value before the kernels start."""
        begun = {name for nest in nests for name in nest.private if self.begins(nest, name)}
        added = {name for nest in nests for name in nest.private if nest.block is not None}  # step by step
        result: dict[str, float | int] = {}
        for name in self.loops.written:
            first = self.first_writer(name)
            if (not first.first or name in added) and name not in begun and name not in self.loops.updated:
                result[name] = identity(first.operator, self.stored(name))
        return result

    @cached_property
    def table(self) -> Array:
        """A row for each kernel, of what runner.Entry says."""
        from .compile import compiled  # as above

        needed = [k for k in range(len(self.kernels)) if k not in self.producer or self.copies(k)]
        code = dict(zip(needed, compiled([self.kernels[k].kernel for k in needed]), strict=True))
        rows = []
        start = 0
        for position, kernel in enumerate(self.kernels):
            if position in code:
                parts = self.parts[position]
                rows.append((code[position].address, parts, parts, start, *self.round_of(position, needed)))
            start += len(kernel.kernel.words) + 2
        return np.array(rows, np.int64).reshape(-1, COLUMNS)

    def round_of(self, position: int, needed: Sequence[int]) -> tuple[int, int, int, int]:
        """Of a kernel that runs in each step of a block: how many there are, the first one and the way to the next, if
        it asks; and of the last kernel of a step, how many rows there are from the first one on."""
        found = self.rounds_of(position)
        if found is None:
            return ONCE
        own = [k for k in needed if k in found]
        asks = any(word.role is Role.STEP for word in self.kernels[position].kernel.words)
        return found.count, found.begin, found.way if asks else 0, len(own) if position == own[-1] else 0

    def rounds_of(self, position: int) -> Rounds | None:
        return next((rounds for rounds in self.rounds if position in rounds), None)

    @cached_property
    def parts(self) -> list[int]:
        """How many threads run each kernel."""
        return [self.threads_for(kernel) for kernel in self.kernels]

    def threads_for(self, kernel: Lowered) -> int:
        nest = kernel.nest
        if kernel.moved is not None:
            return self.threads if kernel.moved >= PARALLEL else 1  # about a nanosecond each
        if nest.index is None or self.sizes.index[nest.index] < 2:
            return 1
        enough = PARALLEL * (1 if nest.block is None else IN_STEP * self.sizes.index[nest.block.index])
        return self.threads if self.nanoseconds(nest) >= enough else 1

    def nanoseconds(self, nest: Nest) -> float:
        """The time of all steps, if it runs in those of a block."""
        return sum(nanoseconds(s, names, self.sizes.index, self.default.itemsize) for s, names in nest.repeated)

    def copies(self, position: int) -> int:
        """How many copies of a tensor a kernel adds up: one for each thread but the first that made it."""
        return self.parts[self.producer[position]] - 1

    @cached_property
    def work(self) -> float:
        """Nanoseconds that a run takes on one thread, by a guess: whether a signal must be heard meanwhile."""
        return sum(without_vectors(s, [b.index for b in blocks], self.sizes.index) for s, blocks in self.loops.located)

    @cached_property
    def buffers(self) -> tuple[dict[Hashable, int], int]:
        """Where each tensor that is no input or output lies in the memory of a run, and how large that is."""
        return place(self.intermediate)

    @cached_property
    def intermediate(self) -> list[Buffer]:
        """Memory for what is neither input nor output."""
        spans: dict[Any, tuple[int, int]] = {}
        sizes: dict[Any, int] = {}
        buffers: list[Buffer] = []
        given: set[Any] = {*self.loops.inputs, *self.loops.outputs, *self.winners}
        given |= {CopiesOf(name) for kernel in self.kernels for name in kernel.nest.private}
        for position, kernel in enumerate(self.kernels):
            parts = self.parts[position]
            buffers.append(Buffer(("scratch", position), self.scratch(kernel)[1] * parts, position, position))
            for word in kernel.kernel.words:
                name = word.item
                if word.role is Role.COPY:
                    size = (parts - 1) * math.prod(self.sizes.shapes[name]) * self.stored(name).itemsize
                    buffers.append(
                        Buffer((CopiesOf(name), position), size, position, position + len(kernel.nest.private))
                    )
                elif word.role in (Role.TENSOR, Role.OWN) and name not in given:
                    rounds = self.rounds_of(position)  # what is left by one step is there for the next
                    begin, end = (position, position) if rounds is None else (rounds.first, rounds.last)
                    spans[name] = (0 if name in self.filled else spans.get(name, (begin, 0))[0], end)
                    sizes[name] = kernel.bytes_of(name)
        buffers += [Buffer(name, sizes[name], first, last) for name, (first, last) in spans.items()]
        return buffers

    @cached_property
    def total(self) -> int:
        """Bytes of that."""
        return sum(part.bytes for part in self.needed)

    @cached_property
    def needed(self) -> list[Needed]:
        """The memory that a run takes."""
        results = [of_tensor(_told(name), made[1], made[2].itemsize) for name, made in self.context.named_results()]
        tensors = [b for b in self.intermediate if b.name in self.loops.written]
        largest = max(tensors, key=lambda b: b.size, default=None)
        inside = f"what is kept in between ({largest.name} is the largest)" if largest else "what is kept in between"
        return [*results, Needed(inside, self.context.size)]

    def scratch(self, kernel: Lowered) -> tuple[dict[Hashable, int], int]:
        """Where each tensor that a part has to itself lies in the memory of the part, and how large that is."""
        return place([Buffer(name, size, *span) for name, (size, span) in kernel.scratch.items()])

    def conversions(self, inputs: Mapping[str, Any]) -> list[int]:
        """The positions of inputs that kernels cannot read as they are."""
        arrays = [inputs[name] for name, _ in self.inputs]
        return [
            k
            for k, (array, (_, dtype)) in enumerate(zip(arrays, self.inputs, strict=True))
            if type(array) is not np.ndarray or array.dtype != dtype or not array.flags.c_contiguous
        ]

    @cached_property
    def limited(self) -> bool:
        """Whether a run must ask for room. The setting is looked up once: microseconds count."""
        return self.total >= SMALL or SETTING in os.environ

    @cached_property
    def context(self) -> Context:
        return Context(self)

    def run(self, inputs: Mapping[str, Any], convert: list[int] | None = None) -> dict[str, Array]:
        """The outputs, for inputs of the types and shapes that the kernels were made for.

        `convert` are the positions of inputs that are not plain contiguous arrays of the right type; None: find out.
        """
        arrays = [inputs[name] for name, _ in self.inputs]
        convert = self.conversions(inputs) if convert is None else convert
        check_room(of_tensor(self.inputs[k][0], np.shape(arrays[k]), self.inputs[k][1].itemsize) for k in convert)
        for k in convert:
            with np.errstate(over="ignore"):  # a number too large for the type of the others is infinite
                arrays[k] = np.array(arrays[k], self.inputs[k][1], order="C")
        if self.products is not None:
            known = {name: array for (name, _), array in zip(self.inputs, arrays, strict=True)}
            return self.multiply(known) if self.work < LONG else interruptibly(lambda: self.multiply(known))
        results = self.complete(arrays, self.context.frame)
        assert results is not None
        return results

    def release(self) -> None:
        """Gives up the memory that waits for the next run."""
        if self.products is None:
            self.context.spare.clear()

    def complete(self, arrays: list[Array], frame: Callable[[list[Array]], bool]) -> dict[str, Array] | None:
        """Runs the kernels on inputs, to which memory for everything else is added. None if the frame refuses them."""
        context = self.context
        if self.limited:
            check_room(self.needed)
        for old, shape, dtype, start in context.results:
            if old is not None:  # an update: the caller's array stays as it is
                arrays.append(np.array(arrays[old], dtype, order="C"))
            elif start is None:
                arrays.append(np.empty(shape, dtype))
            else:
                arrays.append(np.full(shape, start, dtype) if start else np.zeros(shape, dtype))
        memory = context.memory()
        arrays.append(memory)
        done = frame(arrays)
        if context.size:
            context.spare.append(memory)
        if not done:
            return None
        results = {name: arrays[k] for name, k in context.outputs}
        for name in self.scalars:
            if results.pop(name) > 0:
                raise Undecided
        return results


def _told(name: Tensor) -> str:
    return f"the best values for {name.tensor}" if isinstance(name, BestOf) else str(name)


def _product(left: Array, right: Array) -> Array:
    """A matrix product; a long one in pieces, between which it can be stopped."""
    (rows, depth), columns = left.shape, right.shape[1]
    piece = max(PIECE // max(depth * columns, 1), 64)
    if rows <= 2 * piece:
        return np.asarray(np.matmul(left, right))
    result = np.empty((rows, columns), left.dtype)
    for start in range(0, rows, piece):
        if not STOP.value:
            np.matmul(left[start : start + piece], right, out=result[start : start + piece])
    return result


class Context:
    """The words that kernels get: which of them hold the address of which array."""

    def __init__(self, made: Executable) -> None:
        names = [name for name, _ in made.inputs]
        self.results: list[tuple[int | None, tuple[int, ...], np.dtype[Any], float | int | None]] = []
        slots: dict[Tensor, int] = {name: k for k, name in enumerate(names)}
        for name in made.loops.written:
            if name in made.loops.outputs or name in made.loops.updated:
                old = names.index(name) if name in names else None
                slots[name] = len(names) + len(self.results)
                self.results.append((old, made.sizes.shapes[name], made.stored(name), made.filled.get(name)))
        for best in dict.fromkeys(made.winners):
            slots[best] = len(names) + len(self.results)
            self.results.append((None, made.sizes.shapes[best.tensor], made.best(made.loops, best.tensor), 0))
        self.outputs = [(name, slots[name]) for name in made.loops.outputs]
        places, self.size = made.buffers
        starts = [(name, start) for name, start in made.filled.items() if name in places]
        shapes = made.sizes.shapes
        self.fills = [(places[name], shapes[name], made.stored(name), start) for name, start in starts if start]
        zeros = [name for name, start in starts if not start]
        bytes_of = {name: math.prod(shapes[name]) * made.stored(name).itemsize for name in zeros}
        self.zeros = spans((places[name], places[name] + bytes_of[name]) for name in zeros)
        words: list[int] = []
        links: list[tuple[int, int, int, int]] = []
        memory = len(names) + len(self.results)
        for position, kernel in enumerate(made.kernels):
            own, each = made.scratch(kernel)
            words += [made.parts[position], each]
            for word in kernel.kernel.words:
                number = 0
                match word.role:
                    case Role.STEP:
                        pass  # the runner tells it
                    case Role.SIZE:
                        number = int(word.item)
                    case Role.COPIES:
                        number = made.copies(position)
                    case Role.LOCAL:
                        links.append((len(words), memory, places["scratch", position] + own[word.item], 0))
                    case Role.COPY:
                        links.append((len(words), memory, places[CopiesOf(word.item), position], 0))
                    case _ if isinstance(word.item, CopiesOf):
                        links.append((len(words), memory, places[word.item, made.producer[position]], 0))
                    case _ if word.item in slots:
                        links.append((len(words), slots[word.item], 0, 0))
                    case _:
                        links.append((len(words), memory, places[word.item], 0))
                words.append(number)
        self.made, self.slots, self.memory_slot = made, slots, memory
        self.words = np.array(words, np.int64)
        self.links = np.array(links, np.int64).reshape(-1, 4)
        self.spare: list[Array] = []  # memory of earlier runs: a list's pop and append are safe between threads

    def named_results(
        self,
    ) -> list[tuple[Tensor, tuple[int | None, tuple[int, ...], np.dtype[Any], float | int | None]]]:
        """What a run allocates and gives, or needs beside it, by name."""
        first = len(self.made.inputs)
        return [(name, self.results[slot - first]) for name, slot in self.slots.items() if slot >= first]

    @cached_property
    def frame(self) -> Frame:
        from .frame import Frame  # Numba is imported when something is first compiled

        return Frame(self.made.table, self.words, self.links, self.memory_slot + 1, self.made.work)

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
        for start, shape, dtype, value in self.fills:
            size = math.prod(shape) * dtype.itemsize
            memory[start : start + size].view(dtype)[...] = value
        return memory
