"""Flatten: two loops that run through memory as one become one loop, which is longer and so better for vectors.

for h: for w: Y[n,h,w] = X[n,h,w] * G[n]   ->   for hw in range(size(h) * size(w)): Y[n,0,hw] = X[n,0,hw] * G[n]
"""

from __future__ import annotations

import itertools
from collections.abc import Collection
from typing import TypeVar

from ..language import ir
from ..language.ir import Expr, Number
from .layout import Layout

S = TypeVar("S", bound=ir.Statement)


def flattened(statement: S, layout: Layout, around: Collection[str]) -> S:
    """The statement with as few loops as can be; loops around it run over some indices already."""
    if statement.guard is not None or statement.operator.startswith("arg"):
        return statement
    free = [i for i in statement.indices if layout.is_constant(i) and i not in around]
    for outer, inner in itertools.permutations(free, 2):
        if _run_as_one(statement, layout, outer, inner):
            joined = ir.Index(f"{outer} {inner}")
            layout.joined[joined.name] = layout.count(outer) * layout.count(inner)
            places: dict[str, Expr] = {outer: Number(0), inner: joined}
            changed = ir.map_statement(statement, ir.substitute_indices(places))
            return flattened(changed, layout, around)
    return statement


def _run_as_one(statement: ir.Statement, layout: Layout, outer: str, inner: str) -> bool:
    """Whether each step of the outer loop begins where the inner one ended, in every tensor; both run over all of an
    axis; and nothing but places of tensors depends on them."""
    sizes = {i: layout.count(i) for i in (outer, inner)}
    mentions = sum(isinstance(n, ir.Index) and n.name in (outer, inner) for n in statement.nodes)
    for access in (statement.target, *statement.reads):
        steps = dict.fromkeys((outer, inner), 0)
        for axis, (place, stride) in enumerate(zip(access.indices, layout.strides(access.tensor), strict=True)):
            if isinstance(place, ir.Index) and place.name in steps:
                whole = layout.shape(access.tensor)[axis] == sizes[place.name] or place.name in layout.joined
                if not whole:
                    return False
                steps[place.name] += stride
                mentions -= 1
        if steps[outer] != steps[inner] * sizes[inner]:
            return False
    return mentions == 0
