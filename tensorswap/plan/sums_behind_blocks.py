"""Sums behind blocks: those that no step reads, over values that are complete, run behind the block at once.

for t:
    H[t,i] = f(X[t,i])
    W[j] += H[t,i] * G[t,j]
->  the second statement stands behind the block

A sum over the steps alone, or one that is no product, of values that nobody else asks for, stays: behind the block they
would all have to be kept.
"""

from __future__ import annotations

from dataclasses import replace

from ..language import ir
from ..rules.complete_reads import complete_when_read
from .work import Work, is_contraction


def hoist_sums(work: Work) -> Work:
    body: list[ir.Item] = []
    for item in work.loops.body:
        kept, moved = _split(work.loops, item) if isinstance(item, ir.Block) else (item, [])
        body += [kept, *moved] if not isinstance(kept, ir.Block) or kept.body else moved
    return work.made(body)


def _split(loops: ir.Loops, block: ir.Block) -> tuple[ir.Block, list[ir.Statement]]:
    if any(isinstance(inner, ir.Block) for inner in block.body):
        return block, []
    body = [s for s in block.body if isinstance(s, ir.Statement)]
    written = {s.target.tensor for s in body}
    read = {a.tensor for s in body for a in s.reads}
    found = []
    for statement in body:
        alone = statement.target.tensor not in read and block.index in statement.indices
        if not alone or statement.operator not in ir.SUM:
            continue
        if all(a.tensor not in written or complete_when_read(loops, (statement, (block,)), a) for a in statement.reads):
            found.append(statement)
    products = [s for s in found if is_contraction(s) and not _takes_each_once(s, block, written)]
    others = [s for s in loops.statements if not any(s is own for own in body)]
    kept = {*loops.outputs}.union(*map(ir.tensors_read, (*others, *products)))
    moved = [s for s in found if s in products or not written & {*ir.tensors_read(s)} - kept]
    rest = tuple(s for s in block.body if not any(s is other for other in moved))
    return replace(block, body=rest), moved


def _takes_each_once(statement: ir.Statement, block: ir.Block, written: set[str]) -> bool:
    """Whether it is a sum over the steps alone, and a step takes each element of what it has made once: no tile would
    read it again."""
    alone = {*ir.candidates(statement)} == {block.index}
    return alone and any(a.tensor in written and ir.index_names(a) >= {*statement.indices} for a in statement.reads)
