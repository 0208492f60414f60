"""In-bounds proof of every access for the sizes of one call: interval arithmetic over loop bounds and guards.

What this cannot prove (a gathered index under a condition, say) is handed back, to be enumerated exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..lazy import kept_with_program
from . import ir
from .affine import affine, is_constant
from .build import ONE, ZERO, add, conjuncts, is_integer, maximum, minimum, multiply, negate, subtract
from .interval import Bounds, interval
from .ir import Expr, Number
from .paths import accesses
from .sizes import Sizes

ROOM = 2**60  # up to here a sum of several fits as well, as loops make them of a comparison


@dataclass(frozen=True)
class Use:
    """An access, and the conditions under which it is evaluated; `inside` marks one that a guard keeps in bounds."""

    statement: ir.Statement
    blocks: tuple[ir.Block, ...]
    access: ir.Access
    conditions: tuple[Expr, ...]
    inside: bool

    @property
    def reads(self) -> frozenset[str]:
        """The tensors whose values decide where it goes, and whether."""
        parts = (*self.access.indices, *self.conditions)
        return frozenset(n.tensor for part in parts for n in ir.walk(part) if isinstance(n, ir.Access))


@kept_with_program
def uses(loops: ir.Loops) -> tuple[Use, ...]:
    """Every access of a program with its conditions."""
    return tuple(_uses(loops))


def _uses(loops: ir.Loops) -> Iterator[Use]:
    for statement, blocks in loops.located:
        atoms = conjuncts(statement.guard)
        inside = any(isinstance(atom, ir.Inside) for atom in atoms)
        guard = tuple(atom for atom in atoms if not isinstance(atom, ir.Inside))
        for position, atom in enumerate(guard):
            for access, path in accesses(atom, guard[:position]):
                yield Use(statement, blocks, access, path, inside)
        for root in (statement.target, statement.value):
            for access, path in accesses(root, guard):
                yield Use(statement, blocks, access, path, inside)


def unproven(loops: ir.Loops, sizes: Sizes, gathered: Mapping[str, Bounds]) -> list[Use]:
    """The accesses that intervals cannot show to be in bounds. `gathered` bounds the values of integer inputs."""
    found = []
    for use in uses(loops):
        names = {*use.statement.indices, *(b.index for b in use.blocks)}
        if use.inside or any(sizes.index.get(name) == 0 for name in names):
            continue  # guarded, or no point at all
        axes = [
            (place, extent)
            for place, extent in zip(use.access.indices, sizes.shapes[use.access.tensor], strict=True)
            if not (isinstance(place, ir.Index) and sizes.index[place.name] <= extent)  # most are: nothing to prove
        ]
        if not axes:
            continue
        constraints = [c for atom in use.conditions for c in at_least_zero(numbers(atom, sizes))]
        for place, extent in ((numbers(place, sizes), extent) for place, extent in axes):
            low = _holds(place, constraints, sizes, gathered)
            if not (low and _holds(subtract(Number(extent - 1), place), constraints, sizes, gathered)):
                found.append(use)
                break
    return found


def divides_by_values(node: Expr) -> bool:
    """Whether a divisor is not the same at every point: it may be zero at some, which a guard hides."""
    found = (n.right for n in ir.walk(node) if isinstance(n, ir.Binary) and n.operator in ("//", "%"))
    return any(not is_constant(divisor) for divisor in found)


def numbers(node: Expr, sizes: Sizes) -> Expr:
    """The expression with numbers for sizes, static integers, and what is computed of them alone."""

    def change(n: Expr) -> Expr:
        if isinstance(n, ir.Size | ir.AxisSize | ir.Static):
            return Number(sizes.value(n))
        return folded(n)

    return ir.transform(node, change)


def folded(node: Expr) -> Expr:
    """Whole numbers added, subtracted and multiplied."""
    if isinstance(node, ir.Binary) and node.operator in ("+", "-", "*"):
        a, b = node.left, node.right
        if isinstance(a, Number) and isinstance(b, Number) and isinstance(a.value, int) and isinstance(b.value, int):
            return {"+": add, "-": subtract, "*": multiply}[node.operator](a, b)
    return node


def at_least_zero(atom: Expr) -> list[Expr]:
    """Index expressions that a condition makes at least zero."""
    if not isinstance(atom, ir.Compare) or affine(atom.left) is None or affine(atom.right) is None:
        return []
    left, right = atom.left, atom.right
    if _fractions(atom):
        return _beyond_fraction(left, atom.operator, right)
    if not (is_integer(left) and is_integer(right)):
        return []  # half a size is no whole number either
    match atom.operator:
        case "<=":
            return [subtract(right, left)]
        case ">=":
            return [subtract(left, right)]
        case "<":
            return [subtract(subtract(right, left), Number(1))]
        case ">":
            return [subtract(subtract(left, right), Number(1))]
        case "==":
            return [subtract(left, right), subtract(right, left)]
    return []


MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}


def value_bounds(atom: Expr, index: str) -> tuple[list[Expr], list[Expr]] | None:
    """Lower bounds of an index, and upper ones, which it does not reach, that a comparison with values sets, if those
    are whole numbers: `row[i] <= e` or `e < row[i+1]` of e, `label[b] == k` of k. None if it is no such thing."""
    if not isinstance(atom, ir.Compare) or atom.operator not in MIRRORED:
        return None
    for side, other, operator in (
        (atom.left, atom.right, atom.operator),
        (atom.right, atom.left, MIRRORED[atom.operator]),
    ):
        form = affine(side) if is_integer(side) else None
        step = None if form is None else form.terms.get(index)
        if form is None or step not in (ONE, Number(-1)) or index in ir.index_names(other):
            continue
        if not any(isinstance(n, ir.Access) for n in ir.walk(other)) or not counts(other):
            continue
        bound = subtract(_held(other), form.without(index).expression())
        if step != ONE:
            bound, operator = negate(bound), MIRRORED[operator]
        lows = [bound] if operator in (">=", "==") else [add(bound, ONE)] if operator == ">" else []
        highs = [add(bound, ONE)] if operator in ("<=", "==") else [bound] if operator == "<" else []
        lows, highs = ([other if end == _held(other) else end for end in ends] for ends in (lows, highs))
        return lows, highs
    return None


def _held(value: Expr) -> Expr:
    """What is read may be any number: it is held where no sum of indices comes, so that its difference from one does
    not wrap around."""
    return minimum(maximum(value, Number(-2 * ROOM)), Number(2 * ROOM))


def counts(node: Expr) -> bool:
    """Whether a value is computed as places are: of whole numbers, which nothing that is read divides."""
    alone = ir.transform(node, lambda n: ONE if isinstance(n, ir.Access) else n)
    return is_integer(alone) and not divides_by_values(node)


def bounded_by_values(atom: Expr) -> list[str]:
    """The indices that a comparison with values bounds."""
    return [name for name in sorted(ir.index_names(atom)) if value_bounds(atom, name) is not None]


def _beyond_fraction(left: Expr, operator: str, right: Expr) -> list[Expr]:
    """`i > 0.5` makes i - 1 at least zero: an index expression is whole, so the fraction can be the next whole number.

    Only for a fraction alone on its side. Sums with fractions are rounded when they run, so nothing is said of them.
    """
    if operator in ("<", "<="):
        left, right = right, left
    side, other = (right, left) if _fraction(left) is None else (left, right)
    value = _fraction(side)
    if operator in ("==", "!=") or value is None or not is_integer(other) or abs(value) > 2**31:
        return []
    if value != round(value) and abs(value - round(value)) < 1e-6:
        return []  # where float32 takes part it is the whole number
    strict = operator in ("<", ">")
    if side is right:  # other > value
        return [subtract(other, Number(math.floor(value) + 1 if strict else math.ceil(value)))]
    return [subtract(Number(math.ceil(value) - 1 if strict else math.floor(value)), other)]


def _fractions(node: Expr) -> bool:
    return any(isinstance(n, Number) and not isinstance(n.value, int) for n in ir.walk(node))


def _fraction(node: Expr) -> float | None:
    if isinstance(node, ir.Unary) and node.operator == "-":
        inner = _fraction(node.operand)
        return None if inner is None else -inner
    return node.value if isinstance(node, Number) and isinstance(node.value, float) else None


def _holds(node: Expr, constraints: list[Expr], sizes: Sizes, gathered: Mapping[str, Bounds]) -> bool:
    """node >= 0 on the whole box, or node - c >= 0 for something that a condition makes c >= 0."""
    sums = [ZERO, *constraints, *(ir.Binary("+", a, b) for k, a in enumerate(constraints) for b in constraints[:k])]
    for shift in sums:
        bounds = interval(subtract(node, shift), sizes.index, gathered)
        if bounds is not None and isinstance(bounds[0], Number) and bounds[0].value >= 0:
            return True
    return False
