"""Nodes with the conditions under which a point evaluates them: branches taken, and sides of `and` and `or`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from . import ir
from .build import conjuncts, opposite
from .ir import Expr

Path = tuple[Expr, ...]
Kind = TypeVar("Kind", bound=ir.Node)


def found_in(node: Expr, kind: type[Kind], path: Path = ()) -> Iterator[tuple[Kind, Path]]:
    """Every node of a kind, with the conditions on the way to it."""
    if isinstance(node, kind):
        yield node, path
    if isinstance(node, ir.Conditional):
        yield from found_in(node.condition, kind, path)
        yield from found_in(node.then, kind, (*path, *conjuncts(node.condition)))
        yield from found_in(node.otherwise, kind, (*path, opposite(node.condition)))
    elif isinstance(node, ir.Logic):
        yield from found_in(node.left, kind, path)
        yield from found_in(node.right, kind, (*path, node.left if node.operator == "and" else opposite(node.left)))
    else:
        for part in ir.children(node):
            yield from found_in(part, kind, path)


def accesses(node: Expr, path: Path = ()) -> Iterator[tuple[ir.Access, Path]]:
    """Every access of an expression, with the conditions on the way to it."""
    return found_in(node, ir.Access, path)


def always_read(*nodes: Expr) -> Iterator[ir.Access]:
    """Accesses that every point evaluates."""
    return (access for node in nodes for access, path in accesses(node) if not path)
