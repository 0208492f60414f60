"""Turned copies: a statement that copies rows to columns -> square blocks that are turned in registers.

Y[j,i] = X[i,j]: a loop along either one jumps in the other, and uses a line of memory once for each of its elements.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from ..kernel.ir import WORD, Turn, Variable, least, word
from ..kernel.registers import LINE
from ..language import ir
from ..plan.first_writes import Planned
from .layout import Layout
from .loops import loop_order
from .scope import Scope

FEWEST = 8  # rows and columns for which it pays
STEPS = 256  # columns at a time: as many pages of memory are at hand


@dataclass(frozen=True)
class Turned:
    """The index along which the target lies, that along which the source does, and how far each moves through them."""

    row: str
    step: str
    of_target: dict[str, int]
    of_source: dict[str, int]
    lanes: int


def turned(statement: Planned, scope: Scope, store: bool) -> Turned | None:
    """How a statement turns what it copies, if it does."""
    layout, target, source = scope.layout, statement.target, statement.value
    copies = statement.operator == "=" or (store and statement.operator == "+=")
    if statement.guard is not None or not copies or not isinstance(source, ir.Access) or scope.vectors:
        return None
    dtype = layout.stored(target.tensor)
    if dtype != layout.stored(source.tensor) or dtype.kind != "f" or target.tensor == source.tensor:
        return None
    of_target, of_source = _moves(target, layout), _moves(source, layout)
    if of_target is None or of_source is None or not of_target.keys() == of_source.keys() == {*statement.indices}:
        return None
    rows, steps = ([i for i in moves if moves[i] == 1 and i not in scope.fixed] for moves in (of_target, of_source))
    if len(rows) != 1 or len(steps) != 1 or rows == steps:
        return None
    (row,), (step,) = rows, steps
    lanes = int(min(LINE // dtype.itemsize, layout.least_count(row)))
    return Turned(row, step, of_target, of_source, lanes) if min(lanes, layout.weight(step)) >= FEWEST else None


def written_as_turned_copy(statement: Planned, scope: Scope, store: bool) -> bool:
    """Writes a statement, if it is such a copy."""
    layout, target, found = scope.layout, statement.target, turned(statement, scope, store)
    if found is None:
        return False
    source = statement.value
    assert isinstance(source, ir.Access)
    first, block = Variable("first", WORD), Variable("block", WORD)
    (low, high, _), (begin, end, _) = (scope.range(name, [], []) for name in (found.row, found.step))
    with ExitStack() as around:
        for name in loop_order(statement, scope):
            if name not in (found.row, found.step):
                around.enter_context(scope.loop(name, *scope.range(name, [], [])[:2]))
        around.enter_context(scope.counted(block, begin, end, word(STEPS)))
        around.enter_context(scope.counted(first, low, high, word(found.lanes)))
        scope.set(layout.index(found.row).name, least(first, high - found.lanes))
        scope.set(layout.index(found.step).name, block)
        to, at = scope.write.offset(target), scope.write.offset(source)
        across, apart = word(found.of_target[found.step]), word(found.of_source[found.row])
        written, read = layout.tensor(target.tensor), layout.tensor(source.tensor)
        scope.add(Turn(written, to, across, read, at, apart, least(STEPS, end - block), found.lanes))
    return True


def _moves(access: ir.Access, layout: Layout) -> dict[str, int] | None:
    """How far each index moves through a tensor, if it is one place of it or stands alone on one axis."""
    found: dict[str, int] = {}
    for place, stride in zip(access.indices, layout.strides(access.tensor), strict=True):
        name = ir.bare(place)
        if name in found or (name is None and place != ir.Number(0)):
            return None
        if name is not None:
            found[name] = stride
    return found
