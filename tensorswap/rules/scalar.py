"""The derivative of a scalar function, as the table of functions has it. The engine knows no mathematics."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from ..errors import DerivativeError
from ..language import ir
from ..language.build import add, subtract
from ..language.functions import DEFINED, FUNCTIONS, KNOWN, Known
from ..language.ir import Expr
from ..language.parse import parse_expression


def filled(template: Expr, values: dict[str, Expr]) -> Expr:
    """A rule with expressions in the place of its names."""

    def change(node: Expr) -> Expr:
        match node:
            case ir.Access(tensor=tensor):
                return values.get(tensor, node)
            case ir.Binary(operator="+" | "-" as operator, left=left, right=ir.Unary(operator="-") as right):
                return add(left, right) if operator == "+" else subtract(left, right)
        return node

    return ir.transform(template, change)


def template(text: str, functions: Known = KNOWN) -> Expr:
    """A rule as a program has it: without the spans of its own text."""
    return ir.transform(parse_expression(text, functions), lambda node: replace(node, span=None))


@cache
def rule(text: str) -> Expr:
    """A text of the table, which speaks of the language's own functions alone."""
    return template(text, FUNCTIONS)


def branches(node: ir.Call) -> Expr | None:
    """A branching function as a conditional, or None if it is none: derivatives go to the branch taken."""
    row = FUNCTIONS.get(node.function)
    if row is None or not row.branches:
        return None
    first, *rest = node.arguments
    while len(rest) > 1:  # max(a, b, c) is max(max(a, b), c)
        first, rest = ir.Call(node.function, (first, rest[0])), rest[1:]
    return filled(rule(row.branches), dict(zip(row.arguments, (first, *rest), strict=True)))


def written_out(node: ir.Call) -> Expr:
    """A function that the table has in other functions."""
    row = FUNCTIONS[node.function]
    return filled(rule(row.value), dict(zip(row.arguments, node.arguments, strict=True)))


def is_flat(function: str) -> bool:
    """The derivative is zero wherever there is one."""
    return function in FUNCTIONS and FUNCTIONS[function].flat


def derivative(node: ir.Call, position: int) -> Expr:
    """The derivative of a call by one of its arguments."""
    row = FUNCTIONS.get(node.function)
    if row is not None and position < len(row.derivatives):
        values = {"y": node, **dict(zip(row.arguments, node.arguments, strict=True))}
        return filled(rule(row.derivatives[position]), values)
    if node.function in DEFINED:
        defined = DEFINED[node.function]
        values = {"y": node, **dict(zip(defined.arguments, node.arguments, strict=True))}
        return filled(defined.derivatives[position], values)
    raise DerivativeError(
        f"`{node.function}` has no rule for its derivative",
        node.span,
        f"write stop({node.function}(...)) to treat it as constant",
    )
