"""Rows of a few elements, as points in space or colours have: loops along them are too short for vectors, and the ones
around them take their place."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorswap as ts
from tensorswap.command.main import main
from tensorswap.run import tuning
from tests.test_planner import check

pytestmark = pytest.mark.compiled

TEXTS = {
    "elements": "Y[i,x] = A[i,x] * 2 + B[i,x]",
    "a number of each row": "Y[i,x] = A[i,x] / (n[i] + 3)",
    "a number of each column": "Y[i,x] = (A[i,x] - v[x]) * 2",
    "a call": "Y[i,x] = exp(A[i,x] * n[i])",
    "pairs of rows": "D[i,k,x] = A[i,x] - C[k,x]",
    "what stands in the middle": "E[k,i,x] = C[k,x] * A[i,x] + n[i]",
    "a product of all": "s += A[i,x] * B[i,x]",
    "a sum of all": "s += n[i] * (A[i,x] - B[i,x]) ** 2",
    "sums of rows": "r[i] += A[i,x] * v[x]",
    "sums of columns": "c[x] += A[i,x] * n[i]",
    "the largest of rows": "m[i] max= A[i,x] * v[x]",
    "the least of all": "m min= A[i,x] + n[i]",
    "the first of the largest": "k[i] argmax= A[i,x]",
    "the first of the least": "k[i] argmin= A[i,x] * v[x]",
    "sums of calls": "N[i,x] += exp(A[i,x] - C[k,x] * n[k])",
    "the largest of calls": "N[i,x] max= tanh(A[i,x] - C[k,x] * n[k])",
    "calls that are taken away": "N[i,x] -= exp(A[i,x] - n[i])",
    "calls of what is another type": "N[i,x] = exp(i - x)\nM[i,x] = N[i,x] * A[i,x]\nreturn M",
    "calls on three axes": "N[i,k,x] = exp(A[i,x] - C[k,x])",
    "rows after their sums": "r[i] += A[i,x]\nY[i,x] = exp((r[i] - n[i]) * v[x])\nreturn Y",
    "rows that are added after their sums": "r[i] += A[i,x]\nY[i,x] += B[i,x]\nY[i,x] += r[i] * v[x]\nreturn Y",
    "calls in steps": "for t:\n    H[t,k,x] = tanh((H[t-1,k,x] if t > 0 else 0) + A[t,x] * n[k])\nreturn H",
    "a softmax": "m[i] max= A[i,x]\nS[i] += exp(A[i,x] - m[i])\nP[i,x] = exp(A[i,x] - m[i]) / S[i]\nreturn P",
    "a loss": "m[i] max= A[i,x]\nS[i] += exp(A[i,x] - m[i])\nloss += log(S[i]) + m[i] - A[i,0]",
    "what chooses": "Y[i,x] = A[i,x] if A[i,x] > n[i] else v[x]",
    "neighbours": "F[i,x] += A[i+u,x] * w[u]\nsize(u) = 3",
    "a stencil": "F[i,x] += A[i+u,x] * w[u] * v[z]\nsize(u) = 3",
    "added twice": "Y[i,x] += A[i,x]\nY[i,x] += B[i,x] * n[i]",
    "a guard": "Y[i,x] = A[i,x] * n[i] if x <= i",
    "columns and rows turned": "T[x,i] = A[i,x] * n[i]",
    "whole numbers": "Y[i,x] = A[i,x] * x",
    "a row of a sum": "L[i,x] += A[i,x] * C[k,x] * n[k]",
    "steps": "for t:\n    H[t,x] = 0.5 * (H[t-1,x] if t > 0 else v[x]) + A[t,x]\nreturn H",
}
COLUMNS = [1, 2, 3, 4, 5, 7, 8, 9, 10, 15, 16, 17, 33, 63, 64, 65]


def given_to(program: ts.Program, rows: int, columns: int, dtype: str) -> dict[str, np.ndarray]:
    numbers = np.random.default_rng(rows * columns)
    shapes = {
        "A": (rows, columns),
        "B": (rows, columns),
        "C": (rows, columns),
        "n": (rows,),
        "v": (columns,),
        "w": (3,),
    }
    shapes["A"] = (rows + 2, columns) if "w" in program.inputs else shapes["A"]
    return {name: numbers.standard_normal(shapes[name]).astype(dtype) for name in program.inputs}


@pytest.mark.parametrize("name", TEXTS)
def test_values(name: str) -> None:
    program = ts.program(TEXTS[name])
    for columns in COLUMNS:
        for rows, dtype in ((1, "float32"), (37, "float32"), (50, "float64")):
            check(program, given_to(program, rows, columns, dtype))


VALUE = {
    "a call": "Y[i,x] ** 2",
    "pairs of rows": "D[i,k,x] ** 2",
    "neighbours": "F[i,x] ** 2",
    "a row of a sum": "L[i,x] ** 2",
    "a sum of all": "s",
    "a loss": "0",
}


@pytest.mark.parametrize("name", VALUE)
def test_gradients(name: str) -> None:
    program = ts.program(f"{TEXTS[name]}\nloss += {VALUE[name]}").grad(of="loss", wrt=["A"])
    for columns in (2, 3, 8, 10):
        check(program, given_to(program, 21, columns, "float64"))


@pytest.mark.parametrize("columns", [3, 10])
@pytest.mark.parametrize("name", TEXTS)
def test_parts_of_threads(name: str, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part has rows of its own, that may begin anywhere."""
    monkeypatch.setattr(tuning, "PARALLEL", 0)
    program = ts.program(TEXTS[name])
    for rows in (2, 3, 7, 101):
        check(program, given_to(program, rows, columns, "float32"))


@settings(max_examples=25, deadline=None, database=None)
@given(st.sampled_from(sorted(TEXTS)), st.integers(1, 70), st.integers(1, 20), st.sampled_from(["float32", "float64"]))
def test_any_size(name: str, rows: int, columns: int, dtype: str) -> None:
    program = ts.program(TEXTS[name])
    check(program, given_to(program, rows, columns, dtype))


def vectors(text: str, columns: int, capsys: pytest.CaptureFixture[str]) -> int:
    """The widest operations on numbers of the machine code's text."""
    arguments = ["explain", text, "--size", "i=1000", "--size", f"x={columns}", "--dtype", "float32"]
    assert main([*arguments, "--stage", "llvm"]) == 0
    return max(
        (int(n) for n in re.findall(r"f(?:mul|add|sub|div) .*<(\d+) x float>", capsys.readouterr().out)), default=1
    )


@pytest.mark.optimised
@pytest.mark.parametrize("columns", [2, 3, 4])
@pytest.mark.parametrize("name", ["elements", "a number of each row", "a sum of all", "sums of rows"])
def test_few_columns_have_vectors_along_them(name: str, columns: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert vectors(TEXTS[name], columns, capsys) >= 4


@pytest.mark.optimised
@pytest.mark.parametrize("columns", [8, 10, 40])
@pytest.mark.parametrize("name", ["a sum of all", "a loss"])
def test_sums_that_wait_for_themselves_are_computed_in_vectors(
    name: str, columns: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert vectors(TEXTS[name], columns, capsys) >= 4
