"""Copies before a change: what a statement would read while it changes it is read from a copy.

X[i] = X[size(i)-1-i]   ->   old[j] = X[j];  X[i] = old[size(i)-1-i]

for b:
    A[b,i] += A[parent[b],j] * R[b,j,i]   ->   old[j] = A[parent[b],j];  A[b,i] += old[j] * R[b,j,i]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from ..language import ir
from ..language.bounds import divides_by_values, unproven
from .merge import never_meet
from .work import Draft, for_each_statement


@for_each_statement
def copy_before_change(draft: Draft, statement: ir.Statement, blocks: tuple[str, ...]) -> list[ir.Statement]:
    name = statement.target.tensor
    own = dict.fromkeys(a for a in statement.reads if a.tensor == name)
    meeting = [a for a in own if not _harmless(statement, a, blocks)]
    if not meeting:
        return [statement]
    parts = [_part(draft, access, blocks) for access in meeting]
    if all(part is not None for part in parts):
        copies = [part for part in parts if part is not None]
        held = {copy.value: copy.target for copy in copies}
        return [*copies, _changed(statement, lambda node: held.get(node, node))]
    indices = [draft.index("old", extent) for extent in draft.sizes.shapes[name]]
    copy = draft.tensor("old", indices)
    first = ir.Statement(copy, "=", ir.Access(name, tuple(indices)))
    return [first, _reading(statement, name, copy.tensor)]


def _part(draft: Draft, access: ir.Access, blocks: tuple[str, ...]) -> ir.Statement | None:
    """A copy of what a step reads, if that is less than all of the tensor and may be read at all points."""
    names = [i for i in ir.ordered_indices(access) if i not in blocks]
    nested = any(isinstance(n, ir.Access) and n.tensor == access.tensor for e in access.indices for n in ir.walk(e))
    if nested or math.prod(draft.sizes.index[i] for i in names) >= math.prod(draft.sizes.shapes[access.tensor]):
        return None
    copy = ir.Statement(draft.tensor("old", [ir.Index(i) for i in names], like=access.tensor), "=", access)
    if divides_by_values(access) or unproven(replace(draft.loops, body=(copy,)), draft.sizes, {}):
        return None
    return copy


def _harmless(statement: ir.Statement, access: ir.Access, blocks: tuple[str, ...]) -> bool:
    """The very element that the point writes, at its only point; or an element of another step."""
    alone = access == statement.target and not ir.candidates(statement)
    return alone or never_meet(statement.target, access, {*blocks})


def _reading(statement: ir.Statement, name: str, copy: str) -> ir.Statement:
    def change(node: ir.Expr) -> ir.Expr:
        return replace(node, tensor=copy) if isinstance(node, ir.Access) and node.tensor == name else node

    return _changed(statement, change)


def _changed(statement: ir.Statement, change: Callable[[ir.Expr], ir.Expr]) -> ir.Statement:
    """The target stays what it is, but for what its places read."""
    target = replace(statement.target, indices=tuple(ir.transform(e, change) for e in statement.target.indices))
    return replace(ir.map_statement(statement, change), target=target)
