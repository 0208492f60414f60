"""`inside` -> comparisons, which become bounds of loops; it stays only where conditions decide what is accessed."""

from __future__ import annotations

from dataclasses import replace

from ..language import ir
from ..language.bounds import numbers, unproven
from ..language.build import ZERO, conjunction, conjuncts, subtract
from ..language.interval import interval
from ..language.ir import Expr, Number
from ..language.paths import accesses
from ..language.sizes import Sizes
from .work import Draft, for_each_statement


@for_each_statement
def compare_inside(draft: Draft, statement: ir.Statement, _: tuple[str, ...]) -> list[ir.Statement]:
    atoms = conjuncts(statement.guard)
    if not any(isinstance(atom, ir.Inside) for atom in atoms):
        return [statement]
    rest = [atom for atom in atoms if not isinstance(atom, ir.Inside)]
    if any(isinstance(n, ir.Inside) for atom in rest for n in ir.walk(atom)):
        return [statement]
    places = [*accesses(statement.target), *accesses(statement.value), *(a for r in rest for a in accesses(r))]
    bounds = [b for access, path in places if not path for b in bounds_of(draft.sizes, access)]
    explicit = replace(statement, guard=conjunction([*rest, *bounds]))
    alone = replace(draft.loops, body=(explicit,))
    if unproven(alone, draft.sizes, {}):  # only some points evaluate this access: `inside` must look
        return [replace(statement, guard=conjunction([*rest, *bounds, ir.Inside()]))]
    return [explicit]


def bounds_of(sizes: Sizes, access: ir.Access) -> list[Expr]:
    """Comparisons that hold where an access is in bounds, save those that always hold."""
    found: list[Expr] = []
    for axis, place in enumerate(access.indices):
        extent = sizes.shapes[access.tensor][axis]
        if isinstance(place, ir.Index) and sizes.index[place.name] <= extent:
            continue
        known = numbers(place, sizes)
        if not _at_least_zero(sizes, known):
            found.append(ir.Compare(">=", place, ZERO))
        if not _at_least_zero(sizes, subtract(Number(extent - 1), known)):
            found.append(ir.Compare("<", place, ir.AxisSize(access.tensor, axis)))
    return found


def _at_least_zero(sizes: Sizes, node: Expr) -> bool:
    bounds = interval(node, sizes.index, {})
    return bounds is not None and isinstance(bounds[0], Number) and bounds[0].value >= 0
