"""Batch: program -> program with one more index, and the expansion of `...` into as many indices as a call needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..errors import ArgumentError, ProgramError, ShapeError
from ..language import ir
from ..language.build import product
from ..language.ir import Expr
from .activity import names_of


def batch(loops: ir.Loops, index: str, over: Sequence[str]) -> ir.Loops:
    """Puts `index` in front of the tensors named, and of all that depends on them."""
    over = names_of("over", over)
    unknown = [name for name in over if name not in loops.inputs]
    if unknown:
        raise ArgumentError(f"{unknown[0]} is not an input", hint=f"batch over some of {', '.join(loops.inputs)}")
    if not over:
        raise ArgumentError("no tensor is named to batch over", hint=f"over={list(loops.inputs)[:1]!r}")
    if index in loops.names:
        raise ArgumentError(f"the name {index} is in use", hint=f"use another, such as {ir.fresh(index, loops.names)}")
    carried = depending(loops, over)
    first = ir.Index(index)

    def change(node: Expr) -> Expr:
        if isinstance(node, ir.Access) and node.tensor in carried:
            if any(ir.bare(e) == ir.BATCH for e in node.indices):
                raise ProgramError(f"{node.tensor} has `...` already: pass the batch as a further leading axis")
            return replace(node, indices=(first, *node.indices))
        if isinstance(node, ir.AxisSize) and node.tensor in carried:
            return replace(node, axis=node.axis + 1)
        return node

    return ir.map_loops(loops, change)


def depending(loops: ir.Loops, over: Sequence[str]) -> frozenset[str]:
    """The names given and every tensor computed from them."""
    found = set(over)
    while True:
        more = {s.target.tensor for s in loops.statements if found & ir.tensors_read(s)} - found
        if not more:
            return frozenset(found)
        found |= more


def expand_batch(loops: ir.Loops, ranks: Mapping[str, int]) -> ir.Loops:
    """The program with `...` written out, for arrays of the given ranks."""
    if ir.BATCH not in loops.indices:
        return loops
    counts: dict[str, int] = {}
    accesses = [*loops.header_accesses, *(a for s in loops.statements for a in s.reads)]
    for access in accesses:
        if access.tensor in ranks and any(ir.bare(e) == ir.BATCH for e in access.indices):
            counts[access.tensor] = ranks[access.tensor] - (len(access.indices) - 1)
    short = next((name for name, count in counts.items() if count < 0), None)
    if short:
        raise ShapeError(
            f"{short} has {ranks[short]} axes, fewer than its indices beside `...`",
            hint=f"pass {short} with at least {ranks[short] - counts[short]} axes",
        )
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{count} on {name}" for name, count in counts.items())
        raise ShapeError(
            f"`...` stands for a different number of indices: {told}",
            hint="`...` is the same in each access: give the tensors the same leading axes",
        )
    count = next(iter(counts.values()), 0)
    taken = set(loops.names)
    names = []
    for position in range(count):
        names.append(ir.fresh(f"b{position}", taken))
        taken.add(names[-1])
    indices = tuple(ir.Index(name) for name in names)

    def change(node: Expr) -> Expr:
        if isinstance(node, ir.Access) and any(ir.bare(e) == ir.BATCH for e in node.indices):
            return replace(node, indices=(*indices, *node.indices[1:]))
        if isinstance(node, ir.AxisSize) and node.tensor in batched:
            return replace(node, axis=node.axis + count - 1) if node.axis else node
        if node == ir.Size(ir.BATCH):
            return product(ir.Size(name) for name in names)
        return node

    batched = {
        a.tensor
        for a in (*accesses, *(s.target for s in loops.statements))
        if any(ir.bare(e) == ir.BATCH for e in a.indices)
    }
    return ir.map_loops(loops, change)
