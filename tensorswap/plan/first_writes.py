"""First writes: statements that write all of a tensor before anything else does, so that it needs no first value."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from ..language import ir
from ..language.sizes import Sizes
from ..rules.complete_reads import complete_when_read
from .first_slices import slice_by_slice
from .work import Work, whole_axes


@dataclass(frozen=True)
class Planned(ir.Statement):
    """A statement, and what its kernel must know of the others: whether it may store where it would add, and, of an
    argmax=, where its positions start: behind those of the statements before it."""

    first: bool = False
    offset: int = 0


def settle(work: Work) -> Work:
    """The program with nothing but planned statements."""
    firsts = first_writes(work.loops, work.sizes)
    number = itertools.count()
    used: dict[str, int] = {}

    def planned(statement: ir.Statement) -> Planned:
        name, offset = statement.target.tensor, 0
        if statement.operator.startswith("arg"):
            offset = used.get(name, 0)
            used[name] = offset + math.prod(work.sizes.index[i] for i in ir.candidates(statement))
        parts = statement.target, statement.operator, statement.value, statement.guard
        return Planned(*parts, first=next(number) in firsts, offset=offset, span=statement.span)

    return work.made(ir.map_items(work.loops.body, planned))


def first_writes(loops: ir.Loops, sizes: Sizes) -> set[int]:
    """The numbers of statements that may store where they would add."""
    found: set[int] = set()
    located = list(enumerate(loops.located))
    for name in loops.written:
        if name in loops.updated:
            continue
        writers = [(k, s, blocks) for k, (s, blocks) in located if s.target.tensor == name]
        number, statement, blocks = writers[0]
        if not _covers(statement, blocks, sizes):
            found |= slice_by_slice(loops, sizes, name)
            continue
        if blocks and not _complete(loops, name, blocks[0]):
            continue
        together = [s for _, s, around in writers if blocks and around and around[0] is blocks[0]]
        if all(s.target == statement.target for s in together):
            found.add(number)
    return found


def _covers(statement: ir.Statement, blocks: tuple[ir.Block, ...], sizes: Sizes) -> bool:
    """Whether a statement writes every element of its target."""
    names = whole_axes(statement.target, sizes)
    if statement.guard is not None or names is None or any(block.index not in names for block in blocks):
        return False
    return not statement.operator.startswith("arg") and statement.target.tensor not in ir.tensors_read(statement)


def _complete(loops: ir.Loops, name: str, block: ir.Block) -> bool:
    """Whether the steps of a block read of a tensor only what is written."""
    readers = [(s, around) for s, around in loops.located if around and around[0] is block]
    return all(
        complete_when_read(loops, (s, around), access) for s, around in readers for access in s.reads
        if access.tensor == name
    )  # fmt: skip
