"""Derivatives of generated programs: <Jv,w> = <v,J'w>, central differences, and text that parses back."""

from __future__ import annotations

import os
import secrets
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings

import tensorswap as ts
from tensorswap.program import Program

from .daily import LONG
from .generate import Case, programs

PARTS = 8
WANTED = (20_000 if LONG else 80) // PARTS  # different programs in each part
SEED = int(os.environ.get("TENSORSWAP_SEED") or secrets.randbits(32))  # other programs in every run

check = settings(max_examples=5 * WANTED, deadline=None, database=None, suppress_health_check=list(HealthCheck))


def outputs(program: Program, result: Any) -> dict[str, np.ndarray]:
    return result if isinstance(result, dict) else {program.outputs[0]: result}


def check_round_trip(program: Program) -> None:
    assert ts.program(str(program)) == program, str(program)


def inner(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> tuple[float, float]:
    """The inner product and the sum of the sizes of its terms."""
    products = [np.asarray(a[k] * b[k]) for k in a]
    return sum(float(p.sum()) for p in products), sum(float(np.abs(p).sum()) for p in products)


def check_derivatives(case: Case, number: int = 0) -> bool:
    """Asserts all that a derivative must satisfy; False if a kink was too near for central differences."""
    program = ts.program(case.text)
    adjoint, tangent = program.adjoint(wrt=case.wrt), program.tangent(wrt=case.wrt)
    for derived in (program, adjoint, tangent):
        check_round_trip(derived)
    everything = ts.program(case.text, outputs=program.loops.written)
    if not all(np.isfinite(a).all() for a in outputs(everything, everything(case.arrays)).values()):
        return True  # an element without candidates is infinite: its derivative is for fixed tests
    random = np.random.default_rng(number)
    values = outputs(program, program(case.arrays))
    v = {x: random.standard_normal(case.arrays[x].shape) for x in case.wrt}
    w = {y: random.standard_normal(a.shape) for y, a in values.items()}
    pulled = outputs(adjoint, adjoint({**case.arrays, **{f"{y}.grad": w[y] for y in w}}))
    pushed = outputs(tangent, tangent({**case.arrays, **{f"{x}.dot": v[x] for x in v}}))
    pulled_v = {x: pulled[f"{x}.grad"] for x in v}
    assert all(pulled_v[x].shape == v[x].shape for x in v)
    left, left_size = inner({y: pushed[f"{y}.dot"] for y in w}, w)
    right, right_size = inner(pulled_v, v)
    assert abs(left - right) <= 1e-10 * max(left_size, right_size, 1e-300), (left, right)

    def along(step: float) -> float:
        moved = {**case.arrays, **{x: case.arrays[x] + step * v[x] for x in v}}
        found = outputs(program, program(moved))
        return sum(float((found[y] * w[y]).sum()) for y in w)

    coarse, fine = ((along(h) - along(-h)) / (2 * h) for h in (2e-5, 1e-5))
    forward = (along(1e-5) - along(0.0)) / 1e-5
    scale = max(1.0, left_size, abs(coarse))
    if abs(coarse - fine) > 1e-7 * scale or abs(forward - fine) > 1e-3 * scale:
        return False
    assert abs(fine - left) <= 1e-6 * scale, (fine, left)
    return True


@pytest.mark.parametrize("part", range(PARTS))
def test_generated_programs(part: int) -> None:
    smooth: dict[str, bool] = {}

    @seed(SEED + part)
    @check
    @given(case=programs)
    def run(case: Case) -> None:
        if case.wrt and len(smooth) < WANTED and case.text not in smooth:  # short ones come again and again
            smooth[case.text] = check_derivatives(case, number=part)

    try:
        run()
    except BaseException as error:
        error.add_note(f"the same programs again: TENSORSWAP_SEED={SEED}")
        raise
    assert len(smooth) >= WANTED, "too few different programs"
    assert np.mean(list(smooth.values())) > 0.9, "too many programs lay on kinks to compare with differences"
