"""Together: statements that run over the same points share one loop, and what they compute alike.

A strip of points, or a step of a recurrence, often has a dozen short statements. Each by itself would load what the one
before has just stored, and compute again what it has just computed. Loops over the few components of a vector stand
inside the shared one, and are written out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from ..kernel import ir as kernel
from ..kernel.ir import ONE, ZERO, For, If, Set, Statement, Variable, type_of
from ..language import ir
from ..language.build import conjuncts
from ..language.ir import Expr
from ..language.types import identity
from ..plan.first_writes import Planned
from ..plan.nest import Nest
from .expression import Expressions
from .flatten import flattened
from .layout import Layout
from .loops import bounds_alone, loop_order
from .once import always_called
from .reduction import accumulated, combined, loaded, multiply, put, taken_out
from .scope import Scope

MOST = 48  # statements in one loop: registers are few, and compilers slow
ROUNDS = 12  # of the loops of a statement inside the shared ones, at most
ADDED = 4  # of those that are a sum
DECIDED = 2  # conditions that are decided before a loop, at most: it is written for each answer

Item = Nest | ir.Item


@dataclass(frozen=True)
class Shared:
    """Statements that run in one loop over the same indices."""

    order: list[str]
    statements: list[Planned]

    @property
    def guard(self) -> Expr | None:
        """That of each: the step alone decides whether it holds."""
        return self.statements[0].guard


def grouped(items: Sequence[Item], scope: Scope) -> Iterator[Shared | Item]:
    """The items in their order; statements that share a loop in one piece."""
    pending: Shared | None = None
    for item in items:
        order = _outer_loops(item, scope)
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


def _alone_if_one(shared: Shared) -> Shared | Item:
    return shared if len(shared.statements) > 1 else shared.statements[0]


def _outer_loops(item: Item, scope: Scope) -> list[str] | None:
    """The loops that a statement may share, without those of a few rounds, which stand inside them."""
    if not isinstance(item, Planned) or (not scope.fixed and not _runs_in_vectors(item, scope)):
        return None
    free = [i for i in item.indices if i not in scope.fixed]
    short = {i for i in free if i not in scope.strips and 0 < scope.layout.weight(i) <= ROUNDS}
    if not short or len(short) == len(free) or math.prod(map(scope.layout.count, short)) > ROUNDS:
        return loops_shared(item, scope, scope.fixed, bounded=True)
    if item.guard is not None and ir.index_names(item.guard) & short:
        return None
    if flattened(item, scope.layout, {*scope.fixed, *scope.strips}) is not item:
        return None
    found = loops_shared(item, scope, {*scope.fixed, *short})
    return found if found and _suits(item, short, found[-1], scope) else None


def _runs_in_vectors(item: Planned, scope: Scope) -> bool:
    """Whether no function is called for each point: those who share the loop would not run in vectors either."""
    called = (n for n in item.nodes if isinstance(n, ir.Call) or (isinstance(n, ir.Binary) and n.operator == "**"))
    return all(map(scope.write.is_harmless, called))


def _suits(item: Planned, short: AbstractSet[str], last: str, scope: Scope) -> bool:
    """Whether a statement with loops of a few rounds stands well in a loop over `last`: it has elements of its own at
    each point of both, and what it makes or reads of a strip lies one beside the other there."""
    if any(not isinstance(e, ir.Index) and ir.index_names(e) & short for e in item.target.indices):
        return False
    named = ir.index_names(item.target)
    if (last not in named and named & short) or math.prod(map(scope.layout.count, short - named)) > ADDED:
        return False
    accesses = [access for access in (item.target, *item.reads) if ir.Index(last) in access.indices]
    return any(_lies_along(access, last, scope.layout) for access in accesses)


def _lies_along(access: ir.Access, index: str, layout: Layout) -> bool:
    """Whether the elements of a strip lie one beside the other along an index."""
    local = layout.roles.get(access.tensor) is kernel.Role.LOCAL
    return local and layout.strides(access.tensor)[access.indices.index(ir.Index(index))] == 1


def loops_shared(item: Item, scope: Scope, fixed: AbstractSet[str], bounded: bool = False) -> list[str] | None:
    """The loops of a statement that may share them: it computes one element at each point, or adds all up to one.
    `fixed` are indices of loops around it, or inside these. `bounded`: its guard may say where the only loop begins or
    ends."""
    if not isinstance(item, Planned) or item.operator.startswith("arg"):
        return None
    free = {i for i in item.indices if i not in fixed}
    undecided = [atom for atom in conjuncts(item.guard) if not _decided_by(atom, fixed)]
    if not all(bounded and _bounds(atom, free, scope) for atom in undecided):
        return None
    each = free <= {e.name for e in item.target.indices if isinstance(e, ir.Index)}
    whole = item.operator != "=" and not ir.index_names(item.target) & free
    if not each and not whole:
        return None
    decided = [n.condition for n in ir.walk(item.value) if isinstance(n, ir.Conditional)]
    if any(ir.index_names(condition) & free and not _asks_values(condition) for condition in decided):
        return None  # such loops are better split where the condition changes
    if len(free) > 1 and flattened(item, scope.layout, {*fixed, *scope.strips}) is not item:
        return None
    return [i for i in loop_order(item, scope) if i in free]


def _bounds(atom: Expr, free: AbstractSet[str], scope: Scope) -> bool:
    """Whether a condition bounds the only loop that a statement may share."""
    return len(free) == 1 and free <= ir.index_names(atom) and bounds_alone(scope, next(iter(free)), (atom,), [])


def _asks_values(condition: Expr) -> bool:
    return any(isinstance(n, ir.Access) for n in ir.walk(condition))


def _decided_by(guard: Expr, fixed: AbstractSet[str]) -> bool:
    """Whether a guard asks for indices of the blocks around alone."""
    told = not any(isinstance(n, ir.Access | ir.Inside) for n in ir.walk(guard))
    return told and ir.index_names(guard) <= fixed


def _joins(statement: Planned, shared: Shared) -> bool:
    """Whether no point of the statement meets another point of those before it."""
    if len(shared.statements) >= MOST:
        return False
    return all(
        meet_apart(statement, other, shared.order, _add_up_alike(statement, other, shared.order))
        for other in shared.statements
    )


def meet_apart(statement: Planned, other: Planned, order: list[str], alike: bool = False) -> bool:
    """Whether points of two statements meet at the same point of some loops alone; targets that add up alike do not
    count."""
    meetings = [(other.target, access) for access in statement.reads]
    meetings += [(access, statement.target) for access in other.reads]
    if not alike:
        meetings.append((other.target, statement.target))
    return all(_apart(a, b, order) for a, b in meetings if a.tensor == b.tensor)


def _add_up_alike(one: Planned, other: Planned, order: list[str]) -> bool:
    """Whether both add to one element, which has a total of its own for each until the loop is over."""
    whole = one.target == other.target and bool(order) and not ir.index_names(one.target) & set(order)
    return whole and ir.reduction(one.operator) == ir.reduction(other.operator)


def _apart(one: ir.Access, other: ir.Access, order: list[str]) -> bool:
    """Whether each point of the loops has elements of its own: every index stands in the same place in both."""
    pairs = list(zip(one.indices, other.indices, strict=True))
    return all(any(a == b == ir.Index(i) for a, b in pairs) for i in order)


def write_together(shared: Shared, scope: Scope, assign: Callable[[Planned, bool], None], stores: list[bool]) -> None:
    """The loops, and in them one statement after the other; `assign` writes one that has an element at each point. What
    the blocks around decide is decided before: a loop with a choice in it would not run in vectors."""
    around = {*scope.fixed, *shared.order}
    short = [[i for i in loop_order(statement, scope) if i not in around] for statement in shared.statements]

    def decide(chosen: Shared, conditions: list[Expr]) -> None:
        if not conditions:
            _write(chosen, short, scope, assign, stores)  # a sum has as many terms, whichever value they have
            return
        first, *others = conditions
        with scope.collected() as then:
            decide(_where(first, True, chosen, scope.write), others)
        with scope.collected() as otherwise:
            decide(_where(first, False, chosen, scope.write), others)
        scope.add(If(scope.write.truth(first), tuple(then), tuple(otherwise)))

    before = [atom for atom in conjuncts(shared.guard) if _decided_by(atom, scope.fixed)]
    with scope.when([scope.write.truth(atom) for atom in before]):
        decide(shared, _decided_before(shared, scope)[:DECIDED])


def _decided_before(shared: Shared, scope: Scope) -> list[Expr]:
    """The conditions that choose between values of the statements, and that blocks around decide."""
    if not shared.order:
        return []
    nodes = (n for statement in shared.statements for n in ir.walk(statement.value))
    found = dict.fromkeys(n.condition for n in nodes if isinstance(n, ir.Conditional))
    return [condition for condition in found if ir.index_names(condition) and _decided_by(condition, scope.fixed)]


def _where(condition: Expr, holds: bool, shared: Shared, write: Expressions) -> Shared:
    def change(node: Expr) -> Expr:
        if isinstance(node, ir.Conditional) and node.condition == condition:
            return write.branch(node, holds)
        return node

    return Shared(shared.order, [replace(s, value=ir.transform(s.value, change)) for s in shared.statements])


def _write(
    shared: Shared, short: list[list[str]], scope: Scope, assign: Callable[[Planned, bool], None], stores: list[bool]
) -> None:
    """`short` are the loops that stand inside for each statement."""
    write, held = scope.write, dict(scope.write.held)
    totals: dict[int, Variable] = {}
    factors: dict[int, tuple[Expr, Expr] | None] = {}
    for number, statement in enumerate(shared.statements):
        if shared.order and not ir.index_names(statement.target) & set(shared.order):
            dtype = accumulated(statement.target.tensor, scope.layout)
            totals[number] = Variable(f"total{number}", type_of(dtype))
            scope.add(Set(totals[number], kernel.number(identity(statement.operator, dtype), type_of(dtype))))
    with ExitStack() as around:
        for index in shared.order:
            loop = scope.innermost_loop if index == shared.order[-1] else scope.loop
            around.enter_context(loop(index, *scope.range(index, list(conjuncts(shared.guard)), [])[:2]))
        for number, statement in enumerate(shared.statements):
            inner, again = short[number], _needed_again(number, shared.statements, scope)
            scope.hold([node for node in again if not ir.index_names(node) & {*inner}])
            if number in totals:
                dtype = accumulated(statement.target.tensor, scope.layout)
                summand, factors[number] = taken_out(scope, statement, [*shared.order, *inner], dtype)
                with _loops(inner, scope):
                    value = write.value(summand, dtype)
                    scope.add(Set(totals[number], combined(statement.operator, totals[number], value)))
            else:
                _write_one(statement, inner, scope, assign, stores[number])
            changed = statement.target.tensor
            write.held = {value: at for value, at in write.held.items() if not _reads(value, changed)}
    write.held = held
    for number, total in totals.items():
        target, operator = shared.statements[number].target, shared.statements[number].operator
        multiply(total, factors[number], scope, accumulated(target.tensor, scope.layout))
        old = None if stores[number] else loaded(target, write)
        put(target, total if old is None else combined(operator.replace("-", "+"), old, total), scope)


def _write_one(
    statement: Planned, short: list[str], scope: Scope, assign: Callable[[Planned, bool], None], store: bool
) -> None:
    """A statement at one point of the shared loops: an element for each round of its own ones, or a sum of them."""
    kept = [i for i in short if i in ir.index_names(statement.target)]
    summed = [i for i in short if i not in kept]
    with _loops(kept, scope):
        if not summed or statement.operator == "=":
            with _loops(summed, scope):
                assign(statement, store)
            return
        dtype = accumulated(statement.target.tensor, scope.layout)
        total = Variable("total", type_of(dtype))
        scope.add(Set(total, kernel.number(identity(statement.operator, dtype), type_of(dtype))))
        with _loops(summed, scope):
            value = scope.write.value(statement.value, dtype)
            scope.add(Set(total, combined(statement.operator, total, value)))
        old = None if store else loaded(statement.target, scope.write)
        put(statement.target, total if old is None else combined(ir.reduction(statement.operator), old, total), scope)


@contextmanager
def _loops(indices: list[str], scope: Scope) -> Iterator[None]:
    """Loops of a few rounds."""
    with scope.collected() as body:
        yield
    made: list[Statement] = body
    for index in reversed(indices):
        made = [For(scope.layout.index(index), ZERO, scope.layout.size(index), ONE, tuple(made), few=True)]
    scope.add(*made)


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
