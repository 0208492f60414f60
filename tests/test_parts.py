"""Kernels run in more parts than there are threads, of which who is free takes the next: what they make is fixed before
they start."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.run import call, execute, tuning
from tests.test_planner import check

pytestmark = pytest.mark.compiled

LAYERS = """
H[b,i,j] += X[b,i,k] * W[k,j] / 8
Z[b,i,j] = tanh(H[b,i,j])
M[b,i] max= Z[b,i,j]
E[b,i,j] = exp(Z[b,i,j] - stop(M[b,i]))
N[b,i] += E[b,i,j]
Y[b,i,j] += E[b,i,k] / N[b,i] * V[k,j]
loss += Y[b,i,j] ** 2
"""
SUMS = """
z[i,j] = exp(x[i,j])
s += z[i,j]
t[j] += z[i,j] * x[i,j]
m max= z[i,j] - x[i,j]
"""


def given(rows: int) -> dict[str, dict[str, Any]]:
    numbers = np.random.default_rng(rows)
    weights = {"W": numbers.random((32, 32)), "V": numbers.random((32, 32)) / 8}
    return {LAYERS: {"X": numbers.random((rows, 24, 32)), **weights}, SUMS: {"x": numbers.standard_normal((rows, 300))}}


@pytest.fixture(params=[2, 3, 7])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """So many, and kernels in as many parts as may be, however short they are."""
    monkeypatch.setattr(tuning, "PARALLEL", 0)
    monkeypatch.setattr(execute, "PIECE", 1)
    monkeypatch.setattr(execute, "APART", 1e9)
    monkeypatch.setattr(call, "threads", lambda: request.param)
    return int(request.param)


@pytest.mark.parametrize("rows", [13, 150, 400])
@pytest.mark.parametrize("text", [LAYERS, SUMS], ids=["layers", "sums"])
def test_values_are_those_of_the_interpreter_and_bits_the_same(text: str, rows: int, threads: int) -> None:
    program = ts.program(text)
    if text == LAYERS:
        program = program.grad(of="loss", wrt=["X", "W", "V"])
    arrays = given(rows)[text]
    check(program, arrays)
    first = program(arrays)
    for _ in range(20):
        for name, value in program(arrays).items():
            np.testing.assert_array_equal(value, first[name], err_msg=name)


def test_there_are_more_parts_than_threads(threads: int) -> None:
    made = ts.program(LAYERS).executable(given(400)[LAYERS])
    assert max(made.parts) >= 2 * threads
    assert max(made.crews) == threads
    assert all(parts % crew == 0 for parts, crew in zip(made.parts, made.crews, strict=True))


def test_short_kernels_and_large_sums_have_a_part_for_each_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call, "threads", lambda: 2)
    short = ts.program(SUMS).executable(x=np.ones((40, 50)))
    assert max(short.parts) <= 2
    sums = ts.program("y[i] = exp(x[i])\nt[j] += A[i,j] * y[i]\nreturn t")
    assert max(sums.executable(x=np.ones(200), A=np.ones((200, 20_000))).parts) <= 2
