"""Bounds of an index expression over the box of its index ranges: numbers if the sizes are, formulas otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from . import ir
from .affine import affine, is_constant
from .build import ZERO, add, floor_divide, is_zero, maximum, minimum, multiply, negate, subtract
from .ir import Expr, Number

Bounds = tuple[Expr, Expr]
IndexSizes = Mapping[str, Expr | int]


def interval(node: Expr, sizes: IndexSizes, gathered: Mapping[str, Bounds] | None = None) -> Bounds | None:
    """The least and greatest value, both attained or safely outside; None where nothing is known (a gathered value)."""
    if is_constant(node):
        return node, node
    form = affine(node)
    if form is not None:
        low = high = form.constant
        for index, coefficient in form.terms.items():
            if index not in sizes:
                return None
            size = sizes[index]
            reach = multiply(coefficient, subtract(Number(size) if isinstance(size, int) else size, Number(1)))
            low, high = add(low, _lower(coefficient, reach)), add(high, _upper(coefficient, reach))
        return low, high
    match node:
        case ir.Access(tensor=tensor) if gathered and tensor in gathered:
            return gathered[tensor]
        case ir.Unary(operator="-", operand=operand):
            part = interval(operand, sizes, gathered)
            return None if part is None else (negate(part[1]), negate(part[0]))
        case ir.Binary(operator="+" | "-" | "*" | "//" | "%" as operator, left=left, right=right):
            a, b = interval(left, sizes, gathered), interval(right, sizes, gathered)
            if operator == "%":  # bounded by its divisor alone
                return _modulo(right) if is_constant(right) or b is None else _remainder(b)
            if a is None or (b is None and operator != "//"):
                return None
            if b is None:
                return _quotient(a)
            if operator == "+":
                return add(a[0], b[0]), add(a[1], b[1])
            if operator == "-":
                return subtract(a[0], b[1]), subtract(a[1], b[0])
            if operator == "*":
                return _corners([multiply(x, y) for x in a for y in b])
            if b[0] == b[1]:
                return None if is_zero(b[0]) else _corners([floor_divide(x, b[0]) for x in a])
            if isinstance(b[0], Number) and b[0].value > 0:
                return _corners([floor_divide(x, y) for x in a for y in b])
            return _quotient(a)
        case ir.Call(function="min" | "max" as name, arguments=arguments):
            least, most = _ends(name, [_sides(a, sizes, gathered) for a in arguments])
            return None if least is None or most is None else (least, most)
        case ir.Call(function="abs", arguments=(argument,)):
            part = interval(argument, sizes, gathered)
            if part is None:
                return None
            low = maximum(maximum(part[0], negate(part[1])), ZERO)
            return low, maximum(part[1], negate(part[0]))
    return None


Sides = tuple[Expr | None, Expr | None]


def _sides(node: Expr, sizes: IndexSizes, gathered: Mapping[str, Bounds] | None) -> Sides:
    """As `interval`, where perhaps only one side is known: max(x, 0) is at least 0, whatever x is."""
    if isinstance(node, ir.Call) and node.function in ("min", "max"):
        return _ends(node.function, [_sides(a, sizes, gathered) for a in node.arguments])
    return interval(node, sizes, gathered) or (None, None)


def _ends(name: str, parts: list[Sides]) -> Sides:
    pick = minimum if name == "min" else maximum
    found: list[Expr | None] = []
    for side in (0, 1):
        known = [end for part in parts if (end := part[side]) is not None]
        bounding = (name == "max") == (side == 0)  # one part is enough on this side
        enough = len(known) == len(parts) or (known and bounding)
        found.append(reduce(pick, known) if enough else None)
    return found[0], found[1]


def _modulo(divisor: Expr) -> Bounds | None:
    """The remainder has the sign of the divisor."""
    if not is_constant(divisor):
        return None
    return minimum(add(divisor, Number(1)), ZERO), maximum(subtract(divisor, Number(1)), ZERO)


def _remainder(divisor: Bounds) -> Bounds:
    """As above, for a divisor between two numbers."""
    return minimum(add(divisor[0], Number(1)), ZERO), maximum(subtract(divisor[1], Number(1)), ZERO)


def _quotient(dividend: Bounds) -> Bounds:
    """Of a whole number by one that is not zero: no further from zero than the number."""
    most = maximum(maximum(dividend[1], negate(dividend[0])), ZERO)
    return negate(most), most


def _lower(coefficient: Expr, reach: Expr) -> Expr:
    if isinstance(coefficient, Number):
        return reach if coefficient.value < 0 else ZERO
    return minimum(reach, ZERO)


def _upper(coefficient: Expr, reach: Expr) -> Expr:
    if isinstance(coefficient, Number):
        return reach if coefficient.value > 0 else ZERO
    return maximum(reach, ZERO)


def _corners(values: list[Expr]) -> Bounds:
    return reduce(minimum, values), reduce(maximum, values)
