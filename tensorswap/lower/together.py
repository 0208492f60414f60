"""Together: statements of a block's step that run over the same points share one loop, and what they compute alike.

A step of a recurrence is often a dozen short statements. Each by itself would load what the one before has just stored,
and compute again what it has just computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack
from dataclasses import dataclass

from ..kernel import ir as kernel
from ..kernel.ir import Set, Variable, type_of
from ..language import ir
from ..language.build import conjuncts
from ..language.ir import Expr
from ..language.types import identity
from ..plan.first_writes import Planned
from .flatten import flattened
from .loops import loop_order
from .once import always_called
from .reduction import accumulated, combined, loaded, put
from .scope import Scope

MOST = 24  # statements in one loop: registers are few, and compilers slow


@dataclass(frozen=True)
class Shared:
    """Statements that run in one loop over the same indices."""

    order: list[str]
    statements: list[Planned]

    @property
    def guard(self) -> Expr | None:
        """That of each: the step alone decides whether it holds."""
        return self.statements[0].guard


def grouped(items: Sequence[ir.Item], scope: Scope) -> Iterator[Shared | ir.Item]:
    """The items in their order; statements that share a loop in one piece."""
    pending: Shared | None = None
    for item in items:
        order = loops_shared(item, scope, scope.fixed)
        if order is not None:
            assert isinstance(item, Planned)
            if pending is not None and pending.order == order and pending.guard == item.guard and _joins(item, pending):
                pending.statements.append(item)
                continue
        if pending is not None:
            yield _alone_if_one(pending)
            pending = None
        if order is None:
            yield item
        else:
            assert isinstance(item, Planned)
            pending = Shared(order, [item])
    if pending is not None:
        yield _alone_if_one(pending)


def _alone_if_one(shared: Shared) -> Shared | ir.Item:
    return shared if len(shared.statements) > 1 else shared.statements[0]


def loops_shared(item: ir.Item, scope: Scope, fixed: AbstractSet[str]) -> list[str] | None:
    """The loops of a statement that may share them: it computes one element at each point, or adds all up to one.
    `fixed` are indices of loops around it."""
    if not isinstance(item, Planned) or item.operator.startswith("arg"):
        return None
    if item.guard is not None and not _decided_by(item.guard, fixed):
        return None
    order = [i for i in loop_order(item, scope) if i not in fixed]
    bare = [e.name for e in item.target.indices if isinstance(e, ir.Index)]
    each = all(i in bare for i in order)
    whole = item.operator != "=" and not ir.index_names(item.target) & set(order)
    if not each and not whole:
        return None
    decided = [n.condition for n in ir.walk(item.value) if isinstance(n, ir.Conditional)]
    if any(ir.index_names(condition) & set(order) for condition in decided):
        return None  # such loops are better split where the condition changes
    if len(order) > 1 and flattened(item, scope.layout, {*fixed, *scope.strips}) is not item:
        return None
    return order


def _decided_by(guard: Expr, fixed: AbstractSet[str]) -> bool:
    """Whether a guard asks for indices of the blocks around alone."""
    told = not any(isinstance(n, ir.Access | ir.Inside) for n in ir.walk(guard))
    return told and ir.index_names(guard) <= fixed


def _joins(statement: Planned, shared: Shared) -> bool:
    """Whether no point of the statement meets another point of those before it."""
    if len(shared.statements) >= MOST:
        return False
    for other in shared.statements:
        meetings = [(other.target, access) for access in statement.reads]
        meetings += [(access, statement.target) for access in other.reads]
        if not _add_up_alike(statement, other, shared.order):
            meetings.append((other.target, statement.target))
        if not all(_apart(a, b, shared.order) for a, b in meetings if a.tensor == b.tensor):
            return False
    return True


def _add_up_alike(one: Planned, other: Planned, order: list[str]) -> bool:
    """Whether both add to one element, which has a total of its own for each until the loop is over."""
    whole = one.target == other.target and bool(order) and not ir.index_names(one.target) & set(order)
    return whole and ir.reduction(one.operator) == ir.reduction(other.operator)


def _apart(one: ir.Access, other: ir.Access, order: list[str]) -> bool:
    """Whether each point of the loops has elements of its own: every index stands in the same place in both."""
    pairs = list(zip(one.indices, other.indices, strict=True))
    return all(any(a == b == ir.Index(i) for a, b in pairs) for i in order)


def write_together(shared: Shared, scope: Scope, assign: Callable[[Planned, bool], None], stores: list[bool]) -> None:
    """The loops, and in them one statement after the other; `assign` writes one that has an element at each point."""
    with scope.when([scope.write.truth(atom) for atom in conjuncts(shared.guard)]):
        _write(shared, scope, assign, stores)


def _write(shared: Shared, scope: Scope, assign: Callable[[Planned, bool], None], stores: list[bool]) -> None:
    write, held = scope.write, dict(scope.write.held)
    totals: dict[int, Variable] = {}
    for number, statement in enumerate(shared.statements):
        if shared.order and not ir.index_names(statement.target) & set(shared.order):
            dtype = accumulated(statement.target.tensor, scope.layout)
            totals[number] = Variable(f"total{number}", type_of(dtype))
            scope.add(Set(totals[number], kernel.number(identity(statement.operator, dtype), type_of(dtype))))
    with ExitStack() as around:
        for index in shared.order:
            loop = scope.innermost_loop if index == shared.order[-1] else scope.loop
            around.enter_context(loop(index, *scope.range(index, [], [])[:2]))
        for number, statement in enumerate(shared.statements):
            scope.hold(_needed_again(number, shared.statements, scope))
            if number in totals:
                value = write.value(statement.value, accumulated(statement.target.tensor, scope.layout))
                scope.add(Set(totals[number], combined(statement.operator, totals[number], value)))
            else:
                assign(statement, stores[number])
            changed = statement.target.tensor
            write.held = {value: at for value, at in write.held.items() if not _reads(value, changed)}
    write.held = held
    for number, total in totals.items():
        target, operator = shared.statements[number].target, shared.statements[number].operator
        old = None if stores[number] else loaded(target, write)
        put(target, total if old is None else combined(operator.replace("-", "+"), old, total), scope)


def _needed_again(number: int, statements: list[Planned], scope: Scope) -> list[Expr]:
    """Calls of a statement that it or a later one makes once more, before what they read changes; inner ones first."""
    found = []
    mine = list(always_called(statements[number].value))
    for node in dict.fromkeys(mine):
        if node in scope.write.held:
            continue
        times = mine.count(node)
        for before, later in zip(statements[number:], statements[number + 1 :], strict=False):
            if _reads(node, before.target.tensor):
                break
            times += sum(n == node for n in ir.walk(later.value))
        if times > 1:
            found.append(node)
    return sorted(found, key=lambda node: len(ir.walk(node)))


def _reads(value: Expr, tensor: str) -> bool:
    return any(isinstance(n, ir.Access) and n.tensor == tensor for n in ir.walk(value))
