"""Gather form: an adjoint that would write X.grad[2*i+p] -> one that writes X.grad[s] and reads where s came from.

An affine index on a read is solved for one of its indices, the pivot; a stride leaves a divisibility guard, and the
pivot's range becomes `inside` where an access shows it, a comparison otherwise. A turn, X.grad[(i+1) % size(i)], is
turned back. What cannot be solved stays a scatter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ..language import ir
from ..language.affine import Affine, affine, is_constant, not_bare, simplified, subtract_from
from ..language.build import ZERO, add, conjunction, conjuncts, floor_divide, multiply, negate, remainder
from ..language.ir import Expr, Number

PENDING = "?"  # stands for the new index until a solution is found


@dataclass
class FreshIndices:
    """New index names and their sizes; one index serves each axis of a tensor, however often it is solved."""

    taken: set[str]
    declared: dict[str, Expr] = field(default_factory=dict)
    by_axis: dict[tuple[str, int], str] = field(default_factory=dict)

    def of_axis(self, tensor: str, axis: int, extent: Expr) -> str:
        key = (tensor, axis)
        if key not in self.by_axis:
            self.by_axis[key] = self.make("s", extent)
        return self.by_axis[key]

    def make(self, name: str, size: Expr) -> str:
        new = ir.claim(name, self.taken)
        self.declared[new] = size
        return new


@dataclass(frozen=True)
class Solution:
    """The pivot's value, where it is a whole number, and the index that a floor division added. The value of a turn is
    always one of the pivot's."""

    pivot: str
    value: Expr
    guards: tuple[Expr, ...]
    turn: bool = False

    def named(self, name: str) -> Solution:
        """The solution with a name for the new index, which it gets only once there is a solution."""
        change = ir.substitute_indices({PENDING: ir.Index(name)})
        guards = tuple(ir.transform(g, change) for g in self.guards)
        return replace(self, value=ir.transform(self.value, change), guards=guards)


def gather_form(
    statement: ir.Statement,
    source: ir.Access,
    fixed: frozenset[str],
    prefer: frozenset[str],
    fresh: FreshIndices,
    extent: Callable[[str, int], Expr],
    shows_range: Callable[[ir.Statement, str], bool],
) -> ir.Statement:
    """The statement with the solvable axes of its target written with bare indices.

    `source` is the forward read, `fixed` the block indices around it, `prefer` the indices of the forward target;
    `extent` is the size of the source's axis, `shows_range` tells whether an access keeps an index in its range.
    """
    own: list[Expr] = []  # conditions of solutions: they protect what follows, the statement's own in their order
    for axis, place in enumerate(statement.target.indices):
        elsewhere = {i for k, e in enumerate(statement.target.indices) if k != axis for i in ir.index_names(e)}
        if isinstance(place, ir.Index) and place.name not in elsewhere:
            continue
        open_indices = [i for i in ir.ordered_indices(place) if i not in elsewhere and i not in fixed and i != ir.BATCH]
        if not open_indices:
            continue
        solution = _solve(place, ir.Index(PENDING), open_indices, prefer, fresh)
        if solution is None:
            continue
        if solution.turn and _vanishes(statement, axis, solution.pivot):
            continue
        size = extent(source.tensor, axis)
        short = solution.turn and size != ir.Size(solution.pivot)  # it may leave the end of a longer axis alone
        if short and ir.Inside() in (*own, *conjuncts(statement.guard)):
            continue  # `inside` is asked first, and would divide by a size of zero
        name = fresh.of_axis(source.tensor, axis, size)
        solution = solution.named(name)
        if short:
            solution = replace(solution, guards=(ir.Compare("<", ir.Index(name), ir.Size(solution.pivot)),))
            shows_range = _never_shown
        limits = _limits(solution, shows_range(statement, solution.pivot))
        statement, own = _substituted(statement, own, axis, name, solution)
        own += [*solution.guards, *limits]
    own.sort(key=_rank)
    return replace(statement, guard=conjunction([*own, statement.guard]))


def _solve(
    place: Expr, value: Expr, candidates: list[str], prefer: frozenset[str], fresh: FreshIndices
) -> Solution | None:
    """place == value, solved for one of the candidates."""
    form = affine(place)
    if form is not None:
        pivots = [i for i in candidates if i in form.terms]
        if not pivots:
            return None
        pivot = min(pivots, key=lambda i: (i not in prefer, not _is_unit(form.terms[i])))
        return _isolate(pivot, form.terms[pivot], subtract_from(value, form.without(pivot)))
    match place:
        case ir.Binary(operator="//", left=inner, right=divisor) if is_constant(divisor) and _countable(divisor):
            if not any(i in ir.index_names(inner) for i in candidates):
                return None
            # inner // d == value  <=>  inner == d*value + r for some 0 <= r < d
            rest = ir.Index(fresh.make("r", divisor))
            return _solve(inner, add(multiply(divisor, value), rest), candidates, prefer, fresh)
        case ir.Binary(operator="%", left=inner, right=ir.Size(index=pivot)) if pivot in candidates:
            turned = None if affine(inner) is None else _solve(inner, value, [pivot], prefer, fresh)
            if turned is None or turned.guards or value != ir.Index(PENDING):
                return None
            return Solution(pivot, remainder(turned.value, ir.Size(pivot)), (), turn=True)
    return None


def _countable(divisor: Expr) -> bool:
    return not isinstance(divisor, Number) or divisor.value > 0


def _is_unit(coefficient: Expr) -> bool:
    return isinstance(coefficient, Number) and abs(coefficient.value) == 1


def _isolate(pivot: str, coefficient: Expr, value: Expr) -> Solution:
    """coefficient * pivot == value."""
    if coefficient == Number(1):
        return Solution(pivot, value, ())
    if coefficient == Number(-1):
        return Solution(pivot, _flip(value), ())
    if isinstance(coefficient, Number) and coefficient.value < 0:
        coefficient, value = Number(-coefficient.value), _flip(value)
    whole = ir.Compare("==", remainder(value, coefficient), ZERO)
    return Solution(pivot, floor_divide(value, coefficient), (whole,))


def _vanishes(statement: ir.Statement, axis: int, pivot: str) -> bool:
    """Whether a turn that is solved for its pivot would take along another index, over which the statement adds up:
    nothing limits the pivot of a turn, so nothing else need name that index."""
    parts = [e for k, e in enumerate(statement.target.indices) if k != axis]
    parts += [part for part in (statement.value, statement.guard) if part is not None]
    named = frozenset().union(*map(ir.index_names, parts))
    return pivot not in named and bool(ir.index_names(statement.target.indices[axis]) - {pivot} - named)


def _never_shown(statement: ir.Statement, pivot: str) -> bool:
    """After a turn that leaves the end of an axis alone, for the same reason."""
    return False


def _limits(solution: Solution, shown: bool) -> tuple[Expr, ...]:
    """Where the value of a pivot is one of its own."""
    if solution.turn:
        return ()
    if shown:
        return (ir.Inside(),)
    return (
        ir.Compare(">=", solution.value, ZERO),
        ir.Compare("<", solution.value, ir.Size(solution.pivot)),
    )


def _rank(condition: Expr) -> int:
    """Of solutions: what keeps turns from dividing by zero, divisibility, then `inside`, then limits."""
    match condition:
        case ir.Compare(left=ir.Index()):
            return 0
        case ir.Compare(left=ir.Binary(operator="%")):
            return 1
        case ir.Inside():
            return 2
    return 3


def _flip(value: Expr) -> Expr:
    """-(s - p) is written p - s."""
    form = affine(value)
    if form is None:
        return negate(value)
    turned = {i: negate(c) for i, c in form.terms.items()}
    first: dict[str, Expr] = {i: c for i, c in turned.items() if isinstance(c, Number) and c.value > 0}
    rest = {i: c for i, c in form.terms.items() if i not in first}
    start = Affine(first, negate(form.constant)).expression()
    return subtract_from(start, Affine(rest, ZERO))


def _substituted(
    statement: ir.Statement, own: list[Expr], axis: int, name: str, solution: Solution
) -> tuple[ir.Statement, list[Expr]]:
    """The statement, and the conditions of the solutions before, with the value of the pivot."""
    put = ir.substitute_indices({solution.pivot: solution.value})
    turned = ir.transform(statement.target.indices[axis], put) if solution.turn else None

    def change(node: Expr) -> Expr:
        node = put(node)
        if node == turned:
            return ir.Index(name)
        if isinstance(node, ir.Access):  # a bare new index would claim that it covers the axes on which the pivot stood
            return replace(node, indices=tuple(not_bare(e) if ir.bare(e) == name else e for e in node.indices))
        return simplified(node) if name in ir.index_names(node) else node

    moved = ir.map_statement(statement, change)
    indices = list(moved.target.indices)
    indices[axis] = ir.Index(name)
    moved = replace(moved, target=replace(moved.target, indices=tuple(indices)))
    return moved, [ir.transform(condition, change) for condition in own]
