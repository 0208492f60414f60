"""Winners: the positions that argmax= and argmin= find, the first of the best among all candidates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from ..kernel.ir import (
    ONE,
    WORD,
    ZERO,
    Choice,
    For,
    Load,
    Memory,
    Role,
    Set,
    Value,
    Variable,
    cast,
    compare,
    constant,
    joined,
    number,
    type_of,
    word,
)
from ..kernel.registers import registers
from ..language import ir
from ..language.build import add
from ..language.types import identity
from ..plan.first_writes import Planned
from .layout import BestOf
from .loops import loops_around, ranges_of
from .reduction import combined
from .roles import strides
from .scope import Range, Scope

FEW, COMPUTED = 32, 9  # candidates that are written out, and such that are computed at length
MANY = 16  # candidates: for fewer, one loop is as good
AT_ONCE = 8  # candidates whose best is found before it is written
SHORT = 1024  # a loop along so many elements need not look whether its work is still wanted
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
                most = FEW if _is_quick(statement) else COMPUTED
                with self.over(order[split:], ranges[split:], most), scope.when(remaining):
                    new = scope.set("new", self.write.value(statement.value, dtype))
                    self.beat(statement, winner, first, new, position, dtype)
            scope.store(best, at, winner)
            scope.store(held, at, first)

    @contextmanager
    def over(self, indices: list[str], ranges: list[Range], most: int) -> Iterator[None]:
        """Loops over candidates; up to so many are written out, so that the loop around them may run in vectors."""
        with self.scope.collected() as body:
            yield
        rounds = [constant(past - first) for first, past in ranges]
        few = None not in rounds and math.prod(r or 0 for r in rounds) <= most
        for index, (first, past) in reversed([*zip(indices, ranges, strict=True)]):
            body = [For(self.layout.index(index), first, past, ONE, tuple(body), few=few)]
        self.scope.add(*body)

    def beat(
        self, statement: Planned, winner: Variable, first: Variable, new: Value, position: Value, dtype: np.dtype[Any],
        there: Sequence[Value] = (),
    ) -> None:  # fmt: skip
        """A candidate that is better takes the place of the winner, if it is there at all."""
        beats = joined("either", [compare("<", first, 0), self.beats(statement, new, winner, dtype)])
        better = self.scope.set("better", joined("both", [*there, beats]))
        self.scope.add(Set(winner, Choice(better, new, winner)), Set(first, Choice(better, position, first)))

    def beats(self, statement: Planned, new: Value, winner: Value, dtype: np.dtype[Any]) -> Value:
        """Whether a candidate is better than one that came before it."""
        sign = ">" if statement.operator == "argmax=" else "<"
        if dtype.kind != "f":
            return compare(sign, new, winner)
        unlike = joined("both", [compare("!=", new, new), compare("==", winner, winner)])  # a NaN beats all numbers
        return joined("either", [compare(sign, new, winner), unlike])

    def is_worth_two_loops(self, statement: Planned, index: str) -> bool:
        """Whether there are many candidates, more than are written out, side by side in memory, that are read and not
        computed at length."""
        forms = [strides(access, self.layout) for access in statement.reads]
        in_line = all(form is not None and form.get(index, 0) in (0, 1) for form in forms)
        return (
            _is_quick(statement)
            and in_line
            and self.layout.least_count(index) >= MANY
            and self.layout.weight(index) > FEW
        )

    def in_two_loops(
        self, statement: Planned, index: str, bounds: tuple[Value, Value], position: Value, dtype: np.dtype[Any]
    ) -> tuple[Value, Value]:
        """The best value, then the first position that has it: either loop runs in vectors."""
        scope = self.scope
        operator = _extreme(statement)
        top = scope.set("top", number(identity(operator, dtype), type_of(dtype)))
        with scope.loop(index, *bounds):
            scope.add(Set(top, combined(operator, top, self.write.value(statement.value, dtype))))
        found = scope.set("found", word(NOWHERE))
        with scope.loop(index, *bounds):
            new = scope.set("new", self.write.value(statement.value, dtype))
            is_best = _is_best(new, top, dtype)
            scope.add(Set(found, combined("min=", found, Choice(is_best, position, word(NOWHERE)))))
        return top, found

    def one_by_one(self, statement: Planned, order: list[str]) -> None:
        """Where the loop runs along the target: best and position are in memory."""
        candidates = ir.candidates(statement)
        in_order = [i for i in order if i in candidates] == candidates
        same = ir.index_names(statement.target).isdisjoint(candidates)  # candidates for one element, not for `a[g[k]]`
        if in_order and same and order[-2:-1] == candidates[-1:] != [] and statement.guard is None:
            self.several(statement, order)
        else:
            loops_around(self.scope, statement, order, [], lambda _: self.candidate(statement))

    def several(self, statement: Planned, order: list[str]) -> None:
        """Where they are met in their order, some at a time: best and position are read and written less often."""
        *outer, met, along = order
        scope = self.scope
        with ExitStack() as around:
            for index in outer:
                around.enter_context(scope.loop(index, *scope.range(index, [], [])[:2]))
            low, high, _ = scope.range(met, [], [])
            split = low + (high - low) // AT_ONCE * AT_ONCE
            for first, past, count in ((low, split, AT_ONCE), (split, high, 1)):
                with scope.counted(self.layout.index(met), first, past, word(count)):
                    self.along(statement, met, along, count)

    def along(self, statement: Planned, met: str, index: str, count: int) -> None:
        """The loop along the target. Positions are words, but vectors are as long as those of the candidates."""
        scope = self.scope
        known = self.layout.is_constant(index) or index in self.layout.most
        size = self.write.best(self.loops, statement.target.tensor).itemsize
        lanes = registers().bytes // size
        if not known or size == WORD.size or not 2 * lanes <= self.layout.least_count(index) <= SHORT:
            loops_around(scope, statement, [index], [], lambda _: self.next_ones(statement, met, count))
            return
        with scope.collected() as body:
            self.next_ones(statement, met, count)
        low, high, _ = scope.range(index, [], [])
        scope.add(For(self.layout.index(index), low, high, ONE, tuple(body), at_once=(lanes, 1)))

    def next_ones(self, statement: Planned, met: str, count: int) -> None:
        """The best of some candidates, then whether it beats those before. Which one it is stands in a number of the
        candidates' own type, so that vectors of both are as long."""
        scope = self.scope
        best, held, position, dtype = self.contest(statement)
        number_type = type_of(dtype)
        ones = []
        for k in range(count):
            moved = ir.substitute_indices({met: add(ir.Index(met), ir.Number(k))})
            value = self.write.value(ir.transform(statement.value, moved), dtype)
            ones.append(scope.set(f"new{k}", value))  # all of them are asked again
        leader = ones[0]
        for new in ones[1:]:
            leader = scope.set("leader", combined(_extreme(statement), leader, new))
        which = scope.set("which", number(count - 1, number_type))
        for k in reversed(range(count - 1)):
            scope.add(Set(which, Choice(_is_best(ones[k], leader, dtype), number(k, number_type), which)))
        at = scope.set("at", self.write.offset(statement.target))
        winner, first = scope.set("best", Load(best, at)), scope.set("first", Load(held, at))
        self.beat(statement, winner, first, leader, position + cast(which, WORD), dtype)
        scope.store(best, at, winner)
        scope.store(held, at, first)

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
            self.beats(statement, new, winner, dtype),
            joined("both", [compare("==", new, winner), earlier]),
        ]
        if dtype.kind == "f":
            tests.append(joined("both", [compare("!=", new, new), earlier]))
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


def _is_quick(statement: Planned) -> bool:
    """Whether candidates are read, and not computed at length."""
    return not any(isinstance(node, ir.Call | ir.Conditional) for node in ir.walk(statement.value))


def _extreme(statement: Planned) -> str:
    return "max=" if statement.operator == "argmax=" else "min="


def _is_best(new: Value, top: Value, dtype: np.dtype[Any]) -> Value:
    same = compare("==", new, top)
    if dtype.kind != "f":
        return same
    return joined("either", [same, compare("!=", new, new)])  # if one is NaN, so is the best
