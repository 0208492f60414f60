"""Padding: a sum over products whose guard only keeps one factor in bounds reads a copy with zeros around it instead.

X.grad[s] += Y.grad[s-u] * W[u] if 0 <= s-u < size(Y.grad, 0)
->  P[q] = Y.grad[q-2] if 0 <= q-2 < size(Y.grad, 0)        # zeros elsewhere
    X.grad[s] += P[s-u+2] * W[u]
"""

from __future__ import annotations

from dataclasses import replace

from ..language import ir
from ..language.affine import affine
from ..language.bounds import numbers
from ..language.build import add, conjunction, conjuncts, subtract
from ..language.interval import interval
from ..language.ir import Expr, Number
from .compare_inside import bounds_of
from .work import Draft, Work, product_of

WORTHWHILE = 4  # points of the sum for each element of the copy

Shape = tuple[int, ...]
Copies = dict[tuple[ir.Statement, Shape], str]  # a padded copy, with its names left out, and the tensor that holds it


def pad_operands(work: Work) -> Work:
    draft = Draft(work)
    copies: Copies = {}

    def change(statement: ir.Statement, blocks: tuple[str, ...]) -> list[ir.Statement]:
        for copy in [c for c in copies if statement.target.tensor in ir.tensors_read(c[0])]:
            del copies[copy]
        if blocks or statement.operator not in ir.SUM or statement.guard is None:
            return [statement]
        atoms = set(conjuncts(statement.guard))
        over, under = product_of(statement.value)
        for factor in over:
            if isinstance(factor, ir.Access) and len(over) > 1 and not under:
                bounds = set(bounds_of(draft.sizes, factor))
                once = sum(node == factor for node in ir.walk(statement.value)) == 1  # a function of zero may be none
                if bounds and bounds >= atoms and once and _alone(draft, statement, factor):
                    return _padded(draft, statement, factor, copies) or [statement]
        return [statement]

    return draft.each(change)


def _alone(work: Work, statement: ir.Statement, read: ir.Access) -> bool:
    """Whether the guard keeps nothing else in bounds: without it, only the copy with zeros is read around its edges."""
    others = (access for access in (statement.target, *statement.reads) if access != read)
    return not any(bounds_of(work.sizes, access) for access in others)


def _padded(draft: Draft, statement: ir.Statement, read: ir.Access, copies: Copies) -> list[ir.Statement] | None:
    indices: list[ir.Index] = []
    sources: list[Expr] = []
    places: list[Expr] = []
    for axis, place in enumerate(read.indices):
        extent = draft.sizes.shapes[read.tensor][axis]
        if isinstance(place, ir.Index):
            indices.append(place)
            sources.append(place)
            places.append(place)
            continue
        bounds = interval(numbers(place, draft.sizes), draft.sizes.index, {})
        if affine(place) is None or bounds is None:
            return None
        low, high = bounds
        if not isinstance(low, Number) or not isinstance(high, Number):
            return None
        first, last = int(min(low.value, 0)), int(max(high.value, extent - 1))
        index = draft.index("padded", last - first + 1)
        indices.append(index)
        sources.append(add(index, Number(first)))
        places.append(subtract(place, Number(first)))
    if len(set(indices)) < len(indices):
        return None
    size = draft.volume(i.name for i in indices)
    if draft.volume(statement.indices) < WORTHWHILE * size:
        return None
    source = ir.Access(read.tensor, tuple(sources))
    made = ir.Statement(draft.tensor("padded", indices), "=", source, conjunction(bounds_of(draft.sizes, source)))
    alike = _nameless(made), draft.sizes.shapes[made.target.tensor]
    name = copies.setdefault(alike, made.target.tensor)
    instead = ir.Access(name, tuple(places))
    value = ir.transform(statement.value, lambda n: instead if n == read else n)
    changed = replace(statement, value=value, guard=None)
    return [made, changed] if name == made.target.tensor else [changed]


def _nameless(copy: ir.Statement) -> ir.Statement:
    """The same for copies that differ in nothing but their names."""
    numbered = {index: ir.Index(str(k)) for k, index in enumerate(copy.indices)}
    changed = ir.map_statement(copy, ir.substitute_indices(dict(numbered)))
    return replace(changed, target=replace(changed.target, tensor=""))
