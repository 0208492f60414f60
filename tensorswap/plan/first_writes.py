"""First writes: statements that write all of a tensor before anything else does, so that it needs no first value."""

from __future__ import annotations

from ..language import ir
from ..language.sizes import Sizes
from ..rules.complete_reads import complete_when_read


def first_writes(loops: ir.Loops, sizes: Sizes) -> set[int]:
    """The ids of statements that may store where they would add."""
    found: set[int] = set()
    for name in loops.written:
        if name in loops.updated:
            continue
        writers = [(s, blocks) for s, blocks in loops.located if s.target.tensor == name]
        statement, blocks = writers[0]
        if not _covers(statement, blocks, sizes):
            continue
        if blocks and not _complete(loops, name, blocks[0]):
            continue
        together = [s for s, around in writers if blocks and around and around[0] is blocks[0]]
        if all(s.target == statement.target for s in together):
            found.add(id(statement))
    return found


def _covers(statement: ir.Statement, blocks: tuple[ir.Block, ...], sizes: Sizes) -> bool:
    """Whether a statement writes every element of its target."""
    target = statement.target
    names = [ir.bare(e) for e in target.indices]
    if statement.guard is not None or None in names or len(set(names)) < len(names):
        return False
    if statement.operator.startswith("arg") or target.tensor in ir.tensors_read(statement):
        return False
    if any(block.index not in names for block in blocks):
        return False
    return all(sizes.index[n or ""] == extent for n, extent in zip(names, sizes.shapes[target.tensor], strict=True))


def _complete(loops: ir.Loops, name: str, block: ir.Block) -> bool:
    """Whether the steps of a block read of a tensor only what is written."""
    readers = [(s, around) for s, around in loops.located if around and around[0] is block]
    return all(
        complete_when_read(loops, (s, around), access) for s, around in readers for access in s.reads
        if access.tensor == name
    )  # fmt: skip
