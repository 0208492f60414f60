"""Certify: a derivative or a plan is checked once, at tiny sizes, when a call first makes it; a wrong one is refused.

A derivative must pass the dot-product test against its partner, the tangent of an adjoint or the adjoint of a tangent.
A plan is made once more at tiny sizes, with the choices that it made at those of the call, and must give what the
interpreter gives. What cannot be called at tiny sizes has no certificate, and runs without.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import chain, islice
from typing import Any

import numpy as np

from ..errors import BoundsError, SwapError, TrustError
from ..interpret import reference
from ..language import ir, render
from ..language.bound import Bound
from ..language.stages import Stage
from ..plan.contraction_order import has_long_product
from ..plan.prepare import prepare
from ..rules.derivation import Derivation
from ..run.arguments import bind
from ..run.steps import derived_in_steps
from .agree import difference
from .dot import Products, dot_test
from .small import nearby, small_calls
from .validate import REPORT, changed_by_plan, changed_by_steps, is_steady, run_planned

OFF = "ts.debug(certify=False) switches this check off, and gives the wrong result"

CALLS = 3

Kinds = Mapping[str, np.dtype[Any]]


def certify_derivative(
    origin: ir.Loops, derivation: Derivation, derived: ir.Loops, statics: Mapping[str, int], types: Kinds
) -> bool:
    """Raises if a derivative is wrong. True if it was shown right at some point."""
    failed = 0
    for made in islice(small_calls(origin, statics, types), CALLS):
        try:
            found = dot_test(origin, derivation, derived, made.arguments, seed=1)
        except SwapError:  # the partner is refused, or this point is out of bounds
            continue
        if found is None:
            return False
        if found.agree and found.scale > 0:
            return True
        if not found.agree:
            moved = dot_test(origin, derivation, derived, nearby(made).arguments, seed=1)
            if moved is not None and found.differ(moved):
                failed += 1
                if failed > 1:
                    raise _wrong_derivative(derived, found)
    return False


def certify_plan(bound: Bound, origin: ir.Loops | None, derivation: Derivation | None) -> bool:
    """Raises if the plan of a call is wrong. True if it was shown right."""
    weights = dict(bound.sizes.index)
    types = {name: array.dtype for name, array in bound.arrays.items()}
    failed = 0
    drawn = small_calls(bound.loops, bound.sizes.statics, types)
    for small in islice(chain(_with_origin(bound, origin, types), (made.bound for made in drawn)), CALLS):
        stepped = small
        try:
            wanted = reference.run(small)
            if origin is not None and derivation is not None:
                stepped = derived_in_steps(origin, derivation, small, weights)
            if stepped is not small:
                reference.run(stepped)
        except SwapError:  # the call, or that of the program behind it, is out of bounds
            continue
        work = prepare(stepped, weights)
        try:
            found = run_planned(stepped.loops, Stage("plan", work.loops, work.sizes, work.kinds), stepped)
            different = difference(wanted, found)
        except BoundsError as error:  # where the program has run: no rounding explains that
            raise TrustError(f"the plan leaves the bounds of its arrays: {error}", hint=f"{REPORT}; {OFF}") from error
        if different is None:
            return True
        if not is_steady(small):
            continue
        failed += 1
        if failed > 1:
            change = changed_by_plan(stepped, weights)
            if change is None and stepped is not small:
                assert origin is not None
                assert derivation is not None
                change = changed_by_steps(origin, derivation, small, weights)
            if change is not None:
                raise change.error()
            raise TrustError(f"the plan changes what the program computes: {different}", hint=f"{REPORT}; {OFF}")
    return False


def _with_origin(bound: Bound, origin: ir.Loops | None, types: Kinds) -> Iterator[Bound]:
    """Calls of a derivative whose program has long products, at sizes that fit that program: parts of it are in the
    plan, and read what a derivative by itself leaves out as not inside."""
    if origin is None or not has_long_product(origin):
        return
    taken = {*bound.loops.inputs, *bound.loops.static_names, *bound.loops.indices}
    generator = np.random.default_rng(3)
    for made in small_calls(origin, bound.sizes.statics, types):
        known = {name: value for name, value in made.arguments.items() if name in taken}
        shapes = {name: made.bound.sizes.shapes.get(name.rpartition(".")[0]) for name in bound.loops.inputs}
        more = {n: generator.standard_normal(s) for n, s in shapes.items() if n not in known and s is not None}
        with suppress(SwapError):  # what else it needs is not known here
            yield bind(bound.loops, {**known, **more})


def _wrong_derivative(derived: ir.Loops, found: Products) -> TrustError:
    """Shows the whole derivative: any statement of it may be the wrong one."""
    lines = "\n".join(f"    {line}" for line in render.program(derived).splitlines()[:40])
    return TrustError(
        f"a derivative is wrong: <v, J'w> = {found.adjoint:.9g}, but <Jv, w> = {found.tangent:.9g}\n{lines}",
        hint=f"{REPORT}; {OFF}",
    )
