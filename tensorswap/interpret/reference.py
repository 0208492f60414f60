"""The reference interpreter: IR and arrays -> arrays, one statement after the other, in plain numpy."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..language import ir
from ..language.bounds import unproven
from ..language.sizes import Sizes
from ..language.types import Kind, Types, infer_types
from ..room import check_room, of_tensor
from .grid import IDENTITY, Grid, identity

Array = NDArray[Any]
Mask = NDArray[np.bool_]


@dataclass
class Tensor:
    array: Array
    best: Array | None = None  # for argmax= and argmin=: the value that stands at the position held


def run(
    loops: ir.Loops, arrays: Mapping[str, Array], sizes: Sizes, kinds: Mapping[str, Kind], default: np.dtype[Any]
) -> dict[str, Array]:
    """The outputs of a program whose calls are inlined, whose batch indices are expanded and whose sizes agree.

    Every access is checked before anything runs. `kinds` are those of the inputs; weak results become `default`.
    """
    types = infer_types(loops, kinds)
    check_room(of_tensor(name, sizes.shapes[name], types.tensors[name].dtype.itemsize) for name in loops.written)
    interpreter = Interpreter(loops, arrays, sizes, types)
    with np.errstate(all="ignore"):
        interpreter.check_accesses()
        interpreter.run(loops.body, {})
    return {name: interpreter.result(name, default) for name in loops.outputs}


def check(loops: ir.Loops, arrays: Mapping[str, Array], sizes: Sizes, kinds: Mapping[str, Kind]) -> bool:
    """The checks that a run makes before it starts; True if it took the values of the inputs, not only their range."""
    with np.errstate(all="ignore"):
        return Interpreter(loops, arrays, sizes, infer_types(loops, kinds)).check_accesses()


class Interpreter:
    """`again`: a plan made the program, which may write an element of `=` once more when its value is used up."""

    def __init__(
        self, loops: ir.Loops, arrays: Mapping[str, Array], sizes: Sizes, types: Types, again: bool = False
    ) -> None:
        self.loops = loops
        self.sizes = sizes
        self.types = types
        self.operators = {s.target.tensor: s.operator for s in reversed(loops.statements)}
        self.tensors = {name: Tensor(array) for name, array in arrays.items()}
        for name in {*loops.updated, *loops.outputs} & arrays.keys():  # the caller's arrays never change
            self.tensors[name] = Tensor(np.array(arrays[name], types.tensors[name].dtype, order="C"))
        self.offsets = argument_offsets(loops, sizes)
        self.written: dict[str, Mask] = {}
        self.read_early: dict[str, Mask] = {}
        assigned = [(s.target.tensor, around) for s, around in loops.located if s.operator == "="]
        count = Counter(name for name, _ in assigned)
        several = {name for name, around in assigned if around or count[name] > 1}
        for name in set() if again else several - loops.updated:
            self.written[name] = np.zeros(sizes.shapes[name], bool)
            self.read_early[name] = np.zeros(sizes.shapes[name], bool)

    def run(self, body: tuple[ir.Item, ...], fixed: dict[str, int]) -> None:
        for item in body:
            if isinstance(item, ir.Block):
                steps = range(self.sizes.index[item.index])
                for step in reversed(steps) if item.down else steps:
                    self.run(item.body, {**fixed, item.index: step})
            else:
                assert isinstance(item, ir.Statement), "calls are inlined before a program runs"
                self.execute(item, fixed)

    def execute(self, statement: ir.Statement, fixed: dict[str, int]) -> None:
        """One statement at given values of its block indices."""
        Grid(self, statement, fixed).execute()

    def target(self, name: str) -> Tensor:
        """A tensor to write into, made of the operator's identity at the first write."""
        if name not in self.tensors:
            dtype = self.types.tensors[name].dtype
            self.tensors[name] = Tensor(np.full(self.sizes.shapes[name], identity(self.operators[name], dtype), dtype))
        return self.tensors[name]

    def result(self, name: str, default: np.dtype[Any]) -> Array:
        array = self.target(name).array
        kind = self.types.tensors[name]
        return array.astype(default) if kind.weak and kind.dtype.kind == "f" else array

    def check_accesses(self) -> bool:
        """Checks every access: by intervals where they suffice, point by point where they do not (then it says True).

        An access whose condition depends on a computed value can only be checked when that value is there: at its read.
        """
        gathered = {}
        for name, tensor in self.tensors.items():
            if tensor.array.dtype.kind in "iu" and tensor.array.size and name not in self.loops.updated:
                gathered[name] = (ir.Number(int(tensor.array.min())), ir.Number(int(tensor.array.max())))
        computed = set(self.loops.written)
        open_uses = unproven(self.loops, self.sizes, gathered)
        for use in open_uses:
            parts = [*use.access.indices, *use.conditions]
            if any(isinstance(n, ir.Access) and n.tensor in computed for part in parts for n in ir.walk(part)):
                continue
            grid = Grid(self, use.statement, {})
            mask = np.ones((1,) * len(grid.shape), bool)
            for condition in use.conditions:
                mask = mask & grid.truth(condition, mask)
            grid.places(use.access, mask)
        return bool(open_uses)


def argument_offsets(loops: ir.Loops, sizes: Sizes) -> dict[int, int]:
    """Where the positions of each argmax= statement start: behind those of the statements before it."""
    used: dict[str, int] = {}
    offsets = {}
    for statement in loops.statements:
        if statement.operator in ("argmax=", "argmin="):
            name = statement.target.tensor
            offsets[id(statement)] = used.get(name, 0)
            count = math.prod(sizes.index[i] for i in ir.candidates(statement))
            used[name] = used.get(name, 0) + count
    return offsets


__all__ = ["IDENTITY", "Interpreter", "Tensor", "argument_offsets", "check", "run"]
