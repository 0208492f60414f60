"""Order inside `for` blocks: is an element complete when a step reads it? Answered from the text, without sizes."""

from __future__ import annotations

import math

from ..language import ir
from ..language.affine import Affine, affine
from ..language.bounds import at_least_zero
from ..language.build import conjuncts, negate, subtract
from ..language.ir import Expr, Number

Place = tuple[ir.Statement, tuple[ir.Block, ...]]
Range = tuple[float, float]


def complete_when_read(loops: ir.Loops, reader: Place, access: ir.Access) -> bool:
    """Whether every write to the element that `access` reads comes before the read, as far as the text shows.

    Only writers that share a block with the reader matter: all others stand before it as a whole.
    """
    order = {id(statement): k for k, statement in enumerate(loops.statements)}
    statement, around = reader
    for writer, blocks in loops.located:
        if writer.target.tensor != access.tensor:
            continue
        shared = [a for a, b in zip(blocks, around, strict=False) if a is b]
        if shared and not _before(writer, statement, access, shared, order[id(writer)] < order[id(statement)]):
            return False
    return True


def _before(
    writer: ir.Statement, reader: ir.Statement, access: ir.Access, shared: list[ir.Block], first_in_step: bool
) -> bool:
    """Whether the step that writes the element comes before the step that reads it; `first_in_step` breaks a tie."""
    for block in shared:
        low, high = _distance(block.index, writer, reader, access)
        latest = -low if block.down else high
        if latest < 0:
            return True
        if latest > 0:
            return False
    return first_in_step


def _distance(index: str, writer: ir.Statement, reader: ir.Statement, access: ir.Access) -> Range:
    """How many steps after the reader's own step the element is written: H[t] read as H[t-1] gives -1 to -1."""
    low, high = -math.inf, math.inf
    for written, read in zip(writer.target.indices, access.indices, strict=True):
        # one and the same place: the steps differ as their distances from it do
        to_write, to_read = _lead(index, written, writer.guard), _lead(index, read, reader.guard)
        low, high = max(low, to_write[0] - to_read[1]), min(high, to_write[1] - to_read[0])
    return low, high


def _lead(index: str, place: Expr, guard: Expr | None) -> Range:
    """The range of `index - place`: exact where the place is the index and a constant, else what the guard says."""
    if ir.bare(place) == index:
        return 0, 0
    if guard is None and index not in ir.index_names(place):
        return -math.inf, math.inf
    form = affine(place)
    if form is None:
        return -math.inf, math.inf
    lead = subtract(ir.Index(index), place)
    exact = _constant(lead)
    if exact is not None:
        return exact, exact
    low, high = -math.inf, math.inf
    for bound in (c for atom in conjuncts(guard) for c in at_least_zero(atom)):
        above, below = _constant(subtract(lead, bound)), _constant(subtract(negate(lead), bound))
        low = low if above is None else max(low, above)
        high = high if below is None else min(high, -below)
    return low, high


def _constant(node: Expr) -> float | None:
    form: Affine | None = affine(node)
    if form is None or form.terms or not isinstance(form.constant, Number):
        return None
    return form.constant.value
