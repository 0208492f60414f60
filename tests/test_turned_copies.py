"""Copies in another order of their axes, in blocks that are turned in registers; pools, whose winners tell where
gradients go."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorswap as ts
from tests.test_planner import check

pytestmark = pytest.mark.compiled

AXES = "abcd"


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("rank", [2, 3, 4])
@given(st.data())
@settings(max_examples=25, deadline=None)
def test_any_order_of_axes(rank: int, dtype: str, data: st.DataObject) -> None:
    long = st.sampled_from([1, 2, 7, 8, 9, 15, 16, 17, 33] + ([257, 300] if rank < 4 else []))
    shape = [data.draw(long, "size") for _ in range(rank)]
    order = data.draw(st.sampled_from([*permutations(range(rank))]), "order")
    operator = data.draw(st.sampled_from(["=", "+="]), "operator")
    given_array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    target = ",".join(AXES[k] for k in order)
    program = ts.program(f"Y[{target}] {operator} X[{','.join(AXES[:rank])}]")
    made = program(X=given_array)
    np.testing.assert_array_equal(made, given_array.transpose(order))
    if dtype != "int64":
        back = program.adjoint(wrt=["X"])({"X": given_array, "Y.grad": made})
        np.testing.assert_array_equal(back["X.grad"] if isinstance(back, dict) else back, given_array)


def test_a_copy_goes_by_blocks() -> None:
    source = ts.program("Y[j,i] = X[i,j]").source(X=np.ones((40, 50), "float32"))
    assert "turned_lane" in source
    assert "turned_lane" not in ts.program("Y[j,i] = X[i,j] * 2").source(X=np.ones((40, 50), "float32"))


@pytest.mark.parametrize("text", [
    "Y[b,c,i,j] max= X[b,c,2*i+u,2*j+v]\nsize(u) = 2\nsize(v) = 2",
    "Y[b,c,i,j] max= X[b,c,2*i+u,2*j+v]\nsize(u) = 3\nsize(v) = 3",
    "Y[b,c,i,j] min= X[b,c,i+u,j+v]\nsize(u) = 2\nsize(v) = 4",
    "Y[b,c,i,j] max= X[b,c,3*i+u,j+v]\nsize(u) = 2\nsize(v) = 5",
])  # fmt: skip
@given(st.data())
@settings(max_examples=6, deadline=None)
def test_pools(text: str, data: st.DataObject) -> None:
    """Some numbers are equal, and some are NaN: the first of the best has the gradient."""
    shape = [data.draw(st.integers(1, most), "size") for most in (2, 3)] + [
        data.draw(st.integers(5, 20), "size") for _ in range(2)
    ]
    numbers = np.random.default_rng(data.draw(st.integers(0, 99), "seed"))
    array = numbers.integers(0, 4, shape).astype(data.draw(st.sampled_from(["float32", "float64"]), "type"))
    if data.draw(st.booleans(), "nan"):
        array[numbers.random(shape) < 0.05] = np.nan
    program = ts.program(text)
    check(program, {"X": array})
    made = np.asarray(program.run_reference({"X": array}))
    seed = numbers.standard_normal(made.shape).astype(array.dtype)
    check(program.adjoint(wrt=["X"]), {"X": array, "Y.grad": seed})


@given(st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_guards_that_compare_an_index_of_few_values_with_data(seed: int) -> None:
    numbers = np.random.default_rng(seed)
    few, long = int(numbers.integers(1, 7)), int(numbers.integers(1, 40))
    arrays = {"g": numbers.standard_normal(long), "k": numbers.integers(-2, few + 2, long)}
    sign = ("==", "<", ">=")[seed % 3]
    text = f"Z[i,u] += g[i] if u {sign} k[i]\nS[u] += g[i] * (u + 1) if u {sign} k[i]\nsize(u) = {few}\nreturn Z, S"
    check(ts.program(text), arrays)
