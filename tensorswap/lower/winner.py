"""Winners: the positions that argmax= and argmin= find, the first of the best among all candidates."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from ..kernel.ir import (
    ZERO,
    Choice,
    Load,
    Memory,
    Role,
    Set,
    Value,
    Variable,
    compare,
    joined,
    number,
    type_of,
    word,
)
from ..language import ir
from ..language.types import identity
from ..plan.first_writes import Planned
from .layout import BestOf
from .loops import loops_around, ranges_of
from .reduction import combined
from .roles import strides
from .scope import Scope

MANY = 16  # candidates: for fewer, one loop is as good
NOWHERE = 2**62  # behind all positions


class WinnerWriter:
    """A tensor beside the target holds the best values so far."""

    def __init__(self, scope: Scope, loops: ir.Loops) -> None:
        self.scope = scope
        self.loops = loops
        self.write = scope.write
        self.layout = scope.layout

    def at_once(self, statement: Planned, order: list[str], reduced: list[str]) -> None:
        """Where candidates are met in their order: best and position are local variables until all are seen."""
        scope = self.scope
        best, held, position, dtype = self.contest(statement)
        ranges, remaining = ranges_of(scope, statement, order)
        split = len(order) - len(reduced)
        with ExitStack() as around:
            for index, bounds in zip(order[:split], ranges[:split], strict=True):
                around.enter_context(scope.loop(index, *bounds))
            at = scope.set("at", self.write.offset(statement.target))
            winner, first = scope.set("best", Load(best, at)), scope.set("first", Load(held, at))
            if len(reduced) == 1 and not remaining and self.is_worth_two_loops(statement, reduced[0]):
                new, place = self.in_two_loops(statement, reduced[0], ranges[-1], position, dtype)
                self.beat(statement, winner, first, new, place, dtype, [compare("<", place, word(NOWHERE))])
            else:
                with ExitStack() as inner:
                    for index, bounds in zip(order[split:], ranges[split:], strict=True):
                        inner.enter_context(scope.loop(index, *bounds))
                    inner.enter_context(scope.when(remaining))
                    new = scope.set("new", self.write.value(statement.value, dtype))
                    self.beat(statement, winner, first, new, position, dtype)
            scope.store(best, at, winner)
            scope.store(held, at, first)

    def beat(
        self, statement: Planned, winner: Variable, first: Variable, new: Value, position: Value, dtype: np.dtype[Any],
        there: Sequence[Value] = (),
    ) -> None:  # fmt: skip
        """A candidate that is better takes the place of the winner, if it is there at all."""
        beats = joined("either", [compare("<", first, 0), compare(_sign(statement), new, winner)])
        if dtype.kind == "f":  # a NaN beats all numbers
            unlike = joined("both", [compare("!=", new, new), compare("==", winner, winner)])
            beats = joined("either", [beats, unlike])
        better = self.scope.set("better", joined("both", [*there, beats]))
        self.scope.add(Set(winner, Choice(better, new, winner)), Set(first, Choice(better, position, first)))

    def is_worth_two_loops(self, statement: Planned, index: str) -> bool:
        """Whether there are many candidates, side by side in memory, that are read and not computed at length."""
        forms = [strides(access, self.layout) for access in statement.reads]
        in_line = all(form is not None and form.get(index, 0) in (0, 1) for form in forms)
        quick = not any(isinstance(node, ir.Call | ir.Conditional) for node in ir.walk(statement.value))
        return quick and in_line and self.layout.least_count(index) >= MANY

    def in_two_loops(
        self, statement: Planned, index: str, bounds: tuple[Value, Value], position: Value, dtype: np.dtype[Any]
    ) -> tuple[Value, Value]:
        """The best value, then the first position that has it: either loop runs in vectors."""
        scope = self.scope
        operator = "max=" if statement.operator == "argmax=" else "min="
        top = scope.set("top", number(identity(operator, dtype), type_of(dtype)))
        with scope.loop(index, *bounds):
            scope.add(Set(top, combined(operator, top, self.write.value(statement.value, dtype))))
        found = scope.set("found", word(NOWHERE))
        with scope.loop(index, *bounds):
            new = scope.set("new", self.write.value(statement.value, dtype))
            same = compare("==", new, top)
            if dtype.kind == "f":  # if one is NaN, so is the best
                same = joined("either", [same, compare("!=", new, new)])
            scope.add(Set(found, combined("min=", found, Choice(same, position, word(NOWHERE)))))
        return top, found

    def one_by_one(self, statement: Planned, order: list[str]) -> None:
        """Where they are met in any order."""
        loops_around(self.scope, statement, order, [], lambda _: self.candidate(statement))

    def candidate(self, statement: Planned) -> None:
        """The first beats its equals."""
        scope = self.scope
        best, held, place, dtype = self.contest(statement)
        at = scope.set("at", self.write.offset(statement.target))
        new = scope.set("new", self.write.value(statement.value, dtype))
        position = scope.set("position", place)
        winner, first = scope.set("best", Load(best, at)), scope.set("first", Load(held, at))
        earlier = compare("<", position, first)
        tests = [
            compare("<", first, ZERO),
            compare(_sign(statement), new, winner),
            joined("both", [compare("==", new, winner), earlier]),
        ]
        if dtype.kind == "f":  # a NaN beats all numbers
            tests.append(
                joined("both", [compare("!=", new, new), joined("either", [compare("==", winner, winner), earlier])])
            )
        better = scope.set("better", joined("either", tests))
        scope.store(best, at, Choice(better, new, winner))  # always, so that the loop can run in vectors
        scope.store(held, at, Choice(better, position, first))

    def contest(self, statement: Planned) -> tuple[Memory, Memory, Value, np.dtype[Any]]:
        """The tensors of best values and of their positions, a candidate's position, and the type of its value."""
        target = statement.target.tensor
        dtype = self.write.best(self.loops, target)
        best = self.layout.keep(BestOf(target), self.layout.elements(target), dtype, Role.TENSOR)
        position: Value = ZERO
        for index in ir.candidates(statement):
            position = position * self.layout.size(index) + self.layout.index(index)
        return best, self.layout.tensor(target), position + statement.offset, dtype


def _sign(statement: ir.Statement) -> str:
    return ">" if statement.operator == "argmax=" else "<"
