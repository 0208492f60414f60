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
ONES = np.ones((8, 8))
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
    "numbers behind": ("Z[i,l] += A[i,j]*B[j,l]*a*b", {"A": ONES, "B": ONES, "a": 2**40, "b": 2**40}),
    "numbers behind three": ("Z[i,l] += A[i,j]*B[j,k]*C[k,l]*a*b", {
        "A": ONES, "B": ONES, "C": ONES, "a": np.array(2**40), "b": np.array(2**40)}),
    "single numbers behind": ("Z[i,l] += A[i,j]*B[j,l]*a*b", {
        "A": ONES, "B": ONES, "a": np.array(0.1, np.float32), "b": np.array(0.7, np.float32)}),
    "a single number between": ("Y[j] += A[k,i]*A[k,i]*s*B[j,m]", {
        "A": np.full((2, 5), 0.1), "s": np.array(0.3, np.float32), "B": np.full((3, 3), 0.7, np.float32)}),
    "sizes": ("Z[i,l] += A[i,j]*B[j,l]*size(i)**11*size(l)**11", {"A": ONES, "B": ONES}),
    "large numbers in the text": (
        "Z[i,l] += A[i,j]*1099511627776*B[j,k]*1099511627776*C[k,l]", {"A": ONES, "B": ONES, "C": ONES}),
    "a product that another sum has": (
        "Y[i,l] += A[i,j]*B[j,k]*C[k,l]\nZ[i,l] += A[i,j]*B[j,k]*C[k,l]\nZ[i,l] += D[i,l]\nreturn Z",
        {"A": np.full((9, 40), 2**21), "B": np.full((40, 30), 2**20), "C": np.full((30, 8), 2**19),
         "D": np.ones((9, 8))},
    ),
    "a single divisor": ("Z[i,l] += A[i,j]/b[j,l]", {"A": np.ones((9, 40)), "b": np.full((40, 30), 3, np.float32)}),
    "a single divisor of three": (
        "Z[i,l] += A[i,j]*A[i,j]*B[j,l]/b[j]", {"A": ONES, "B": ONES, "b": np.full(8, 3, np.float32)}),
    "indices with fractions": (
        "Y[i,l] += A[i,k]*(0.1+k)*(0.3+k)*B[k,l]", {"A": np.ones((9, 40), int), "B": np.ones((40, 8), np.float32)}),
    "functions of indices": (
        "Y[i,l] += A[i,k]*B[k,l]*tanh(0.1*k*l)", {"A": np.ones((9, 40), int), "B": np.ones((40, 8), np.float32)}),
    "a tensor of indices": (
        "W[k] = 0.1 + k\nY[i,l] += A[i,k]*W[k]*B[k,l]\nreturn Y",
        {"A": np.ones((9, 40), int), "B": np.ones((40, 8), np.float32)}),
    "indices beside whole numbers": (
        "Y[i,k] = A[i,k]*(0.1+k)\nz += B[k,l]\nreturn Y", {"A": np.ones((9, 40), int), "B": ROUND.reshape(40, -1)}),
    "large indices": (
        "Z[i,l] += A[i,k]*(2**40+k)*(2**40+k)*B[k,l]", {"A": np.ones((9, 40)), "B": np.ones((40, 8))}),
    "two sums of indices": ("Y[i] += 2**62 + i\nY[i] += 2**62 + i\nY[i] += X[i]", {"X": np.ones(3)}),
    "unsigned labels": (
        "L[n,c] = X[n,c]*(c-3)\nloss += L[n,label[n]]\nreturn loss",
        {"X": np.ones((3, 40)), "label": np.zeros(3, np.uint64)}),
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


def test_whole_and_other_numbers_are_told_apart() -> None:
    arrays = {"X": np.full(3, 2**40)}
    program = ts.program("Y[i] = sqrt(X[i]**2)\nZ[i] = sqrt(X[i]**2.0)\nreturn Y, Z")
    with np.errstate(over="ignore"):
        expected = program.run_reference(arrays)
    for name, array in program(arrays).items():
        np.testing.assert_array_equal(array, expected[name])
    signs = ts.program("Y[i] = 1 / tanh(X[i] * 0.0)\nZ[i] = 1 / tanh(X[i] * -0.0)\nreturn Y, Z")(X=np.ones(2))
    assert (signs["Y"] == np.inf).all()
    assert (signs["Z"] == -np.inf).all()


def test_factors_of_one_type_are_not_copied() -> None:
    text = "Y[i] += c[i]*a[j]*b[j]"
    assert "wide" in str(ts.program(text).plan(c=WIDE, a=LARGE, b=LARGE))
    assert "wide" not in str(ts.program(text).plan(c=WIDE, a=WIDE, b=WIDE))
    assert "wide" not in str(ts.program(text).plan(c=WIDE, a=np.ones(30), b=np.ones(30, np.float32)))


CHOICES = [
    "1e30 * (X[i] if i > 3 else W[i])",
    "(X[i] if i > 3 else W[i]) * X[i] * X[i] * X[i]",
    "0.3 * (X[i+1] if i < size(i) - 1 else W[i])",
    "0.3 * (W[i-1] if i > 0 else X[i]) * X[i]",
    "0.3 * (X[i] if k > 0 else W[i])",
    "(W[i] if i > 2 else 0.1) * X[i] * 1e10",
    "1e30 * (n[i] if i > 3 else X[i]) * X[i]",
]


@pytest.mark.parametrize("value", CHOICES)
@pytest.mark.parametrize(
    "text",
    [
        "Y[k,i] = {}",
        "S[k] += {}",
        "Y[k,i] = {}\nZ[k,i] = Y[k,i] * 2\nreturn Y, Z",
        "for k:\n    Y[k,i] = {}",
        "for k:\n    U[k+1,i] = 0.5 * U[k,i] + {}\nreturn U",
    ],
)
def test_a_branch_that_is_decided_keeps_the_type_of_both(text: str, value: str) -> None:
    """One branch is single, the other double: what is made of them is double everywhere."""
    numbers = np.random.default_rng(3)
    X, W = numbers.uniform(1, 2, 17).astype(np.float32), numbers.uniform(1, 2, 17)
    arrays = {"X": X * np.float32(1e10), "W": W, "n": np.arange(17) * 3 + 1}
    program = ts.program(text.format(value))
    given = {name: arrays[name] for name in program.inputs if name in arrays} | {"k": 3}
    found, expected = outputs(program, program(given)), outputs(program, program.run_reference(given))
    for name, wanted in expected.items():
        assert found[name].dtype == wanted.dtype
        np.testing.assert_allclose(found[name], wanted, rtol=1e-6 if wanted.dtype == np.float32 else 1e-14)
