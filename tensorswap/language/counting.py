"""What a statement costs: operations at a loop point, and costs as formulas in the sizes of indices."""

from __future__ import annotations

from collections import Counter

from . import ir

Formula = Counter[tuple[str, ...]]  # how often a product of index sizes counts


def operations(statement: ir.Statement) -> int:
    """Arithmetic operations and function calls at one loop point, the accumulation included; not the arithmetic of
    indices, which is the loop's own."""
    count = int(statement.operator != "=")
    left: list[ir.Expr] = [statement.value]
    while left:
        node = left.pop()
        if not isinstance(node, ir.Access):
            count += isinstance(node, ir.Binary | ir.Call) or (isinstance(node, ir.Unary) and node.operator == "-")
            left += ir.children(node)
    return count


def axis_name(access: ir.Access, axis: int) -> str:
    """The index that runs along an axis, or `X:0` where it is a computed place."""
    return ir.bare(access.indices[axis]) or f"{access.tensor}:{axis}"


def shown(terms: Formula) -> str:
    """`2*i*j*k + 3*i*j`, the longest products first."""
    merged: Formula = Counter()
    for names, count in terms.items():
        merged[tuple(sorted(names))] += count
    ordered = sorted(merged.items(), key=lambda term: (-len(term[0]), term[0]))
    return " + ".join(_product(count, names) for names, count in ordered if count) or "0"


def _product(count: int, names: tuple[str, ...]) -> str:
    return "*".join(names if names and count == 1 else (str(count), *names))
