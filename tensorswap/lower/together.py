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
from .loops import Inside, bounds_alone, in_three, is_thin, loop_order, where
from .once import always_called
from .reduction import accumulated, combined, loaded, multiply, put, taken_out
from .scope import Scope
from .turned_copy import turned

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
        """That of each, or no guard, if each has its own."""
        guards = {statement.guard for statement in self.statements}
        return guards.pop() if len(guards) == 1 else None


def grouped(items: Sequence[Item], scope: Scope) -> Iterator[Shared | Item]:
    """The items in their order; statements that share a loop in one piece."""
    pending: Shared | None = None
    for item in items:
        order = _outer_loops(item, scope)
        if order is not None:
            assert isinstance(item, Planned)
            if pending is not None and pending.order == order and _may_follow(item, pending, scope):
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


def _may_follow(item: Planned, shared: Shared, scope: Scope) -> bool:
    last = shared.statements[-1]
    if item.guard != last.guard:
        if _decided(item, scope) != _decided(last, scope) or not _has_edges(shared.order, scope):
            return False
        atoms = {*conjuncts(item.guard), *conjuncts(last.guard)} - {*_decided(last, scope)}
        if not all(is_thin(atom, shared.order[0], scope) for atom in atoms):
            return False
    return _joins(item, shared)


def _has_edges(order: list[str], scope: Scope) -> bool:
    """Whether the points before and behind those where all conditions hold may have loops of their own."""
    return len(order) == 1 and not (scope.fixed and order[0] in scope.vectors)


def _decided(statement: Planned, scope: Scope) -> list[Expr]:
    """What of a guard the blocks around decide."""
    return [atom for atom in conjuncts(statement.guard) if _decided_by(atom, scope.fixed)]


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
    if turned(item, scope, store=False) is not None:
        return None  # by itself, it goes through registers
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
    decided = [n.condition for n in ir.walk(item.value) if isinstance(n, ir.Conditional)]
    split = [c for c in decided if ir.index_names(c) & free and not _asks_values(c)]
    if split and not (bounded and _has_edges([*free], scope)):
        return None
    if not all(is_thin(atom, next(iter(free)), scope) for condition in split for atom in conjuncts(condition)):
        return None  # such loops are better split where the condition changes
    guards = [atom for atom in conjuncts(item.guard) if not _decided_by(atom, fixed)]
    if not all(bounded and _bounds(atom, free, scope) for atom in guards):
        return None
    each = free <= {e.name for e in item.target.indices if isinstance(e, ir.Index)}
    whole = item.operator != "=" and not ir.index_names(item.target) & free
    if not each and not whole:
        return None
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

    with scope.when([scope.write.truth(atom) for atom in _decided(shared.statements[0], scope)]):
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

    def at_point(statements: list[Planned], edges: bool, edge: bool) -> None:
        write.held = dict(held)
        for number, statement in enumerate(statements):
            inner, again = short[number], _needed_again(number, statements, scope)
            tests = [a for a in conjuncts(statement.guard) if edge and not _decided_by(a, scope.fixed)]
            before = dict(write.held)
            with scope.when([write.truth(atom) for atom in tests]):
                if not edge:
                    scope.hold([node for node in again if not ir.index_names(node) & {*inner}])
                if number in totals:
                    dtype = accumulated(statement.target.tensor, scope.layout)
                    around = [*shared.order, *inner]
                    taken = (statement.value, None) if edges else taken_out(scope, statement, around, dtype)
                    summand, factors[number] = taken
                    with _loops(inner, scope):
                        value = write.value(summand, dtype)
                        scope.add(Set(totals[number], combined(statement.operator, totals[number], value)))
                else:
                    _write_one(statement, inner, scope, assign, stores[number])
            write.held = before if edge else write.held
            changed = statement.target.tensor
            write.held = {value: at for value, at in write.held.items() if not _reads(value, changed)}

    _loops_around(shared, scope, at_point)
    write.held = held
    for number, total in totals.items():
        target, operator = shared.statements[number].target, shared.statements[number].operator
        multiply(total, factors[number], scope, accumulated(target.tensor, scope.layout))
        old = None if stores[number] else loaded(target, write)
        put(target, total if old is None else combined(operator.replace("-", "+"), old, total), scope)


def _loops_around(shared: Shared, scope: Scope, at_point: Callable[[list[Planned], bool, bool], None]) -> None:
    """The loops. Points at their edges, where not all conditions hold that choose between values, or that only some
    guards have, have loops of their own; `at_point` is told whether there are such, and whether it is one."""
    *outer, index = shared.order or [""]
    common = list(conjuncts(shared.guard))
    atoms = dict.fromkeys(
        atom
        for statement in shared.statements
        for condition in (statement.guard, *_conditions(statement))
        for atom in conjuncts(condition)
        if atom not in common and index in ir.index_names(atom) and is_thin(atom, index, scope)
    )
    lows, highs, used = scope.bounds(index, [*atoms], [])
    assert len(used) == len(atoms), "a condition that leaves out few points bounds its index"
    with ExitStack() as around:
        for name in outer:
            around.enter_context(scope.loop(name, *scope.range(name, common, [])[:2]))
        if not shared.order:
            at_point(shared.statements, False, False)
        elif not used:
            with scope.innermost_loop(index, *scope.range(index, common, [])[:2]):
                at_point(shared.statements, False, False)
        else:
            values = where([s.value for s in shared.statements], scope.write, {*used})
            best = [replace(s, value=v, guard=None) for s, v in zip(shared.statements, values, strict=True)]
            inside = Inside(lows, highs, best, [], best, thin=True)
            bounds = scope.range(index, common, [])[:2]
            every = shared.statements
            in_three(scope, index, bounds, inside, every, lambda chosen: at_point(chosen, True, chosen is not best))


def _conditions(statement: Planned) -> list[Expr]:
    """Those that choose between values."""
    return [n.condition for n in ir.walk(statement.value) if isinstance(n, ir.Conditional)]


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
