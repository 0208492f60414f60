"""The derivative of each scalar function: one line each, in the language itself. The engine knows no mathematics."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from ..errors import DerivativeError
from ..language import ir
from ..language.build import add, subtract
from ..language.functions import DEFINED, FLAT
from ..language.ir import Expr
from ..language.parse import parse_expression

# By the argument x; y stands for the function's own value, which a forward statement may already hold.
ONE_ARGUMENT = {
    "abs": "sign(x)",
    "sqrt": "0.5 / y",
    "exp": "y",
    "log": "1 / x",
    "log1p": "1 / (1 + x)",
    "expm1": "exp(x)",
    "sin": "cos(x)",
    "cos": "-sin(x)",
    "tan": "1 + y * y",
    "asin": "1 / sqrt(1 - x * x)",
    "acos": "-1 / sqrt(1 - x * x)",
    "atan": "1 / (1 + x * x)",
    "sinh": "cosh(x)",
    "cosh": "sinh(x)",
    "tanh": "1 - y * y",
    "sigmoid": "y * (1 - y)",
    "gelu": "0.5 * (1 + erf(0.7071067811865476 * x)) + 0.3989422804014327 * x * exp(-0.5 * x * x)",
    "silu": "sigmoid(x) * (1 + x * (1 - sigmoid(x)))",
    "softplus": "sigmoid(x)",
    "erf": "1.1283791670955126 * exp(-x * x)",
}

# By the first argument a and by the second, b.
TWO_ARGUMENTS = {
    "pow": ("b * a ** (b - 1) if b != 0 else 0", "y * log(a) if a > 0 else 0"),
    "atan2": ("b / (a * a + b * b)", "-a / (a * a + b * b)"),
    "hypot": ("a / y", "b / y"),
}

# Functions that are branches: the derivative goes to the branch taken, the first where they tie.
BRANCHES = {
    "relu": "a if a > 0 else 0",
    "max": "a if a >= b else b",
    "min": "a if a <= b else b",
}


def _fill(text: str, values: dict[str, Expr]) -> Expr:
    return filled(template(text), values)


def filled(rule: Expr, values: dict[str, Expr]) -> Expr:
    """A rule with expressions in the place of its names."""

    def change(node: Expr) -> Expr:
        match node:
            case ir.Access(tensor=tensor):
                return values.get(tensor, node)
            case ir.Binary(operator="+" | "-" as operator, left=left, right=ir.Unary(operator="-") as right):
                return add(left, right) if operator == "+" else subtract(left, right)
        return node

    return ir.transform(rule, change)


@cache
def template(text: str) -> Expr:
    """The rule as a program has it: without the spans of its own text."""
    return ir.transform(parse_expression(text), _forget_span)


def _forget_span(node: Expr) -> Expr:
    return replace(node, span=None)


def branches(node: ir.Call) -> Expr | None:
    """A branching function as a conditional, or None if it is none."""
    if node.function not in BRANCHES:
        return None
    first, *rest = node.arguments
    if node.function == "relu":
        return _fill(BRANCHES["relu"], {"a": first})
    while len(rest) > 1:  # max(a, b, c) is max(max(a, b), c)
        first, rest = ir.Call(node.function, (first, rest[0])), rest[1:]
    return _fill(BRANCHES[node.function], {"a": first, "b": rest[0]})


def is_flat(function: str) -> bool:
    """The derivative is zero wherever there is one."""
    return function in FLAT


def derivative(node: ir.Call, position: int) -> Expr:
    """The derivative of a call by one of its arguments."""
    if node.function in ONE_ARGUMENT:
        return _fill(ONE_ARGUMENT[node.function], {"x": node.arguments[0], "y": node})
    if node.function in TWO_ARGUMENTS:
        a, b = node.arguments
        return _fill(TWO_ARGUMENTS[node.function][position], {"a": a, "b": b, "y": node})
    if node.function in DEFINED:
        defined = DEFINED[node.function]
        values = {"y": node, **dict(zip(defined.arguments, node.arguments, strict=True))}
        return filled(defined.derivatives[position], values)
    raise DerivativeError(
        f"`{node.function}` has no rule for its derivative",
        node.span,
        f"write stop({node.function}(...)) to treat it as constant",
    )
