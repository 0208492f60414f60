"""Small constructors that fold what is known: numbers are computed, zeros and ones vanish."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable

from . import ir
from .functions import INDEX_FUNCTIONS
from .ir import Binary, Call, Expr, Number
from .types import is_derivative

ZERO, ONE = Number(0), Number(1)
WHOLE: dict[str, Callable[..., int]] = {  # the arithmetic of indices and sizes, in Python's own numbers
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
    "min": min, "max": max, "abs": abs,
}  # fmt: skip


def is_zero(node: Expr) -> bool:
    return isinstance(node, Number) and node.value == 0


def is_one(node: Expr) -> bool:
    return isinstance(node, Number) and node.value == 1


def _integers(*nodes: Expr) -> bool:
    return all(isinstance(n, Number) and isinstance(n.value, int) for n in nodes)


def add(a: Expr, b: Expr) -> Expr:
    if is_zero(a):
        return b
    if is_zero(b):
        return a
    if isinstance(a, Number) and isinstance(b, Number) and _integers(a, b):
        return Number(a.value + b.value)
    positive = _without_minus(b)
    if positive is not None:
        return subtract(a, positive)
    if isinstance(b, Number) and isinstance(a, Binary) and a.operator in "+-" and _integers(a.right, b):
        assert isinstance(a.right, Number)
        return add(a.left, Number(b.value + (a.right.value if a.operator == "+" else -a.right.value)))
    return Binary("+", a, b)


def subtract(a: Expr, b: Expr) -> Expr:
    if is_zero(b):
        return a
    if is_zero(a):
        return negate(b)
    if isinstance(a, Number) and isinstance(b, Number) and _integers(a, b):
        return Number(a.value - b.value)
    positive = _without_minus(b)
    if positive is not None:
        return add(a, positive)
    if isinstance(b, Number) and isinstance(a, Binary) and a.operator in "+-" and _integers(a.right, b):
        assert isinstance(a.right, Number)
        return add(a.left, Number((a.right.value if a.operator == "+" else -a.right.value) - b.value))
    return Binary("-", a, b)


def _without_minus(node: Expr) -> Expr | None:
    """`2 * x` of `-2 * x`: what a negative term takes away. None if no minus is in front."""
    match node:
        case Number(value=value) if value < 0:
            return Number(-value)
        case ir.Unary(operator="-", operand=operand):
            return operand
        case Binary(operator="*" | "/" as operator, left=left, right=right):
            first = _without_minus(left)
            return None if first is None else multiply(first, right) if operator == "*" else Binary("/", first, right)
    return None


def negate(a: Expr) -> Expr:
    if isinstance(a, Number):
        return Number(-a.value)
    if isinstance(a, ir.Unary) and a.operator == "-":
        return a.operand
    if isinstance(a, Binary) and a.operator == "-":
        return subtract(a.right, a.left)
    return ir.Unary("-", a)


def multiply(a: Expr, b: Expr) -> Expr:
    if is_zero(a) or is_zero(b):
        return ZERO
    if is_one(a) and (_integers(a) or _is_real(b)):  # `1.0 * n` makes a real number of a whole one
        return b
    if is_one(b) and (_integers(b) or _is_real(a)):
        return a
    if isinstance(a, Number) and isinstance(b, Number) and _integers(a, b):
        return Number(a.value * b.value)
    if isinstance(b, Binary) and b.operator in ("*", "/"):  # a * (b * c) is written a * b * c
        return Binary(b.operator, multiply(a, b.left), b.right)
    cancelled = _without(a, b.value) if isinstance(b, Number) else None
    if cancelled is not None:
        return cancelled
    match a:
        case Binary(operator="/", left=Number(value=value), right=divisor):  # 0.5 / d * (2 * x + 2 * y)
            cancelled = _without(b, value)
            return Binary("*", a, b) if cancelled is None else Binary("/", cancelled, divisor)
    return Binary("*", a, b)


def _without(node: Expr, number: int | float) -> Expr | None:
    """`x * y` of `x * 2 * y` and 0.5: a product, or a sum of such, without the factor that a number cancels. None if
    it has none, or if whole numbers were left to themselves: they might not fit a word then."""
    match node:
        case Binary(operator="+" | "-" as operator, left=left, right=right):
            one, other = _without(left, number), _without(right, number)
            return None if one is None or other is None else Binary(operator, one, other)
    found = _cancelled(node, number)
    return found if found is not None and _is_real(found) else None


def _cancelled(product: Expr, number: int | float) -> Expr | None:
    match product:
        case Binary(operator="*", left=Number(value=value), right=rest) if value * number == 1:
            return rest
        case Binary(operator="*", left=rest, right=Number(value=value)) if value * number == 1:
            return rest
        case Binary(operator="*" | "/" as operator, left=left, right=right):
            found = _cancelled(left, number)
            return None if found is None else Binary(operator, found, right)
    return None


def _is_real(product: Expr) -> bool:
    """Whether a product begins with a derivative, or has one as its second factor: no two whole numbers meet in it."""
    chain: list[Expr] = []
    while isinstance(product, Binary) and product.operator in ("*", "/"):
        chain.append(product.right)
        product = product.left
    first = [product, *reversed(chain)][:2]
    return any(isinstance(factor, ir.Access) and is_derivative(factor.tensor) for factor in first)


def divide(a: Expr, b: Expr) -> Expr:
    if is_zero(a) or is_one(b):
        return a
    return Binary("/", a, b)


def floor_divide(a: Expr, b: Expr) -> Expr:
    return a if is_one(b) else _divided("//", a, b)


def remainder(a: Expr, b: Expr) -> Expr:
    return ZERO if is_one(b) else _divided("%", a, b)


def _divided(operator: str, a: Expr, b: Expr) -> Expr:
    if isinstance(a, Number) and isinstance(b, Number) and _integers(a, b) and b.value != 0:
        return Number(WHOLE[operator](a.value, b.value))
    return Binary(operator, a, b)


def _extreme(name: str, a: Expr, b: Expr) -> Expr:
    if isinstance(a, Number) and isinstance(b, Number):
        return Number((min if name == "min" else max)(a.value, b.value))
    return a if a == b else Call(name, (a, b))


def minimum(a: Expr, b: Expr) -> Expr:
    return _extreme("min", a, b)


def maximum(a: Expr, b: Expr) -> Expr:
    return _extreme("max", a, b)


def product(parts: Iterable[Expr], start: Expr = ONE) -> Expr:
    result = start
    for part in parts:
        result = multiply(result, part)
    return result


def factors(node: Expr) -> list[Expr]:
    """Those of a product `a * b * c`."""
    if isinstance(node, Binary) and node.operator == "*":
        return [*factors(node.left), *factors(node.right)]
    return [node]


def row_major(names: Iterable[str]) -> Expr:
    """The position that indices count together, the last one fastest."""
    position: Expr = ZERO
    for name in names:
        position = add(multiply(position, ir.Size(name)), ir.Index(name))
    return position


def conjunction(parts: Iterable[Expr | None]) -> Expr | None:
    """`a and b and ...` without doubles, or None if there is nothing to hold."""
    atoms: dict[Expr, None] = {}
    for part in parts:
        atoms |= dict.fromkeys(conjuncts(part))
    result: Expr | None = None
    for atom in atoms:
        result = atom if result is None else ir.Logic("and", result, atom)
    return result


def conjuncts(guard: Expr | None) -> tuple[Expr, ...]:
    """The parts of `a and b and ...`."""
    if guard is None:
        return ()
    if isinstance(guard, ir.Logic) and guard.operator == "and":
        return (*conjuncts(guard.left), *conjuncts(guard.right))
    return (guard,)


def asked_inside(statement: ir.Statement) -> tuple[Expr, ...]:
    """What `inside` speaks of. Where it stands in that itself, under `or` or `not`, it holds."""
    nodes = (statement.target, *conjuncts(statement.guard), statement.value)
    return tuple(ir.transform(node, lambda n: ONE if isinstance(n, ir.Inside) else n) for node in nodes)


OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}


def opposite(condition: Expr) -> Expr:
    """What holds where the condition does not. Comparisons of integers turn; those of floats may meet a NaN."""
    if isinstance(condition, ir.Unary) and condition.operator == "not":
        return condition.operand
    if isinstance(condition, ir.Compare) and (
        condition.operator in ("==", "!=") or (is_integer(condition.left) and is_integer(condition.right))
    ):
        return ir.Compare(OPPOSITE[condition.operator], condition.left, condition.right)
    return ir.Unary("not", condition)


def is_integer(node: Expr) -> bool:
    """Index arithmetic: certainly integer-valued, whatever the arrays hold."""
    match node:
        case Number(value=value):
            return isinstance(value, int)
        case ir.Index() | ir.Static() | ir.Size() | ir.AxisSize():
            return True
        case ir.Unary(operator="-", operand=a):
            return is_integer(a)
        case Binary(operator=operator, left=a, right=b):
            return operator in ("+", "-", "*", "//", "%") and is_integer(a) and is_integer(b)
        case Call(function=function, arguments=arguments):
            return function in INDEX_FUNCTIONS and all(map(is_integer, arguments))
    return False
