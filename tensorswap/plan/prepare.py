"""Prepare: program -> program that kernels run well, and in place. `PASSES` is the table of contents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ..language.bound import Bound
from ..language.stages import tell
from .compare_inside import compare_inside
from .contraction_order import order_products
from .copy_before_change import copy_before_change
from .first_writes import settle
from .forward import forward_copies
from .gathered_rows import read_gathered_only
from .guards_to_selects import guards_to_selects
from .index_names import agree_on_names
from .invariant_sums import lift_sums
from .longer_indices import mark_longer_indices
from .made_again import make_again
from .merge import merge_sums
from .operands import split_operands
from .pad import pad_operands
from .readers_first import readers_first
from .rolling_buffers import roll_buffers
from .shared_values import share_values
from .stride import unstride
from .sums_behind_blocks import hoist_sums
from .transposed import lay_in_line
from .windows import channels_in_line
from .work import Work

PASSES: tuple[Callable[[Work], Work], ...] = (
    mark_longer_indices,
    hoist_sums,
    compare_inside,
    agree_on_names,
    forward_copies,
    read_gathered_only,
    lift_sums,
    unstride,
    guards_to_selects,
    pad_operands,
    merge_sums,
    share_values,
    order_products,
    split_operands,
    channels_in_line,
    lay_in_line,
    make_again,
    copy_before_change,
    readers_first,
    roll_buffers,
    settle,
)


def prepare(bound: Bound, weights: Mapping[str, int] | None = None) -> Work:
    """The program as kernels will run it, with the sizes and types of the names that were added."""
    loops = bound.loops
    if loops.header is None:
        loops = replace(loops, returns=loops.outputs)  # in this order, whatever the passes move
    work = Work(loops, bound.sizes, weights or {}, kinds=bound.types.tensors)
    for run in PASSES:
        work = run(work)
        tell(run.__name__, work.loops, work.sizes, work.kinds)
    return work
