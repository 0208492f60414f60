"""Expressions of whole tensors: `Y = relu(A)`, `softmax(X * 2)`, `linear(x, W) + b`, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorswap as ts

R = np.random.default_rng(4)
x, W, V, b, image, filters = (R.standard_normal(s) for s in ((5, 4), (3, 4), (2, 3), (3,), (2, 3, 8, 8), (4, 3, 3, 3)))
Arrays = dict[str, Any]


def relu(a: Any) -> Any:
    return np.maximum(a, 0)


def softmax(a: Any) -> Any:
    e = np.exp(a - a.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


CASES: list[tuple[str, Arrays, Any]] = [
    ("A[n,o] += x[n,i] * W[o,i]\nY = relu(A)", {"x": x, "W": W}, relu(x @ W.T)),
    ("Y = softmax(x * 2)", {"x": x}, softmax(x * 2)),
    ("Y = softmax(-x)", {"x": x}, softmax(-x)),
    ("b[o]: array\nY = linear(x, W) + b", {"x": x, "W": W, "b": b}, x @ W.T + b),
    ("Y = linear(x, W) + b", {"x": x, "W": W, "b": 1.5}, x @ W.T + 1.5),
    ("Y = tanh(linear(x, W) * s)", {"x": x, "W": W, "s": 2.0}, np.tanh(x @ W.T * 2)),
    ("Y = linear(relu(linear(x, W)), V)", {"x": x, "W": W, "V": V}, relu(x @ W.T) @ V.T),
    ("Y = linear(input=relu(x), weight=W)", {"x": x, "W": W}, relu(x) @ W.T),
    ("H = linear(x, W)\nY = H * H / size(H, 0)", {"x": x, "W": W}, (x @ W.T) ** 2 / 5),
    ("H = linear(x, W)\nY = H if H > 0 else 0.1 * H", {"x": x, "W": W}, np.where(x @ W.T > 0, 1, 0.1) * (x @ W.T)),
    ("Y = relu(x)\nZ[i] += Y[i,j]", {"x": x}, relu(x).sum(1)),
    ("A[i,j] = x[i,j]\nc[j] += x[i,j]\nY = A - c", {"x": x}, x - x.sum(0)),
    ("s += x[i,j]\nt = s / 2\nA[i,j] = x[i,j]\nY = A * t", {"x": x}, x * x.sum() / 2),
    ("P = x * 2\nR = P * 2\nZ[i] += R[i,j]", {"x": x}, (x * 4).sum(1)),
    ("k: int\nA[i,j] = x[i,j]\nY = A * k", {"x": x, "k": 3}, x * 3),
    (
        "def f(x[n,i], W[o,i], b[o]) -> y[n,o]:\n    y = tanh(linear(x, W) + b)\nY = f(x, W, b) * 2",
        {"x": x, "W": W, "b": b},
        np.tanh(x @ W.T + b) * 2,
    ),
    (
        "def f(x[...,k], W[o,k]) -> y[...,o]:\n    y = linear(x * 2, W)\ndef g(x[...,k], W[o,k]) -> y[...,o]:\n"
        "    y = linear(x * 3, W)\nA = f(x, W)\nB = g(x, W)\nY = A - B",
        {"x": x, "W": W},
        -(x @ W.T),
    ),
]


@pytest.mark.parametrize(("text", "arrays", "expected"), CASES)
@pytest.mark.compiled
def test_it_is_what_numpy_gives(text: str, arrays: Arrays, expected: Any) -> None:
    program = ts.program(text)
    np.testing.assert_allclose(program(arrays), expected, rtol=1e-12)
    np.testing.assert_allclose(program.run_reference(arrays), expected, rtol=1e-12)
    assert ts.program(str(program)) == program


def test_pools_of_activations() -> None:
    text = "A = conv2d(X, W)\nY = max_pool2d(relu(A), kernel_size=2)"
    longer = "A = conv2d(X, W)\nB = relu_layer(A)\nY = max_pool2d(B, kernel_size=2)"
    arrays = {"X": image, "W": filters}
    np.testing.assert_array_equal(ts.program(text)(arrays), ts.program(longer)(arrays))


@pytest.mark.parametrize(("text", "arrays"), [(text, arrays) for text, arrays, _ in CASES])
def test_gradients(text: str, arrays: Arrays) -> None:
    ts.gradcheck(ts.program(text), arrays, entries=20)


STACKED = R.standard_normal((6, 4, 4)) / 2
DEFINED = """
def total(x[i]) -> s:
    s += x[i]
def scaled(x[i], a) -> y[i]:
    y[i] = x[i] * a
"""


def stacked(x: Any) -> Any:
    for weight in STACKED:
        x = np.tanh(x @ weight.T)
    return x


IN_BLOCKS: list[tuple[str, Arrays, Any]] = [
    (DEFINED + "for t:\n    Y[t] = scaled(x[t], total(x[t]))", {"x": x}, x * x.sum(1, keepdims=True)),
    (DEFINED + "for t:\n    Y[t] = scaled(scaled(x[t], 2), 3)", {"x": x}, x * 6),
    (DEFINED + "for t down:\n    Y[t] = scaled(x[t] * 2, total(x[t]) + 1)", {"x": x}, 2 * x * (x.sum(1) + 1)[:, None]),
    (
        DEFINED + "w[i]: array\nfor t:\n    Y[t] = scaled(w * 2, x[t,0])",
        {"x": x, "w": W[0]},
        np.outer(x[:, 0], 2 * W[0]),
    ),
    ("x[t,i]: array\nfor t:\n    Y[t] = softmax(x[t] * 2 - x[0])", {"x": x}, softmax(2 * x - x[0])),
    (
        "def layer(x[b,i], W[o,i]) -> y[b,o]:\n    y = tanh(linear(x, W))\nH[0,b,i] = x[b,i]\n"
        "for l:\n    H[l+1] = layer(H[l], V[l])\nY[b,i] = H[size(l),b,i]",
        {"x": x, "V": STACKED},
        stacked(x),
    ),
    (
        "H[0,b,i] = x[b,i]\nfor l:\n    H[l+1] = tanh_layer(linear(H[l], V[l]) * 1)\nY[b,i] = H[size(l),b,i]",
        {"x": x, "V": STACKED},
        stacked(x),
    ),
    (
        DEFINED + "for u:\n    for t:\n        Y[u,t] = scaled(z[u,t], total(scaled(z[u,t], 2)))",
        {"z": STACKED},
        STACKED * 2 * STACKED.sum(-1, keepdims=True),
    ),
]


@pytest.mark.parametrize(("text", "arrays", "expected"), IN_BLOCKS)
def test_a_step_has_its_own_values(text: str, arrays: Arrays, expected: Any) -> None:
    program = ts.program(text)
    np.testing.assert_allclose(program(arrays), expected, rtol=1e-12)
    assert ts.program(str(program)) == program
    ts.gradcheck(program, arrays, entries=20)


UPDATED = {"W": np.ones((2, 3)), "g": np.arange(6.0).reshape(2, 3), "rate": 0.5}
NAMED = {"B": np.ones((2, 3)), "b": np.arange(3.0), "i1": 2.0}


@pytest.mark.parametrize(
    ("text", "arrays", "expected"),
    [
        ("g[i,j]: array\nW = W - rate * g", UPDATED, UPDATED["W"] - 0.5 * UPDATED["g"]),
        ("B[j,k]: array\nb[k]: array\nP = b + B * i1", NAMED, NAMED["b"] + 2 * NAMED["B"]),
    ],
)
def test_updates_and_names(text: str, arrays: Arrays, expected: Any) -> None:
    np.testing.assert_allclose(ts.program(text)(arrays), expected)


def test_names_without_axes_stay_scalars() -> None:
    assert str(ts.program("Y = relu(A)")) == "Y = relu(A)"
    text = "def act(X[...]) -> Y[...]:\n    Y[...] = tanh(X[...])\ny = act(s)\nz = s * 2\nreturn z"
    assert ts.program(text).grad(of="z", wrt=["s"])(s=2.0)["s.grad"] == 2
    assert ts.program("s += X[i]\nt = sqrt(s)\nu = t / 2\nreturn u")(X=np.ones(8)) == np.sqrt(8) / 2


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("Y = softmax(A + B)", "nothing shows which of A and B are tensors", "pass `T`"),
        ("Y = foo(X) + 1", "`foo` is neither a function nor a definition", "floor"),
        ("Y[i] = 2 * softmax(X)", "`softmax` is not a function of the language", "whole statement"),
        ("Y += softmax(X) * 2", "`softmax` is not a function of the language", "whole statement"),
        ("X[i]: array\nY += X", "X has 0 indices", "only a plain `=`"),
        ("P = softmax(X[i,j] * 2)", "is the tensor", "statement of its own"),
    ],
)
def test_what_is_unclear_is_refused(text: str, message: str, hint: str) -> None:
    with pytest.raises(ts.SwapError, match=message) as caught:
        ts.program(text)
    assert hint in str(caught.value)


def test_ranks_that_do_not_fit_are_refused() -> None:
    program = ts.program("b[o]: array\nY = linear(x, W) + b")
    with pytest.raises(ts.SwapError, match="b"):
        program(x=x, W=W, b=np.ones(4))


# -- generated: expressions over tensors of several ranks, against numpy's own broadcasting

NAMES = {"a": (), "c": (3,), "d": (2, 3), "e": (4, 2, 3)}
LEAVES = st.sampled_from([*NAMES, "2", "0.5"])


def combined(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.tuples(children, st.sampled_from("+-*"), children).map(lambda t: f"({t[0]} {t[1]} {t[2]})")
    return binary | st.tuples(st.sampled_from(["tanh", "abs", "sin"]), children).map(lambda t: f"{t[0]}({t[1]})")


@given(st.lists(st.recursive(LEAVES, combined, max_leaves=6), min_size=1, max_size=3), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_generated_expressions(values: list[str], seed: int) -> None:
    numbers = np.random.default_rng(seed)
    arrays: Arrays = {name: numbers.standard_normal(shape) for name, shape in NAMES.items()}
    lines = ["c[k]: array", "d[j,k]: array", "e[i,j,k]: array", "F[i,j,k] = a + c[k] + d[j,k] + e[i,j,k]"]
    known: Arrays = {**arrays, "F": arrays["a"] + arrays["c"] + arrays["d"] + arrays["e"]}
    for number, value in enumerate(values):
        lines.append(f"T{number} = {value} + F")
        code = value.replace("tanh", "np.tanh").replace("abs", "np.abs").replace("sin", "np.sin")
        known[f"T{number}"] = eval(code, {"np": np}, known) + known["F"]
    text = "\n".join([*lines, f"return {', '.join(f'T{k}' for k in range(len(values)))}"])
    found = ts.program(text).run_reference(arrays)
    results = found if isinstance(found, dict) else {"T0": found}
    for name, result in results.items():
        np.testing.assert_allclose(result, known[name], rtol=1e-12, atol=1e-12, err_msg=text)
