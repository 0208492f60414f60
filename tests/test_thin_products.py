"""Products of a large matrix with few rows or columns, or with one: each thread reads its own part of the matrix, in
lines that follow each other, and what the product is stays the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorswap as ts
from tensorswap.kernel.registers import registers
from tensorswap.lower.layout import PanelsOf
from tensorswap.run import call
from tests.test_planner import check

pytestmark = pytest.mark.compiled

TEXTS = {  # with numpy's, and the axes of A and B
    "Y[i,j] += A[i,k] * B[k,j]": ("ik,kj->ij", "ik", "kj"),
    "Y[i,j] += A[i,k] * B[j,k]": ("ik,jk->ij", "ik", "jk"),
    "Y[i,j] += A[k,i] * B[k,j]": ("ki,kj->ij", "ki", "kj"),
    "Y[j,i] += A[i,k] * B[k,j]": ("ik,kj->ji", "ik", "kj"),
    "Y[i,j] -= 0.5 * A[i,k] * B[k,j]": ("ik,kj->ij", "ik", "kj"),
    "Y[i,l,j] += A[i,l,k] * B[k,j]": ("ilk,kj->ilj", "ilk", "kj"),
    "Y[l,i,j] += A[i,k] * B[l,k,j]": ("ik,lkj->lij", "ik", "lkj"),
    "Y[j] += A[k] * B[k,j]": ("k,kj->j", "k", "kj"),
    "Y[i] += A[i,k] * B[k]": ("ik,k->i", "ik", "k"),
    "Y[i,j] += A[i,k] * B[k,j] if i + j <= k": ("", "ik", "kj"),
}
FACTOR = dict.fromkeys(TEXTS, 1.0) | {"Y[i,j] -= 0.5 * A[i,k] * B[k,j]": -0.5}


def arrays(axes: tuple[str, str], sizes: dict[str, int], dtype: str) -> dict[str, Any]:
    rng = np.random.default_rng(7)
    shapes = {name: [sizes[i] for i in of] for name, of in zip("AB", axes, strict=True)}
    return {name: rng.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}


def expected(text: str, found: dict[str, Any]) -> Any:
    spec = TEXTS[text][0]
    a, b = (found[name].astype("float64") for name in "AB")
    if spec:
        return FACTOR[text] * np.einsum(spec, a, b, optimize=True)
    i, j, k = np.ogrid[: a.shape[0], : b.shape[1], : b.shape[0]]
    return np.einsum("ik,kj,ijk->ij", a, b, (i + j <= k).astype("float64"), optimize=True)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@given(
    few=st.integers(1, 20), long=st.integers(120, 330), other=st.sampled_from([1, 3, 130, 257]), turned=st.booleans()
)
@settings(max_examples=4, deadline=None)
def test_values_and_gradients(text: str, dtype: str, few: int, long: int, other: int, turned: bool) -> None:
    sizes = {"i": few, "k": long, "j": max(other, 65), "l": 2} if turned else {"i": long, "k": other, "j": few, "l": 2}
    given_arrays = arrays(TEXTS[text][1:], sizes, dtype)
    program = ts.program(text)
    scale = np.sqrt(sizes["k"])
    close = {"rtol": 1e-3, "atol": 2e-5 * scale} if dtype == "float32" else {"rtol": 1e-9, "atol": 1e-12 * scale}
    value = expected(text, given_arrays)
    np.testing.assert_allclose(program(given_arrays), value, **close)
    ones = np.ones(value.shape, dtype)
    adjoint = program.adjoint(wrt=["A", "B"])({**given_arrays, "Y.grad": ones})
    for name in "AB":
        moved = {**given_arrays, name: np.cos(np.arange(given_arrays[name].size)).reshape(given_arrays[name].shape)}
        along = float((adjoint[f"{name}.grad"].astype("float64") * moved[name]).sum())
        # the product is linear in each: its value at the direction is its derivative along it
        size = float(np.abs(adjoint[f"{name}.grad"]).sum()) + 1.0
        assert abs(along - expected(text, moved).sum()) <= (1e-4 if dtype == "float32" else 1e-10) * size


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@given(
    rows=st.integers(13, 150), steps=st.sampled_from([255, 256, 513, 600, 1030]), columns=st.integers(240, 420),
    larger=st.booleans(),
)  # fmt: skip
@settings(max_examples=3, deadline=None)
def test_products_in_panels(text: str, dtype: str, rows: int, steps: int, columns: int, larger: bool) -> None:
    """Of a matrix so large that panels of it are packed, in pieces of its sum."""
    sizes = {"i": columns, "k": steps, "j": rows, "l": 2} if larger else {"i": rows, "k": steps, "j": columns, "l": 2}
    given_arrays = arrays(TEXTS[text][1:], sizes, dtype)
    scale = np.sqrt(steps)
    close = {"rtol": 1e-3, "atol": 2e-5 * scale} if dtype == "float32" else {"rtol": 1e-9, "atol": 1e-12 * scale}
    np.testing.assert_allclose(ts.program(text)(given_arrays), expected(text, given_arrays), **close)


def test_who_reads_what() -> None:
    """Threads share the large matrix, not the few rows."""
    program = ts.program("Y[i,j] += A[i,k] * B[k,j]")
    for rows in (1, 4, 10, 60):
        plan = program.plan(A=np.ones((rows, 500), "float32"), B=np.ones((500, 700), "float32"))
        assert plan.rows[0].how.startswith(("parallel over k", "parallel over j")), plan
    assert program.plan(A=np.ones((500, 500)), B=np.ones((500, 9))).rows[0].how == "parallel over i"
    assert program.plan(A=np.ones((300, 300)), B=np.ones((300, 300))).rows[0].how == "parallel over i"


@pytest.mark.parametrize("columns", [511, 512, 575, 600, 1001])
@pytest.mark.parametrize("threads", [1, 3])
def test_strips_that_cut_lines_fill_registers(columns: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a few rows of a large matrix: they are multiples of what registers hold, but for the last."""
    monkeypatch.setattr(call, "threads", lambda: threads)
    program = ts.program("Y[i,j] += A[i,k] * B[k,j]")
    found = arrays(("ik", "kj"), {"i": 64, "k": 256, "j": columns}, "float32")
    nests = [k.nest for k in program._caller.executable(found).kernels if k.nest.index == "j"]
    assert threads == 1 or nests
    assert all(nest.grain == (64 if columns >= 512 else 32) for nest in nests), [nest.grain for nest in nests]
    np.testing.assert_allclose(program(found), expected("Y[i,j] += A[i,k] * B[k,j]", found), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("text", ["Y[i,j] += A[i,k] * B[k,j]", "Y[i,j] += A[k,i] * B[k,j]", "Y[j] += A[k] * B[k,j]"])
@given(few=st.integers(1, 7), steps=st.integers(30, 90), columns=st.integers(250, 1100), guarded=st.booleans())
@settings(max_examples=8, deadline=None)
def test_lines_that_a_few_rows_read_in_pieces(text: str, few: int, steps: int, columns: int, guarded: bool) -> None:
    """The last piece is shorter, and all begin where a guard does."""
    program = ts.program(text + " if j >= k" * guarded)
    of = TEXTS[text][1:]
    found = arrays((of[0], of[1]), {"i": few, "k": steps, "j": columns}, "float64")
    j_and_k = np.arange(columns) >= np.arange(steps)[:, None] if guarded else np.ones((steps, columns))
    kept = {**found, "B": found["B"] * j_and_k}
    np.testing.assert_allclose(program(found), expected(text, kept), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("text", ["Y[n] += 0.5 * m", "Y[n] += 0.5 * n * m", "Y[n] -= 2 * (m - 1 if m > 0 else m)"])
@pytest.mark.parametrize("shape", [(3, 12), (1, 12), (0, 12), (0, 3)])
def test_products_of_numbers_alone(text: str, shape: tuple[int, int]) -> None:
    """No tensor is read that threads could share."""
    check(ts.program(f"X[n,m]: array\nZ[n,m] = X[n,m] * 2\n{text}\nreturn Y, Z"), {"X": np.ones(shape)})


@pytest.mark.parametrize(("apart", "packed"), [(2048, True), (2049, False), (2560, False)])
def test_rows_that_share_a_place_of_the_cache_lie_in_panels(apart: int, packed: bool) -> None:
    rng = np.random.default_rng(3)
    given = {"A": rng.random((390, apart)).astype("float32"), "B": rng.random((apart, 515)).astype("float32")}
    banded = ts.program("Y[i,j] += A[i,k] * B[k,j] if k <= i")
    (kernel,) = banded.executable(given).kernels
    sides = [word.item.side for word in kernel.kernel.words if isinstance(word.item, PanelsOf)]
    assert ("a" in sides) == (packed or registers().by_lane)
    np.testing.assert_allclose(banded(given), np.tril(given["A"]) @ given["B"], rtol=1e-4)
    program = ts.program("Y[i,j] += A[i,k] * B[k,j]")
    np.testing.assert_allclose(program(given), given["A"] @ given["B"], rtol=1e-4)
