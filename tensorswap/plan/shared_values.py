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

Key = tuple[Hashable, Expr | None]  # a value, by what it reads, and the guard around it


@dataclass
class _Use:
    value: Expr
    count: int = 0
    holder: ir.Statement | None = None  # one that does nothing but hold the value, in a tensor of its own


def share_values(work: Work) -> Work:
    """Among statements outside blocks."""
    draft = Draft(work.made(ir.map_loops(work.loops, _taken_apart).body))
    body = draft.loops.body
    uses: dict[Key, _Use] = {}
    writers = Counter(statement.target.tensor for statement in draft.loops.statements)
    once = {name for name, count in writers.items() if count == 1} - draft.loops.updated  # one value from first to last
    written: Counter[str] = Counter()
    keys: list[dict[Expr, Hashable]] = []
    for item in body:
        mine: dict[Expr, Hashable] = {}
        if isinstance(item, ir.Statement) and not item.operator.startswith("arg"):
            for node in dict.fromkeys(_always(item.value)):
                holds = node == item.value and item.operator == "="
                if holds and not (_keeps(item) and item.target.tensor in once):
                    continue
                tensors = sorted({n.tensor for n in ir.walk(node) if isinstance(n, ir.Access)})
                mine[node] = (node, tuple((name, written[name]) for name in tensors))
                use = uses.setdefault((mine[node], item.guard), _Use(node))
                use.count += 1
                use.holder = use.holder or (item if holds else None)
        if isinstance(item, ir.Statement):
            written[item.target.tensor] += 1
        elif isinstance(item, ir.Block):
            written.update(s.target.tensor for s in statements_in(item))
        keys.append(mine)
    shared = {key for key, use in uses.items() if use.count > 1 and _fits(use.value, key[1])}
    held: dict[Key, ir.Access] = {}
    result: list[ir.Item] = []
    moved: list[ir.Statement] = []  # holders that a value was needed before
    for item, mine in zip(body, keys, strict=True):
        if isinstance(item, ir.Statement):
            if any(item is holder for holder in moved):
                continue
            for node in sorted(mine, key=lambda n: -len(ir.walk(n))):
                key = (mine[node], item.guard)
                if key not in shared or not any(n == node for n in ir.walk(item.value)):
                    continue
                holder = uses[key].holder
                if item is holder:
                    held.setdefault(key, item.target)
                    continue
                if key not in held and holder is not None:
                    held[key] = holder.target
                    moved.append(holder)
                    result.append(holder)
                elif key not in held:
                    names = dict.fromkeys(n.name for n in ir.walk(node) if isinstance(n, ir.Index))
                    held[key] = draft.tensor("value", [ir.Index(name) for name in names])
                    result.append(ir.Statement(held[key], "=", node, item.guard))
                item = replace(item, value=_replaced(item.value, node, held[key]))
        result.append(item)
    return draft.made(result)


def _keeps(statement: ir.Statement) -> bool:
    """Whether each element of the target is the value at one point."""
    names = [ir.bare(place) for place in statement.target.indices]
    return None not in names and sorted(map(str, names)) == sorted(ir.index_names(statement.value))


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
