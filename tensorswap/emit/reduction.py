"""Reductions: how an operator makes one element of many values, and sums that a local variable holds meanwhile."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..interpret.grid import identity
from ..language import ir
from ..language.build import conjuncts, divide, product
from ..language.ir import Expr
from ..plan.work import product_of
from .expression import Expressions
from .loops import conditions
from .once import invariant, repeated
from .scope import Scope


def accumulated(tensor: str, write: Expressions) -> np.dtype[Any]:
    """The type that values for a tensor are computed in: integers in 64 bits, whatever they are stored in."""
    stored = write.stored(tensor)
    return np.dtype(np.int64) if stored.kind in "iu" else stored


def loaded(target: ir.Access, place: str, write: Expressions) -> str:
    """What stands at a place of the target, in the type that values for it are computed in."""
    dtype = accumulated(target.tensor, write)
    return place if write.stored(target.tensor) == dtype else write.cast(place, dtype)


def combined(operator: str, old: str, new: str) -> str:
    match operator:
        case "+=":
            return f"{old} + {new}"
        case "-=":
            return f"{old} - {new}"
        case "*=":
            return f"{old} * {new}"
    return f"{'maximum' if operator == 'max=' else 'minimum'}({old}, {new})"


def first_value(name: str, loops: ir.Loops, write: Expressions) -> str:
    """What the elements of a tensor are before anything is added to them."""
    operator = next(s.operator for s in loops.statements if s.target.tensor == name)
    dtype = write.stored(name)
    start = identity(operator, dtype)
    return write.cast(_text(start), np.dtype(np.uint8) if dtype == np.bool_ else dtype)


def reduction(
    scope: Scope, statement: ir.Statement, order: list[str], reduced: list[str], indent: str, store: bool
) -> None:
    """Sums in a local variable: the loops over the target outside, those over what is summed inside."""
    write, target = scope.write, statement.target
    place = f"{write.layout.tensor(target.tensor)}[{write.offset(target)}]"
    dtype, stored = accumulated(target.tensor, write), write.stored(target.tensor)
    atoms = list(conjuncts(statement.guard))
    held = dict(write.held)
    after = indent
    summand, factor = _taken_out(scope, statement, reduced, dtype)
    start = write.cast(_text(identity(statement.operator, dtype)), dtype) if store else loaded(target, place, write)
    for position, index in enumerate(order):
        low, high, used = scope.range(index, atoms, order[:position])
        atoms = [atom for atom in atoms if atom not in used]
        if position == len(order) - len(reduced):
            zero = write.cast("0", dtype)
            scope.add(indent, f"total = {start if factor is None else zero}")
            after = indent
        if position == len(order) - 1 and not statement.guard:
            scope.hold(invariant([summand], index), indent)
        indent = scope.loop(indent, index, low, high)
    remaining = conditions(statement, atoms, write)
    if remaining:
        scope.add(indent, f"if {remaining}:")
        indent += "    "
    scope.hold(repeated([summand], write.held), indent)
    value = write.value(summand, dtype)
    scope.add(indent, f"total = {combined(statement.operator, 'total', value)}")
    if factor is not None:
        over, under = factor
        scope.add(after, f"total = total * {write.value(over, dtype)} / {write.value(under, dtype)}")
        if not store:
            scope.add(after, f"total = {loaded(target, place, write)} + total")
    text = "total" if stored == dtype else write.cast("total", stored)
    scope.add(after, f"{place} = {text}")
    write.held = held


def _taken_out(
    scope: Scope, statement: ir.Statement, reduced: list[str], dtype: np.dtype[Any]
) -> tuple[Expr, tuple[Expr, Expr] | None]:
    """What a sum adds up, and the factors and divisors that it does not run over, which are applied to the sum.

    Not where the sum may be empty: no terms are 0, whatever they would have been divided by.
    """
    layout = scope.write.layout
    constant = all(i in layout.constant and layout.sizes.index[i] > 0 for i in reduced)
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


def _text(number: float) -> str:
    return "inf" if number == math.inf else "-inf" if number == -math.inf else repr(number)
