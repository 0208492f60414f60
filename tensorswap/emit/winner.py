"""Winners: the positions that argmax= and argmin= find, the first of the best among all candidates."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..language import ir
from ..language.build import conjuncts
from .loops import conditions, loops_around
from .scope import Scope

BEST = "best of "  # names the tensor beside an argmax= that holds the values of its winners


class WinnerWriter:
    """`offsets` tells where the positions of each statement start: behind those of the statements before it."""

    def __init__(self, scope: Scope, loops: ir.Loops, offsets: dict[int, int]) -> None:
        self.scope = scope
        self.loops = loops
        self.offsets = offsets
        self.write = scope.write
        self.layout = scope.write.layout

    def at_once(self, statement: ir.Statement, order: list[str], reduced: list[str], indent: str) -> None:
        """Where candidates are met in their order: best and position are local variables until all are seen."""
        scope, target, atoms = self.scope, statement.target, list(conjuncts(statement.guard))
        best, held, position, dtype = self.contest(statement)
        after = indent
        for place, index in enumerate(order):
            low, high, used = scope.range(index, atoms, order[:place])
            atoms = [atom for atom in atoms if atom not in used]
            if place == len(order) - len(reduced):
                scope.add(indent, f"at = {self.write.offset(target)}", f"best, first = {best}[at], {held}[at]")
                after = indent
            indent = scope.loop(indent, index, low, high)
        remaining = conditions(statement, atoms, self.write)
        if remaining:
            scope.add(indent, f"if {remaining}:")
            indent += "    "
        sign = ">" if statement.operator == "argmax=" else "<"
        better = f"either(first < 0, new {sign} best)"
        if dtype.kind == "f":  # a NaN beats all numbers
            better = f"either({better}, both(new != new, best == best))"
        scope.add(
            indent,
            f"new = {self.write.value(statement.value, dtype)}",
            f"better = {better}",
            f"best, first = chosen(better, new, best), chosen(better, {position}, first)",
        )
        scope.add(after, f"{best}[at], {held}[at] = best, first")

    def one_by_one(self, statement: ir.Statement, order: list[str], indent: str) -> None:
        """Where they are met in any order: a tensor beside the target holds the best value so far."""
        loops_around(self.scope, statement, order, indent, [], lambda inner, _: self.candidate(statement, inner))

    def candidate(self, statement: ir.Statement, indent: str) -> None:
        at = self.write.offset(statement.target)
        best, held, position, dtype = self.contest(statement)
        self.scope.add(
            indent,
            f"at = {at}",
            f"new = {self.write.value(statement.value, dtype)}",
            f"position = {position}",
            f"if {'above' if statement.operator == 'argmax=' else 'below'}(new, {best}[at], position, {held}[at]):",
            f"    {best}[at] = new",
            f"    {held}[at] = position",
        )

    def contest(self, statement: ir.Statement) -> tuple[str, str, str, np.dtype[Any]]:
        """The names of the tensors of best values and of their positions, a candidate's position, and its type."""
        name = BEST + statement.target.tensor
        self.layout.sizes.shapes[name] = self.layout.sizes.shapes[statement.target.tensor]
        best, held = self.layout.tensor(name), self.layout.tensor(statement.target.tensor)
        position: str = "0"
        for index in ir.candidates(statement):
            position = f"({position} * {self.layout.size(index)} + {self.layout.index(index)})"
        position = f"{position} + {self.offsets[id(statement)]}"
        return best, held, position, self.write.best(self.loops, statement.target.tensor)
