"""Ops compose: what one call gives another takes, whatever `...` stands for in each of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorswap as ts

R = np.random.default_rng(8)


def relu(x: Any) -> Any:
    return np.maximum(x, 0)


def pooled(x: Any) -> Any:
    return x.reshape(*x.shape[:-2], x.shape[-2] // 2, 2, x.shape[-1] // 2, 2).max(axis=(-3, -1))


def convolved(x: Any, weight: Any) -> Any:
    seen = np.lib.stride_tricks.sliding_window_view(x, weight.shape[-2:], axis=(-2, -1))
    return np.einsum("...cijuv,ocuv->...oij", seen, weight)


IMAGE, FILTERS, ROWS, WEIGHT = {"X": (2, 1, 6, 6)}, {"W": (2, 1, 3, 3)}, {"x": (5, 3)}, {"W": (4, 3)}
COMPOSED: list[tuple[str, dict[str, tuple[int, ...]], Any]] = [
    ("A = conv2d(X, W)\nY = relu_layer(A)", IMAGE | FILTERS, lambda X, W: relu(convolved(X, W))),
    ("A = conv2d(X, W)\nY = max_pool2d(A, kernel_size=2)", IMAGE | FILTERS, lambda X, W: pooled(convolved(X, W))),
    (
        "A = conv2d(X, W)\nB = relu_layer(A)\nY = max_pool2d(B, kernel_size=2)",
        IMAGE | FILTERS,
        lambda X, W: pooled(relu(convolved(X, W))),
    ),
    ("A = relu_layer(X)\nY = conv2d(A, W)", IMAGE | FILTERS, lambda X, W: convolved(relu(X), W)),
    ("A = conv2d(X, W)\nY[...] = relu(A[...])", IMAGE | FILTERS, lambda X, W: relu(convolved(X, W))),
    ("A[...] = relu(X[...])\nY = conv2d(A, W)", IMAGE | FILTERS, lambda X, W: convolved(relu(X), W)),
    ("A = linear(x, W)\nY = relu_layer(A)", ROWS | WEIGHT, lambda x, W: relu(x @ W.T)),
    (
        "A = linear(x, W)\nB = tanh_layer(A)\nY += B[n,o] * B[n,o]",
        ROWS | WEIGHT,
        lambda x, W: (np.tanh(x @ W.T) ** 2).sum(),
    ),
    (
        "A = linear(x, W)\nB = tanh_layer(A)\nY = linear(B, V)",
        {**ROWS, **WEIGHT, "V": (2, 4)},
        lambda x, W, V: np.tanh(x @ W.T) @ V.T,
    ),
    (
        "def layer(x[...,k], W[o,k]) -> y[...,o]:\n    a = linear(x, W)\n    y = relu_layer(a)\n"
        "A = layer(x, W)\nY = layer(A, V)",
        {**ROWS, **WEIGHT, "V": (2, 4)},
        lambda x, W, V: relu(relu(x @ W.T) @ V.T),
    ),
    (
        "def block(x[...,c,h,w], W[o,c,u,v]) -> y[...,o,i,j]:\n    a = conv2d(x, W)\n    y = relu_layer(a)\n"
        "A = block(X, W)\nY = max_pool2d(A, kernel_size=2)",
        IMAGE | FILTERS,
        lambda X, W: pooled(relu(convolved(X, W))),
    ),
    (
        "A = linear(x, W)\nY = mse_loss(A, y)",
        {**ROWS, **WEIGHT, "y": (5, 4)},
        lambda x, W, y: ((x @ W.T - y) ** 2).mean(),
    ),
]


@pytest.mark.parametrize(("text", "shapes", "expected"), COMPOSED)
def test_what_calls_give_calls_take(text: str, shapes: dict[str, tuple[int, ...]], expected: Any) -> None:
    program = ts.program(text)
    arrays = {name: R.standard_normal(shape) for name, shape in shapes.items()}
    np.testing.assert_allclose(program(arrays), expected(**arrays), rtol=1e-12)
    assert ts.program(str(program)) == program
    ts.gradcheck(program, arrays, entries=20)


@pytest.mark.compiled
@pytest.mark.parametrize(("text", "shapes", "expected"), [COMPOSED[k] for k in (2, 8)])
def test_compiled(text: str, shapes: dict[str, tuple[int, ...]], expected: Any) -> None:
    arrays = {name: R.standard_normal(shape) for name, shape in shapes.items()}
    np.testing.assert_allclose(ts.program(text)(arrays), expected(**arrays), rtol=1e-12)
    ts.gradcheck(ts.program(text), arrays, entries=20)


@pytest.mark.parametrize("start", ["linear(x, W)", "copied(x, W)"])
def test_a_call_gives_the_start_of_a_recurrence(start: str) -> None:
    """`linear` adds up and `copied` assigns: either may write the first step of what the block assigns."""
    program = ts.program(
        "def copied(x[b,i], W[o,i]) -> y[b,o]:\n    z[b,o] += x[b,i] * W[o,i]\n    y[b,o] = z[b,o]\n"
        f"H[0] = {start}\nfor t:\n    H[t+1,b,o] = tanh(H[t,b,o] + u[t])"
    )
    x, W, u = (R.standard_normal(shape) for shape in ((5, 3), (4, 3), (6,)))
    state = [x @ W.T]
    for step in u:
        state.append(np.tanh(state[-1] + step))
    np.testing.assert_allclose(program(x=x, W=W, u=u), state, rtol=1e-12)
    ts.gradcheck(program, {"x": x, "W": W, "u": u})


def test_a_call_gives_the_start_in_a_branch() -> None:
    program = ts.program("H0 = linear(x, W)\nfor t:\n    H[t,b,o] = tanh((H[t-1,b,o] if t > 0 else H0[b,o]) + u[t])")
    x, W, u = (R.standard_normal(shape) for shape in ((5, 3), (4, 3), (6,)))
    assert program(x=x, W=W, u=u).shape == (6, 5, 4)
    ts.gradcheck(program, {"x": x, "W": W, "u": u})


def test_an_axis_written_through_an_index_is_as_long_as_what_reads_it() -> None:
    program = ts.program("y[seg[k],o] += v[k] * w[key[k],o]\nz[n,o] = b[n,o] * y[n,o]")
    arrays = {"v": R.standard_normal(3), "w": R.standard_normal((2, 4)), "b": R.standard_normal((5, 4))}
    seg, key = np.array([0, 4, 0]), np.array([1, 1, 0])
    expected = np.zeros((5, 4))
    np.add.at(expected, seg, arrays["v"][:, None] * arrays["w"][key])
    np.testing.assert_allclose(program(arrays, seg=seg, key=key), arrays["b"] * expected, rtol=1e-12)
    with pytest.raises(ts.SwapError, match="position 5"):
        program(arrays, seg=seg + 1, key=key)


@pytest.mark.compiled
def test_training_reaches_data_that_enters_through_calls_alone() -> None:
    program = ts.program("A = linear(x, W)\nB = tanh_layer(A)\nloss = mse_loss(B, y)")
    by_hand = ts.program("A[b,o] += x[b,k] * W[o,k]\nloss += (tanh(A[b,o]) - y[b,o]) ** 2 / (size(b) * size(o))")
    data = {"x": R.standard_normal((40, 3)), "y": R.standard_normal((40, 4))}
    start = {"W": R.standard_normal((4, 3))}
    made, expected = (ts.fit(p, start, data, batch="b", batch_size=10, progress=False) for p in (program, by_hand))
    np.testing.assert_allclose(made.params["W"], expected.params["W"], rtol=1e-10)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A[i] = X[i]\nB = attention(A, A, A)", r"line 2.*A has 1 axis, which does not fit Q\[b,h,i,d\] of attention"),
        ("A = cross_entropy(X, y)\nB = conv2d(A, W)", "line 2.*A leaves 0 axes for"),
    ],
)
def test_what_does_not_fit_is_said_of_the_users_text(text: str, message: str) -> None:
    with pytest.raises(ts.SwapError, match=message):
        ts.program(text)


def test_what_a_definition_keeps_to_itself_is_no_output() -> None:
    text = "def f(X[i]) -> Y[i]:\n    T[i] = 2 * X[i]\n    Y[i] = X[i] + 1\n\nZ = f(A)"
    program = ts.program(text)
    assert program.outputs == ("Z",)
    assert ts.program(str(program)).outputs == ("Z",)
    np.testing.assert_array_equal(program(A=np.ones(3)), np.full(3, 2.0))
    assert ts.program(f"{text}\nreturn Z").outputs == ("Z",)
    assert ts.program(f"{text}\nU = f(Z)\nV[i] = A[i]").outputs == ("U", "V")


def test_what_a_definition_reads_of_what_it_gives_stays_an_output() -> None:
    running = (
        "def f(X[t]) -> Y[t]:\n    for t:\n        T[t] = X[t] + (Y[t-1] if t > 0 else 0)\n        Y[t] = 2 * T[t]\n\n"
    )
    program = ts.program(running + "Z = f(A)")
    assert program.outputs == ("Z",)
    np.testing.assert_array_equal(program(A=np.ones(3)), [2, 6, 14])
    assert ts.program(running + "Z = f(A)\nU = f(Z)").outputs == ("U",)
    assert ts.program("values, places = cummax(X)").outputs == ("values", "places")
    assert ts.program("values, places = cummax(X)\nY[i,j] = values[i,j]").outputs == ("places", "Y")
