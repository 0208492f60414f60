"""Certify: a derivative or a plan is checked once, at tiny sizes, when a call first makes it; a wrong one is refused.

A derivative must pass the dot-product test against its partner, the tangent of an adjoint or the adjoint of a tangent.
A plan is made once more at tiny sizes, with the choices that it made at those of the call, and must give what the
interpreter gives. What cannot be called at tiny sizes has no certificate, and runs without.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

import numpy as np

from ..errors import SwapError, TrustError
from ..interpret import reference
from ..language import ir, render
from ..language.bound import Bound
from ..language.stages import Stage
from ..plan.prepare import prepare
from ..rules.derivation import Derivation
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
    for made in islice(small_calls(bound.loops, bound.sizes.statics, types), CALLS):
        small = made.bound
        try:
            wanted = reference.run(small)
        except SwapError:
            continue
        stepped = small
        if origin is not None and derivation is not None:
            stepped = derived_in_steps(origin, derivation, small, weights)
        work = prepare(stepped, weights)
        different = difference(
            wanted, run_planned(stepped.loops, Stage("plan", work.loops, work.sizes, work.kinds), stepped)
        )
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


def _wrong_derivative(derived: ir.Loops, found: Products) -> TrustError:
    """Shows the whole derivative: any statement of it may be the wrong one."""
    lines = "\n".join(f"    {line}" for line in render.program(derived).splitlines()[:40])
    return TrustError(
        f"a derivative is wrong: <v, J'w> = {found.adjoint:.9g}, but <Jv, w> = {found.tangent:.9g}\n{lines}",
        hint=f"{REPORT}; {OFF}",
    )
