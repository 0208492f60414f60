"""Rows: statements that make one row after the other share the loops over rows, so that a row stays in the nearest
cache while all of them run along it.

for i: for j: E[i,j] = exp(S[i,j] - M[i])          for i:
for i: for j: Z[i] += E[i,j]                   ->      for j: E[i,j] = exp(S[i,j] - M[i]); total += E[i,j]
for i: for j: P[i,j] = E[i,j] / Z[i]                   for j: P[i,j] = E[i,j] / Z[i]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..kernel.ir import Role
from ..language import ir
from ..language.build import conjuncts
from ..plan.first_writes import Planned
from ..plan.nest import Nest
from .flatten import flattened
from .loops import bounds_alone, loop_order
from .scope import Scope
from .together import meet_apart

LONG = 16  # elements of a row: a shorter one costs more to begin than to run along

Item = Nest | ir.Item


@dataclass(frozen=True)
class Rows:
    """Statements that run over the same rows, and the loops over those."""

    outer: list[str]
    statements: list[Planned]


def in_rows(items: Sequence[Item], scope: Scope) -> Iterator[Rows | list[Item]]:
    """The items in their order: those that share loops over rows, and the others."""
    others: list[Item] = []
    for rows, found in _runs(items, scope):
        if rows is None or len(found) == 1:
            others += found
            continue
        if others:
            yield others
            others = []
        yield Rows(rows, [item for item in found if isinstance(item, Planned)])
    if others:
        yield others


def _runs(items: Sequence[Item], scope: Scope) -> Iterator[tuple[list[str] | None, list[Item]]]:
    """Items one after the other that may share loops, with the indices of these."""
    pending: list[Item] = []
    rows: list[str] | None = None
    for item in items:
        own = _outer_loops(item, scope)
        if own is not None and own == rows and all(_may_share(item, other, own) for other in pending):
            pending.append(item)
            continue
        if pending:
            yield rows, pending
        if own is not None and _adds_up_rows(item, own, scope):
            own = None  # alone, it takes several rows at a time
        rows, pending = own, [item]
    if pending:
        yield rows, pending


def _outer_loops(item: Item, scope: Scope) -> list[str] | None:
    """The loops around the innermost one, if that is long, and each of their points has a row of its own."""
    if not isinstance(item, Planned) or item.operator.startswith("arg"):
        return None
    order = loop_order(item, scope)
    if len(order) < 2 or order[-1] in scope.strips or scope.layout.typical(order[-1]) < LONG:
        return None
    *outer, last = order
    bare = {e.name for e in item.target.indices if isinstance(e, ir.Index)}
    if last in ir.index_names(item.target) and last not in bare:
        return None
    if not bare.issuperset(outer) and not _adds_up_rows(item, outer, scope):
        return None
    atoms = conjuncts(item.guard)
    if not all(last in ir.index_names(atom) for atom in atoms) or not bounds_alone(scope, last, atoms, outer):
        return None
    longer = flattened(item, scope.layout, {*scope.fixed, *scope.strips}) is not item
    return None if longer or (last not in bare and _is_product(item, outer)) else outer


def _adds_up_rows(item: Item, outer: list[str], scope: Scope) -> bool:
    """Whether a statement adds all rows to one of the part's own, as that of the gradient of a bias does."""
    if not isinstance(item, Planned) or item.operator not in ir.SUM or item.guard is not None:
        return False
    target = item.target
    own = scope.layout.roles.get(target.tensor) is Role.COPY  # it has its first values already
    return own and len(target.indices) == 1 and not ir.index_names(target).intersection(outer)


def _is_product(item: Planned, outer: list[str]) -> bool:
    """Whether a sum is one of products of two tensors with rows and columns, which tiles may make."""
    named = [ir.index_names(access).intersection(outer) for access in item.reads]
    return any(a - b and b - a for a in named for b in named)


def _may_share(item: Item, other: Item, outer: list[str]) -> bool:
    """Whether no row of the one meets another row of the other."""
    assert isinstance(item, Planned)
    assert isinstance(other, Planned)
    return meet_apart(item, other, outer)
