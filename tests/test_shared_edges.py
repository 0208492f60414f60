"""Shared edges: statements that leave out a few points at either end of a row share the loop over the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorswap as ts

pytestmark = pytest.mark.compiled
LINES = [
    "A[t,i] += X[t,i{0}] * x[i] {guard}",
    "A[t,i] -= (X[t,i-1] if i > 0 else 2) {guard}",
    "B[t,i] = (A[t,i] + X[t,i+1] if i < size(i) - 1 else x[i])",
    "B[t,i] = A[t,i] * 0.5",
    "C[t,i] += (B[t,i] if i > 1 and i < size(i) - 3 else A[t,i]) {guard}",
    "s[t] += A[t,i] / q[t] {guard}",
    "s[t] += (A[t,i] if i > 2 else x[i]) / q[t]",
    "m[t] max= A[t,i] {guard}",
    "C[t,i] += exp(-A[t,i] ** 2) {guard}",
    "D[t,i] = tanh(x[i]) + tanh(x[i]) ** 2 {guard}",
    "E[t,i] = min(x[i], q[t]) + min(x[i], q[t]) * x[i] + (X[t,i-1] if i > 0 else 0) {guard}",
    "E2[t,i] = min(x[i], q[t]) - tanh(x[i]) * (X[t,i+1] if i < size(i) - 1 else 0) {guard}",
    "H[t+1,i] += H[t,i] + 0.1 * A[t,i]",
    "H[t+1,i] += x[i] if i > 0",
]
GUARDS = ["", "if i > 0", "if i < size(i) - 1", "if i > 1 and i < size(i) - 2", "if t > 1", "if i > 0 and t > 0"]
SIZES = [1, 2, 3, 4, 5, 8, 9, 17, 70]


@st.composite
def texts(draw: Any) -> str:
    lines, second = [], draw(st.booleans())
    for number, line in enumerate(LINES):
        if draw(st.booleans()) and number not in ((2,) if second else (3,)):
            guard = draw(st.sampled_from(GUARDS))
            places = {"if i > 0": "-1", "if i < size(i) - 1": "+1"}
            lines.append("    " + line.format(draw(st.sampled_from(["", places.get(guard, "")])), guard=guard).rstrip())
    names = sorted({line.split("[")[0].strip() for line in lines}) or ["H"]
    return "\n".join(["H[0,i] += x[i]", "for t:", *(lines or ["    H[t+1,i] += H[t,i]"]), "return " + ", ".join(names)])


def check(text: str, size: int) -> None:
    random = np.random.default_rng(size)
    shapes = {"X": (5, size), "x": (size,), "q": (5,), "A": (5, size), "B": (5, size)}
    program = ts.program(text if "X[" in text or "q[" in text else text.replace("for t:", "size(t) = 5\nfor t:"))
    arrays = {name: random.uniform(0.5, 1, shapes[name]) for name in program.inputs}
    try:
        expected = program.run_reference(arrays)
    except ts.SwapError:
        return  # a place is out of bounds for this size
    found = program(arrays)
    for name in program.outputs:
        one, other = (r[name] if isinstance(r, dict) else r for r in (found, expected))
        np.testing.assert_allclose(one, other, rtol=1e-12, err_msg=name)


@settings(max_examples=40, deadline=None)  # each compiles
@given(texts(), st.sampled_from(SIZES))
def test_values(text: str, size: int) -> None:
    check(text, size)


FIXED = """
H[0,i] += x[i]
for t:
    A[t,i] += X[t,i-1] * x[i] if i > 0
    A[t,i] -= (X[t,i+1] if i < size(i) - 1 else 2)
    s[t] += (A[t,i] if i > 2 else x[i]) / q[t]
    H[t+1,i] += H[t,i] + 0.1 * A[t,i]
return A, s, H
"""


CALLS = """
H[0,i] += x[i]
for t:
    A[t,i] = tanh(X[t,i]) + 1 if i > 0
    B[t,i] = tanh(X[t,i]) * 2 if i < size(i) - 1
    D[t,i] = min(x[i], q[t]) + (X[t,i-1] if i > 0 else 0)
    E[t,i] = min(x[i], q[t]) * 2 - (X[t,i+1] if i < size(i) - 1 else 0)
    H[t+1,i] += H[t,i] + E[t,i]
return A, B, D, E, H
"""


@pytest.mark.parametrize("text", [FIXED, CALLS], ids=["sums", "calls"])
@pytest.mark.parametrize("size", SIZES)
def test_each_size(text: str, size: int) -> None:
    check(text, size)


def test_one_loop_makes_all() -> None:
    """Two statements: the points between, and those before and behind."""
    source = ts.program(FIXED).source(X=np.ones((5, 70)), x=np.ones(70), q=np.ones(5))
    (made,) = [part for part in source.split("@compiled") if "for side in" in part]
    assert made.count("for i0") == 2
    assert made.count("0.1 * ") == 3  # in the comment too
