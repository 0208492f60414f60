"""Windows: a sum of products over shifted windows reads a copy with its channels in line, made once for all shifts.

W.grad[o,c,u] += X[n,c,i+u] * Y.grad[n,o,i]
->  windows[n,p,c] = X[n,c,p]
    W.grad[o,c,u] += windows[n,i+u,c] * Y.grad[n,o,i]
"""

from __future__ import annotations

import math
from dataclasses import replace

from ..language import ir
from .work import Draft, Work, for_each_statement, product_of

WORTHWHILE = 16  # points of the sum for each element of the copy
CHANNELS = range(8, 17)  # values of an index in line: enough for vectors, and in one or two lines of the cache
SHORT = 16  # values of an index that are too few for it
LOOPS = 3  # indices that a register tile can sum over where they lie


@for_each_statement
def channels_in_line(draft: Draft, statement: ir.Statement, blocks: tuple[str, ...]) -> list[ir.Statement]:
    over, under = product_of(statement.value)
    accesses = [f for f in over if isinstance(f, ir.Access) and f.indices]
    if blocks or under or statement.guard is not None or statement.operator not in ir.SUM or len(accesses) != 2:
        return [statement]
    for read, other in (accesses, accesses[::-1]):
        channel = _channel(draft, statement, read, other)
        if channel is not None:
            return _rewritten(draft, statement, read, channel)
    return [statement]


def _channel(work: Work, statement: ir.Statement, read: ir.Access, other: ir.Access) -> str | None:
    """An index that could be in line, if the last axis of the access is a window instead, whose place in the target is
    too short for vectors."""
    kept = ir.bare_indices(statement.target)
    *before, last = read.indices
    windows = [e for e in read.indices if not isinstance(e, ir.Index)]
    if last not in windows or any(len(ir.index_names(e)) < 2 or not ir.index_names(e) - kept for e in windows):
        return None
    if any(isinstance(n, ir.Access) for e in windows for n in ir.walk(e)):
        return None
    for place in windows:
        shifts = work.volume(ir.index_names(place) & kept)
        if shifts >= SHORT or shifts > work.volume(ir.index_names(place) - kept):
            return None
    if statement.target.tensor == read.tensor or read == other or len({*before}) < len(before):
        return None
    if len(ir.candidates(statement)) > LOOPS:
        return None
    size = math.prod(work.sizes.shapes[read.tensor])
    if work.volume(statement.indices) < WORTHWHILE * size:
        return None
    named = ir.index_names(other)
    names = [e.name for e in before if isinstance(e, ir.Index) and e.name in kept and e.name not in named]
    return next((name for name in names if work.weight(name) in CHANNELS), None)


def _rewritten(draft: Draft, statement: ir.Statement, read: ir.Access, channel: str) -> list[ir.Statement]:
    shape = draft.sizes.shapes[read.tensor]
    indices = [
        e if isinstance(e, ir.Index) else draft.index("window", extent)
        for e, extent in zip(read.indices, shape, strict=True)
    ]
    axis = read.indices.index(ir.Index(channel))
    copy = draft.tensor("windows", [*(i for k, i in enumerate(indices) if k != axis), indices[axis]])
    instead = ir.Access(copy.tensor, (*(e for k, e in enumerate(read.indices) if k != axis), read.indices[axis]))
    value = ir.transform(statement.value, lambda n: instead if n == read else n)
    return [ir.Statement(copy, "=", ir.Access(read.tensor, tuple(indices))), replace(statement, value=value)]
