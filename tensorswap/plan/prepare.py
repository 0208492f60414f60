"""Prepare: program -> program that kernels run well, and in place: the passes of a plan, in their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ..language import ir
from ..language.affine import affine
from ..language.ir import Number
from ..language.sizes import Sizes
from ..language.stages import tell
from ..rules.complete_reads import complete_when_read
from .compare_inside import compare_inside
from .contraction_order import order_products
from .forward import forward_copies
from .gathered_rows import read_gathered_only
from .guards_to_selects import guards_to_selects
from .index_names import agree_on_names
from .invariant_sums import lift_sums
from .merge import merge_sums
from .operands import split_operands
from .pad import pad_operands
from .rolling_buffers import roll_buffers
from .shared_values import share_values
from .stride import unstride
from .transposed import lay_in_line
from .windows import channels_in_line
from .work import Work


def prepare(loops: ir.Loops, sizes: Sizes, weights: Mapping[str, int] | None = None) -> Work:
    """The program as kernels will run it, with the sizes of the names that were added."""
    if loops.header is None:
        loops = replace(loops, returns=loops.outputs)  # in this order, whatever the passes move
    work = Work(loops, Sizes(dict(sizes.index), dict(sizes.shapes), sizes.statics), weights or {})
    for run in PASSES:
        run(work)
        tell(run.__name__.strip("_"), lambda: work.loops, work.sizes)
    return work


def _hoist_sums(work: Work) -> None:
    """Sums at the end of a block that no step reads, over values that are complete, run behind the block at once."""
    loops = work.loops
    body: list[ir.Item] = []
    for item in loops.body:
        if isinstance(item, ir.Block):
            kept, moved = _split(loops, item)
            body.extend([kept] if kept.body else [])
            body.extend(moved)
        else:
            body.append(item)
    work.loops = replace(loops, body=tuple(body))


def _split(loops: ir.Loops, block: ir.Block) -> tuple[ir.Block, list[ir.Statement]]:
    if any(isinstance(inner, ir.Block) for inner in block.body):
        return block, []
    body = [s for s in block.body if isinstance(s, ir.Statement)]
    read = {a.tensor for s in body for a in s.reads}
    moved = []
    for statement in body:
        alone = statement.target.tensor not in read and block.index in statement.indices
        if not alone or statement.operator not in ir.SUM:
            continue
        written = {s.target.tensor for s in body}
        if all(a.tensor not in written or complete_when_read(loops, (statement, (block,)), a) for a in statement.reads):
            moved.append(statement)
    kept = tuple(s for s in block.body if s not in moved)
    return replace(block, body=kept), moved


def _copy_before_change(work: Work) -> None:
    """Copies what a statement would read while it changes it."""

    def change(statement: ir.Statement, blocks: tuple[str, ...]) -> list[ir.Statement]:
        name = statement.target.tensor
        own = [a for a in statement.reads if a.tensor == name]
        if not own or all(_harmless(statement, a, blocks) for a in own):
            return [statement]
        indices = [work.index("old", extent) for extent in work.sizes.shapes[name]]
        copy = work.tensor("old", indices)
        first = ir.Statement(copy, "=", ir.Access(name, tuple(indices)))
        return [first, _reading(statement, name, copy.tensor)]

    work.each(change)


def _harmless(statement: ir.Statement, access: ir.Access, blocks: tuple[str, ...]) -> bool:
    """The very element that the point writes, at its only point; or an element of another step."""
    if access == statement.target and not ir.candidates(statement):
        return True
    for written, read in zip(statement.target.indices, access.indices, strict=True):
        a, b = affine(written), affine(read)
        if a is None or b is None or a.terms != b.terms or not set(a.terms) <= set(blocks):
            continue
        if isinstance(a.constant, Number) and isinstance(b.constant, Number) and a.constant != b.constant:
            return True
    return False


def _reading(statement: ir.Statement, name: str, copy: str) -> ir.Statement:
    def change(node: ir.Expr) -> ir.Expr:
        return replace(node, tensor=copy) if isinstance(node, ir.Access) and node.tensor == name else node

    guard = None if statement.guard is None else ir.transform(statement.guard, change)
    places = tuple(ir.transform(e, change) for e in statement.target.indices)
    target = replace(statement.target, indices=places)
    return replace(statement, target=target, value=ir.transform(statement.value, change), guard=guard)


PASSES: tuple[Callable[[Work], None], ...] = (
    _hoist_sums,
    compare_inside,
    agree_on_names,
    forward_copies,
    read_gathered_only,
    guards_to_selects,
    lift_sums,
    unstride,
    pad_operands,
    merge_sums,
    share_values,
    order_products,
    split_operands,
    channels_in_line,
    lay_in_line,
    _copy_before_change,
    roll_buffers,
)
