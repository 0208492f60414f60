"""Steps: the derivative of a program whose long products are taken in steps of two, in the place of the derivative."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..language import ir
from ..language.bound import Bound
from ..language.sizes import infer, resolve
from ..language.types import infer_types
from ..plan.contraction_order import has_long_product, order_products
from ..plan.work import Work
from ..rules.derivation import Derivation
from ..rules.expand import expand


def derived_in_steps(
    origin: ir.Loops, derivation: Derivation, bound: Bound, weights: Mapping[str, int] | None = None
) -> Bound:
    """What to run for a call of a derivative: the same results, with intermediate products shared."""
    if not has_long_product(origin) or any(i not in bound.sizes.index for i in origin.indices):
        return bound
    kinds = infer_types(origin, bound.kinds).tensors
    work = order_products(Work(origin, bound.sizes, weights or {}, kinds=kinds))
    if len(work.kinds) > len(kinds):
        return bound  # a text cannot say that a product is wider than its factors
    if set(work.loops.inputs) != set(origin.inputs):
        return bound  # a factor of 0 has left some out, by which one may differentiate
    loops = expand(derivation(work.loops))
    if not set(loops.inputs) <= set(bound.arrays) or set(loops.outputs) != set(bound.loops.outputs):
        return bound
    if loops.header is None:
        loops = replace(loops, returns=bound.loops.outputs)
    # the derivative has indices of its own, under names that may mean others in the one that was asked for
    given = {name: work.sizes.index[name] for name in loops.indices if name in work.loops.indices}
    shapes = {name: array.shape for name, array in bound.arrays.items()}
    sizes = resolve(loops, infer(loops, frozenset(given)), shapes, bound.sizes.statics, given)
    return replace(bound, loops=loops, sizes=sizes)
