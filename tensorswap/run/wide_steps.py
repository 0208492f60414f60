"""Wide steps: a block whose steps are so much work that all threads share each of them. Its kernels run one after the
other in every step; other blocks that no thread can have a share of are one kernel on one thread."""

from __future__ import annotations

from collections.abc import Callable

from ..language import ir
from ..plan.nest import Nest, Nester


def steps_of(nest: Nest, nester: Nester, work: Callable[[Nest], float], enough: float) -> list[Nest] | None:
    """The nests of each step of a block that is wide. `work` tells of a nest the time for all steps, `enough` is
    the time for which other threads are asked."""
    if nest.index is not None or len(nest.items) != 1 or not isinstance(nest.items[0], ir.Block):
        return None
    block = nest.items[0]
    count = nester.sizes.index[block.index]
    if count < 2 or work(nest) < count * enough:
        return None
    steps = nester.steps(block)
    shared = sum(work(inner) for inner in steps if inner.index is not None)
    alone = sum(work(inner) for inner in steps if inner.index is None)
    return steps if shared >= max(alone, count * len(steps) * enough) else None
