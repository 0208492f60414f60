"""Execute: a program for inputs of given types and sizes, as kernels, and their run on arrays."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..emit.expression import Expressions
from ..emit.kernel import BEST, Kernel, KernelWriter
from ..emit.layout import Layout, constant_indices
from ..interpret.grid import identity
from ..interpret.reference import argument_offsets
from ..language.sizes import Sizes, infer, resolve
from ..language.types import Types, infer_types
from ..plan.plan import groups
from ..plan.prepare import prepare
from .arguments import Bound

PARALLEL_POINTS = 20_000  # fewer loop points than this are done before other threads have started

Array = NDArray[Any]


class Executable:
    """The kernels of a program, and how to fill their context."""

    def __init__(self, bound: Bound, threads: int) -> None:
        self.loops = prepare(bound.loops)
        shapes = {name: array.shape for name, array in bound.arrays.items()}
        given = {name: size for name, size in bound.sizes.index.items() if name in bound.loops.indices}
        self.sizes: Sizes = resolve(self.loops, infer(self.loops, frozenset(given)), shapes, bound.sizes.statics, given)
        self.types: Types = infer_types(self.loops, bound.kinds)
        constant = constant_indices(self.loops)
        self.expressions = Expressions(Layout(self.sizes, constant), self.types, bound.dtype)
        offsets = argument_offsets(self.loops, self.sizes)
        self.kernels: list[Kernel] = [
            KernelWriter(self.loops, group, self.types, self.sizes, bound.dtype, constant, offsets).kernel()
            for group in groups(self.loops)
        ]
        self.threads = threads
        self.inputs = [(name, bound.arrays[name].dtype) for name in self.loops.inputs]
        first = {s.target.tensor: s.operator for s in reversed(self.loops.statements)}
        self.starts = {name: identity(operator, self.expressions.stored(name)) for name, operator in first.items()}
        self.beside = [name for name, operator in first.items() if operator.startswith("arg")]

    @cached_property
    def table(self) -> Array:
        """A row for each kernel: its address, how many parts, on how many threads, and where its context starts."""
        from .compile import compiled  # Numba is imported when something is first compiled

        table = np.zeros((len(self.kernels), 4), np.int64)
        start, told = 0, time.monotonic()
        for row, kernel in enumerate(self.kernels):
            if time.monotonic() - told > 1:
                told = time.monotonic()
                print(f"compiling kernel {row + 1} of {len(self.kernels)}", file=sys.stderr, flush=True)
            count = self.sizes.index[kernel.parallel] if kernel.parallel else 1
            table[row] = (compiled(kernel.source).address, count, self.threads_for(kernel), start)
            start += len(kernel.words)
        return table

    @cached_property
    def context(self) -> tuple[list[int], list[tuple[int, str]]]:
        """The words that all kernels get, in order; and the places of those that are the address of a tensor."""
        words: list[int] = []
        addresses: list[tuple[int, str]] = []
        for word in (word for kernel in self.kernels for word in kernel.words):
            if isinstance(word.item, str):
                addresses.append((len(words), word.item))
            words.append(word.item if isinstance(word.item, int) else 0)
        return words, addresses

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        """The outputs, for inputs of the types and shapes that the kernels were made for."""
        from .compile import run

        arrays: dict[str, Array] = {}
        for name, dtype in self.inputs:
            array = np.asarray(inputs[name], dtype)
            arrays[name] = array if array.flags.c_contiguous else np.ascontiguousarray(array)
        for name in self.loops.written:
            arrays[name] = self.allocate(name, arrays.get(name))
        for name in self.beside:
            arrays[BEST + name] = np.zeros(self.sizes.shapes[name], self.expressions.best(self.loops, name))
        words, addresses = self.context
        filled = np.array(words, np.int64)
        pointers = {name: array.__array_interface__["data"][0] for name, array in arrays.items()}
        for place, name in addresses:
            filled[place] = pointers[name]
        run(self.table, filled)
        return {name: arrays[name] for name in self.loops.outputs}

    def allocate(self, name: str, old: Array | None) -> Array:
        """The array that a program writes: a copy of the caller's for an update, else filled with the identity."""
        dtype, shape = self.expressions.stored(name), self.sizes.shapes[name]
        if old is not None:
            return np.array(old, dtype, order="C")
        start = self.starts[name]
        return np.full(shape, start, dtype) if start else np.zeros(shape, dtype)

    def threads_for(self, kernel: Kernel) -> int:
        if kernel.parallel is None or self.sizes.index[kernel.parallel] < 2:
            return 1
        points = sum(math.prod(self.sizes.index[i] for i in s.indices) for s in kernel.statements)
        return self.threads if points >= PARALLEL_POINTS else 1
