"""ts.debug(bounds=True): accesses out of range, elements written twice and reads of later steps, in index terms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.errors import BoundsError

pytestmark = pytest.mark.compiled  # p(...) is the user's: under the switches it goes through the interpreter


def told(program: ts.Program | str, **arrays: Any) -> str:
    made = ts.program(program) if isinstance(program, str) else program
    with ts.debug(bounds=True), pytest.raises(BoundsError) as caught:
        made(arrays)
    return str(caught.value)


def test_a_read_out_of_range() -> None:
    said = told("Z[j] = 2 * X[j]\nY[i] = Z[g[i]]", X=np.ones(4), g=np.array([0, 4]))
    assert "line 2, column 8: statement 2: Z[g[i]] at i=1 asks for position 4 of axis 0, which has size 4" in said


def test_a_write_out_of_range() -> None:
    said = told("size(Y, 0) = 4\nY[g[i]] += X[i]", X=np.ones(2), g=np.array([0, -1]))
    assert "statement 1: Y[g[i]] at i=1 asks for position -1 of axis 0, which has size 4" in said


def test_a_computed_position() -> None:
    said = told("P[i] = 3 * g[i]\nY[i] = X[P[i]]", X=np.ones(4), g=np.array([0, 2]))
    assert "statement 2: X[P[i]] at i=1 asks for position 6 of axis 0, which has size 4" in said


def test_in_a_step_of_a_block() -> None:
    said = told("for t:\n    H[t] = x[t] + H[t-g[t]] if t > 0", x=np.ones(4), g=np.array([1, 1, 3, 1]))
    assert "statement 1: H[t-g[t]] at t=2 asks for position -1 of axis 0, which has size 4" in said


def test_an_access_that_a_derivative_no_longer_has() -> None:
    gradient = ts.program("loss += 3 * X[g[i]]").grad(wrt=["X"])
    said = told(gradient, X=np.ones(4), g=np.array([0, 4]))
    assert "statement 1: X[g[i]] at i=1 asks for position 4 of axis 0, which has size 4" in said


def test_an_element_that_a_statement_writes_twice() -> None:
    said = told("Y[i//2,k] = X[i,k]", X=np.ones((4, 3)))
    assert "statement 1 writes Y[i//2=0,k=0] at i=1, k=0, which statement 1 has written at i=0, k=0" in said


def test_an_element_that_two_statements_write() -> None:
    said = told("Y[2*i] = X[i]\nY[3*i+1] = X[i]", X=np.ones(4))
    assert "statement 2 writes Y[3*i+1=4] at i=1, which statement 1 has written at i=2" in said


def test_an_element_that_two_steps_write() -> None:
    said = told("for t:\n    H[t//2] = x[t]", x=np.ones(4))
    assert "statement 1 writes H[t//2=0] at t=1, which statement 1 has written at t=0" in said


def test_a_read_of_what_a_later_step_writes() -> None:
    text = "for t:\n    P[t,b] = 2 * H[t+1,b] if t < size(t) - 1\n    H[t,b] = P[t,b] + x[t,b]\nreturn H"
    said = told(text, x=np.ones((5, 2)))
    assert (
        "line 2, column 18: statement 1 reads H[t+1=1,b=0] at t=0, b=0, which statement 2 writes later at t=1" in said
    )


def test_what_is_right_stays_right() -> None:
    """Elements that nothing writes are 0, `inside` leaves points out, and a step may read what earlier ones wrote."""
    texts = [
        "size(i) = size(X, 0)\nY[i] += X[i+k-1] * w[k] if inside",
        "Y[2*i] = X[i]\nZ[i] = Y[i]",
        "Y[i] = X[i] if i < 2 else X[i-1]",
        "for t:\n    H[t] = X[t] + (H[t-1] if t > 0 else 0)",
    ]
    values = {"X": np.arange(5.0), "w": np.ones(3)}
    for text in texts:
        program = ts.program(text)
        given = {name: values[name] for name in program.inputs}
        with ts.debug(bounds=True):
            result = program(given)
        np.testing.assert_equal(result, program.run_reference(given))
