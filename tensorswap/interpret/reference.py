"""The reference interpreter: IR and arrays -> arrays, one statement after the other, in plain numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arrays import Array
from ..language import ir
from ..language.bound import Bound
from ..language.bounds import Use
from ..room import check_room, of_tensor
from .grid import Grid
from .state import State


def run(bound: Bound) -> dict[str, Array]:
    """The outputs of a program. Every access is checked before anything runs."""
    loops, shapes, types = bound.loops, bound.sizes.shapes, bound.types.tensors
    check_room(of_tensor(name, shapes[name], types[name].dtype.itemsize) for name in loops.written)
    interpreter = Interpreter(loops, bound.arrays, bound.sizes, bound.types)
    with np.errstate(all="ignore"):
        interpreter.check_accesses(bound.unproven())
        interpreter.run(loops.body, {})
    return {name: interpreter.result(name, bound.dtype) for name in loops.outputs}


def check(bound: Bound, values: bool = True) -> None:
    """The checks that a run makes before it starts; without `values`, those that depend on sizes alone."""
    with np.errstate(all="ignore"):
        uses = [use for use in bound.unproven() if values or not use.reads]
        if uses:
            Interpreter(bound.loops, bound.arrays, bound.sizes, bound.types).check_accesses(uses)


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

    def check_accesses(self, open_uses: Sequence[Use]) -> None:
        """Checks the accesses that intervals do not show to be in bounds, point by point.

        An access whose condition depends on a computed value can only be checked when that value is there: at its read.
        """
        computed = set(self.loops.written)
        for use in open_uses:
            if use.reads & computed:
                continue
            grid = Grid(self, use.statement, {})
            mask = np.ones((1,) * len(grid.shape), bool)
            for condition in use.conditions:
                mask = mask & grid.truth(condition, mask)
            grid.places(use.access, mask)
