"""Plan: a program -> kernels. Statements that can share a strip of one index run together, in parallel over that index.

An index is safe to run in parallel over a group of statements if it stands bare in every target (so that no two values
of it write one element) and every tensor that the group writes and reads is read at the same value of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce

from ..language import ir


@dataclass
class Group:
    """Items that run one after the other for each strip of the parallel index."""

    items: list[ir.Item]
    parallel: str | None
    why: str
    statements: list[ir.Statement] = field(default_factory=list)


def statements_of(item: ir.Item) -> list[ir.Statement]:
    if isinstance(item, ir.Block):
        return [s for inner in item.body for s in statements_of(inner)]
    assert isinstance(item, ir.Statement)
    return [item]


def groups(loops: ir.Loops) -> list[Group]:
    """The kernels of a program, in order."""
    result: list[Group] = []
    pending: list[ir.Item] = []
    safe: set[str] = set()

    def close() -> None:
        if pending:
            result.append(_group(list(pending), safe))
            pending.clear()

    for item in loops.body:
        alone = _safe_indices([item])
        together = _safe_indices([*pending, item]) if pending else alone
        if pending and not (together and safe):
            close()
            together = alone
        pending.append(item)
        safe = together
    close()
    return result


def _group(items: list[ir.Item], safe: set[str]) -> Group:
    statements = [s for item in items for s in statements_of(item)]
    if not safe:
        return Group(items, None, "serial: every step may meet the same elements", statements)
    # the outermost index of the first target: its strips are contiguous
    order = [i for s in statements for i in _bare_in_order(s.target) if i in safe]
    return Group(items, order[0], f"each {order[0]} writes elements of its own", statements)


def _bare_in_order(target: ir.Access) -> list[str]:
    return [e.name for e in target.indices if isinstance(e, ir.Index)]


def _safe_indices(items: list[ir.Item]) -> set[str]:
    statements = [s for item in items for s in statements_of(item)]
    blocks = {b.index for item in items for b in _blocks(item)}
    candidates = reduce(set.intersection, (_alone_in_target(s) for s in statements)) - blocks
    return {index for index in candidates if _private(statements, index)}


def _blocks(item: ir.Item) -> list[ir.Block]:
    if not isinstance(item, ir.Block):
        return []
    return [item, *(b for inner in item.body for b in _blocks(inner))]


def _alone_in_target(statement: ir.Statement) -> set[str]:
    """Indices that stand bare in the target: different values write different elements."""
    return set(ir.bare_indices(statement.target))


def _private(statements: list[ir.Statement], index: str) -> bool:
    """Whether every tensor that is written here and accessed here has the index bare on one and the same axis."""
    axes: dict[str, set[int]] = {}
    for statement in statements:
        here = {k for k, e in enumerate(statement.target.indices) if ir.bare(e) == index}
        name = statement.target.tensor
        axes[name] = axes.get(name, here) & here
    for statement in statements:
        for access in statement.reads:
            if access.tensor in axes:
                axes[access.tensor] &= {k for k, e in enumerate(access.indices) if ir.bare(e) == index}
    return all(axes.values())


__all__ = ["Group", "groups", "statements_of"]
