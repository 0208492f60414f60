"""Accesses with the conditions under which a point evaluates them: branches taken, and sides of `and` and `or`."""

from __future__ import annotations

from collections.abc import Iterator

from . import ir
from .build import conjuncts, opposite
from .ir import Expr

Path = tuple[Expr, ...]


def accesses(node: Expr, path: Path = ()) -> Iterator[tuple[ir.Access, Path]]:
    """Every access of an expression, with the conditions on the way to it."""
    if isinstance(node, ir.Access):
        yield node, path
    if isinstance(node, ir.Conditional):
        yield from accesses(node.condition, path)
        yield from accesses(node.then, (*path, *conjuncts(node.condition)))
        yield from accesses(node.otherwise, (*path, opposite(node.condition)))
    elif isinstance(node, ir.Logic):
        yield from accesses(node.left, path)
        yield from accesses(node.right, (*path, node.left if node.operator == "and" else opposite(node.left)))
    else:
        for part in ir.children(node):
            yield from accesses(part, path)


def always_read(*nodes: Expr) -> Iterator[ir.Access]:
    """Accesses that every point evaluates."""
    return (access for node in nodes for access, path in accesses(node) if not path)
