"""Scope: what stands around the next statement of a kernel, and so what bounds the loops that are written there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from ..kernel.ir import (
    ONE,
    WORD,
    ZERO,
    For,
    If,
    Memory,
    Set,
    Statement,
    Store,
    Value,
    Variable,
    extreme,
    is_zero,
    joined,
    most,
    word,
)
from ..language import ir
from ..language.affine import affine
from ..language.bounds import at_least_zero, unproven, value_bounds
from ..language.build import add, negate
from ..language.ir import Expr, Number
from ..plan.work import ASKED
from .expression import Expressions
from .layout import Layout

Range = tuple[Value, Value]

# Elements of rows that lie one behind the other. Loops over so few are written out, so that the one around them, over
# so many rows, may run in vectors: compilers turn vectors along rows into vectors along columns, and fewer back.
WRITTEN, READ, ROWS = 4, 8, 16


@dataclass
class Scope:
    """The statements of a body so far, and the loops around it. All that write parts of one kernel share it."""

    write: Expressions
    body: list[Statement] = field(default_factory=list)
    fixed: set[str] = field(default_factory=set)  # indices that a loop around the statement already runs over
    strips: dict[str, Range] = field(default_factory=dict)  # indices of which a loop around runs over strips
    vectors: dict[str, int] = field(default_factory=dict)  # how many values of an index a step of a block takes at once
    count: int = 0  # of the values held in local variables so far

    @property
    def layout(self) -> Layout:
        return self.write.layout

    # -- statements

    def add(self, *statements: Statement) -> None:
        self.body.extend(statements)

    def set(self, name: str, value: Value) -> Variable:
        """A local variable gets a value."""
        variable = Variable(name, value.type)
        self.add(Set(variable, value))
        return variable

    def store(self, memory: Memory, offset: Value, value: Value) -> None:
        self.add(Store(memory, offset, value))

    @contextmanager
    def collected(self) -> Iterator[list[Statement]]:
        """What is written within is given, instead of being written."""
        outer, self.body = self.body, []
        yield self.body
        self.body = outer

    @contextmanager
    def counted(
        self, variable: Variable, first: Value | int, past: Value | int, step: Value | int = ONE
    ) -> Iterator[None]:
        with self.collected() as body:
            yield
        self.add(For(variable, word(first), word(past), word(step) if step is not ONE else ONE, tuple(body)))

    def short_row(self, order: Sequence[str], written: bool) -> int:
        """How many steps the innermost of some loops may have to be written out: it is read along, or written too."""
        if len(order) < 2 or self.layout.weight(order[-2]) < ROWS:
            return 0
        return WRITTEN if written else READ

    @contextmanager
    def loop(self, index: str, low: Value, high: Value, row: int = 0) -> Iterator[None]:
        """A loop over an index; with no more steps than a short row has, they are written out."""
        with self.collected() as body:
            yield
        loop = For(self.layout.index(index), low, high, ONE, tuple(body))
        self.add(replace(loop, few=is_zero(low) and loop.rounds is not None and len(loop.rounds) <= row))

    @contextmanager
    def innermost_loop(self, index: str, low: Value, high: Value, row: int = 0) -> Iterator[None]:
        """The last loop around a statement. Where a step of a block has vectors, they are as long as it says, so that
        the few values of a strip fill one."""
        lanes = self.vectors.get(index) if self.fixed else None
        if lanes is None:
            with self.loop(index, low, high, row):
                yield
            return
        with self.collected() as body:
            yield
        variable, lane = self.layout.index(index), Variable("lane", WORD)
        vector, rest = Variable("vector", WORD), self.set("rest", low + most(high - low, ZERO) // lanes * lanes)
        inside = For(lane, ZERO, word(lanes), ONE, (Set(variable, vector + lane), *body))
        self.add(For(vector, low, rest, word(lanes), (inside,)), For(variable, rest, high, ONE, tuple(body)))

    @contextmanager
    def when(self, tests: Sequence[Value]) -> Iterator[None]:
        """Where all tests hold; everywhere, if there are none."""
        if not tests:
            yield
            return
        with self.collected() as body:
            yield
        self.add(If(joined("and", list(tests)), tuple(body)))

    # -- bounds

    def range(self, index: str, atoms: list[Expr], outer: list[str]) -> tuple[Value, Value, list[Expr]]:
        """The bounds of a loop: those of the index, its strip, and the guards that bound it by outer indices."""
        first, last = self.strips.get(index) or (ZERO, self.layout.size(index))
        lows, highs, used = self.bounds(index, atoms, outer)
        return extreme("max", [first, *lows]), extreme("min", [last, *highs]), used

    def bounds(self, index: str, atoms: list[Expr], outer: list[str]) -> tuple[list[Value], list[Value], list[Expr]]:
        """Lower bounds of an index and upper ones (which it does not reach) by outer indices; and whence they are."""
        lows: list[Value] = []
        highs: list[Value] = []
        known = {*outer, *self.fixed}
        used: list[Expr] = []
        for atom in atoms:
            if not isinstance(atom, ir.Compare) or index not in ir.index_names(atom):
                continue
            bounds = at_least_zero(atom)
            forms = [affine(self.layout.known(b)) for b in bounds]
            values = value_bounds(atom, index) if self.layout.weight(index) > ASKED else None
            if values is not None and self.readable(values[0] + values[1], known):
                lows += map(self.write.integer, values[0])
                highs += map(self.write.integer, values[1])
                used.append(atom)
                continue
            if not bounds or any(
                f is None or f.terms.get(index) not in (Number(1), Number(-1)) or not set(f.terms) <= known | {index}
                for f in forms
            ):
                continue
            for form in forms:
                assert form is not None
                rest = form.without(index).expression()
                if form.terms[index] == Number(1):  # index + rest >= 0
                    lows.append(self.write.integer(negate(rest)))
                else:  # rest - index >= 0
                    highs.append(self.write.integer(add(rest, Number(1))))
            used.append(atom)
        return lows, highs, used

    def readable(self, bounds: list[Expr], known: AbstractSet[str]) -> bool:
        """Whether bounds are whole numbers that every point of the loops outside may read."""
        for bound in bounds:
            if not ir.index_names(bound) <= known or self.write.dtype(bound).kind != "i":
                return False
            accesses = [n for n in ir.walk(bound) if isinstance(n, ir.Access)]
            alone = tuple(ir.Statement(access, "=", Number(0)) for access in accesses)
            if unproven(ir.Loops(alone), self.layout.sizes, {}):
                return False
        return True

    def hold(self, values: list[Expr]) -> None:
        """Local variables for values that are needed more than once."""
        for value in values:
            dtype = self.write.own(value)
            made = self.write.value(value, dtype)
            self.count += 1
            self.write.held[value] = (self.set(f"c{self.count}", made), dtype)
