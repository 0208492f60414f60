"""Loops: those around a statement, from their order and bounds to the conditions that are left inside them."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from ..kernel import ir as kernel
from ..kernel.ir import (
    WORD,
    For,
    If,
    Statement,
    Value,
    Variable,
    compare,
    constant,
    extreme,
    is_zero,
    joined,
    word,
)
from ..kernel.lanes import EDGE
from ..kernel.registers import registers
from ..language import ir
from ..language.affine import affine
from ..language.bounds import at_least_zero, bounded_by_values, numbers
from ..language.build import conjunction, conjuncts
from ..language.ir import Expr, Number
from ..plan.work import ASKED
from .expression import Expressions
from .layout import Layout
from .once import invariant, repeated
from .scope import Range, Scope

THIN = 4  # points at an edge of a loop
SHORT = 32  # numbers of a row that are copied one after the other to places far apart

Chosen = TypeVar("Chosen")
Inner = Callable[[list[Expr]], None]  # writes what stands inside all loops, for the values at one point


def loop_order(statement: ir.Statement, scope: Scope) -> list[str]:
    """Target indices outside, of which those of one value outermost, candidates inside, and innermost the index with
    the most unit strides."""
    layout = scope.layout
    names = [i for i in statement.indices if i not in scope.fixed]
    outer = [i for e in statement.target.indices for i in _names(e) if i in names]
    alone = [i for i in outer if layout.is_constant(i) and layout.count(i) == 1]
    order = list(dict.fromkeys([*alone, *outer, *names]))
    if not order:
        return order
    row = _row_of_a_gather(statement, order, layout)
    if row is not None:
        return [*(i for i in order if i != row), row]
    atoms = conjuncts(statement.guard)
    best = max(order, key=lambda i: (i not in alone, score(statement, i, layout), order.index(i)))
    if score(statement, best, layout) > score(statement, order[-1], layout):
        others = [i for i in order if i != best]
        if bounds_alone(scope, best, atoms, others):
            order = [*others, best]
    return _behind_what_bounds_it(order, atoms, layout)


def _row_of_a_gather(statement: ir.Statement, order: list[str], layout: Layout) -> str | None:
    """The index that runs along short rows which a statement does nothing but copy from where numbers in a tensor say:
    inside the others, so that each of those numbers is read and looked at once."""
    value = statement.value
    if statement.guard is not None or not isinstance(value, ir.Access) or not value.indices:
        return None
    *outer, last = value.indices
    index = ir.bare(last)
    gathered = any(isinstance(n, ir.Access) for place in outer for n in ir.walk(place))
    if index not in order or not gathered or any(index in ir.index_names(place) for place in outer):
        return None
    return index if layout.weight(index) <= SHORT else None


def bounds_alone(scope: Scope, index: str, atoms: tuple[Expr, ...], outer: list[str]) -> bool:
    """Whether all conditions on an index become bounds of its loop inside the others: none is left to be asked."""
    own = [atom for atom in atoms if index in ir.index_names(atom)]
    return scope.bounds(index, own, outer)[2] == own


def _behind_what_bounds_it(order: list[str], atoms: tuple[Expr, ...], layout: Layout) -> list[str]:
    """An index that values bound runs inside the loops over those values, from one bound to the other."""
    for atom in atoms:
        for index in bounded_by_values(atom)[:1]:
            around = [order.index(i) for i in ir.index_names(atom) - {index} if i in order]
            if index in order and around and max(around) > order.index(index) and layout.weight(index) > ASKED:
                last = order[max(around)]
                order = [i for i in order if i != index]
                order.insert(order.index(last) + 1, index)
    return order


def score(statement: ir.Statement, index: str, layout: Layout) -> int:
    """How many accesses run along memory with the index, less those that jump."""
    score = 0
    for access in (statement.target, *statement.reads):
        stride = 0
        for place, step in zip(access.indices, layout.strides(access.tensor), strict=True):
            form = affine(place)
            if index in ir.index_names(place):
                c = form.terms.get(index) if form else None
                stride += abs(int(c.value)) * step if isinstance(c, Number) else 100
        if stride == 1:
            score += 2 if access is statement.target else 1
        elif stride > 1:
            score -= 3
    return score


def ranges_of(scope: Scope, statement: ir.Statement, order: list[str]) -> tuple[list[Range], list[Value]]:
    """The bounds of the loops in their order, and the conditions that are left inside them."""
    atoms = list(conjuncts(statement.guard))
    ranges = []
    for position, index in enumerate(order):
        low, high, used = scope.range(index, atoms, order[:position])
        atoms = [atom for atom in atoms if atom not in used]
        ranges.append((low, high))
    return ranges, conditions(statement, atoms, scope.write)


def loops_around(
    scope: Scope, statement: ir.Statement, order: list[str], values: list[Expr], body: Inner, again: bool = False
) -> None:
    """The loops of a statement; what the innermost one does not change is computed before it. `again` says that points
    may be computed twice.

    Where conditions that only indices decide choose between values, the points at which all of them hold have a
    loop of their own, without them: one that can run in vectors.
    """
    write = scope.write
    ranges, remaining = ranges_of(scope, statement, order)

    def innermost(chosen: list[Expr]) -> None:
        held = dict(write.held)
        with scope.when(remaining):
            scope.hold(repeated(chosen, write.held))
            body(chosen)
        write.held = held

    held = dict(write.held)
    with ExitStack() as around:
        for index, (low, high) in zip(order[:-1], ranges[:-1], strict=False):
            around.enter_context(scope.loop(index, low, high))
        if not order:
            innermost(values)
        else:
            inside = where_all_hold(scope, values, order[-1], order[:-1])
            if inside is not None:
                in_three(scope, order[-1], ranges[-1], inside, values, innermost)
            else:
                if reached(statement, order[-1], remaining):
                    scope.hold(invariant(values, order[-1]))
                row = scope.short_row(order, written=bool(ir.index_names(statement.target) & {*order[:-1]}))
                for low, high in _whole_vectors(scope, statement, order[-1], ranges[-1]) if again else ranges[-1:]:
                    with scope.innermost_loop(order[-1], low, high, row):
                        innermost(values)
    write.held = held


def _whole_vectors(scope: Scope, statement: ir.Statement, index: str, bounds: Range) -> list[Range]:
    """The innermost loop in two that vectors fill: what is left over at its end is done by one that goes back over
    points that the first has done."""
    low, high = bounds
    count = constant(high)
    if not is_zero(low) or count is None or count < 4 or index in scope.vectors:
        return [bounds]
    lanes = registers().bytes // scope.layout.stored(statement.target.tensor).itemsize
    while lanes > count:
        lanes //= 2
    left = count % lanes
    if left < 2:
        return [bounds]
    width = 1 << (left - 1).bit_length()
    return [(low, word(count - left)), (word(count - width), high)]


def reached(statement: ir.Statement, index: str, remaining: list[Value]) -> bool:
    """Whether what stands before the innermost loop may be evaluated: the guard holds there as it does inside, since
    it has become bounds of the loops around."""
    return not remaining and not any(index in ir.index_names(atom) for atom in conjuncts(statement.guard))


@dataclass(frozen=True)
class Inside(Generic[Chosen]):
    """Where conditions on the innermost index hold: its bounds, and the values, or statements, there; what must hold of
    outer indices besides, and the values where all of it does."""

    lows: list[Value]
    highs: list[Value]
    values: Chosen
    outer: list[Value]
    best: Chosen
    thin: bool  # they hold but for a few points


def in_three(
    scope: Scope,
    index: str,
    bounds: Range,
    inside: Inside[Chosen],
    values: Chosen,
    innermost: Callable[[Chosen], None],
) -> None:
    """The innermost loop in three: the points where the conditions on its index hold, and those before and behind."""
    low, high = (_named(scope, name, value) for name, value in zip(("begin", "past"), bounds, strict=True))
    middle = extreme("min", [extreme("max", [low, *inside.lows]), high]) if inside.lows else low
    middle = _named(scope, "middle", middle)
    rest = extreme("max", [middle, extreme("min", [high, *inside.highs])]) if inside.highs else high
    rest = _named(scope, "rest", rest)

    def between(chosen: Chosen) -> tuple[Statement, ...]:
        with scope.collected() as body, scope.loop(index, middle, rest):
            innermost(chosen)
        return tuple(body)

    if inside.outer:
        scope.add(If(joined("and", inside.outer), between(inside.best), between(inside.values)))
    else:
        scope.add(*between(inside.best))
    if inside.lows or inside.highs:
        _edges(scope, index, [(low, middle), (rest, high)], inside.thin, lambda: innermost(values))


def _edges(scope: Scope, index: str, edges: list[Range], thin: bool, innermost: Callable[[], None]) -> None:
    """Points one by one: a few are written out."""
    known = [(constant(first), constant(past)) for first, past in edges]
    if all(first is not None and past is not None and past - first <= EDGE for first, past in known):
        for first, past in edges:
            with scope.collected() as body, scope.loop(index, first, past):
                innermost()
            scope.add(*(replace(loop, few=True) for loop in body if isinstance(loop, For)))
        return
    (begin, middle), (rest, end) = edges
    side = Variable("side", WORD)
    with scope.collected() as sides, scope.counted(side, 0, 2):
        before = compare("==", side, 0)
        first = scope.set("first", kernel.Choice(before, begin, rest))
        past = scope.set("last", kernel.Choice(before, middle, end))
        with scope.collected() as points, scope.loop(index, first, past):
            innermost()
        scope.add(*(replace(loop, edge=thin) if isinstance(loop, For) else loop for loop in points))
    scope.add(*(replace(loop, edge=thin) if isinstance(loop, For) else loop for loop in sides))


def _named(scope: Scope, name: str, value: Value) -> Value:
    """A variable for what is no number, and no variable yet."""
    return value if isinstance(value, kernel.Number | Variable) else scope.set(name, value)


def where_all_hold(scope: Scope, values: list[Expr], index: str, outer: list[str]) -> Inside[list[Expr]] | None:
    """None if there are no such conditions."""
    atoms: dict[Expr, None] = {}
    for value in values:
        for node in ir.walk(value):
            if isinstance(node, ir.Conditional):
                parts = conjuncts(node.condition)
                if all(at_least_zero(p) and not any(isinstance(n, ir.Access) for n in ir.walk(p)) for p in parts):
                    atoms |= dict.fromkeys(parts)
    mine = [atom for atom in atoms if index in ir.index_names(atom)]
    lows, highs, used = scope.bounds(index, mine, outer)
    others = [atom for atom in atoms if index not in ir.index_names(atom)]
    if not used and not others:
        return None
    tests = [scope.write.truth(atom) for atom in others]
    fails = {*others} if len(others) == 1 else frozenset[Expr]()  # of several, nobody knows which
    some, best = where(values, scope.write, {*used}, fails), where(values, scope.write, {*used, *others})
    return Inside(lows, highs, some, tests, best, all(is_thin(atom, index, scope) for atom in used))


def is_thin(atom: Expr, index: str, scope: Scope) -> bool:
    """Whether a condition holds but for a few points at the begin or the end of a loop."""
    forms = [affine(numbers(bound, scope.layout.sizes)) for bound in at_least_zero(atom)]
    for form in forms:
        if form is None or [*form.terms] != [index] or not isinstance(form.constant, Number):
            return False
        slope, constant = form.terms[index], form.constant.value
        left_out = -constant if slope == Number(1) else scope.layout.count(index) - 1 - constant
        if slope not in (Number(1), Number(-1)) or left_out > THIN:
            return False
    return bool(forms)


def where(
    values: list[Expr], write: Expressions, holding: AbstractSet[Expr], failing: AbstractSet[Expr] = frozenset()
) -> list[Expr]:
    """Values where some conditions hold, and others do not."""

    def change(node: Expr) -> Expr:
        if not isinstance(node, ir.Conditional):
            return node
        if failing & set(conjuncts(node.condition)):
            return write.branch(node, False)
        left = conjunction(atom for atom in conjuncts(node.condition) if atom not in holding)
        return write.branch(node, True) if left is None else replace(node, condition=left)

    return [ir.transform(value, change) for value in values]


def conditions(statement: ir.Statement, atoms: list[Expr], write: Expressions) -> list[Value]:
    """What is left of the guard once loop bounds took their part; `inside` first."""
    tests: list[Value] = []
    if any(isinstance(atom, ir.Inside) for atom in atoms):
        tests += write.inside_statement(statement)
    return tests + [_with_inside(statement, atom, write) for atom in atoms if not isinstance(atom, ir.Inside)]


def _with_inside(statement: ir.Statement, node: Expr, write: Expressions) -> Value:
    """A condition in which `inside` may stand."""
    match node:
        case ir.Inside():
            return kernel.joined("and", write.inside_statement(statement))
        case ir.Logic(operator=operator, left=left, right=right) if _mentions_inside(node):
            return kernel.joined(operator, [_with_inside(statement, part, write) for part in (left, right)])
        case ir.Unary(operator="not", operand=operand) if _mentions_inside(node):
            return kernel.negation(_with_inside(statement, operand, write))
    return write.truth(node)


def _mentions_inside(node: Expr) -> bool:
    return any(isinstance(n, ir.Inside) for n in ir.walk(node))


def _names(node: Expr) -> list[str]:
    return [n.name for n in ir.walk(node) if isinstance(n, ir.Index)]
