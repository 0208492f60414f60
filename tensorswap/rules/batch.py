"""Batch: program -> program with one more index, and the expansion of `...` into as many indices as a call needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ..errors import ArgumentError, ProgramError, ShapeError
from ..language import ir
from ..language.build import product, row_major
from ..language.ir import Expr
from ..lazy import kept_with_program
from .activity import names_of, reached


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
    carried = reached(over, [(s.target.tensor, ir.tensors_read(s)) for s in loops.statements])
    first = ir.Index(index)

    def change(node: Expr) -> Expr:
        if isinstance(node, ir.Access) and node.tensor in carried:
            if node.batched:
                raise ProgramError(
                    f"{node.tensor} has `...`, which stands for leading indices already",
                    hint="pass the batch as a further leading axis, or write the indices out",
                )
            return replace(node, indices=(first, *node.indices))
        if isinstance(node, ir.AxisSize) and node.tensor in carried and node.axis >= 0:
            return replace(node, axis=node.axis + 1)
        return node

    batched = ir.map_loops(loops, change)
    if batched.header:  # a number by default has no axes: an argument that is batched must be given
        arguments = tuple(
            replace(a, default=None) if isinstance(a, ir.Argument) and a.name in carried else a
            for a in batched.header.arguments
        )
        batched = replace(batched, header=replace(batched.header, arguments=arguments))
    known = {n: transformed(a, change) if n in carried else a for n, a in loops.known.items()}
    return replace(batched, known=known)


def transformed(access: ir.Access | None, change: Callable[[Expr], Expr]) -> ir.Access | None:
    changed = None if access is None else change(access)
    assert changed is None or isinstance(changed, ir.Access)
    return changed


def expand_batch(loops: ir.Loops, ranks: Mapping[str, int]) -> ir.Loops:
    """The program with `...` written out, for arrays of the given ranks."""
    if ir.BATCH not in loops.indices:
        return loops
    counts: dict[str, int] = {}
    accesses = [*loops.header_accesses, *(a for s in loops.statements for a in s.reads)]
    accesses += [a for a in loops.known.values() if a is not None]
    for access in accesses:
        if access.tensor in ranks and access.batched:
            counts[access.tensor] = ranks[access.tensor] - (len(access.indices) - 1)
    if not counts:
        raise ShapeError(
            "no input shows how many indices `...` stands for",
            hint="read an input with `...`, or write the indices out",
        )
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
    return spelled(loops, next(iter(counts.values()), 0), False)


@kept_with_program
def spelled(loops: ir.Loops, count: int, stays: bool) -> ir.Loops:
    """The program with so many indices in the place of `...`, or behind it if it stays."""
    known = [a for a in loops.known.values() if a is not None]
    batched = {a.tensor for a in (*loops.accesses, *known) if a.batched}
    taken = set(loops.names)
    names = [*([ir.BATCH] if stays else []), *(ir.claim(f"b{position}", taken) for position in range(count))]
    kept = ir.Index("kept `...`")  # in a bracket, while those outside, which are numbers, are replaced
    indices = tuple(kept if name == ir.BATCH else ir.Index(name) for name in names)

    def change(node: Expr) -> Expr:
        if isinstance(node, ir.Access) and node.batched:
            return replace(node, indices=(*indices, *node.indices[1:]))
        if isinstance(node, ir.AxisSize) and node.tensor in batched and node.axis > 0:
            return replace(node, axis=node.axis + len(names) - 1)
        if node == ir.Size(ir.BATCH):
            return product(ir.Size(name) for name in names)
        return node

    flat = row_major(names)
    for step in (
        change,
        lambda n: flat if n == ir.Index(ir.BATCH) else n,
        lambda n: ir.Index(ir.BATCH) if n == kept else n,
    ):
        still = {name: None if a is None else _access(ir.transform(a, step)) for name, a in loops.known.items()}
        loops = replace(ir.map_loops(loops, step), known=still)
    return loops


def _access(node: Expr) -> ir.Access:
    assert isinstance(node, ir.Access)
    return node
