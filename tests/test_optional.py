"""Arguments that a call may leave out: tensors with a number as default, and static integers named after others."""

from __future__ import annotations

import numpy as np
import pytest

import tensorswap as ts

CONVOLUTION = """
def conv(input[n,c,h], weight[o,c,u], bias[o]=0, kernel: int = 2, stride: int = kernel) -> out[n,o,i]:
    size(i) = (size(h) - size(u)) // stride + 1
    out[n,o,i] += input[n,c,stride*i+u] * weight[o,c,u]
    out[n,o,i] += bias[o]
"""
R = np.random.default_rng(3)
INPUT, WEIGHT = R.standard_normal((2, 3, 9)), R.standard_normal((4, 3, 3))


def both(program: ts.Program, *arguments: dict[str, object]) -> np.ndarray:
    """The result, compiled and interpreted."""
    (given,) = arguments
    result = program(given)
    np.testing.assert_allclose(result, program.run_reference(given), rtol=1e-12)
    return np.asarray(result)


def test_a_tensor_left_out_is_its_default() -> None:
    program = ts.program(CONVOLUTION)
    assert ts.program(str(program)) == program
    assert program.inputs == ("input", "weight", "bias")
    plain = both(program, {"input": INPUT, "weight": WEIGHT})
    np.testing.assert_allclose(both(program, {"input": INPUT, "weight": WEIGHT, "bias": np.ones(4)}), plain + 1)


def test_derivatives_may_leave_it_out_too_and_be_taken_by_it() -> None:
    program = ts.program(CONVOLUTION).adjoint(wrt=["weight", "bias"])
    seed = R.standard_normal((2, 4, 4))
    given = {"input": INPUT, "weight": WEIGHT, "out.grad": seed}
    left_out, passed = program(given), program({**given, "bias": np.zeros(4)})
    for name in ("weight.grad", "bias.grad"):
        np.testing.assert_allclose(left_out[name], passed[name], rtol=1e-12)


def test_a_static_integer_follows_another() -> None:
    program = ts.program(CONVOLUTION)
    given = {"input": INPUT, "weight": WEIGHT}
    assert program(given).shape == (2, 4, 4)
    assert program({**given, "kernel": 3}).shape == (2, 4, 3)
    assert program({**given, "kernel": 3, "stride": 1}).shape == (2, 4, 7)


def test_a_call_in_a_text_may_leave_them_out() -> None:
    program = ts.program(CONVOLUTION + "\nY = conv(X, W, kernel=3)")
    assert "+= 0" not in str(program)
    expected = ts.program(CONVOLUTION)(input=INPUT, weight=WEIGHT, kernel=3)
    np.testing.assert_allclose(program(X=INPUT, W=WEIGHT), expected)


def test_a_sum_runs_over_the_index_of_a_tensor_left_out() -> None:
    program = ts.program("def f(x[n,c], w[c]=1) -> y[n]:\n    total += w[c]\n    y[n] += x[n,c] / total")
    x = R.standard_normal((2, 3))
    np.testing.assert_allclose(both(program, {"x": x}), x.mean(axis=1))


def test_the_derivative_sums_over_it_too() -> None:
    text = "def f(x[n,c], w[c]=1) -> loss:\n    m[n] += exp(x[n,c])\n    loss += w[c] * (log(m[n]) - x[n,c])"
    program = ts.program(text).adjoint(wrt=["x"])
    given = {"x": R.standard_normal((2, 3)), "loss.grad": 1.0}
    np.testing.assert_allclose(both(program, given), program({**given, "w": np.ones(3)}))


def test_positions_stay_as_they_are_written() -> None:
    """`h+0` reads a part of an axis; `h` alone would be all of it."""
    text = "def f(x[g], y[h], b[h]=0) -> z[h]:\n    size(g) = 2 * size(h)\n    z[h] = x[h+0] * y[h] + b[h]"
    np.testing.assert_allclose(both(ts.program(text), {"x": np.arange(6.0), "y": np.ones(3)}), [0, 1, 2])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(X[i], a: int = b, b: int = 1) -> Y[i]:\n    Y[i] = X[i]*a*b", "no static integer before it"),
        ("def f(X[i], m[i] += 0) -> Y[i]:\n    Y[i] = X[i]*m[i]", "a default is"),
        ("def f(X[i], m[i]=0) -> Y[i]:\n    Y[i] = X[i]*m[i]\nZ = f(A, 3)", "argument m of f is the tensor"),
        ("def f(X[i], m[j]=1) -> Y[i,j]:\n    Y[i,j] = X[i]*m[j]\nZ = f(A)", "size of index j"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(ts.SwapError, match=message):
        ts.program(text)(A=np.ones(3))
