"""Readers first: in a block, statements that read the old slice of a recurrence stand before the one that makes the new
slice, where nothing in between minds. So a buffer can keep one slice, in which the new replaces the old.

for t:
    G[t+1,i] += a[i] * G[t,i]
    g[t] += G[t,i]
->  for t:
        g[t] += G[t,i]
        G[t+1,i] += a[i] * G[t,i]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..language import ir
from .step_slices import Slices, accesses_in, along, maker, offset
from .work import Work, statements_in


def readers_first(work: Work) -> Work:
    """The program with blocks in that order."""
    moved = False

    def body(items: tuple[ir.Item, ...], scope: tuple[ir.Item, ...], block: ir.Block | None) -> Iterator[ir.Item]:
        made = [replace(i, body=tuple(body(i.body, items, i))) if isinstance(i, ir.Block) else i for i in items]
        return iter(made if block is None else in_order(made, scope, block))

    def in_order(items: list[ir.Item], scope: tuple[ir.Item, ...], block: ir.Block) -> list[ir.Item]:
        nonlocal moved
        for writer in [s for s in items if isinstance(s, ir.Statement) and s.target.tensor not in work.loops.outputs]:
            slices = along(work, replace(block, body=tuple(items)), scope, (), writer.target.tensor)
            if slices is None or slices.last - slices.first != 1 or maker(work, slices) is not writer:
                continue
            for reader in items[_position(items, writer) + 1 :]:
                first, last = _position(items, writer), _position(items, reader)
                if not isinstance(reader, ir.Statement) or not _reads_old_slice_only(work, slices, reader):
                    continue
                if not any(_minds(item, reader, slices.tensor) for item in items[first:last]):
                    items = [*items[:first], reader, *items[first:last], *items[last + 1 :]]
                    moved = True
        return items

    found = list(body(work.loops.body, (), None))
    return work.made(found) if moved else work


def _position(items: list[ir.Item], wanted: ir.Item) -> int:
    return next(k for k, item in enumerate(items) if item is wanted)


def _reads_old_slice_only(work: Work, slices: Slices, statement: ir.Statement) -> bool:
    read = accesses_in(statement, slices.tensor)
    offsets = [offset(work, access.indices[slices.axis], slices.block.index) for access in read]
    return bool(offsets) and slices.newest not in offsets


def _minds(item: ir.Item, reader: ir.Statement, rolled: str) -> bool:
    """Whether a statement that reads the old slice of a tensor cannot go before an item that makes no such slice."""
    statements = statements_in(item)
    written = {s.target.tensor for s in statements}
    return reader.target.tensor in written.union(*map(ir.tensors_read, statements)) or bool(
        {*ir.tensors_read(reader)} & written - {rolled}
    )
