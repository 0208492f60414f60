"""Slices of steps: a tensor with an axis along which a block takes its steps, and which of it each step touches."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..language import ir
from ..language.affine import affine
from ..language.bounds import numbers
from ..language.ir import Expr, Number
from .work import Work, statements_in

ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@dataclass(frozen=True)
class Slices:
    """A tensor with an axis along which a block takes its steps: a step touches places from its own plus `first` to its
    own plus `last`."""

    block: ir.Block
    scope: tuple[ir.Item, ...]  # what the block stands in: the program, or the block around it
    around: tuple[str, ...]  # the indices of the blocks around it
    tensor: str
    axis: int
    first: int
    last: int
    in_place: bool = False  # a new slice replaces the old one, element by element
    emptied: bool = False  # a step begins with zeros, as it would in a slice of its own
    unwritten: int = 0  # steps at the end that make no new slice

    @property
    def slices(self) -> int:
        return 1 if self.in_place else self.last - self.first + 1

    @property
    def newest(self) -> int:
        """The place that no step before has touched."""
        return self.first if self.block.down else self.last

    @property
    def statements(self) -> list[ir.Statement]:
        """Of a step, those of the blocks within it too."""
        return statements_in(self.block)

    @property
    def apart(self) -> dict[int, str]:
        """Axes on which each step of a block around has its own place, and the index of that block."""
        accesses = list(accesses_in(self.block, self.tensor))
        owns = {axis: own_index(accesses, axis) for axis in range(len(accesses[0].indices))}
        return {axis: own for axis, own in owns.items() if own is not None and own in self.around}

    @property
    def writers(self) -> list[ir.Statement]:
        return [s for s in self.statements if s.target.tensor == self.tensor]


def along(work: Work, block: ir.Block, scope: tuple[ir.Item, ...], around: tuple[str, ...], name: str) -> Slices | None:
    """The first axis on which every place is the step plus a number."""
    accesses = list(accesses_in(block, name))
    for axis in range(len(accesses[0].indices)):
        offsets = [offset(work, a.indices[axis], block.index) for a in accesses]
        known = [number for number in offsets if number is not None]
        if len(known) == len(offsets):
            found = Slices(block, scope, around, name, axis, min(known), max(known))
            return replace(found, in_place=_replaces(work, found), unwritten=_unwritten(work, found))
    return None


def maker(work: Work, fold: Slices) -> ir.Statement | None:
    """The statement that makes the newest slice, to which others may add afterwards; None if they do more."""
    first, *others = fold.writers
    added = all(s.operator in ("+=", "-=") for s in others)
    places = (s.target.indices[fold.axis] for s in fold.writers)
    newest = all(offset(work, place, fold.block.index) == fold.newest for place in places)
    return first if added and newest else None


def own_index(accesses: list[ir.Access], axis: int) -> str | None:
    """The index that every access has as its place on an axis."""
    names = {ir.bare(access.indices[axis]) for access in accesses}
    return names.pop() if len(names) == 1 else None


def _unwritten(work: Work, fold: Slices) -> int:
    """1 if a guard leaves out what the last step would write, and nothing else."""
    guard = fold.writers[0].guard if len(fold.writers) == 1 else None
    if not isinstance(guard, ir.Compare) or guard.operator not in ORDERS:
        return 0
    form = affine(numbers(ir.Binary("-", guard.left, guard.right), work.sizes))
    if form is None or form.terms.keys() != {fold.block.index}:
        return 0
    slope, constant = form.terms[fold.block.index], form.constant
    if not isinstance(slope, Number) or not isinstance(constant, Number):
        return 0
    last = work.sizes.index[fold.block.index] - 1
    steps = [last, last - 1, 0] if not fold.block.down else [0, 1, last]
    holds = [ORDERS[guard.operator](slope.value * step + constant.value, 0) for step in steps]
    return 1 if last >= 1 and holds == [False, True, True] else 0


def _replaces(work: Work, fold: Slices) -> bool:
    """Whether nothing reads an element of the old slice after the one of the new slice that takes its place."""
    writer = maker(work, fold)
    if fold.last - fold.first != 1 or writer is None:
        return False
    own = [e for k, e in enumerate(writer.target.indices) if k != fold.axis]
    if not {*writer.indices} <= {fold.block.index, *(ir.bare(e) for e in own)}:
        return False  # a sum reads the old element at each of its points
    behind = False
    for statement in fold.statements:
        for access in (a for a in statement.reads if a.tensor == fold.tensor):
            if offset(work, access.indices[fold.axis], fold.block.index) == fold.newest:
                continue
            elsewhere = [e for k, e in enumerate(access.indices) if k != fold.axis] != own
            if behind or (elsewhere and statement is writer):
                return False
        behind = behind or statement is writer
    return True


def accesses_in(item: ir.Item, name: str) -> Iterator[ir.Access]:
    return (a for s in statements_in(item) for a in (s.target, *s.reads) if a.tensor == name)


def offset(work: Work, place: Expr, index: str) -> int | None:
    """c, if a place is the index plus c."""
    form = affine(numbers(place, work.sizes))
    if form is None or form.terms != {index: Number(1)} or not isinstance(form.constant, Number):
        return None
    return int(form.constant.value)
