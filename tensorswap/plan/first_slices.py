"""First slices: a tensor whose slices are written one after the other, each by one statement before any other.

G[0,i] -= f(Y[i])
for t:
    G[t+1,i] += a[i] * G[t,i] if t < size(t) - 1
->  both may store where they would add: there is nothing yet, and G needs no first value
"""

from __future__ import annotations

from dataclasses import dataclass

from ..language import ir
from ..language.affine import affine
from ..language.bounds import at_least_zero, numbers
from ..language.build import conjuncts
from ..language.ir import Expr, Number
from ..language.sizes import Sizes
from ..rules.complete_reads import complete_when_read
from .work import spanning

FAR = 2**62  # beyond all steps
Place = tuple[int, ir.Statement, tuple[ir.Block, ...]]


@dataclass(frozen=True)
class _OfSlices:
    """A statement that writes whole slices along an axis, one in each step of its block, or only one."""

    number: int
    statement: ir.Statement
    block: ir.Block | None
    slices: range

    def has_slices_of(self, other: _OfSlices) -> bool:
        """Whether both write in the steps of one block, or one slice outside of blocks."""
        return self.block is other.block and (self.block is not None or self.slices == other.slices)

    def covers(self, slices: range) -> bool:
        return not slices or (slices[0] in self.slices and slices[-1] in self.slices)


def slice_by_slice(loops: ir.Loops, sizes: Sizes, name: str) -> set[int]:
    """The numbers of the statements that write slices first, if there are such for all of them and nothing reads a
    slice before."""
    places = [(k, s, blocks) for k, (s, blocks) in enumerate(loops.located)]
    writers = [place for place in places if place[1].target.tensor == name]
    for axis in range(len(sizes.shapes[name])):
        found = [_writer(place, axis, sizes) for place in writers]
        known = [writer for writer in found if writer is not None]
        if len(known) == len(found):
            firsts = _firsts(known, sizes.shapes[name][axis])
            return firsts if firsts and _is_written_when_read(loops, places, known, name) else set()
    return set()


def _writer(place: Place, axis: int, sizes: Sizes) -> _OfSlices | None:
    number, statement, blocks = place
    target = statement.target
    names = spanning(target, sizes, {axis})
    if names is None or len(blocks) > 1 or statement.operator not in ("=", *ir.SUM):
        return None
    block = blocks[0] if blocks else None
    steps = {block.index} if block is not None else set()
    if steps & {*names} or not {*statement.indices} <= {*names, *steps}:
        return None  # a diagonal, or a sum
    form = affine(numbers(target.indices[axis], sizes))
    if form is None or not isinstance(form.constant, Number) or form.terms != dict.fromkeys(steps, Number(1)):
        return None
    first, past = 0, sizes.index[block.index] if block is not None else 1
    for atom in conjuncts(statement.guard):
        bounds = _bounds(atom, steps, sizes)
        if bounds is None:
            return None
        first, past = max(first, bounds[0]), min(past, bounds[1])
    shift = int(form.constant.value)
    return _OfSlices(number, statement, block, range(first + shift, max(past, first) + shift))


def _bounds(atom: Expr, steps: set[str], sizes: Sizes) -> tuple[int, int] | None:
    """The first step for which a condition holds, and the one behind the last: if it says nothing else."""
    found = at_least_zero(numbers(atom, sizes))
    first, past = -FAR, FAR
    for bound in found:
        form = affine(numbers(bound, sizes))
        if form is None or {*form.terms} != steps or not steps or not isinstance(form.constant, Number):
            return None
        (factor,), constant = form.terms.values(), int(form.constant.value)
        if factor == Number(1):
            first = max(first, -constant)
        elif factor == Number(-1):
            past = min(past, constant + 1)
        else:
            return None
    return (first, past) if found else None


def _firsts(writers: list[_OfSlices], extent: int) -> set[int]:
    """The first writer of each block, and those that stand alone, if every slice belongs to one of them."""
    firsts: list[_OfSlices] = []
    for writer in writers:
        before = next((first for first in firsts if first.has_slices_of(writer)), None)
        if before is None:
            firsts.append(writer)
        elif before.statement.target != writer.statement.target or not before.covers(writer.slices):
            return set()
    behind = 0
    for first, past in sorted((w.slices.start, w.slices.stop) for w in firsts if w.slices):
        if first != behind:
            return set()
        behind = past
    return {writer.number for writer in firsts} if behind == extent else set()


def _is_written_when_read(loops: ir.Loops, places: list[Place], writers: list[_OfSlices], name: str) -> bool:
    last = max(writer.number for writer in writers)
    for number, statement, blocks in places:
        for access in (a for a in statement.reads if a.tensor == name):
            own = blocks[0] if blocks else None
            if own is None or all(writer.block is not own for writer in writers):
                if number < last:
                    return False
                continue
            others = [writer.number for writer in writers if writer.block is not own]
            if any(other > number for other in others) or not complete_when_read(loops, (statement, blocks), access):
                return False
    return True
