"""Share: program -> program. An expression that derived statements compute again and again gets a tensor of its own.

Shared is what costs something (a function call), reads only whole tensors (bare indices: no point of it can fail), and
either runs over fewer indices than the statements that hold it, or stands in several of them. What a guard keeps from
being evaluated stays unevaluated: the shared statement has the guard of those that hold it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..language import ir
from ..language.functions import DONE_AGAIN
from ..language.ir import Expr
from .derived_names import helper

WRITTEN_OUT = DONE_AGAIN - {"stop"}  # costs nothing, but says what is constant: texts give it a name


@dataclass
class _Uses:
    statements: list[int] = field(default_factory=list)  # where in the body, once for each occurrence
    invariant: bool = False  # some statement around it runs over more indices


def share(loops: ir.Loops, first: int) -> ir.Loops:
    """Shares among the statements of the body from position `first` on: those before it stay as the user wrote them."""
    taken: set[str] = set()
    body = list(loops.body)
    while True:
        found = _most_worthwhile(body, first)
        if found is None:
            return replace(loops, body=tuple(body))
        value, guard, position = found
        source = next(n.tensor for n in ir.walk(value) if isinstance(n, ir.Access))
        names = sorted(ir.ordered_indices(value), key=lambda name: name != ir.BATCH)  # which stands first
        indices = tuple(ir.Index(name) for name in names)
        held = ir.Access(helper(loops, source, "shared", taken), indices)
        for k in range(position, len(body)):
            item = body[k]
            if isinstance(item, ir.Statement) and item.guard == guard:
                body[k] = replace(item, value=ir.exchange(item.value, value, held))
        body.insert(position, ir.Statement(held, "=", value, guard))


def _most_worthwhile(body: list[ir.Item], first: int) -> tuple[Expr, Expr | None, int] | None:
    """The largest expression worth sharing, its guard, and the first statement that holds it."""
    uses: dict[tuple[Expr, Expr | None], _Uses] = {}
    for position, item in enumerate(body):
        if position >= first and isinstance(item, ir.Statement):
            for node in _candidates(item.value):
                if (node == item.value and item.operator == "=") or not _guard_fits(item.guard, node):
                    continue
                found = uses.setdefault((node, item.guard), _Uses())
                found.statements.append(position)
                found.invariant |= ir.index_names(node) < frozenset(item.indices)
    worthwhile = {
        key: found
        for key, found in uses.items()
        if len(found.statements) > 1 and (found.invariant or len(set(found.statements)) > 1)
    }
    if not worthwhile:
        return None
    largest = max(worthwhile, key=lambda key: len(ir.walk(key[0])))
    return *largest, worthwhile[largest].statements[0]


def _guard_fits(guard: Expr | None, node: Expr) -> bool:
    """Whether the guard can be told from the expression's own indices."""
    if guard is None:
        return True
    whole = not any(isinstance(n, ir.Inside) for n in ir.walk(guard))
    return whole and ir.index_names(guard) <= ir.index_names(node)


def _candidates(value: Expr) -> Iterator[Expr]:
    """Parts of an expression that any point may evaluate: branches of a conditional are left out."""
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, ir.Conditional):
            continue
        if isinstance(node, ir.Call) and node.function not in WRITTEN_OUT and _always_defined(node):
            yield node
        if not isinstance(node, ir.Access):
            stack.extend(ir.children(node))


def _always_defined(node: Expr) -> bool:
    parts = ir.walk(node)
    accesses = [n for n in parts if isinstance(n, ir.Access)]
    whole = all(isinstance(e, ir.Index) for a in accesses for e in a.indices)
    integers = any(isinstance(n, ir.Binary) and n.operator in ("//", "%") for n in parts)
    return bool(accesses) and whole and not integers
