"""Recurrences that stay in registers: all steps for a few vectors of points, then for the next ones."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.kernel import llvm
from tensorswap.kernel.registers import registers
from tensorswap.run.launch import launch
from tensorswap.run.machine_code import optimised, target
from tests.test_planner import check

pytestmark = pytest.mark.compiled

R = np.random.default_rng(12)
HORNER = "for j down:\n    v[j,i] = c[j] + x[i] * (v[j+1,i] if j < size(j) - 1 else 0)\nY[i] = v[0,i]"
RECURRENCES = {
    "downwards": HORNER,
    "upwards": "for j:\n    v[j,i] = c[j] - x[i] * (v[j-1,i] if j > 0 else 1)\nY[i] = v[size(j)-1,i]",
    "from a start": "v[0,i] = x[i]\nfor j:\n    v[j+1,i] = v[j,i] * (1 - v[j,i]) * c[j]\nY[i] = v[size(j),i]",
    "between two conditions": "for j:\n"
    "    v[j,i] = c[j] * (x[i] if j < size(j) - 2 else 2) + (v[j-1,i] if j > 2 else 0)\nY[i] = v[size(j)-1,i]",
    "a condition that never holds": "for j:\n    v[j,i] = c[j] + (v[j-1,i] * x[i] if j > 99 else x[i])\n"
    "Y[i] = v[size(j)-1,i]",
    "a guard": "for j:\n    v[j,i] += x[i] * c[j] if j < size(j) - 2\n    v[j,i] += v[j-1,i] / 2 if j > 0\n"
    "Y[i] += v[j,i]",
    "two that read each other": "for j:\n    p[j,i] = (p[j-1,i] + c[j] * q[j-1,i] if j > 0 else x[i])\n"
    "    q[j,i] = (q[j-1,i] if j > 0 else 1) - c[j] * p[j,i]\nY[i] = p[size(j)-1,i] + q[size(j)-1,i]",
    "the old one is read first": "for j:\n    d[j,i] = x[i] - (v[j-1,i] if j > 0 else 0)\n"
    "    v[j,i] = (v[j-1,i] if j > 0 else 0) + c[j] * d[j,i]\nY[i] = v[size(j)-1,i]",
    "the old one is read behind": "for j:\n    v[j,i] = (w[j-1,i] if j > 0 else 0) + c[j] * x[i]\n"
    "    w[j,i] = v[j,i] + (v[j-1,i] if j > 0 else 1) / 2\nY[i] = w[size(j)-1,i]",
    "sums of all points": "for j:\n    v[j,i] = c[j] * (v[j-1,i] if j > 0 else x[i])\n    Y[j] += v[j,i]\n"
    "    Y[j] -= v[j,i] * x[i]",
    "a sum of the old one": "v[0,i] += x[i]\nfor j:\n    v[j+1,i] += c[j] * v[j,i] if j < size(j) - 1\n"
    "    Y[j] += v[j,i]",
    "a sum that the next step reads": "for j:\n    v[j,i] = c[j] * (v[j-1,i] if j > 0 else x[i])"
    " + (s[j-1] if j > 0 else 0)\n    s[j] += v[j,i] / 100\nY[i] = v[size(j)-1,i]",
    "a sum with a guard": "for j:\n    v[j,i] = c[j] + (v[j-1,i] if j > 0 else x[i])\n    Y[j] += v[j,i] if j > 1",
    "a neighbour": "for j:\n    v[j,i] = c[j] * (v[j-1,i-1] if j > 0 and i > 0 else x[i])\nY[i] = v[size(j)-1,i]",
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", RECURRENCES)
def test_all_lengths(name: str, dtype: Any) -> None:
    program = ts.program(f"{RECURRENCES[name]}\nreturn Y")
    for points, steps in ((1, 2), (63, 5), (640, 1), (1111, 5)):
        given = {"x": R.uniform(-1, 1, points).astype(dtype), "c": R.uniform(-1, 1, steps).astype(dtype)}
        check(program, given)


@pytest.mark.parametrize("name", ["downwards", "from a start", "two that read each other"])
def test_gradients(name: str) -> None:
    program = ts.program(f"{RECURRENCES[name]}\nloss += Y[i] ** 2\nreturn loss").grad()
    check(program, {"x": R.uniform(-1, 1, 700), "c": R.uniform(-1, 1, 6)})


def test_the_source_says_so() -> None:
    given = {"x": np.zeros(5000), "c": np.zeros(6)}
    assert "for chunk in range" in ts.program(HORNER).source(given)
    assert "for chunk in range" not in ts.program(HORNER.replace("c[j] +", "sin(c[j] + x[i]) +")).source(given)
    told = str(ts.program(HORNER).plan(given))
    assert "v[j%1,i] = c[j] + x[i] * (v[(j+1)%1,i] if" in told
    summed = "v[0,i] += x[i]\nfor j:\n    v[j+1,i] += c[j] * v[j,i] if j < size(j) - 1\n    Y[j] += v[j,i]\nreturn Y"
    assert "for chunk in range" in ts.program(summed).source(given)


@pytest.mark.optimised
def test_llvm_keeps_them_in_registers() -> None:
    """Whole vectors go around the loops of the steps, also where several steps are written out, and nothing is stored
    in them."""
    made = ts.program(HORNER).executable(x=np.zeros(5000), c=np.zeros(6))
    lanes = registers().bytes // 8
    for kernel in made.kernels:
        for text in llvm.texts(*llvm.entry(kernel.kernel), launch, target()):
            with optimised(text) as found:
                blocks = str(found).split("\n\n")
                products = [len(re.findall(rf"fmul [a-z ]*<{lanes} x double>", block)) for block in blocks]
                longest = blocks[products.index(max(products))]
                around = longest.count(f"phi <{lanes} x double>")
                if around > 1:
                    assert max(products) >= 2 * around
                    assert "store" not in longest
                    return
    raise AssertionError("no vectors go around a loop")
