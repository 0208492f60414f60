"""Dataflow: a program -> which tensor flows into which, through which statements, and where a gradient comes back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..language import ir
from ..language.render import expression as show
from ..rules.activity import active, default_wrt, integer_uses, smooth_reads


@dataclass(frozen=True)
class Tensor:
    """A tensor of the program: an input, an output, or one between."""

    name: str
    indices: str  # as its brackets show them, without the brackets
    kind: str  # input, whole (an input of whole numbers), inner or output
    statements: tuple[int, ...]  # those that write it, counted from 1
    moves: bool  # whether a gradient reaches it


@dataclass(frozen=True)
class Flow:
    """One tensor that is read to compute another."""

    source: str
    target: str
    statements: tuple[int, ...]
    earlier: bool  # only what an earlier step of a block has written, so that the arrow closes a circle
    returns: bool  # whether a gradient comes back along it


@dataclass(frozen=True)
class Dataflow:
    tensors: tuple[Tensor, ...]
    flows: tuple[Flow, ...]


def dataflow(loops: ir.Loops, wrt: Sequence[str] | None = None) -> Dataflow:
    """The graph of a program, with the gradients that come back to `wrt`: to all inputs that have one if None."""
    integers = integer_uses(loops)
    smooth = [name for name in loops.outputs if name not in integers]
    moving = active(loops, default_wrt(loops) if wrt is None else wrt, smooth)
    writers: dict[str, list[int]] = {}
    statements: dict[tuple[str, str], list[int]] = {}
    smooth_flows = ((name, target) for target, read in smooth_reads(loops) if target in moving for name in read)
    returning = {(name, target) for name, target in smooth_flows if name in moving}
    for number, statement in enumerate(loops.statements, 1):
        target = statement.target.tensor
        writers.setdefault(target, []).append(number)
        for read in statement.reads:
            found = statements.setdefault((read.tensor, target), [])
            if number not in found:
                found.append(number)
    earlier = _earlier(loops, list(statements))
    tensors = (
        Tensor(name, _indices(loops, name), _kind(loops, name, name in integers), (*writers.get(name, ()),),
               name in moving)
        for name in dict.fromkeys((*loops.inputs, *loops.written))
    )  # fmt: skip
    flows = (
        Flow(*pair, tuple(numbers), pair in earlier, pair in returning)
        for pair, numbers in statements.items()
    )  # fmt: skip
    return Dataflow(tuple(tensors), tuple(flows))


def _kind(loops: ir.Loops, name: str, integer: bool) -> str:
    if name in loops.outputs:
        return "output"
    if name in loops.inputs:
        return "whole" if integer else "input"
    return "inner"


def _indices(loops: ir.Loops, name: str) -> str:
    """The brackets of the access that says most: one with plain indices, if there is one."""
    found = [access for access in loops.accesses if access.tensor == name]
    found.sort(key=lambda access: sum(ir.bare(place) is None for place in access.indices))
    return ",".join(show(place) for place in found[0].indices) if found else ""


def _earlier(loops: ir.Loops, pairs: list[tuple[str, str]]) -> set[tuple[str, str]]:
    """The arrows without which no tensor flows into itself: those that read another step of a block, if they can be."""
    shifted = set(_shifted(loops))
    reached: dict[str, set[str]] = {}  # from each tensor
    found: set[tuple[str, str]] = set()
    for source, target in sorted(pairs, key=lambda pair: pair in shifted):
        after = {target, *reached.get(target, ())}
        if source in after:
            found.add((source, target))
            continue
        for name in (source, *(name for name, others in reached.items() if source in others)):
            reached.setdefault(name, set()).update(after)
    return found


def _shifted(loops: ir.Loops) -> Iterator[tuple[str, str]]:
    """Reads within a block at a place that is not plainly that of the step."""
    for statement, blocks in loops.located:
        steps = {block.index for block in blocks}
        for read in statement.reads:
            if steps and not any(ir.bare(place) in steps for place in read.indices):
                yield read.tensor, statement.target.tensor
