"""Statements of a step that share one loop compute what they compute one after the other."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tensorswap as ts

pytestmark = pytest.mark.compiled

R = np.random.default_rng(6)
x, z, s = R.standard_normal((7, 9)), R.standard_normal((7, 9, 4)), 0.7

STEPS = [
    "A[t,i] = exp(x[t,i])\nB[t,i] = exp(x[t,i]) + A[t,i] * H[t,i]",
    "A[t,i] = exp(H[t,i])\nB[t,i] = (A[t,i-1] if i > 0 else 0)",  # another point's element
    "A[t,i] = exp(H[t,i])\nB[t,i] = A[t,8-i]",
    "A[t,i] = exp(x[t,8-i])\nB[t,i] = H[t,i] - H[t,8-i] + A[t,i]",
    "B[t,i] = exp(x[t,i])\nl -= exp(x[t,i]) * H[t,i]\nl += exp(x[t,i])",  # two sums into one element
    "B[t,i] = exp(x[t,i])\nl += exp(H[t,i])\nm max= exp(H[t,i])\nr[t] *= exp(H[t,i]) / 2",
    "l += exp(H[t,i])\nB[t,i] = exp(H[t,i]) + l",  # what the loop adds up is read by all of its points
    "A[t,i] += exp(x[t,i])\nA[t,i] += exp(H[t,i]) * 2\nB[t,i] = exp(A[t,i]) - exp(A[t,i]) / 2",
    "A[t,i,j] = exp(z[t,i,j])\nC[t,j,i] = A[t,i,j] + 1\nB[t,i] = x[t,i]",
    "A[t,i,j] = exp(z[t,i,j]) * H[t,i]\nC[t,i,j] = A[t,i,j] + exp(z[t,i,j])\nB[t,i] += C[t,i,j]",
    "k[t] = x[t,0] * 2\nq[t] = k[t] + x[t,1]\nB[t,i] = H[t,i] * q[t]",
    "A[t,i] += H[t,i] if t > 2\nA[t,i] += exp(x[t-1,i]) if t > 0\nl += exp(x[t-1,i]) if t > 0\nB[t,i] = A[t,i]",
    "A[t,i] = floor(4 * x[t,i])\nB[t,i] = A[t,i] // 3 + A[t,i] % 3",
]
NEXT = "H[t+1,i] = tanh(H[t,i] + x[t,i]) * s"


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["up", "down", "behind"])
def test_a_step(steps: str, dtype: Any, order: str) -> None:
    lines = [NEXT, *steps.split("\n")] if order != "behind" else [*steps.split("\n"), NEXT]
    if order == "down":
        turned = {"H[t,": "H[t+1,", "H[t+1,": "H[t,"}
        lines = [re.sub(r"H\[t(\+1)?,", lambda found: turned[found[0]], line) for line in lines]
    body = "\n".join(f"    {line}" for line in lines)
    start = "size(H, 0) = size(t) + 1\nfor t down:" if order == "down" else "for t:"
    program = ts.program(f"{start}\n{body}\nY[i] += B[t,i]")
    arrays = {"x": x.astype(dtype), "z": z.astype(dtype), "s": dtype(s)}
    given = {name: arrays[name] for name in program.inputs}
    found, wanted = program(given), program.run_reference(given)
    tolerance = 1e-5 if dtype is np.float32 else 1e-12
    for name, value in (wanted if isinstance(wanted, dict) else {"": wanted}).items():
        result = found[name] if isinstance(found, dict) else found
        np.testing.assert_allclose(result, value, rtol=tolerance, atol=tolerance, err_msg=name)


def test_one_loop_and_each_value_once() -> None:
    text = "for t:\n    H[t+1,i] = exp(x[t,i]) + H[t,i] / 2\n    A[t,i] = exp(x[t,i]) * H[t+1,i]\nY[i] += A[t,i]"
    source = ts.program(text).source(x=x)
    (loop,) = [part for part in source.split("@compiled") if "# a" in part and "exp_f8(" in part]
    assert loop.count("exp_f8(") == 1
