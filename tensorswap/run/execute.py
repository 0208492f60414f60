"""Execute: a program for inputs of given types and sizes, as kernels."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import Any

from ..kernel.ir import Role
from ..kernel.registers import registers
from ..language.bound import Bound
from ..language.types import Types, identity, infer_types
from ..lazy import cached_property
from ..lower.expression import Expressions
from ..lower.kernel import KernelWriter, Lowered, joining_kernel
from ..lower.layout import BestOf, CopiesOf, Layout, constant_indices
from ..plan.first_writes import Planned
from ..plan.nest import Nest, Nester, block_indices
from ..plan.prepare import prepare
from ..room import Needed
from . import tuning
from .ahead import Begin, ignored
from .expected_time import nanoseconds, without_vectors
from .kernel_code import named
from .known_code import Named, functions
from .memory import Buffer, place
from .products import products_of
from .ready import Row
from .rows import ONCE, Rounds
from .wide_steps import steps_of

IN_STEP = 0.1  # of the work that is worth other threads is enough in the steps of a block, where they wait for it
PIECES = 8  # parts for each thread, so that one which is late leaves some of its own to others
PIECE = 10_000  # nanoseconds of work below which a part should not be parted
APART = 0.005  # of the work of a kernel that copies of what all parts add to may cost
SHORTER = 0.1  # of a strip that parts of equally many strips may cost each


class Executable:
    """The kernels of a program, as they were planned."""

    def __init__(
        self, bound: Bound, threads: int, scalars: tuple[str, ...] = (), order: tuple[str, ...] = (),
        deciding: frozenset[str] = frozenset(), begin: Begin = ignored,
    ) -> None:  # fmt: skip
        """`begin` is told each function that is known to run, while others are still planned."""
        self.threads = threads
        self.deciding = deciding  # tensors whose whole numbers decide where accesses go
        self.scalars = scalars  # outputs that say, above zero, that the others may be wrong
        self.products = products_of(bound)  # if a library computes them, nobody runs the kernels
        work = prepare(bound)
        self.loops, self.sizes = work.loops, work.sizes
        known = {**bound.types.tensors, **work.kinds}  # a plan changes no type
        self.types: Types = infer_types(self.loops, bound.kinds, known)
        self.default = bound.dtype
        self.constant = constant_indices(self.loops, self.sizes)
        self.kernels: list[Lowered] = []
        self.named: list[Named] = []  # each of them, as a function to be found, or made
        layout = self.layout()
        self.stored, self.best = layout.stored, Expressions(layout).best
        self.winners = [BestOf(s.target.tensor) for s in self.loops.statements if s.operator.startswith("arg")]
        kept = {*self.loops.outputs, *self.loops.inputs, *(best.tensor for best in self.winners)}
        wide = registers().takes_numbers
        nester = Nester(self.sizes, kept, work.copies, lambda name: self.stored(name).itemsize, layout.weight, wide)
        groups = [[nest] for nest in nester.kernels(self.loops.body)]
        if threads > 1:
            least = IN_STEP * tuning.PARALLEL
            groups = [steps_of(nest, nester, self.nanoseconds, least) or [nest] for (nest,) in groups]
        nests = [nest for group in groups for nest in group]
        self.filled = self.first_values(nests)
        self.producer: dict[int, int] = {}  # the kernel that made the copies which another one adds up
        self.rounds: list[Rounds] = []
        for group in groups:
            first, block = len(self.kernels), group[0].block
            for nest in group:
                self.add_kernels(nest, begin)
            if block is not None:
                count = self.sizes.index[block.index]
                self.rounds.append(Rounds(first, len(self.kernels) - 1, count, block.down))
        given = [name for name in order if name in self.loops.inputs]  # as the caller's program has them
        self.inputs = [(name, self.stored(name)) for name in given or self.loops.inputs]
        self.results = [name for name in self.loops.outputs if name not in scalars]

    def add_kernels(self, nest: Nest, begin: Begin) -> None:
        """Those of a nest, and of each tensor of which threads have copies, one that adds them up."""
        continued = frozenset(name for name in nest.private if not self.begins(nest, name))
        for kernel in KernelWriter(self.loops, nest, self.layout(), continued).kernels():
            self.kernels.append(kernel)
            self.named.append(named(kernel.kernel))
            begin(self.named[-1])
        position = len(self.kernels) - 1
        for name in nest.private:
            self.producer[len(self.kernels)] = position
            operator = next(s.operator for s in nest.statements if s.target.tensor == name)
            joining = joining_kernel(name, operator, self.layout())
            self.kernels.append(replace(joining, nest=replace(joining.nest, block=nest.block)))
            self.named.append(named(joining.kernel))

    @cached_property
    def functions(self) -> list[Named]:
        """The kernels that run, as functions to be found, or made."""
        return [self.named[k] for k in self.used]

    def layout(self) -> Layout:
        results = frozenset(self.loops.outputs)
        return Layout(self.sizes, self.constant, self.types, self.default, results, len(self.kernels))

    def first_writer(self, name: str) -> Planned:
        found = next(s for s in self.loops.statements if s.target.tensor == name)
        assert isinstance(found, Planned)
        return found

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
    def used(self) -> list[int]:
        """The kernels that run: of those that add up copies, only where there are any."""
        return [k for k in range(len(self.kernels)) if k not in self.producer or self.copies(k)]

    @property
    def rows(self) -> Iterator[Row]:
        """What the runner reads of each kernel."""
        code = dict(zip(self.used, functions(self.functions), strict=True))
        start = 0
        for position, kernel in enumerate(self.kernels):
            if position in code:
                words = self.parts[position], self.crews[position], start, *self.round_of(position)
                yield Row(code[position].key, words)
            start += len(kernel.kernel.words) + 2

    def round_of(self, position: int) -> tuple[int, int, int, int]:
        """Of a kernel that runs in each step of a block: how many there are, the first one and the way to the next, if
        it asks; and of the last kernel of a step, how many rows there are from the first one on."""
        found = self.rounds_of(position)
        if found is None:
            return ONCE
        own = [k for k in self.used if k in found]
        asks = any(word.role is Role.STEP for word in self.kernels[position].kernel.words)
        return found.count, found.begin, found.way if asks else 0, len(own) if position == own[-1] else 0

    def rounds_of(self, position: int) -> Rounds | None:
        return next((rounds for rounds in self.rounds if position in rounds), None)

    @cached_property
    def crews(self) -> list[int]:
        """How many threads run each kernel."""
        return [self.threads_for(kernel) for kernel in self.kernels]

    @cached_property
    def parts(self) -> list[int]:
        """In how many parts each kernel runs, of which threads take one after the other."""
        return [crew * self.pieces(kernel, crew) for kernel, crew in zip(self.kernels, self.crews, strict=True)]

    def pieces(self, kernel: Lowered, threads: int) -> int:
        """Parts for each thread. They are fixed before a kernel starts, and so is what it makes, to the bit."""
        nest = kernel.nest
        if threads == 1 or kernel.moved is not None or nest.index is None or nest.block is not None:
            return 1
        if not nest.strip and (kernel.scratch or nest.grain > 1):
            return 1  # what is packed for a share serves all of it, and lines should stay long
        size, work = self.sizes.index[nest.index], self.nanoseconds(nest)
        strips = -(-size // (nest.strip or nest.grain))
        copied = sum(math.prod(self.sizes.shapes[name]) for name in nest.private)  # about a nanosecond each
        most = min(PIECES, strips // threads, work / (threads * max(PIECE, copied / APART)))
        fitting = (k for k in range(int(most), 1, -1) if -strips % (threads * k) <= SHORTER * strips)
        return next(fitting, 1)

    def threads_for(self, kernel: Lowered) -> int:
        nest = kernel.nest
        if kernel.moved is not None:
            return self.threads if kernel.moved >= tuning.PARALLEL else 1  # about a nanosecond each
        if nest.index is None or self.sizes.index[nest.index] < 2:
            return 1
        enough = tuning.PARALLEL * (1 if nest.block is None else IN_STEP * self.sizes.index[nest.block.index])
        return self.threads if self.nanoseconds(nest) >= enough else 1

    def nanoseconds(self, nest: Nest) -> float:
        """The time of all steps, if it runs in those of a block."""
        steps = set() if nest.block is None else {nest.block.index}
        steps = steps.union(*(block_indices(i) for i in nest.items if not isinstance(i, Nest)))
        return sum(nanoseconds(s, names, self.sizes.index, self.default.itemsize, steps) for s, names in nest.repeated)

    def copies(self, position: int) -> int:
        """How many copies of a tensor a kernel adds up: one for each part but the first of the kernel that made it."""
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
            own = self.scratch(kernel)[1] * self.crews[position]
            buffers.append(Buffer(("scratch", position), own, position, position))
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

    @property
    def memory(self) -> Needed:
        """What lies between kernels, for those who are told that there is too little room."""
        tensors = [b for b in self.intermediate if b.name in self.loops.written]
        largest = max(tensors, key=lambda b: b.size, default=None)
        told = f"what is kept in between ({largest.name} is the largest)" if largest else "what is kept in between"
        return Needed(told, self.buffers[1])

    def scratch(self, kernel: Lowered) -> tuple[dict[Hashable, int], int]:
        """Where each tensor that a part has to itself lies in the memory of the part, and how large that is."""
        return place([Buffer(name, size, *span) for name, (size, span) in kernel.scratch.items()])
