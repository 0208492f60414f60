"""Positions of the best among many candidates: in two loops of vectors, with the rules of one loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorswap as ts

pytestmark = pytest.mark.compiled

TEXTS = [
    "a[n] {} X[n,k]",
    "a[n] {} X[n,k] - c[n]",
    "a {} X[n,k]",
    "a[n] {} X[n,k]\na[n] {} Z[n,k]",
    "a[n] {} X[n,k] if k > 3",
    "a[n] {} X[n,k] if c[n] > 0",
]


def numbers(generator: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Few values, so that equals are many; NaN, infinities and both zeros among them."""
    made = generator.integers(-3, 4, shape).astype(dtype)
    if made.dtype.kind == "f":
        for value in (np.nan, np.inf, -np.inf, -0.0):
            made[generator.random(shape) < generator.choice([0, 0.02, 0.5])] = value
    return made


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int16])
@pytest.mark.parametrize("operator", ["argmin=", "argmax="])
@pytest.mark.parametrize("text", TEXTS)
def test_the_first_of_the_best_wins(text: str, operator: str, dtype: Any) -> None:
    program = ts.program(text.replace("{}", operator))
    generator = np.random.default_rng(7)
    for size in (1, 15, 16, 37):
        for _ in range(5):
            given = {"X": numbers(generator, (3, size), dtype), "Z": numbers(generator, (3, size), dtype)}
            given["c"] = generator.integers(-1, 2, 3).astype(dtype)
            given = {name: array for name, array in given.items() if name in program.inputs}
            np.testing.assert_array_equal(program(given), program.run_reference(given))


def test_candidates_side_by_side_are_met_in_two_loops() -> None:
    program = ts.program("a[n] argmin= X[n,k]")
    assert "top" in program.source(X=(50, 40))
    assert "top" not in program.source(X=(50, 4))  # few
    assert "top" not in ts.program("a[n] argmin= X[k,n]").source(X=(40, 50))  # apart
