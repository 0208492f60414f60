"""Copies before a change: what a statement would read while it changes it is read from a copy.

X[i] = X[size(i)-1-i]   ->   old[j] = X[j];  X[i] = old[size(i)-1-i]
"""

from __future__ import annotations

from dataclasses import replace

from ..language import ir
from .merge import never_meet
from .work import Draft, for_each_statement


@for_each_statement
def copy_before_change(draft: Draft, statement: ir.Statement, blocks: tuple[str, ...]) -> list[ir.Statement]:
    name = statement.target.tensor
    own = [a for a in statement.reads if a.tensor == name]
    if all(_harmless(statement, a, blocks) for a in own):
        return [statement]
    indices = [draft.index("old", extent) for extent in draft.sizes.shapes[name]]
    copy = draft.tensor("old", indices)
    first = ir.Statement(copy, "=", ir.Access(name, tuple(indices)))
    return [first, _reading(statement, name, copy.tensor)]


def _harmless(statement: ir.Statement, access: ir.Access, blocks: tuple[str, ...]) -> bool:
    """The very element that the point writes, at its only point; or an element of another step."""
    alone = access == statement.target and not ir.candidates(statement)
    return alone or never_meet(statement.target, access, {*blocks})


def _reading(statement: ir.Statement, name: str, copy: str) -> ir.Statement:
    def change(node: ir.Expr) -> ir.Expr:
        return replace(node, tensor=copy) if isinstance(node, ir.Access) and node.tensor == name else node

    target = replace(statement.target, indices=tuple(ir.transform(e, change) for e in statement.target.indices))
    return replace(ir.map_statement(statement, change), target=target)
