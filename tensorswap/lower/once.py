"""Once: which parts of values are worth a local variable, because more than one point or place needs them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator

from ..language import ir
from ..language.ir import Expr, Number


def invariant(values: list[Expr], index: str) -> list[Expr]:
    """The largest parts of values that an index does not change, and that every point evaluates."""
    found: dict[Expr, None] = {}
    for value in values:
        stack = [value]
        while stack:
            node = stack.pop()
            if isinstance(node, ir.Conditional | ir.Logic | ir.Compare | ir.Inside):
                continue
            if index not in ir.index_names(node):
                if any(isinstance(n, ir.Access) for n in ir.walk(node)) and not may_fail(node):
                    found[node] = None
                continue
            if not isinstance(node, ir.Access):
                stack.extend(ir.children(node))
    return list(found)


def may_fail(node: Expr) -> bool:
    """What is computed before a loop is computed even if the loop runs over nothing."""
    return any(
        (isinstance(n, ir.Access) and not all(isinstance(e, ir.Index | Number) for e in n.indices))
        or isinstance(n, ir.Conditional | ir.Logic | ir.Inside)
        for n in ir.walk(node)
    )


def repeated(values: list[Expr], held: Container[Expr]) -> list[Expr]:
    """Calls that stand in values more than once, where every point evaluates them; inner ones first."""
    count: Counter[Expr] = Counter()
    for value in values:
        count.update(always_called(value))
    found = [node for node, times in count.items() if times > 1 and node not in held]
    return sorted(found, key=lambda node: len(ir.walk(node)))


def always_called(value: Expr) -> Iterator[Expr]:
    """Calls in a value that every point evaluates."""
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, ir.Conditional | ir.Logic | ir.Access):
            continue
        if isinstance(node, ir.Call) and any(isinstance(n, ir.Access) for n in ir.walk(node)):
            yield node
        stack.extend(ir.children(node))
