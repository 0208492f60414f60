"""The reference interpreter: IR and arrays -> arrays, one statement after the other, in plain numpy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..arrays import Array
from ..language import ir
from ..language.bounds import unproven
from ..language.sizes import Sizes
from ..language.types import Kind, infer_types
from ..room import check_room, of_tensor
from .grid import Grid
from .state import State


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


class Interpreter(State):
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
