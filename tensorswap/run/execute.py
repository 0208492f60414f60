"""Execute: a bound program -> its outputs, through compiled kernels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..emit.kernel import Kernel, KernelWriter
from ..emit.layout import constant_indices
from ..interpret.reference import IDENTITY, argument_offsets
from ..language.sizes import Sizes, infer, resolve
from ..language.types import Types, infer_types
from ..plan.plan import groups
from ..plan.prepare import prepare
from .arguments import Bound

PARALLEL_POINTS = 20_000  # fewer loop points than this are done before other threads have started


class Executable:
    """A program for inputs of given types, ranks and sizes: its kernels, and how to fill their context."""

    def __init__(self, bound: Bound, threads: int) -> None:
        self.loops = prepare(bound.loops)
        shapes = {name: array.shape for name, array in bound.arrays.items()}
        given = {name: size for name, size in bound.sizes.index.items() if name in bound.loops.indices}
        self.sizes: Sizes = resolve(self.loops, infer(self.loops, frozenset(given)), shapes, bound.sizes.statics, given)
        self.types: Types = infer_types(self.loops, bound.kinds)
        self.default = bound.dtype
        offsets = argument_offsets(self.loops, self.sizes)
        constant = constant_indices(self.loops)
        self.kernels: list[Kernel] = [
            KernelWriter(group, self.types, self.sizes, self.default, constant, offsets).kernel()
            for group in groups(self.loops)
        ]
        self.threads = threads

    def stored(self, name: str) -> np.dtype[Any]:
        kind = self.types.tensors[name]
        return self.default if kind.weak and kind.dtype.kind == "f" else kind.dtype

    def run(self, bound: Bound) -> dict[str, np.ndarray[Any, Any]]:
        from .compile import compiled
        from .launch import run

        arrays = {name: np.ascontiguousarray(array) for name, array in bound.arrays.items()}
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
                        arrays[item] = self.best(item, kernel)
                    words.append(arrays[item].ctypes.data)
        run(table, np.array(words, np.int64))
        return {name: arrays[name] for name in self.loops.outputs}

    def allocate(self, name: str, old: np.ndarray[Any, Any] | None) -> np.ndarray[Any, Any]:
        """The array that a program writes: a copy of the caller's for an update, else filled with the identity."""
        if old is not None:
            return old.astype(self.stored(name), copy=True)
        dtype, shape = self.stored(name), self.sizes.shapes[name]
        operator = next(s.operator for s in self.loops.statements if s.target.tensor == name)
        identity: float | int = IDENTITY[operator]
        if not math.isfinite(identity) and dtype.kind in "iu":
            identity = np.iinfo(dtype).min if identity < 0 else np.iinfo(dtype).max
        return np.full(shape, identity, dtype) if identity else np.zeros(shape, dtype)

    def best(self, name: str, kernel: Kernel) -> np.ndarray[Any, Any]:
        target = name.removeprefix("best of ")
        statement = next(s for s in kernel.statements if s.target.tensor == target)
        kind = self.types.of(statement.value)
        dtype = self.default if kind.weak and kind.dtype.kind == "f" else kind.dtype
        return np.zeros(self.sizes.shapes[target], dtype if dtype.kind == "f" else np.int64)

    def threads_for(self, kernel: Kernel) -> int:
        if kernel.parallel is None or self.sizes.index[kernel.parallel] < 2:
            return 1
        points = sum(math.prod(self.sizes.index[i] for i in s.indices) for s in kernel.statements)
        return self.threads if points >= PARALLEL_POINTS else 1
