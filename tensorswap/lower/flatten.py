"""Flatten: two loops that run through memory as one become one loop, which is longer and so better for vectors.

for h: for w: Y[n,h,w] = X[n,h,w] * G[n]   ->   for hw in range(size(h) * size(w)): Y[n,0,hw] = X[n,0,hw] * G[n]
"""

from __future__ import annotations

import itertools
from collections.abc import Collection
from typing import TypeVar

from ..language import ir
from ..language.affine import affine
from ..language.ir import Expr, Number
from .layout import Layout
from .scope import Scope

SHORT = 64  # elements of a row, of which a loop over vectors has too few, and sums of many rows are no longer

S = TypeVar("S", bound=ir.Statement)


def flattened(statement: S, layout: Layout, around: Collection[str]) -> S:
    """The statement with as few loops as can be; loops around it run over some indices already."""
    if statement.guard is not None or statement.operator.startswith("arg"):
        return statement
    free = [i for i in statement.indices if layout.is_constant(i) and i not in around]
    for outer, inner in itertools.permutations(free, 2):
        if _run_as_one(statement, layout, outer, inner):
            name = f"{outer} {inner}"
            layout.joined[name] = layout.count(outer) * layout.count(inner)
            return flattened(_joined(statement, outer, inner, name), layout, around)
    return statement


def flattened_in_strips(statement: S, scope: Scope) -> S:
    """The same, where an index of which a loop around runs over strips may be one of two."""
    layout = scope.layout
    statement = flattened(statement, layout, {*scope.fixed, *scope.strips})
    if statement.guard is not None or statement.operator.startswith("arg"):
        return statement
    free = [i for i in statement.indices if i not in scope.fixed]
    cut = [i for i in free if i in scope.strips]
    short = [i for i in free if i not in scope.strips and layout.is_constant(i) and layout.count(i) <= SHORT]
    for outer, inner in itertools.product(cut, short):
        if _run_as_one(statement, layout, outer, inner):
            name, count = f"strips of {outer} {inner}", layout.count(inner)
            layout.joined_strips[name] = layout.count(outer) * count
            low, high = scope.strips[outer]
            scope.strips[name] = low * count, high * count
            return _joined(statement, outer, inner, name)
    return statement


def _joined(statement: S, outer: str, inner: str, name: str) -> S:
    places: dict[str, Expr] = {outer: Number(0), inner: ir.Index(name)}
    return ir.map_statement(statement, ir.substitute_indices(places))


def _run_as_one(statement: ir.Statement, layout: Layout, outer: str, inner: str) -> bool:
    """Whether each step of the outer loop begins where the inner one ended, in every tensor; and nothing but places of
    tensors depends on them."""
    mentions = sum(isinstance(n, ir.Index) and n.name in (outer, inner) for n in statement.nodes)
    for access in (statement.target, *statement.reads):
        steps = {outer: 0, inner: 0}
        for place, stride in zip(access.indices, layout.strides(access.tensor), strict=True):
            named = [n.name for n in ir.walk(place) if isinstance(n, ir.Index) and n.name in steps]
            form = affine(place) if named else None
            for name in {*named}:
                step = form.terms.get(name) if form else None
                if not isinstance(step, Number):
                    return False
                steps[name] += int(step.value) * stride
            mentions -= len(named)
        if steps[outer] != steps[inner] * layout.count(inner):
            return False
    return mentions == 0
