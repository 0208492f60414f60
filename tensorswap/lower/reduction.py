"""Reductions: how an operator makes one element of many values, and sums that a local variable holds meanwhile."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np

from ..kernel import ir as kernel
from ..kernel.ir import Set, Value, Variable, cast, type_in_memory, type_of
from ..language import ir
from ..language.build import divide, product
from ..language.ir import Expr
from ..language.types import identity
from ..plan.work import product_of
from .expression import Expressions
from .layout import Layout
from .loops import ranges_of, reached
from .once import invariant, repeated
from .scope import Scope


def accumulated(tensor: str, layout: Layout) -> np.dtype[Any]:
    """The type that values for a tensor are computed in: integers in 64 bits, whatever they are stored in."""
    stored = layout.stored(tensor)
    return np.dtype(np.int64) if stored.kind in "iu" else stored


def loaded(target: ir.Access, write: Expressions) -> Value:
    """What stands at a place of the target, in the type that values for it are computed in."""
    return cast(write.element(target), type_of(accumulated(target.tensor, write.layout)))


def put(target: ir.Access, value: Value, scope: Scope) -> None:
    """Stores a value at a place of the target."""
    memory = scope.layout.tensor(target.tensor)
    scope.store(memory, scope.write.offset(target), cast(value, memory.type))


def combined(operator: str, old: Value, new: Value) -> Value:
    if operator in ("max=", "min="):
        return kernel.Call("maximum" if operator == "max=" else "minimum", (old, new), old.type)
    return kernel.Operation(operator[0], (old, new), old.type)


def first_value(name: str, loops: ir.Loops, layout: Layout) -> Value:
    """What the elements of a tensor are before anything is added to them."""
    operator = next(s.operator for s in loops.statements if s.target.tensor == name)
    dtype = layout.stored(name)
    return kernel.number(identity(operator, dtype), type_in_memory(dtype))


def reduction(scope: Scope, statement: ir.Statement, order: list[str], reduced: list[str], store: bool) -> None:
    """Sums in a local variable: the loops over the target outside, those over what is summed inside."""
    write, target = scope.write, statement.target
    dtype = accumulated(target.tensor, scope.layout)
    held = dict(write.held)
    ranges, remaining = ranges_of(scope, statement, order)
    summand, factor = taken_out(scope, statement, reduced, dtype)
    split = len(order) - len(reduced)
    with ExitStack() as around:
        for index, bounds in zip(order[:split], ranges[:split], strict=True):
            around.enter_context(scope.loop(index, *bounds))
        total = Variable("total", type_of(dtype))
        start = identity(statement.operator, scope.layout.stored(target.tensor))
        scope.add(Set(total, kernel.number(start, type_of(dtype))))
        outside = dict(write.held)
        with ExitStack() as inner:
            for position in range(split, len(order)):
                last = position == len(order) - 1
                if last and reached(statement, order[position], remaining):
                    scope.hold(invariant([summand], order[position]))
                row = scope.short_row(order, written=False) if last else 0
                inner.enter_context(scope.loop(order[position], *ranges[position], row))
            inner.enter_context(scope.when(remaining))
            scope.hold(repeated([summand], write.held))
            scope.add(Set(total, combined(statement.operator, total, write.value(summand, dtype))))
        write.held = outside  # a divisor that is taken out may stand in the summand too, where a variable has it
        multiply(total, factor, scope, dtype)
        if not store:  # at the end: what was there may be large, and small terms added to it one by one would be lost
            scope.add(Set(total, combined(statement.operator.replace("-", "+"), loaded(target, write), total)))
        put(target, total, scope)
    write.held = held


def multiply(total: Variable, factor: tuple[Expr, Expr] | None, scope: Scope, dtype: np.dtype[Any]) -> None:
    """A sum gets what was taken out of it."""
    if factor is not None:
        over, under = (scope.write.value(part, dtype) for part in factor)
        scope.add(Set(total, total * over / under))


def taken_out(
    scope: Scope, statement: ir.Statement, reduced: list[str], dtype: np.dtype[Any]
) -> tuple[Expr, tuple[Expr, Expr] | None]:
    """What a sum adds up, and the factors and divisors that it does not run over, which are applied to the sum.

    Not where the sum may be empty: no terms are 0, whatever they would have been divided by.
    """
    layout = scope.layout
    constant = all(layout.is_constant(i) and layout.count(i) > 0 for i in reduced)
    over, under = product_of(statement.value)
    outside = [[f for f in fs if not ir.index_names(f) & set(reduced)] for fs in (over, under)]
    if statement.operator not in ir.SUM or statement.guard is not None or dtype.kind != "f" or not constant:
        return statement.value, None
    if any(i in scope.strips for i in reduced) or not outside[1]:
        return statement.value, None  # only divisions are worth it
    inside = [[f for f in fs if f not in out] for fs, out in zip((over, under), outside, strict=True)]
    summand = product(inside[0])
    for divisor in inside[1]:
        summand = divide(summand, divisor)
    return summand, (product(outside[0]), product(outside[1]))
