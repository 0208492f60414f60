"""Transposed copies of small inputs: made where a loop runs in line with them, and without them would not."""

from __future__ import annotations

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.plan.prepare import prepare
from tensorswap.run.arguments import bind

pytestmark = pytest.mark.compiled
ROWS, KINDS, LONG = 90, 40, 30
SHAPES = {
    "R": (ROWS, KINDS, LONG),
    "c": (KINDS, LONG),
    "X": (ROWS, 4),
    "w": (LONG, KINDS),
    "V": (KINDS, 3),
    "U": (ROWS, 3),
}
CASES = {  # and the inputs of which there are copies
    "distances of points": ("D[n,m] += (X[n,k] - X[m,k]) ** 2", {"X"}),
    "an offset of what lies in line": ("F[n,k] -= (R[n,k,i] - c[k,i]) ** 2", set()),
    "the same, of what the program has made": (
        "S[n,k,i] = 2 * R[n,k,i]\nF[n,k] -= (S[n,k,i] - c[k,i]) ** 2\nreturn F", set()),
    "all that jumps is small": ("F[n,k] += (c[k,i] - X[n,0]) ** 2", {"c"}),
    "few steps of a product": ("Y[n,m] += U[n,k] * V[m,k]", {"V"}),
    "steps enough for tiles": ("Y[n,m] += R[n,m,k] * c[m,k]", set()),
    "one lies in line already": ("F[n,k] += (c[k,i] - w[i,k] * X[n,0]) ** 2", {"c"}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_copies_that_are_made(name: str) -> None:
    text, expected = CASES[name]
    program = ts.program(text)
    if "X[m,k]" in text:
        program = ts.program("size(m) = size(n)\n" + text)
    random = np.random.default_rng(2)
    arrays = {name: random.standard_normal(SHAPES[name]) for name in program.inputs}
    copies = [s for s in prepare(bind(program.loops, arrays)).loops.statements if "transposed" in s.target.tensor]
    assert {access.tensor for s in copies for access in s.reads} == expected
    np.testing.assert_allclose(program(arrays), program.run_reference(arrays), rtol=1e-12)
