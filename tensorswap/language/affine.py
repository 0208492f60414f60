"""Index expressions as sums `c1*i + c2*j + constant`, with coefficients that may hold static integers and sizes."""

from __future__ import annotations

from dataclasses import dataclass

from . import ir
from .build import (
    ONE,
    ZERO,
    add,
    floor_divide,
    is_integer,
    is_one,
    is_zero,
    maximum,
    multiply,
    negate,
    remainder,
    subtract,
)
from .ir import Expr, Number


@dataclass(frozen=True)
class Affine:
    """`terms` maps an index to its coefficient, which like `constant` holds no index."""

    terms: dict[str, Expr]
    constant: Expr

    def without(self, index: str) -> Affine:
        return Affine({i: c for i, c in self.terms.items() if i != index}, self.constant)

    def expression(self) -> Expr:
        return subtract_from(ZERO, self, sign=-1)


_VARYING = (ir.Index, ir.Access)


def is_constant(node: Expr) -> bool:
    """No index and no gathered value: the same at every point."""
    if isinstance(node, Number):
        return True
    if isinstance(node, ir.Index):
        return False
    return not any(isinstance(n, _VARYING) for n in ir.walk(node))


def affine(node: Expr) -> Affine | None:
    """The affine form of an index expression, or None if it has none."""
    if isinstance(node, ir.Index):
        return Affine({node.name: ONE}, ZERO)
    if is_constant(node):
        return Affine({}, node)
    match node:
        case ir.Unary(operator="-", operand=operand):
            inner = affine(operand)
            return None if inner is None else _scale(inner, Number(-1))
        case ir.Binary(operator="+" | "-" as operator, left=left, right=right):
            a, b = affine(left), affine(right)
            if a is None or b is None:
                return None
            return _sum(a, b if operator == "+" else _scale(b, Number(-1)))
        case ir.Binary(operator="*", left=left, right=right):
            if is_constant(left):
                inner = affine(right)
                return None if inner is None else _scale(inner, left)
            if is_constant(right):
                inner = affine(left)
                return None if inner is None else _scale(inner, right)
    return None


def _scale(form: Affine, factor: Expr) -> Affine:
    return Affine({i: _times(factor, c) for i, c in form.terms.items()}, _times(factor, form.constant))


def _times(a: Expr, b: Expr) -> Expr:
    if a == Number(-1):
        return negate(b)
    return multiply(a, b)


def _sum(a: Affine, b: Affine) -> Affine:
    terms = dict(a.terms)
    for index, coefficient in b.terms.items():
        terms[index] = add(terms.get(index, ZERO), coefficient)
    return Affine({i: c for i, c in terms.items() if not is_zero(c)}, add(a.constant, b.constant))


def _term(index: str, coefficient: Expr) -> Expr:
    return ir.Index(index) if is_one(coefficient) else multiply(coefficient, ir.Index(index))


def _is_negative(node: Expr) -> bool:
    return (isinstance(node, Number) and node.value < 0) or (isinstance(node, ir.Unary) and node.operator == "-")


def subtract_from(value: Expr, form: Affine, sign: int = 1) -> Expr:
    """`value - form` (or `value + form` for sign -1), written in the order of the form's terms."""
    result = value
    for index, coefficient in form.terms.items():
        away = sign > 0
        if _is_negative(coefficient):
            coefficient, away = negate(coefficient), not away
        result = (subtract if away else add)(result, _term(index, coefficient))
    return (subtract if sign > 0 else add)(result, form.constant)


def _over_sizes(node: Expr) -> tuple[Affine | None, dict[str, Expr]]:
    """The affine form of a sum of sizes and static integers, which stand as if they were indices."""
    atoms: dict[str, Expr] = {}

    def mark(part: Expr) -> Expr:
        if isinstance(part, ir.Size | ir.AxisSize | ir.Static):
            atoms[repr(part)] = part
            return ir.Index(repr(part))
        return part

    return affine(ir.transform(node, mark)), atoms


def tidy(node: Expr) -> Expr:
    """A sum of sizes and static integers with equal terms taken together."""
    form, atoms = _over_sizes(node)
    return node if form is None else ir.transform(form.expression(), ir.substitute_indices(atoms))


FOLDED = {"+": add, "-": subtract, "*": multiply, "//": floor_divide, "%": remainder}


def simplified(node: Expr) -> Expr:
    """Index arithmetic with its numbers computed and equal terms taken together, where that makes it shorter and every
    index of it stays."""
    if not isinstance(node, ir.Binary) or not is_integer(node):
        return node
    folded = FOLDED[node.operator](node.left, node.right)
    forms = [form for form in (tidy(folded), folded) if ir.index_names(form) == ir.index_names(node)]
    return min([node, *reversed(forms)], key=lambda form: len(ir.walk(form)))


def not_bare(place: Expr) -> Expr:
    """`i+0` for an index: by itself in a bracket it would claim that it runs over the whole axis."""
    return ir.Binary("+", place, ZERO) if isinstance(place, ir.Index) else place


def greatest(a: Expr, b: Expr) -> Expr:
    """max(a, b), or the one that is never less: no size is negative."""
    for one, other in ((a, b), (b, a)):
        form, atoms = _over_sizes(subtract(one, other))
        if form is not None and isinstance(form.constant, Number) and form.constant.value >= 0:
            sizes = all(not isinstance(atoms[name], ir.Static) for name in form.terms)
            if sizes and all(isinstance(c, Number) and c.value >= 0 for c in form.terms.values()):
                return one
    return maximum(a, b)
