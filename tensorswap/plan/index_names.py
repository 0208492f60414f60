"""Index names: statements that run over the same axis of a tensor call its index alike, so that they can share a nest.

M[b] += X[b,k];  Y[n,d] = X[n,d] - M[n]   ->   M[b] += X[b,k];  Y[b,k] = X[b,k] - M[b]
"""

from __future__ import annotations

from ..language import ir
from ..language.ir import Expr
from .work import Work


def agree_on_names(work: Work) -> Work:
    """An index of a statement is nobody else's: only the first name that an axis has, and its size, matter."""
    names: dict[tuple[str, int], str] = {}

    def change(statement: ir.Statement, blocks: tuple[str, ...]) -> list[ir.Statement]:
        changed = _renamed(statement, _agreed(work, statement, names, blocks))
        for tensor, axis, index in _places(changed):
            names.setdefault((tensor, axis), index)
        return [changed]

    return work.each(change)


def _places(statement: ir.Statement) -> list[tuple[str, int, str]]:
    """The axes that an index runs over by itself: those of the target first."""
    accesses = (statement.target, *statement.reads)
    return [(a.tensor, k, e.name) for a in accesses for k, e in enumerate(a.indices) if isinstance(e, ir.Index)]


def _agreed(
    work: Work, statement: ir.Statement, names: dict[tuple[str, int], str], blocks: tuple[str, ...]
) -> dict[str, str]:
    """New names for indices of a statement: no two of them, nor one and the index of a block, may end up the same."""
    found: dict[str, str] = {}
    for tensor, axis, index in _places(statement):
        name = names.get((tensor, axis)) or names.get((tensor.partition(".")[0], axis))  # X.grad is named like X
        if name is None or {index, name} & {*blocks} or index in found or name in found.values():
            continue
        if work.sizes.index[name] == work.sizes.index[index]:
            found[index] = name
    staying = [index for index in statement.indices if index not in found]
    while staying:
        taken = staying.pop()
        for index in [i for i, name in found.items() if name == taken and i != taken]:
            del found[index]
            staying.append(index)
    return {index: name for index, name in found.items() if index != name}


def _renamed(statement: ir.Statement, names: dict[str, str]) -> ir.Statement:
    def change(node: Expr) -> Expr:
        match node:
            case ir.Index(name=name) if name in names:
                return ir.Index(names[name])
            case ir.Size(index=name) if name in names:
                return ir.Size(names[name])
        return node

    return ir.map_statement(statement, change) if names else statement
