"""Eager values: the documents' numbers, every rule against differences, control flow, depth, types, refusals."""

from __future__ import annotations

import copy
import gc
import importlib.util
import math
import pickle
import tracemalloc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorswap as ts
from tensorswap.eager import dispatch, elementwise, products, scalar
from tensorswap.eager.tensor import OPEN
from tensorswap.errors import ArgumentError, BoundsError, DtypeError, ShapeError

R = np.random.default_rng(11)
QUICK = settings(max_examples=80, deadline=None, derandomize=True, database=None)


def check_gradient(function: Callable[..., Any], *arrays: Any, tolerance: float = 1e-6) -> None:
    """Holds the gradients of a function of tensors against central differences of its values."""
    tensors = [ts.tensor(a) for a in arrays]
    result = function(*tensors)
    weights = R.uniform(0.5, 1.5, result.shape)
    result.backward(weights)
    for k, (tensor, array) in enumerate(zip(tensors, arrays, strict=True)):
        expected = np.zeros(np.shape(array))
        for at in np.ndindex(np.shape(array)):
            sides = []
            for step in (1e-5, -1e-5):
                moved = np.array(array, np.float64)
                moved[at] += step
                inputs = list(arrays)
                inputs[k] = float(moved) if isinstance(array, float) else moved
                sides.append(np.sum(function(*(ts.tensor(i) for i in inputs)).value * weights))
            expected[at] = (sides[0] - sides[1]) / 2e-5
        grad = np.zeros(np.shape(array)) if tensor.grad is None else tensor.grad
        assert np.shape(grad) == np.shape(array)
        np.testing.assert_allclose(grad, expected, rtol=tolerance, atol=tolerance * max(1, np.abs(expected).max()))


def test_the_check_can_fail() -> None:
    wrong = elementwise.One("wrong", np.sin, lambda g, z, x: 1.0001 * g * np.cos(x))
    with pytest.raises(AssertionError):
        check_gradient(wrong, np.array([0.3, 0.7]))
    with pytest.raises(AssertionError):
        check_gradient(wrong, 0.3)


# -- the documents


def test_the_first_graph() -> None:
    x, y, z = ts.tensor(-2), ts.tensor(5), ts.tensor(-4)
    q = x + y
    f = q * z
    f.backward()
    assert (f.value, q.value) == (-12.0, 3.0)
    assert (x.grad, y.grad, z.grad, q.grad, f.grad) == (-4.0, -4.0, 3.0, -4.0, 1.0)


def test_the_sigmoid_graph() -> None:
    w0, x0, w1, x1, w2 = (ts.tensor(v) for v in (2.0, -1.0, -3.0, -2.0, -3.0))
    f = 1 / (1 + np.exp(-(w0 * x0 + w1 * x1 + w2)))
    f.backward()
    assert f.item() == pytest.approx(1 / (1 + math.exp(-1)))
    slope = f.item() * (1 - f.item())
    expected = [-1 * slope, 2 * slope, -2 * slope, -3 * slope, slope]
    assert [t.grad for t in (w0, x0, w1, x1, w2)] == pytest.approx(expected)


def test_the_relu_vector() -> None:
    x = ts.tensor([1, -2, 3, -1])
    y = x.relu()
    np.testing.assert_array_equal(y.value, [1, 0, 3, 0])
    y.backward([4, -1, 5, 9])
    np.testing.assert_array_equal(x.grad, [4, 0, 5, 0])


def test_the_matrix_product() -> None:
    x = ts.tensor([[2, 1, -3], [-3, 4, 2]])
    w = ts.tensor([[3, 2, 1, -1], [2, 1, 3, 2], [3, 2, 1, -2]])
    y = x @ w
    np.testing.assert_array_equal(y.value, [[-1, -1, 2, 6], [5, 2, 11, 7]])
    y.backward([[2, 3, -3, 9], [-8, 1, 4, 6]])
    np.testing.assert_array_equal(x.grad, [[0, 16, -9], [-24, 9, -30]])
    np.testing.assert_array_equal(w.grad, x.value.T @ y.grad)


def test_a_large_matrix_product_needs_little_more_than_its_arrays() -> None:
    x, w = np.ones((64, 4096), np.float32), np.ones((4096, 4096), np.float32)
    tracemalloc.start()
    X, W = ts.tensor(x, copy=False), ts.tensor(w, copy=False)
    (X @ W).sum().backward()
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert X.grad[0, 0] == 4096
    assert W.grad[0, 0] == 64
    assert held < W.grad.nbytes + X.grad.nbytes + 1e6
    assert peak < 200e6, "the Jacobians would take 256 GB"


def test_the_function_of_two_numbers() -> None:
    x1, x2 = ts.tensor(2.0), ts.tensor(5.0)
    f = np.log(x1) + x1 * x2 - np.sin(x2)
    f.backward()
    assert f.item() == pytest.approx(math.log(2) + 10 - math.sin(5), rel=1e-15)
    assert (x1.grad, x2.grad) == pytest.approx((0.5 + 5, 2 - math.cos(5)), rel=1e-15)


def test_the_branch_that_python_takes() -> None:
    for value in (2.0, -2.0):
        a, b, c = ts.tensor(value), ts.tensor(3.0), ts.tensor(4.0)
        x = a + b if a > 0 else a + c
        x.backward()
        assert (b.grad, c.grad) == ((1.0, None) if value > 0 else (None, 1.0))


def test_the_swap_rule_of_any_statement() -> None:
    A, B = ts.tensor(R.standard_normal((2, 3, 5))), ts.tensor(R.standard_normal((2, 4, 5)))
    Y = ts.apply("Y[h,i,j] += A[h,i,k] * B[h,j,k]", A=A, B=B)
    Y.backward(seed := R.standard_normal(Y.shape))
    np.testing.assert_allclose(Y.value, np.einsum("hik,hjk->hij", A.value, B.value))
    np.testing.assert_allclose(A.grad, np.einsum("hij,hjk->hik", seed, B.value))
    np.testing.assert_allclose(B.grad, np.einsum("hik,hij->hjk", A.value, seed))


# -- rules against differences

X, Y = R.uniform(0.2, 0.9, (2, 3)), R.uniform(0.2, 0.9, 3)
UNARY = [
    np.negative, np.absolute, np.square, np.reciprocal, np.sqrt, np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10,
    np.log1p, np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan, np.sinh, np.cosh, np.tanh, np.arcsinh,
    np.arctanh, np.fabs, np.positive,
]  # fmt: skip
BINARY = [
    np.add, np.subtract, np.multiply, np.divide, np.power, np.maximum, np.minimum, np.arctan2, np.hypot, np.logaddexp,
    np.remainder,
]  # fmt: skip
OWN = [ts.eager.relu, ts.eager.sigmoid, ts.eager.silu, ts.eager.gelu, ts.eager.softplus, ts.eager.erf]


@pytest.mark.parametrize("function", UNARY, ids=lambda f: f.__name__)
def test_functions_of_one_argument(function: Any) -> None:
    for sign in (1, -1) if function in (np.absolute, np.sinh, np.tanh, np.arctan, np.exp) else (1,):
        check_gradient(function, sign * X)
        check_gradient(function, sign * 0.7)
    np.testing.assert_array_equal(function(ts.tensor(X)).value, function(X))
    assert function(ts.tensor(0.7)).value == pytest.approx(float(function(0.7)), rel=1e-15)


def test_acosh() -> None:
    check_gradient(np.arccosh, X + 1.5)


@pytest.mark.parametrize("function", BINARY, ids=lambda f: f.__name__)
def test_functions_of_two_arguments(function: Any) -> None:
    check_gradient(function, X, Y)
    check_gradient(function, Y, X + 0.05)
    check_gradient(function, 0.7, 0.45)
    check_gradient(function, 0.7, X)
    check_gradient(lambda t: function(t, 0.37), X)
    check_gradient(lambda t: function(0.37, t), X)
    check_gradient(lambda t: function(t, Y), 0.13)
    np.testing.assert_array_equal(function(ts.tensor(X), Y).value, function(X, Y))
    np.testing.assert_array_equal(function(X, ts.tensor(Y)).value, function(X, Y))


@pytest.mark.parametrize("function", OWN, ids=lambda f: f.name)
def test_functions_that_numpy_lacks(function: Any) -> None:
    check_gradient(function, X - 0.5)
    check_gradient(function, 0.4)
    check_gradient(function, -0.4)
    array = function(ts.tensor(np.array([0.4, -3.0]))).value
    assert [function(ts.tensor(v)).value for v in (0.4, -3.0)] == pytest.approx(list(array), rel=1e-14)
    assert isinstance(function(X), np.ndarray)


@pytest.mark.parametrize(
    "function",
    [
        lambda t: 3 - t, lambda t: t - 3, lambda t: 2 / t, lambda t: t / 2, lambda t: 2**t, lambda t: t**2,
        lambda t: t**3, lambda t: t**0, lambda t: t**-1.5, lambda t: t % 0.3, lambda t: 0.3 % t, lambda t: abs(-t),
        lambda t: +t, lambda t: -t, lambda t: t * t + t, lambda t: t + 2 * t, lambda t: 2 + t * 3, lambda t: t**t,
    ],
)  # fmt: skip
def test_operators(function: Any) -> None:
    check_gradient(function, X)
    check_gradient(function, 0.7)


MATRICES = [((2, 3), (3, 4)), ((3,), (3,)), ((3,), (3, 2)), ((2, 3), (3,)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 2)),
            ((3,), (5, 3, 2)), ((5, 2, 3), (3,)), ((4, 1, 2, 3), (5, 3, 2))]  # fmt: skip


@pytest.mark.parametrize("shapes", MATRICES)
def test_matrix_products(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    a, b = R.standard_normal(shapes[0]), R.standard_normal(shapes[1])
    check_gradient(lambda x, y: x @ y, a, b)
    check_gradient(lambda x: x @ b, a)
    check_gradient(lambda y: a @ y, b)


REDUCTIONS: list[Any] = [np.sum, np.mean, np.max, np.min, np.prod, np.var, np.std]


@pytest.mark.parametrize("function", REDUCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 2), (2, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(function: Any, axis: Any, keepdims: bool) -> None:
    array = R.standard_normal((2, 3, 2))
    check_gradient(lambda t: function(t, axis=axis, keepdims=keepdims), array)
    expected = function(array, axis=axis, keepdims=keepdims)
    np.testing.assert_array_equal(function(ts.tensor(array), axis=axis, keepdims=keepdims).value, expected)


def test_reductions_of_one_number_and_with_zeros() -> None:
    for function in REDUCTIONS[:5]:
        check_gradient(function, 0.7)
    check_gradient(np.prod, np.array([0.0, 2.0, 3.0]))
    check_gradient(np.prod, np.array([0.0, 0.0, 3.0]))


def test_max_routes_to_the_first_winner() -> None:
    x = ts.tensor([1.0, 3.0, 3.0])
    x.max().backward()
    np.testing.assert_array_equal(x.grad, [0, 1, 0])
    a, b = ts.tensor([1.0, 2.0]), ts.tensor([1.0, 3.0])
    np.maximum(a, b).backward([1, 1])
    np.testing.assert_array_equal([a.grad, b.grad], [[1, 0], [0, 1]])


@pytest.mark.parametrize(
    "function",
    [
        lambda t: t.reshape(3, 2), lambda t: t.reshape((6,)), lambda t: t.reshape(-1), lambda t: t.T,
        lambda t: t.transpose(), lambda t: t.transpose(1, 0), lambda t: np.transpose(t, (1, 0)), np.ravel,
        lambda t: np.swapaxes(t, 0, 1), lambda t: np.moveaxis(t, 0, -1), lambda t: np.expand_dims(t, 1),
        lambda t: np.squeeze(t[:, :1]), lambda t: np.broadcast_to(t, (4, 2, 3)), lambda t: t[1], lambda t: t[1, 2],
        lambda t: t[:, ::2], lambda t: t[..., -1], lambda t: t[:, None, 1:], lambda t: t[[0, 1, 0, 0]],
        lambda t: t[np.array([0, 1, 1]), np.array([2, 0, 0])], lambda t: t[:, np.array([0, 0])],
        lambda t: t[np.array([[True, False, True], [False, True, False]])], lambda t: t[np.array([-1, 1])],
        lambda t: np.concatenate([t, t * 2], axis=1), lambda t: np.concatenate([t, X]),
        lambda t: np.stack([t, X, t], axis=-1), lambda t: np.where(X > 0.5, t, t * 3),
        lambda t: np.where(X > 0.5, t, 0), lambda t: np.where(X > 0.5, 1.0, t), lambda t: np.clip(t, 0.3, 0.6),
        lambda t: np.dot(t, X.T), lambda t: np.dot(t, 2.0), lambda t: np.einsum("ij,kj->ik", t, t),
        lambda t: np.stack(list(t[0])),
    ],
)  # fmt: skip
def test_moving_elements(function: Any) -> None:
    check_gradient(function, X)
    np.testing.assert_allclose(function(ts.tensor(X)).value, function(X), rtol=1e-15)
    np.testing.assert_allclose(function(ts.tensor(X).detach()).value, function(X), rtol=1e-15)


def test_joining_scalars() -> None:
    check_gradient(lambda a, b: np.stack([a, b * 2, a]), 0.3, 0.4)


# -- scalars follow numpy where Python would raise


@pytest.mark.parametrize(
    ("function", "at"),
    [
        (np.log, 0.0), (np.log, -1.0), (np.sqrt, 0.0), (np.sqrt, -1.0), (np.exp, 1e4), (np.sinh, 1e4), (np.cosh, 1e4),
        (np.arcsin, 1.0), (np.arcsin, 2.0), (np.arccos, 2.0), (np.log1p, -1.0), (np.log1p, -2.0), (np.sin, math.inf),
        (np.tan, math.nan), (np.expm1, 1e4), (np.reciprocal, 0.0), (np.absolute, 0.0), (np.tanh, math.inf),
        (lambda t: 1 / t, 0.0), (lambda t: t / 0.0, 1.0), (lambda t: t / 0, -1.0), (lambda t: t**0.5, -1.0),
        (lambda t: t**-1, 0.0), (lambda t: t**3, 1e200), (lambda t: t**t, -1.5), (lambda t: t**t, 0.0),
        (lambda t: 0.0**t, -1.0), (lambda t: (-2.0) ** t, 0.5), (lambda t: t // 0.0, 1.0), (lambda t: t % 0.0, 1.0),
        (lambda t: t * math.inf, 0.0), (ts.eager.relu, math.nan), (ts.eager.softplus, 1e4), (ts.eager.sigmoid, -1e4),
        (ts.eager.gelu, -1e3), (ts.eager.silu, -1e4), (ts.eager.relu, 0.0),
    ],
)  # fmt: skip
def test_scalars_where_there_is_no_result(function: Any, at: float) -> None:
    x, array = ts.tensor(at), ts.tensor(np.array([at]))
    with np.errstate(all="ignore"):
        y, expected = function(x), function(array)
    np.testing.assert_allclose(y.value, expected.value[0], rtol=1e-14)
    y.backward() if y.uses != -3 else None
    expected.backward([1.0]) if expected.uses != -3 else None
    if array.grad is not None:
        np.testing.assert_allclose(x.grad, array.grad[0], rtol=1e-14)


def test_every_scalar_rule_is_that_of_the_arrays() -> None:
    known = {f.name for f in vars(elementwise).values() if isinstance(f, elementwise.One)}
    assert set(scalar.RULES) <= known | {"sigmoid", "silu", "gelu", "softplus", "erf"}
    for name in scalar.RULES.keys() & known:
        function = next(f for f in vars(elementwise).values() if isinstance(f, elementwise.One) and f.name == name)
        for value in (-0.7, -0.3, 0.2, 0.9):
            with np.errstate(all="ignore"):
                z = function.function(np.float64(value))
                slope = function.gradient(np.float64(1), z, np.float64(value)) if function.gradient else 0.0
            if np.isfinite(z):
                made = scalar.RULES[name](scalar.leaf(value, OPEN))
                assert (made.value, made.left_slope) == pytest.approx((float(z), float(slope)), rel=1e-13)


# -- graphs


def test_gradients_add_up_where_a_value_is_used_twice() -> None:
    x = ts.tensor(3.0)
    y = x * x
    z = y * y + y
    z.backward()
    assert (y.grad, x.grad) == (19.0, 114.0)
    w = ts.tensor([1.0, 2.0])
    (w * w + w).sum().backward()
    np.testing.assert_array_equal(w.grad, [3, 5])


def test_gradients_of_leaves_add_up_until_they_are_cleared() -> None:
    x, w = ts.tensor(3.0), ts.tensor([1.0, 2.0])
    for _ in range(2):
        (x * x).backward()
        (w * 2).backward([1, 1])
    assert x.grad == 12.0
    np.testing.assert_array_equal(w.grad, [4, 4])
    x.zero_grad()
    assert x.grad is None
    x.backward(5)
    assert x.grad == 5.0


def test_python_chooses_the_graph_anew() -> None:
    def collatz(x: Any) -> Any:
        n, y = int(float(x)), x
        while n > 1:
            y, n = (y / 2, n // 2) if n % 2 == 0 else (3 * y + 1, 3 * n + 1)
        return y

    for start, slope in ((8, 1 / 8), (6, 3 * 3 / 2**6)):
        x = ts.tensor(start)
        y = collatz(x)
        y.backward()
        assert (y.value, x.grad) == (1.0, slope)


def test_an_exception_leaves_no_trace() -> None:
    def risky(x: Any) -> Any:
        y = x * 10
        if y > 5.0:
            raise OverflowError
        return y

    x = ts.tensor(2.0)
    try:
        z = risky(x)
    except OverflowError:
        z = x * x
    z.backward()
    assert x.grad == 4.0


def test_a_second_backward_is_refused() -> None:
    x = ts.tensor(3.0)
    y = x * x
    y.backward()
    with pytest.raises(ArgumentError, match="through this graph already"):
        y.backward()
    with pytest.raises(ArgumentError, match="through this graph already"):
        (y + x).backward()
    assert x.grad == 6.0, "a refused pass changes nothing"
    a = ts.tensor([1.0, 2.0])
    b = a * 2
    b.sum().backward()
    with pytest.raises(ts.SwapError, match="compute the values again"):
        (b * a).sum().backward()
    np.testing.assert_array_equal(a.grad, [2, 2])


def test_a_refused_pass_can_be_followed_by_a_right_one() -> None:
    x, spent = ts.tensor(3.0), ts.tensor(1.0) * 2
    spent.backward()
    y = x * x
    with pytest.raises(ArgumentError):
        (y * spent).backward()
    (y + y).backward()
    assert x.grad == 12.0


def test_a_million_steps_deep() -> None:
    x = ts.tensor(1.0)
    y = x
    for _ in range(1_000_000):
        y = y + 0.5
    y.backward()
    assert (y.value, x.grad) == (500001.0, 1.0)


def test_a_deep_graph_is_freed_without_recursion() -> None:
    x = ts.tensor(1.0)
    y = x
    for _ in range(400_000):
        y = y + x
    del y
    array = ts.tensor(np.ones(1))
    z = array
    for _ in range(50_000):
        z = z + array
    del z
    gc.collect()


def test_a_deep_graph_of_arrays() -> None:
    x = ts.tensor(np.ones(2))
    y = x
    for _ in range(20_000):
        y = y + 1.0
    y.sum().backward()
    np.testing.assert_array_equal(x.grad, [1, 1])


def test_the_graph_is_freed_by_backward() -> None:
    class Marked(np.ndarray):
        pass

    held = Marked((3,))
    held[:] = 1
    held.flags.writeable = False  # so that no copy is made
    watched = weakref.ref(held)
    x = ts.tensor(np.ones(3))
    y = (x * held).sum()
    del held
    assert watched() is not None
    y.backward()
    assert watched() is None


def test_leaves_own_their_gradients() -> None:
    x, y = ts.tensor([1.0, 2.0]), ts.tensor([3.0, 4.0])
    z = x + y
    z.backward([1, 1])
    assert x.grad is not y.grad
    x.grad *= 5
    np.testing.assert_array_equal([x.grad, y.grad, z.grad], [[5, 5], [1, 1], [1, 1]])
    w = ts.tensor(np.ones((2, 3)))
    w.sum().backward()
    w.grad += 1  # no view of something that is repeated
    np.testing.assert_array_equal(w.grad, np.full((2, 3), 2.0))


def test_a_network_learns() -> None:
    data = R.standard_normal((40, 2))
    label = (data[:, 0] * data[:, 1] > 0).astype(float)
    W1, b1 = ts.tensor(R.standard_normal((2, 16))), ts.tensor(np.zeros(16))
    W2 = ts.tensor(R.standard_normal(16) * 0.3)
    losses = []
    for _ in range(150):
        loss = np.mean((np.tanh(data @ W1 + b1) @ W2 - label) ** 2)
        loss.backward()
        for parameter in (W1, b1, W2):
            parameter.value = parameter.value - 0.2 * parameter.grad
            parameter.zero_grad()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]


def test_the_engines_of_the_benchmark_agree() -> None:
    path = Path(__file__).parent.parent / "benchmarks" / "eager.py"
    spec = importlib.util.spec_from_file_location("benchmark_of_eager_values", path)
    assert spec
    assert spec.loader
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    np.testing.assert_allclose(benchmark.scalars_of_tensorswap()(), benchmark.scalars_of_plain()(), rtol=1e-12)
    step = benchmark.arrays_of_tensorswap()
    assert step() != step()


# -- programs as steps


def test_apply_of_a_library_op() -> None:
    check_gradient(lambda t: ts.apply("softmax", input=t), R.standard_normal((2, 4)))
    check_gradient(lambda t: ts.apply(ts.load("log_softmax"), input=t), R.standard_normal((2, 4)))


def test_apply_takes_constants_and_statics() -> None:
    text = "stride: int\nY[i] = a * X[stride*i] * W[i]"
    X, W = ts.tensor(R.standard_normal(6)), R.standard_normal(3)
    Y = ts.apply(text, X=X, W=W, a=2.0, stride=2)
    Y.backward(np.ones(3))
    np.testing.assert_allclose(Y.value, 2 * X.value[::2] * W)
    np.testing.assert_allclose(X.grad, [2 * W[0], 0, 2 * W[1], 0, 2 * W[2], 0])
    a = ts.tensor(2.0)
    Y = ts.apply(text, {"X": X.value, "W": W}, a=a, stride=2)
    Y.backward(np.ones(3))
    assert type(a.grad) is float
    assert a.grad == pytest.approx(np.sum(X.value[::2] * W))


def test_apply_with_several_outputs() -> None:
    text = "S += X[i]\nY[i] = X[i] ** 2\nk argmax= X[i]"
    x = ts.tensor([1.0, 5.0, 2.0])
    made = ts.apply(text, X=x)
    assert set(made) == {"S", "Y", "k"}
    assert made["k"].value == 1
    (made["S"] * 3 + made["Y"][1]).backward()
    np.testing.assert_array_equal(x.grad, [3, 13, 3])
    x.zero_grad()
    made = ts.apply(text, X=x)
    made["Y"].backward([1, 1, 1])  # the other output has no gradient
    np.testing.assert_array_equal(x.grad, [2, 10, 4])
    with pytest.raises(ArgumentError, match="constant"):
        made["k"].backward()
    only = ts.apply(text, outputs=["S"], X=x)
    assert isinstance(only, ts.Tensor)
    with pytest.raises(ts.SwapError):
        ts.apply(text, outputs=["Q"], X=x)


def test_apply_of_a_gather_and_of_integers() -> None:
    E = ts.tensor(R.standard_normal((3, 2)))
    for token in (np.array([0, 2, 0]), ts.tensor(np.array([0, 2, 0]))):
        E.zero_grad()
        ts.apply("Y[b,d] = E[tok[b],d]", E=E, tok=token).backward(np.ones((3, 2)))
        np.testing.assert_array_equal(E.grad, [[2, 2], [0, 0], [1, 1]])


def test_apply_without_a_derivative_is_refused_on_the_way_back_only() -> None:
    w = ts.tensor([1.0, 2.0])
    new = ts.apply("w[i] = w[i] - 0.1 * g[i]", w=w, g=np.ones(2))
    np.testing.assert_allclose(new.value, [0.9, 1.9])
    with pytest.raises(ts.SwapError, match="updated in place"):
        new.sum().backward()
    flat = ts.apply("Y[i] = floor(X[i])", X=w)
    with pytest.raises(ArgumentError, match="constant"):
        flat.backward([1, 1])


def test_a_derivative_is_a_program_like_any_other() -> None:
    adjoint = ts.program("Y[i] = sin(X[i])").adjoint(wrt=["X"])
    x = ts.tensor([0.3, 0.7])
    ts.apply(adjoint, {"X": x, "Y.grad": np.ones(2)}).backward([1, 1])
    np.testing.assert_allclose(x.grad, -np.sin(x.value))


def test_einsum_of_tensors_and_of_arrays() -> None:
    x = ts.tensor(R.standard_normal((2, 3)))
    trace = products.einsum("ij,ij->", x, x)
    trace.backward()
    np.testing.assert_allclose(x.grad, 2 * x.value)
    assert isinstance(products.einsum("ij->j", x.value), np.ndarray)
    with pytest.raises(TypeError, match="is no label of an axis"):
        products.einsum(3, x)


@pytest.mark.compiled
def test_apply_is_compiled() -> None:
    x, w = ts.tensor(R.standard_normal((4, 3)).astype(np.float32)), ts.tensor(np.ones((3, 2), np.float32))
    y = ts.apply("Y[n,o] += X[n,i] * W[i,o]", X=x, W=w)
    (ts.eager.gelu(y) * ts.eager.sigmoid(y)).sum().backward()
    assert (y.dtype, x.grad.dtype, w.grad.dtype) == (np.float32,) * 3
    assert ts.eager.gelu(ts.tensor(np.float64(0.5))).shape == ()


# -- types


def test_types_are_kept() -> None:
    single, double = ts.tensor(np.ones(3, np.float32)), ts.tensor(np.ones(3))
    number = ts.tensor(2.0)
    assert (single * 2.5).dtype == (single * number).dtype == (number**single).dtype == np.float32
    assert (2 * single + 1).sum().dtype == single.mean().dtype == np.float32
    assert (single * double).dtype == np.float64
    assert (single * ts.tensor(np.float64(2))).dtype == np.float64, "a numpy number widens, a Python number does not"
    total = (single * double * number).sum()
    total.backward()
    assert (single.grad.dtype, double.grad.dtype, type(number.grad)) == (np.float32, np.float64, float)
    assert type((number * 2 + 1).value) is float
    assert number.dtype == np.float64


def test_what_tensor_takes() -> None:
    assert ts.tensor(3).value == 3.0
    assert type(ts.tensor(3).value) is float
    assert ts.tensor([1, 2]).dtype == np.float64
    assert ts.tensor(np.float32(2)).dtype == np.float32
    integers = ts.tensor(np.array([1, 2]))
    assert integers.dtype == np.int64
    with pytest.raises(ArgumentError, match="constant"):
        (integers * 2.0).backward([1, 1])
    original = np.ones(2)
    assert ts.tensor(original).value is not original
    assert ts.tensor(original, copy=False).value is original
    leaf = ts.tensor(ts.tensor([1.0]) * 2)
    leaf.backward([1.0])
    np.testing.assert_array_equal(leaf.grad, [1])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("text", "dtype"), (None, "None"), (np.array([1j]), "complex"), ([[1], [1, 2]], "differ in length"),
        (np.ones(2, np.float16), "float16"), (10**400, "too large"), (object(), "dtype"),
    ],
)  # fmt: skip
def test_what_tensor_refuses(wrong: Any, message: str) -> None:
    with pytest.raises(DtypeError, match=message):
        ts.tensor(wrong)


# -- as an object


def test_numbers_and_truth() -> None:
    x = ts.tensor(2.5)
    assert (float(x), bool(x), bool(ts.tensor(0.0)), x.item()) == (2.5, True, False, 2.5)
    assert float(ts.tensor(np.array(2.5, np.float32))) == 2.5
    assert ts.tensor([[4.0]]).item() == 4.0
    for ask in (float, bool):
        with pytest.raises(ShapeError, match="not one number"):
            ask(ts.tensor([1.0, 2.0]))
    with pytest.raises(ShapeError, match="not one number"):
        ts.tensor([1.0, 2.0]).item()
    with pytest.raises(ShapeError, match="no length"):
        len(x)


def test_comparisons_are_plain() -> None:
    a, b = ts.tensor(1.0), ts.tensor(2.0)
    assert [a < b, a <= 1, a > 2.0, b >= a, a == 1.0, a != b] == [True, True, False, True, True, True]
    assert all(type(c) is bool for c in (a < b, a <= 1, a > 2.0, b >= a, a == 1.0, a != b, b > 1.0))
    v = ts.tensor([1.0, 3.0])
    assert type(v > a) is np.ndarray
    np.testing.assert_array_equal(v > 2, [False, True])
    np.testing.assert_array_equal(np.greater(2, v), [True, False])
    np.testing.assert_array_equal(v == [1, 2], [True, False])
    assert (v == None) is False  # noqa: E711  # what `in` asks of a list
    with pytest.raises(ShapeError, match="cannot be compared"):
        _ = v < ts.tensor([1.0, 2.0, 3.0])
    assert len({a, b, a}) == 2


def test_shape_and_print() -> None:
    x = ts.tensor(np.arange(6.0).reshape(2, 3))
    assert (x.shape, x.ndim, x.size, len(x), np.shape(x)) == ((2, 3), 2, 6, 2, (2, 3))
    assert [row.shape for row in x] == [(3,), (3,)]
    assert repr(ts.tensor(2.0)) == "tensor(2.0)"
    assert repr(ts.tensor(np.ones(2, np.float32))) == "tensor([1., 1.], dtype=float32)"
    y = ts.tensor(3.0)
    (y * y).backward()
    assert repr(y) == "tensor(3.0, grad=6.0)"
    assert repr(x) == "tensor([[0., 1., 2.],\n        [3., 4., 5.]])"


def test_copies_have_the_value_alone() -> None:
    x = ts.tensor(np.ones(2))
    y = x
    for _ in range(5000):
        y = y * 1.0
    for other in (copy.deepcopy(y), pickle.loads(pickle.dumps(y)), copy.copy(y)):
        np.testing.assert_array_equal(other.value, y.value)
        other.backward([1, 1])
    assert x.grad is None


def test_detach_stops_the_gradient() -> None:
    for x in (ts.tensor(3.0), ts.tensor(np.array(3.0))):
        y = x * x.detach()
        y.backward()
        assert x.grad == 3.0
        with pytest.raises(ArgumentError, match="constant"):
            x.detach().backward()


# -- refusals


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (lambda: ts.tensor([1.0, 2.0]).backward(), ShapeError, "needs the gradient to start from"),
        (lambda: (ts.tensor([1.0, 2.0]) * 2).backward([1, 2, 3]), ShapeError, r"seed has shape \(3,\)"),
        (lambda: ts.tensor([1.0, 2.0]) + np.ones(3), ShapeError, r"\(2,\) and \(3,\) of `\+` do not broadcast"),
        (lambda: ts.tensor(np.ones((2, 3))) @ np.ones((2, 3)), ShapeError, "of `@` do not fit"),
        (lambda: ts.tensor(2.0) @ np.ones(3), ShapeError, "single number takes"),
        (lambda: ts.tensor([1.0])[3], BoundsError, "out of bounds"),
        (lambda: ts.tensor([1.0])[0.5], ArgumentError, "float is no index"),
        (lambda: ts.tensor([1.0])[np.array([0.5])], ArgumentError, "holds integers"),
        (lambda: ts.tensor([1.0]).__setitem__(0, 2.0), ArgumentError, "keeps its elements"),
        (lambda: np.asarray(ts.tensor([1.0])), ArgumentError, r"use t\.value"),
        (lambda: np.array([ts.tensor(1.0), ts.tensor(2.0)]), ArgumentError, r"use t\.value"),
        (lambda: np.add.reduce(ts.tensor([1.0])), ArgumentError, "has no rule"),
        (lambda: np.add(ts.tensor([1.0]), 1, out=np.ones(1)), ArgumentError, "takes no out="),
        (lambda: np.cbrt(ts.tensor(1.0)), ArgumentError, "np.cbrt has no rule"),
        (lambda: np.fft.fft(ts.tensor([1.0])), ArgumentError, "np.fft has no rule"),
        (lambda: np.sum(ts.tensor([1.0]), initial=2), ArgumentError, "np.sum on tensors"),
        (lambda: np.sum(ts.tensor([1.0]), axis=1), ShapeError, "no axis 1"),
        (lambda: np.sum(ts.tensor([1.0]), axis=(0, 0)), ArgumentError, "twice"),
        (lambda: np.sum(ts.tensor([1.0]), axis=0.5), ArgumentError, "whole number"),
        (lambda: np.max(ts.tensor(np.ones((0,)))), ShapeError, "no element is the largest"),
        (lambda: ts.tensor([1.0, 2.0]).reshape(3), ShapeError, "reshape"),
        (lambda: np.concatenate([ts.tensor([1.0]), np.ones((1, 1))]), ShapeError, "do not join"),
        (lambda: ts.apply(3, X=1.0), ArgumentError, "apply takes a program"),
        (lambda: ts.apply("softmaxx", input=ts.tensor([1.0])), ts.SwapError, "softmax"),
        (lambda: ts.apply("Y[i] = X[i]", Z=ts.tensor([1.0])), ts.SwapError, "Z"),
        (lambda: ts.apply("Y[i] = X[i]", X=ts.tensor(1.0)), ts.SwapError, "axis"),
        (lambda: ts.program("Y[i] = X[i]").run_reference(X=ts.tensor([1.0])), ts.SwapError, r"use t\.value"),
        (lambda: ts.tensor(1.0) + "text", DtypeError, "dtype"),
        (lambda: np.dot(ts.tensor(np.ones((2, 2, 2))), np.ones(2)), ArgumentError, "einsum"),
    ],
)  # fmt: skip
def test_refusals_name_the_fault(wrong: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        wrong()


def test_every_ufunc_in_the_table_is_tested() -> None:
    smooth = {u for u, f in dispatch.UFUNCS.items() if isinstance(f, elementwise.One | elementwise.Two)}
    flat = {np.sign, np.floor, np.ceil, np.rint, np.trunc, np.floor_divide}
    assert smooth == {*UNARY, *BINARY, *flat, np.arccosh} - {np.positive}
    for function in flat - {np.floor_divide}:
        value = function(ts.tensor(X) * 3).value
        np.testing.assert_array_equal(value, function(X * 3))
    np.testing.assert_array_equal((ts.tensor(X) // 0.3).value, X // 0.3)


def test_questions_about_values_are_plain() -> None:
    x = ts.tensor([1.0, np.inf])
    np.testing.assert_array_equal(np.isfinite(x), [True, False])
    assert np.argmax(x) == 1
    assert type(np.zeros_like(x)) is np.ndarray


# -- anything that the language can say, three ways

LEAVES = st.sampled_from(["x", "y", "z", "0.5", "2.0", "1.25"])


def _grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    two = st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})")
    safe = st.tuples(inner, inner).map(lambda t: f"({t[0]} / (1.5 + {t[1]} * {t[1]}))")
    names = st.sampled_from(["tanh", "sin", "cos", "sigmoid", "relu", "abs", "softplus", "gelu", "silu", "erf", "atan"])
    one = st.tuples(names, inner).map(lambda t: f"{t[0]}({t[1]})")
    power = st.tuples(inner, st.sampled_from([2, 3])).map(lambda t: f"({t[0]}) ** {t[1]}")
    chosen = st.tuples(st.sampled_from(["max", "min"]), inner, inner).map(lambda t: f"{t[0]}({t[1]}, {t[2]})")
    return two | safe | one | power | chosen


EXPRESSIONS = st.recursive(LEAVES, _grow, max_leaves=12)
NAMES = {
    **{f.name: f for f in vars(elementwise).values() if isinstance(f, elementwise.One)},
    **{name: getattr(ts.eager, name) for name in ("sigmoid", "softplus", "gelu", "silu", "erf")},
    "max": elementwise.maximum, "min": elementwise.minimum,
}  # fmt: skip


@QUICK
@given(text=EXPRESSIONS, values=st.tuples(*[st.floats(-1.5, 1.5).map(lambda v: round(v, 3) + 0.00037)] * 3))
def test_scalars_arrays_and_programs_agree(text: str, values: tuple[float, float, float]) -> None:
    program = ts.program(f"f = {text} + 0 * x + 0 * y + 0 * z")
    inputs = dict(zip("xyz", values, strict=True))
    expected = program.grad(of="f", wrt=["x", "y", "z"]).run_reference(inputs)
    assert np.isfinite(expected["f"])
    code = compile(text, "an expression of the language", "eval")
    for wrap in (float, np.float64):
        tensors = {name: ts.tensor(wrap(value)) for name, value in inputs.items()}
        result = eval(code, {**NAMES, **tensors})
        if not isinstance(result, ts.Tensor):
            continue
        result.backward()
        np.testing.assert_allclose(result.value, expected["f"], rtol=1e-10, atol=1e-12)
        for name, tensor in tensors.items():
            grad = 0.0 if tensor.grad is None else tensor.grad
            np.testing.assert_allclose(grad, expected[f"{name}.grad"], rtol=1e-9, atol=1e-10, err_msg=text)


@QUICK
@given(
    shapes=st.sampled_from(
        [((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2, 2)), ((1,), (4,)), ((2, 1, 2), (3, 1)), ((0,), ())]
    ),
    name=st.sampled_from(["add", "subtract", "multiply", "divide", "maximum", "hypot"]),
    kinds=st.tuples(*[st.sampled_from([np.float32, np.float64])] * 2),
)
def test_broadcasting_is_numpys(shapes: Any, name: str, kinds: Any) -> None:
    function = getattr(np, name)
    a, b = (R.uniform(0.5, 1.5, s).astype(k) for s, k in zip(shapes, kinds, strict=True))
    x, y = ts.tensor(a), ts.tensor(b)
    z = function(x, y)
    expected = function(a, b)
    np.testing.assert_array_equal(z.value, expected)
    assert z.dtype == expected.dtype
    z.backward(np.ones_like(expected))
    for tensor, array in ((x, a), (y, b)):
        assert tensor.grad.shape == array.shape
        assert tensor.grad.dtype == array.dtype
