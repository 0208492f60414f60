"""Nodes with the conditions under which a point evaluates them: branches taken, and sides of `and` and `or`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from . import ir
from .build import conjuncts, opposite
from .ir import Expr

Path = tuple[Expr, ...]
Kind = TypeVar("Kind", bound=ir.Node)


def found_in(node: Expr, kind: type[Kind], path: Path = ()) -> list[tuple[Kind, Path]]:
    """Every node of a kind, with the conditions on the way to it."""
    found: list[tuple[Kind, Path]] = []

    def visit(node: Expr, path: Path) -> None:
        if isinstance(node, kind):
            found.append((node, path))
        if isinstance(node, ir.Conditional):
            visit(node.condition, path)
            visit(node.then, (*path, *conjuncts(node.condition)))
            visit(node.otherwise, (*path, opposite(node.condition)))
        elif isinstance(node, ir.Logic):
            visit(node.left, path)
            visit(node.right, (*path, node.left if node.operator == "and" else opposite(node.left)))
        else:
            for part in ir.children(node):
                visit(part, path)

    visit(node, path)
    return found


def accesses(node: Expr, path: Path = ()) -> list[tuple[ir.Access, Path]]:
    """Every access of an expression, with the conditions on the way to it."""
    return found_in(node, ir.Access, path)


def always_read(*nodes: Expr) -> Iterator[ir.Access]:
    """Accesses that every point evaluates."""
    return (access for node in nodes for access, path in accesses(node) if not path)
