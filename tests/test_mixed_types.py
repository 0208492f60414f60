"""Inputs of several types: no plan computes a part of a statement in a narrower type than the statement.

The numbers are such that whole ones wrap around, and those of single precision overflow or round, where a product or a
sum of the narrow ones alone is made first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorswap as ts

from .test_compiled import outputs

pytestmark = pytest.mark.compiled

LARGE, WIDE, SINGLE = np.full(40, 2**40), np.linspace(1, 2, 30), np.linspace(1, 2, 40, dtype=np.float32) * 1e30
ROUND = np.random.default_rng(1).standard_normal((40, 300)).astype(np.float32)
TABLE = np.full((30, 40), 2**40)
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "whole factors": ("Y[i] += c[i]*a[j]*b[j]", {"c": WIDE, "a": LARGE, "b": LARGE}),
    "single factors": ("Y[i] += c[i]*a[j]*b[j]", {"c": WIDE, "a": SINGLE, "b": SINGLE}),
    "a number in front": ("Y[i] += 0.5*a[j]*b[j]*c[i]", {"c": LARGE, "a": LARGE, "b": LARGE}),
    "a scalar in front": ("Y[i] += s*a[j]*b[j]*c[i]", {"s": np.float64(2), "c": LARGE, "a": LARGE, "b": LARGE}),
    "four factors": ("Y[i] += c[i]*a[j]*d[i]*b[j]", {"c": WIDE, "d": WIDE, "a": LARGE, "b": LARGE}),
    "six factors": (
        "Y[i] += c[i]*a[j]*b[j]*a[k]*b[k]*d[i]",
        {"c": WIDE, "d": WIDE, "a": np.full(40, 2**33), "b": np.full(40, 2**33)},
    ),
    "a shared product": (
        "Y[i] += c[i]*a[j]*b[j]\nZ[i] += d[i]*a[j]*b[j]\nreturn Y, Z", {"c": WIDE, "d": WIDE, "a": LARGE, "b": LARGE},
    ),
    "a chain of matrices": (
        "Y[i,l] += A[i,j]*B[j,k]*C[k,l]",
        {"A": np.ones((9, 8)), "B": np.full((8, 7), 1e30, np.float32), "C": np.full((7, 6), 1e30, np.float32)},
    ),
    "an operand of its own": (
        "Y[i,j] += s*(a[i,k]+1)*b[j,k]", {"s": np.float64(0.5), "a": TABLE, "b": TABLE},
    ),
    "two sums": ("Y[i] += a[i]\nY[i] += b[i]\nY[i] += c[i]", {"a": LARGE << 22, "b": LARGE << 22, "c": np.ones(40)}),
    "two single sums": ("Y[i] += A[i,0]\nY[i] += A[i,1]\nY[i] += c[i]", {"A": ROUND, "c": np.ones(40)}),
    "a sum for all rows": ("Y[n,k] += c[n]\nY[n,k] += S[k,d]", {"c": WIDE, "S": np.full((9, 40), 2**60)}),
    "a single sum for all rows": ("Y[n,k] += c[n]\nY[n,k] += S[k,d]", {"c": WIDE, "S": ROUND}),
    "in a block": ("for t:\n  Y[t] += c[t]*a[j]*b[j]*d[t]", {"c": WIDE, "d": WIDE, "a": LARGE, "b": LARGE}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_no_part_is_narrower_than_the_whole(name: str) -> None:
    text, arrays = CASES[name]
    program = ts.program(text)
    found, wanted = outputs(program, program(arrays)), outputs(program, program.run_reference(arrays))
    for key, array in wanted.items():
        assert found[key].dtype == array.dtype == np.float64
        assert np.isfinite(array).all()
        np.testing.assert_allclose(found[key], array, rtol=1e-12, err_msg=key)


@pytest.mark.parametrize("name", ["whole factors", "single factors", "a chain of matrices", "four factors"])
def test_nor_is_a_part_of_a_gradient(name: str) -> None:
    text, arrays = CASES[name]
    program = ts.program(f"{text}\nloss += Y[{'i,l' if 'matrices' in name else 'i'}]\nreturn loss")
    wide = [key for key, array in arrays.items() if array.dtype == np.float64]
    gradient = program.grad(wrt=wide)
    found, wanted = gradient(arrays), gradient.run_reference(arrays)
    for key in wide:
        np.testing.assert_allclose(found[f"{key}.grad"], wanted[f"{key}.grad"], rtol=1e-12, err_msg=key)


def test_factors_of_one_type_are_not_copied() -> None:
    text = "Y[i] += c[i]*a[j]*b[j]"
    assert "wide" in str(ts.program(text).plan(c=WIDE, a=LARGE, b=LARGE))
    assert "wide" not in str(ts.program(text).plan(c=WIDE, a=WIDE, b=WIDE))
    assert "wide" not in str(ts.program(text).plan(c=WIDE, a=np.ones(30), b=np.ones(30, np.float32)))
