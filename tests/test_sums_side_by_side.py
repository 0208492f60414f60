"""Sums along one long row that share what they read: one loop makes all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorswap as ts
from tests.test_planner import check

pytestmark = pytest.mark.compiled

TEXTS = [
    "S[i,k] {operator} A[i,j] * (X[i,k] - Y[k,j])",
    "S[i,k] {operator} A[i,j] * 2 * (X[i,k] + Y[k,j]) ** 2",
    "S[k] {operator} A[i,j] * (Y[k,j] - b[k])",
    "S[k,i] {operator} (A[i,j] - Y[k,j]) * b[k]",
    "S[i,k] {operator} X[i,k]\nS[i,k] {operator} A[i,j] - Y[k,j] * b[k]",
]


@settings(max_examples=15, deadline=None)  # each compiles
@given(
    st.sampled_from(TEXTS), st.sampled_from(["+=", "-="]), st.integers(1, 9), st.integers(1, 5),
    st.one_of(st.integers(1, 40), st.sampled_from([64, 65, 200])), st.sampled_from([np.float32, np.float64]),
)  # fmt: skip
def test_as_the_interpreter(text: str, operator: str, sums: int, rows: int, length: int, dtype: type) -> None:
    numbers = np.random.default_rng(length)
    program = ts.program(text.format(operator=operator))
    shapes = {"A": (rows, length), "X": (rows, sums), "Y": (sums, length), "b": (sums,)}
    arrays: dict[str, Any] = {name: numbers.standard_normal(shapes[name]).astype(dtype) for name in program.inputs}
    if length > 20:
        arrays["A"][0, 3] = numbers.choice([np.nan, np.inf, 1.0])
    with np.errstate(all="ignore"):
        check(program, arrays)


def test_it_is_one_loop_for_each_row() -> None:
    program = ts.program(TEXTS[0].format(operator="+="))
    source = program.source(A=(3, 200), X=(3, 5), Y=(5, 200))
    assert source.count("range(200)") == 1
    assert "total4" in source
