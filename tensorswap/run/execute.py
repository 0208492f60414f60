"""Execute: a program for inputs of given types and sizes, as kernels, and their run on arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping
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

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs, for inputs of the types and shapes that the kernels were made for."""
        from .compile import compiled  # Numba is imported when something is first compiled
        from .launch import run

        arrays = {name: np.ascontiguousarray(array) for name, array in inputs.items()}
        for name in self.loops.written:
            arrays[name] = self.allocate(name, arrays.get(name))
        table = np.zeros((len(self.kernels), 4), np.int64)
        words: list[int] = []
        for row, kernel in enumerate(self.kernels):
            count = self.sizes.index[kernel.parallel] if kernel.parallel else 1
            table[row] = (compiled(kernel.source).address, count, self.threads_for(kernel), len(words))
            for kind, item in kernel.words:
                if kind == "size":
                    assert isinstance(item, int)
                    words.append(item)
                else:
                    assert isinstance(item, str)
                    if item not in arrays:
                        arrays[item] = self.beside(item.removeprefix(BEST))
                    words.append(arrays[item].ctypes.data)
        run(table, np.array(words, np.int64))
        return {name: arrays[name] for name in self.loops.outputs}

    def allocate(self, name: str, old: Array | None) -> Array:
        """The array that a program writes: a copy of the caller's for an update, else filled with the identity."""
        dtype, shape = self.expressions.stored(name), self.sizes.shapes[name]
        if old is not None:
            return np.array(old, dtype, order="C")
        operator = next(s.operator for s in self.loops.statements if s.target.tensor == name)
        start = identity(operator, dtype)
        return np.full(shape, start, dtype) if start else np.zeros(shape, dtype)

    def beside(self, target: str) -> Array:
        """The best values that an argmax= or argmin= has seen."""
        return np.zeros(self.sizes.shapes[target], self.expressions.best(self.loops, target))

    def threads_for(self, kernel: Kernel) -> int:
        if kernel.parallel is None or self.sizes.index[kernel.parallel] < 2:
            return 1
        points = sum(math.prod(self.sizes.index[i] for i in s.indices) for s in kernel.statements)
        return self.threads if points >= PARALLEL_POINTS else 1
