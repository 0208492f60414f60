"""Shared values: a function value that several statements need is computed once and held, and `gelu` is taken apart so
that its erf can be shared with its derivative."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace

from ..language import ir
from ..language.functions import DONE_AGAIN
from ..language.ir import Call, Expr
from ..rules.scalar import written_out
from .work import Draft, Work, statements_in


@dataclass
class _Use:
    value: Expr
    count: int = 0


def share_values(work: Work) -> Work:
    """Among statements outside blocks."""
    draft = Draft(work.made(ir.map_loops(work.loops, _taken_apart).body))
    body = draft.loops.body
    uses: dict[tuple[Hashable, Expr | None], _Use] = {}
    written: Counter[str] = Counter()
    keys: list[dict[Expr, Hashable]] = []
    for item in body:
        mine: dict[Expr, Hashable] = {}
        if isinstance(item, ir.Statement):
            for node in dict.fromkeys(_always(item.value)):
                if node == item.value and item.operator == "=":
                    continue
                tensors = sorted({n.tensor for n in ir.walk(node) if isinstance(n, ir.Access)})
                mine[node] = (node, tuple((name, written[name]) for name in tensors))
                uses.setdefault((mine[node], item.guard), _Use(node)).count += 1
            written[item.target.tensor] += 1
        elif isinstance(item, ir.Block):
            written.update(s.target.tensor for s in statements_in(item))
        keys.append(mine)
    shared = {key for key, use in uses.items() if use.count > 1 and _fits(use.value, key[1])}
    held: dict[tuple[Hashable, Expr | None], ir.Access] = {}
    result: list[ir.Item] = []
    for item, mine in zip(body, keys, strict=True):
        if isinstance(item, ir.Statement):
            for node in sorted(mine, key=lambda n: -len(ir.walk(n))):
                key = (mine[node], item.guard)
                if key not in shared or not any(n == node for n in ir.walk(item.value)):
                    continue
                if key not in held:
                    names = dict.fromkeys(n.name for n in ir.walk(node) if isinstance(n, ir.Index))
                    held[key] = draft.tensor("value", [ir.Index(name) for name in names])
                    result.append(ir.Statement(held[key], "=", node, item.guard))
                item = replace(item, value=_replaced(item.value, node, held[key]))
        result.append(item)
    return draft.made(result)


def _replaced(value: Expr, old: Expr, new: Expr) -> Expr:
    return ir.transform(value, lambda node: new if node == old else node)


def _fits(node: Expr, guard: Expr | None) -> bool:
    """A guard must be told by the value's own indices."""
    if guard is None:
        return True
    plain = not any(isinstance(n, ir.Inside | ir.Access) for n in ir.walk(guard))
    return plain and ir.index_names(guard) <= ir.index_names(node)


def _taken_apart(node: Expr) -> Expr:
    if isinstance(node, Call) and node.function == "gelu":
        return written_out(node)
    return node


def _always(value: Expr) -> Iterator[Expr]:
    """Calls worth holding that every point evaluates, of whole tensors."""
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, ir.Conditional | ir.Logic | ir.Access):
            continue
        if isinstance(node, Call) and node.function not in DONE_AGAIN:
            parts = ir.walk(node)
            accesses = [n for n in parts if isinstance(n, ir.Access)]
            bare = all(isinstance(e, ir.Index) for a in accesses for e in a.indices)
            if accesses and bare and not any(isinstance(n, ir.Conditional | ir.Logic) for n in parts):
                yield node
        stack.extend(ir.children(node))
