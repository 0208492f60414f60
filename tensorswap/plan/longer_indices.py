"""Longer indices: one that goes beyond an axis, where a guard or `inside` keeps it from there, does not stand bare.

size(Y,0) = 4;  Y[i] += A[i] if i < 4   ->   Y[i+0] += A[i] if i < 4, where i has more values than 4

All later passes take a bare index for one that never leaves its axis.
"""

from __future__ import annotations

from dataclasses import replace

from ..language import ir
from ..language.build import ZERO
from ..language.ir import Expr
from .work import Work


def mark_longer_indices(work: Work) -> Work:
    sizes = work.sizes

    def marked(place: Expr, extent: int) -> Expr:
        longer = isinstance(place, ir.Index) and sizes.index[place.name] > extent
        return ir.Binary("+", place, ZERO) if longer else place

    def change(node: Expr) -> Expr:
        if not isinstance(node, ir.Access):
            return node
        return replace(node, indices=tuple(map(marked, node.indices, sizes.shapes[node.tensor])))

    def changed(statement: ir.Statement) -> ir.Statement:
        made = ir.map_statement(statement, change)
        # the bare indices of a target tell over which others argmax= and argmin= count
        return replace(made, target=statement.target) if statement.operator.startswith("arg") else made

    return work.made(ir.map_items(work.loops.body, changed))
