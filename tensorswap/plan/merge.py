"""Merged sums: several statements that add to the same elements, point by point, become one that adds all their terms.

G[t,i] += H[t,i]
G[t,s] += c * H[t,s+1] if s + 1 < size(i)
->  G[t,i] += H[t,i] + (c * H[t,i+1] if i + 1 < size(i) else 0)
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from ..language import ir
from ..language.affine import affine
from ..language.bounds import at_least_zero, numbers
from ..language.build import add, conjuncts, is_zero, negate
from ..language.ir import Expr, Number
from .work import Work

MOSTLY = 0.5  # the part of the points at which all guards must hold


def merge_sums(work: Work) -> Work:
    def visit(body: tuple[ir.Item, ...], blocks: frozenset[str]) -> tuple[ir.Item, ...]:
        result: list[ir.Item] = []
        for item in body:
            if isinstance(item, ir.Block):
                result.append(replace(item, body=visit(item.body, blocks | {item.index})))
                continue
            assert isinstance(item, ir.Statement)
            last = result[-1] if result else None
            merged = _merged(work, last, item, blocks) if isinstance(last, ir.Statement) else None
            if merged is None:
                result.append(item)
            else:
                result[-1] = merged
        return tuple(result)

    return work.made(visit(work.loops.body, frozenset()))


def _merged(work: Work, first: ir.Statement, second: ir.Statement, blocks: frozenset[str]) -> ir.Statement | None:
    if first.target.tensor != second.target.tensor or first.operator not in ir.SUM or second.operator not in ir.SUM:
        return None
    if any(ir.candidates(s) or not _by_indices(s.guard) for s in (first, second)):
        return None
    names: dict[str, Expr] = {}
    for old, new in zip(second.target.indices, first.target.indices, strict=True):
        if isinstance(old, ir.Index) and isinstance(new, ir.Index):
            if names.setdefault(old.name, new) != new or work.sizes.index[old.name] != work.sizes.index[new.name]:
                return None
        elif old != new:
            return None
    if len(set(names.values())) < len(names):
        return None  # the first writes a diagonal, the second more than that
    renamed = ir.map_statement(second, ir.substitute_indices(names))
    if renamed.target != first.target:
        return None
    own = [a for s in (first, renamed) for a in s.reads if a.tensor == first.target.tensor]
    if not all(never_meet(first.target, a, blocks) for a in own):
        return None  # the second reads what some point of the first has added
    guarded = first.guard is not None or renamed.guard is not None
    if guarded and not _mostly(work, [first, renamed]):
        return None
    value = add(_term(first), _term(renamed))
    return None if work.is_narrower(value, first.target.tensor) else ir.Statement(first.target, "+=", value)


def never_meet(target: ir.Access, read: ir.Access, blocks: Set[str]) -> bool:
    """Whether a read meets nothing that its step writes: on some axis, their places differ by a constant, and only the
    indices of blocks stand there."""
    return any(_differ(*places, blocks) for places in zip(target.indices, read.indices, strict=True))


def _differ(one: Expr, other: Expr, blocks: Set[str]) -> bool:
    """Whether two places differ by a constant; of slices that are used in turn, by one that is no full turn."""
    turn = 0
    match one, other:
        case (
            ir.Binary(operator="%", left=left, right=Number(value=int(turn))),
            ir.Binary(operator="%", left=right, right=Number(value=int(same))),
        ) if turn == same > 0:
            one, other = left, right
        case _:
            turn = 0
    a, b = affine(one), affine(other)
    if a is None or b is None or a.terms != b.terms or not a.terms.keys() <= blocks:
        return False
    match a.constant, b.constant:
        case Number(value=int(first)), Number(value=int(second)):
            return (first - second) % turn != 0 if turn else first != second
    return False


def _by_indices(guard: Expr | None) -> bool:
    """Whether a guard only compares indices."""
    return all(at_least_zero(atom) and len(ir.index_names(atom)) <= 1 for atom in conjuncts(guard))


def _mostly(work: Work, parts: list[ir.Statement]) -> bool:
    """Whether most points are inside the guards of all parts."""
    atoms = [atom for part in parts for atom in conjuncts(part.guard)]
    for value in (part.value for part in parts):
        atoms += [a for n in ir.walk(value) if isinstance(n, ir.Conditional) for a in conjuncts(n.condition)]
    low: dict[str, int] = {}
    high: dict[str, int] = {}
    for atom in atoms:
        for bound in at_least_zero(atom):
            form = affine(numbers(bound, work.sizes))
            if form is None or len(form.terms) != 1 or not isinstance(form.constant, Number):
                return False
            ((index, coefficient),) = form.terms.items()
            rest = int(form.constant.value)
            if coefficient == Number(1):
                low[index] = max(low.get(index, 0), -rest)
            elif coefficient == Number(-1):
                high[index] = min(high.get(index, work.sizes.index[index]), rest + 1)
            else:
                return False
    share = 1.0
    for index in {*low, *high}:
        size = work.sizes.index[index]
        share *= max(high.get(index, size) - low.get(index, 0), 0) / max(size, 1)
    return share >= MOSTLY


def _term(part: ir.Statement) -> Expr:
    value = part.value if part.operator == "+=" else negate(part.value)
    if part.guard is None or is_zero(value):
        return value
    return ir.Conditional(part.guard, value, Number(0))
