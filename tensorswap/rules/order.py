"""Order inside `for` blocks: is an element complete when a step reads it? Answered from the text, without sizes."""

from __future__ import annotations

from ..language import ir
from ..language.affine import affine, subtract_from
from ..language.ir import Number

Place = tuple[ir.Statement, tuple[ir.Block, ...]]


def complete_when_read(loops: ir.Loops, reader: Place, access: ir.Access) -> bool:
    """Whether every write to the element that `access` reads comes before the read, as far as the text shows.

    Only writers that share a block with the reader matter: all others stand before it as a whole.
    """
    order = {id(statement): k for k, statement in enumerate(loops.statements)}
    for writer, blocks in loops.located:
        if writer.target.tensor != access.tensor:
            continue
        shared = [a for a, b in zip(blocks, reader[1], strict=False) if a is b]
        if shared and not _before(writer, shared, access, order[id(writer)] < order[id(reader[0])]):
            return False
    return True


def _before(writer: ir.Statement, shared: list[ir.Block], access: ir.Access, first_in_step: bool) -> bool:
    """Whether the step that writes the element comes before the step that reads it; `first_in_step` breaks a tie."""
    for block in shared:
        distance = _distance(block.index, writer.target, access)
        if distance is None:
            return False
        if block.down:
            distance = -distance
        if distance != 0:
            return distance < 0
    return first_in_step


def _distance(index: str, target: ir.Access, access: ir.Access) -> int | None:
    """How many steps after the reader's own step the element is written: H[t] read as H[t-1] gives -1."""
    for written, read in zip(target.indices, access.indices, strict=True):
        a, b = affine(written), affine(read)
        if a is None or b is None or a.terms.get(index) != Number(1) or a.terms != b.terms:
            continue
        if any(name != index for name in a.terms):
            continue
        shift = affine(subtract_from(b.constant, affine(a.constant) or a))
        if shift is not None and isinstance(shift.constant, Number):
            return int(shift.constant.value)
    return None
