"""Sums in windows, w[u,v] += a[i+u,j+v] * b[i,j], and products of small matrices: tiles, as the interpreter has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorswap as ts

pytestmark = pytest.mark.compiled
R = np.random.default_rng(11)

WINDOWS: dict[str, tuple[str, tuple[int, ...], tuple[int, ...], dict[str, int], bool]] = {  # and whether tiles run it
    "depthwise": ("W[c,u,v] += X[n,c,i+u,j+v] * G[n,c,i,j]", (3, 5, 9, 40), (3, 5, 7, 38), {}, True),
    "wide windows": ("W[c,u,v] += X[n,c,i+u,j+v] * G[n,c,i,j]", (2, 3, 12, 50), (2, 3, 7, 41), {}, True),
    "in one direction": ("W[c,u] += X[n,c,i+u] * G[n,c,i]", (3, 5, 40), (3, 5, 36), {}, True),
    "of a line": ("W[u] += X[i+u] * G[i]", (50,), (33,), {}, True),
    "of a plane": ("W[u,v] -= 0.5 * X[i+u,j+v] * G[i,j]", (20, 50), (14, 43), {}, True),
    "by two": ("W[u,v] += X[2*i+u,j+v] * G[i,j]", (41, 50), (18, 43), {"u": 3}, True),
    "backwards": ("W[u,v] += X[i-u+2,j-v+2] * G[i,j]", (20, 50), (14, 43), {"u": 3, "v": 3}, True),
    "leaping along": ("W[u,v] += X[i+u,2*j+v] * G[i,j]", (20, 81), (14, 39), {"v": 3}, False),
    "in space": ("W[u,v,w] += X[i+u,j+v,k+w] * G[i,j,k]", (8, 9, 33), (6, 7, 30), {}, True),
    "many together": ("W[c,u,v,w] += X[n,c,i+u,j+v,k+w] * G[n,c,i,j,k]", (2, 3, 6, 7, 33), (2, 3, 4, 5, 31), {}, True),
    "short lines": ("W[c,u,v] += X[n,c,i+u,j+v] * G[n,c,i,j]", (3, 5, 9, 9), (3, 5, 7, 7), {}, False),
}


def agree(program: ts.Program, arrays: dict[str, Any], rounding: float) -> None:
    expected = program.run_reference({k: v.astype(float) if hasattr(v, "astype") else v for k, v in arrays.items()})
    np.testing.assert_allclose(program(arrays), expected, rtol=0, atol=rounding * np.abs(expected).max())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", WINDOWS)
def test_windows(name: str, dtype: str) -> None:
    text, of_x, of_g, sizes, tiled = WINDOWS[name]
    program = ts.program(text)
    arrays = {"X": R.standard_normal(of_x).astype(dtype), "G": R.standard_normal(of_g).astype(dtype), **sizes}
    assert ("dot_" in program.source(arrays)) == tiled
    agree(program, arrays, 1e-4 if dtype == "float32" else 1e-12)


def test_a_window_that_adds_to_what_is_there() -> None:
    program = ts.program("W[u] += B[u]\nW[u] += X[i+u] * G[i]")
    agree(program, {"B": R.standard_normal(5), "X": R.standard_normal(44), "G": R.standard_normal(40)}, 1e-12)


def test_a_guarded_window_is_no_tile() -> None:
    program = ts.program("W[u] += X[i+u] * G[i] if G[i] > 0")
    arrays = {"X": R.standard_normal(44), "G": R.standard_normal(40)}
    assert "dot_" not in program.source(arrays)
    agree(program, arrays, 1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [2, 3, 4, 5, 6, 7, 8, 9])
@pytest.mark.parametrize(
    "places", ["A[n,i,k] * B[n,j,k]", "A[n,k,i] * B[n,j,k]", "A[n,i,k] * B[n,k,j]", "A[n,k,i] * B[n,k,j]"]
)
def test_small_matrices(places: str, size: int, dtype: str) -> None:
    program = ts.program(f"Y[n,i,j] += {places}")
    arrays = {name: R.standard_normal((9, size, size)).astype(dtype) for name in "AB"}
    agree(program, arrays, 1e-5 if dtype == "float32" else 1e-13)


@pytest.mark.parametrize("shape", [(4, 8, 6), (6, 4, 8), (8, 3, 4), (5, 8, 2)])
def test_small_matrices_that_are_not_square(shape: tuple[int, int, int]) -> None:
    i, j, k = shape
    program = ts.program("Y[n,i,j] += A[n,i,k] * B[n,j,k]")
    agree(program, {"A": R.standard_normal((7, i, k)), "B": R.standard_normal((7, j, k))}, 1e-13)


@pytest.mark.parametrize("shape", [(256, 256, 256), (200, 190, 150), (256, 250, 40)])
def test_products_of_which_threads_cut_the_lines(shape: tuple[int, int, int]) -> None:
    """Their targets are as large as what they read: no thread has a copy of one."""
    i, j, k = shape
    program = ts.program("Y[i,j] += A[k,i] * B[k,j]")
    A, B = R.standard_normal((k, i)), R.standard_normal((k, j))
    np.testing.assert_allclose(program(A=A, B=B), A.T @ B, rtol=0, atol=1e-11)
    assert "copies" not in str(program.plan(A=A, B=B))
