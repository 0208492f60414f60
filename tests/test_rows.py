"""Statements that run along the same rows share the loops over rows: values and gradients are the interpreter's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorswap as ts
from tests.test_planner import check

pytestmark = pytest.mark.compiled

SOFTMAX = """
M[h,i] max= S[h,i,j] if {guard}
E[h,i,j] = exp(S[h,i,j] - stop(M[h,i])) if {guard}
Z[h,i] += E[h,i,j] if {guard}
P[h,i,j] = E[h,i,j] / (Z[h,i] + 1) if {guard}
loss += P[h,i,j] * S[h,i,j] if {guard}
"""
GUARDS = ["j <= i", "j >= i", "j < length[h]", "j >= i - 3 and j <= i + 2", "j <= i + h", "j % 3 != 1", "i + j < 20"]


def score(rows: int, columns: int, dtype: type = np.float64) -> dict[str, Any]:
    numbers = np.random.default_rng(rows + columns)
    return {
        "S": numbers.standard_normal((3, rows, columns)).astype(dtype),
        "length": np.array([columns, columns // 2, 1]),
    }


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize(("rows", "columns"), [(9, 16), (33, 33), (20, 129)])
def test_softmax_under_a_guard(guard: str, rows: int, columns: int) -> None:
    program = ts.program(SOFTMAX.format(guard=guard)).grad(of="loss", wrt=["S"])
    arrays = score(rows, columns)
    check(program, {name: arrays[name] for name in program.inputs})


# What one statement after the other does to rows of A, B, C (two more axes), of which each row has a number in r and q.
LINES = [
    "B[h,i,j] = A[h,i,j] * r[h,i] {guard}",
    "B[h,i,j] += A[h,i,j] {guard}",
    "B[h,i,j] += A[h,j,i] {guard}",
    "B[h,i,j] += A[h,i-1,j] if i > 0",
    "C[h,i,j] += B[h,i,j] - q[h,i] {guard}",
    "C[h,i,j] += B[h,j,i] {guard}",
    "C[h,i,j] += 2 * B[h,i,i] {guard}",
    "q[h,i] += A[h,i,j] / r[h,i] {guard}",
    "q[h,i] += A[h,i,j] * A[h,i,j] {guard}",
    "q[h,j] += A[h,i,j] {guard}",
    "t[h,i] max= A[h,i,j] {guard}",
    "t[h,i] max= A[h,j,i] {guard}",
    "u[j] += A[h,i,j] {guard}",
    "D[h,i,j] += C[h,i,j] * t[h,i] {guard}",
    "D[h,i,j] -= (C[h,i,j] if j < 5 else q[h,i]) {guard}",
    "s[h,i] += D[h,i,j] * B[h,i,j] {guard}",
    "s[h,i] += u[j] * D[h,i,j] {guard}",
]
SHARED = ["", "if j <= i", "if j > i", "if j < 11", "if j <= i + h", "if i > 2 and j > 1"]


@st.composite
def texts(draw: Any) -> str:
    lines = []
    for line in LINES:  # in this order each tensor is complete when it is read
        if draw(st.booleans()):
            lines.append(line.format(guard=draw(st.sampled_from(SHARED))))
    return "\n".join(lines or LINES[4:5])


@settings(max_examples=25, deadline=None)  # each compiles
@given(texts(), st.sampled_from([1, 7, 16, 17, 40]), st.sampled_from([np.float32, np.float64]))
def test_rows_of_many_kinds(text: str, size: int, dtype: type) -> None:
    program = _consistent(text)
    if program is None:
        return
    numbers = np.random.default_rng(size)
    shapes = {"A": (2, size, size), "B": (2, size, size), "C": (2, size, size), "D": (2, size, size), "u": (size,)}
    arrays = {name: numbers.uniform(0.5, 2, shapes.get(name, (2, size))).astype(dtype) for name in program.inputs}
    check(program, arrays)


def _consistent(text: str) -> ts.Program | None:
    """The program, if no tensor is written by `=` and `+=`, and all indices have one size."""
    lines = [line for line in text.splitlines() if not (line.startswith("B[h,i,j] =") and "B[h,i,j] +=" in text)]
    same = "size(i) = size(j)\n" if any("i" in line and "j" in line for line in lines) else ""
    try:
        return ts.program(same + "\n".join(lines))
    except ts.SwapError:
        return None


@pytest.mark.parametrize("size", [16, 33])
def test_a_quotient_of_a_sum_beside_another(size: int) -> None:
    program = ts.program("q[h,i] += A[h,i,j] / r[h,i]\nE[h,i,j] = A[h,i,j] - r[h,i]\ns[h,i] -= B[h,i,j] / r[h,i]")
    numbers = np.random.default_rng(size)
    arrays = {"A": numbers.random((3, 5, size)), "B": numbers.random((3, 5, size)), "r": numbers.random((3, 5)) + 1}
    assert "total2" in program.source(arrays)
    check(program, arrays)


def test_a_sum_over_rows_beside_what_makes_them() -> None:
    program = ts.program("E[i,j] = exp(A[i,j] - r[i])\nb[j] += E[i,j]\nq[i] += E[i,j] * A[i,j]")
    numbers = np.random.default_rng(0)
    for rows in (5, 40):
        arrays = {"A": numbers.random((rows, 33)), "r": numbers.random(rows)}
        check(program, arrays)
    parts = program.source(arrays).split("@compiled")
    assert any("exp_f8(" in part and "a0[i1] = a0[i1] + " in part for part in parts)


def test_a_softmax_has_one_loop_over_rows() -> None:
    program = ts.program(SOFTMAX.format(guard="j <= i"))
    source = program.source(S=(3, 40, 40))
    rows = [part for part in source.split("@compiled") if "max=" in part and "/" in part]
    assert len(rows) == 1
    assert rows[0].count("range(min(40,") == 3, "the largest one, what is added up, and the quotients"


def test_what_reads_other_rows_waits_for_all_of_them() -> None:
    program = ts.program("B[h,i,j] = A[h,i,j] * r[h,i]\nC[h,i,j] = B[h,i,j] + B[h,j,i]\nreturn C")
    numbers = np.random.default_rng(0)
    array, factor = numbers.standard_normal((2, 40, 40)), numbers.standard_normal((2, 40))
    made = array * factor[:, :, None]
    np.testing.assert_allclose(program(A=array, r=factor), made + made.transpose(0, 2, 1))
