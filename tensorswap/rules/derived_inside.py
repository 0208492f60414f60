"""`inside` in a derived statement: it spoke of all accesses of the forward one; those that are gone are compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..errors import DerivativeError
from ..language import ir
from ..language.build import ZERO, conjunction, conjuncts, opposite, product
from ..language.ir import Expr
from ..language.paths import accesses, always_read
from .shapes import Shapes


def completed(
    forward: ir.Statement,
    derived: ir.Statement,
    blocks: Sequence[ir.Block],
    shapes: Shapes,
    source: ir.Access | None = None,
) -> ir.Statement:
    """The derived statement with what it no longer shows of the forward one: bounds, and how often a term counts."""
    guard = conjunction((derived.guard, *lost_bounds(forward, derived, shapes, source)))
    derived = replace(derived, guard=guard)
    named = {*derived.indices, *(block.index for block in blocks)}
    return replace(derived, value=product([ir.Size(i) for i in forward.indices if i not in named], derived.value))


def lost_bounds(
    forward: ir.Statement, derived: ir.Statement, shapes: Shapes, source: ir.Access | None = None
) -> Iterator[Expr]:
    """The bounds that `inside` held in the forward statement and no longer holds in the derived one; `source` is the
    read that the target replaces."""
    atoms = conjuncts(forward.guard)
    if any(isinstance(n, ir.Inside) for a in atoms if not isinstance(a, ir.Inside) for n in ir.walk(a)):
        raise DerivativeError(
            "`inside` stands under `or` or `not`, where a derived statement cannot keep its meaning",
            forward.span,
            "join it with `and`: `if inside and ...`",
        )
    if not any(isinstance(atom, ir.Inside) for atom in atoms):
        return
    kept = {
        ir.Access(shapes.base.get(a.tensor, a.tensor), a.indices) for a in (derived.target, *always_accessed(derived))
    }
    if source is not None:
        kept.add(source)
    for access, path in (*accesses(forward.target), *accesses(forward.value)):
        if access in kept:
            continue
        for axis, place in enumerate(access.indices):
            if shapes.covers(access.tensor, axis, place):
                continue
            for bound in (ir.Compare(">=", place, ZERO), ir.Compare("<", place, ir.AxisSize(access.tensor, axis))):
                if isinstance(place, ir.Index) and bound.right == ZERO:
                    continue
                result: Expr = bound
                for condition in reversed(path):
                    result = ir.Logic("or", opposite(condition), result)
                yield result


def always_accessed(statement: ir.Statement) -> Iterator[ir.Access]:
    """Accesses that every point of a statement evaluates."""
    return always_read(*statement.target.indices, statement.value, *conjuncts(statement.guard))
