"""The reference interpreter against explicit loops and numpy: reductions, types, randomness, blocks, updates."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.errors import BoundsError

R = np.random.default_rng(7)


def test_contraction_equals_loops() -> None:
    A, B = R.standard_normal((2, 3, 4)), R.standard_normal((2, 5, 4))
    Y = np.zeros((2, 3, 5))
    for h, i, j, k in product(range(2), range(3), range(5), range(4)):
        Y[h, i, j] += A[h, i, k] * B[h, j, k]
    np.testing.assert_allclose(ts.program("Y[h,i,j] += A[h,i,k] * B[h,j,k]")(A=A, B=B), Y)


@pytest.mark.parametrize(
    ("operator", "reduce"),
    [
        ("+=", np.sum),
        ("-=", lambda x, axis: -np.sum(x, axis)),
        ("*=", np.prod),
        ("max=", np.max),
        ("min=", np.min),
        ("argmax=", np.argmax),
        ("argmin=", np.argmin),
    ],
)
def test_reductions(operator: str, reduce: object) -> None:
    X = R.standard_normal((3, 5))
    expected = reduce(X, axis=1)  # type: ignore[operator]
    np.testing.assert_allclose(ts.program(f"Y[i] {operator} X[i,j]")(X=X), expected)


@pytest.mark.parametrize(
    ("operator", "identity"),
    [("+=", 0.0), ("*=", 1.0), ("max=", -np.inf), ("min=", np.inf), ("argmax=", -1), ("=", 0.0)],
)
def test_elements_without_points_hold_the_identity(operator: str, identity: float) -> None:
    index = "i" if operator == "=" else "i,j"
    X = np.full((3,) if operator == "=" else (3, 2), 2.0)
    result = ts.program(f"Y[i] {operator} X[{index}] if i != 1")(X=X)
    assert result[1] == identity
    assert result[0] != identity


def test_argmax_takes_the_first_of_ties_in_index_order() -> None:
    X = np.array([[[1.0, 3.0], [3.0, 3.0]]])
    np.testing.assert_array_equal(ts.program("A[i] argmax= X[i,j,k]")(X=X), [1])


def test_argmax_counts_on_over_statements() -> None:
    program = ts.program("A[i] argmax= X[i,j]\nA[i] argmax= Z[i,k]")
    X, Z = np.array([[1.0, 2.0], [5.0, 0.0]]), np.array([[0.0, 0.0, 2.5], [5.0, 1.0, 1.0]])
    np.testing.assert_array_equal(program(X=X, Z=Z), [4, 0])


def test_max_and_argmax_propagate_nan_like_numpy() -> None:
    X = np.array([[1.0, np.nan, 3.0], [np.inf, 1.0, np.nan]])
    np.testing.assert_array_equal(ts.program("Y[i] max= X[i,j]")(X=X), [np.nan, np.nan])
    np.testing.assert_array_equal(ts.program("Y[i] argmax= X[i,j]")(X=X), np.argmax(X, axis=1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "value",
    [
        "X[i] * 2",
        "X[i] * 0.5 + i",
        "exp(X[i]) / size(i)",
        "gelu(X[i])",
        "sigmoid(X[i]) if i > 1 else 0",
        "max(X[i], 0)",
        "X[i] ** 2",
        "X[i] * (i < 2)",
        "softplus(X[i]) + uniform(1, i)",
        "c * X[i]",
        "silu(X[i])",
    ],
)
def test_types_are_kept(dtype: type, value: str) -> None:
    X = np.linspace(-1, 1, 4).astype(dtype)
    arguments = {"X": X, "c": 2.5} if "c *" in value else {"X": X}
    assert ts.program(f"Y[i] = {value}")(arguments).dtype == dtype


def test_mixed_types_follow_numpy() -> None:
    product_of_both = ts.program("Y[i] = A[i] * B[i]")
    single, double = np.ones(3, np.float32), np.ones(3)
    assert product_of_both(A=single, B=double).dtype == np.float64
    assert product_of_both(A=single, B=np.ones(3, np.int8)).dtype == np.float32
    assert product_of_both(A=np.ones(3, np.int32), B=np.ones(3, np.int32)).dtype == np.int64  # none wraps around


def test_a_count_does_not_widen() -> None:
    program = ts.program("count += 1 if X[i] > 0\nmean += X[i] / count")
    assert program(X=np.array([1, 2, -3], np.float32)).dtype == np.float32


FUNCTIONS = {
    "abs": abs, "sqrt": math.sqrt, "exp": math.exp, "log": math.log, "log1p": math.log1p, "expm1": math.expm1,
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "asin": math.asin, "acos": math.acos, "atan": math.atan,
    "sinh": math.sinh, "cosh": math.cosh, "tanh": math.tanh, "erf": math.erf, "floor": math.floor, "ceil": math.ceil,
    "round": round, "sigmoid": lambda x: 1 / (1 + math.exp(-x)), "relu": lambda x: max(x, 0.0),
    "gelu": lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))), "silu": lambda x: x / (1 + math.exp(-x)),
    "softplus": lambda x: math.log1p(math.exp(x)), "sign": lambda x: math.copysign(1, x), "stop": lambda x: x,
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    x = np.array([0.1, 0.35, 0.5, 0.75, 0.99])
    np.testing.assert_allclose(ts.program(f"Y[i] = {name}(X[i])")(X=x), [FUNCTIONS[name](v) for v in x], rtol=1e-14)


def test_functions_without_overflow() -> None:
    x = np.array([-1000.0, 1000.0])
    np.testing.assert_array_equal(ts.program("Y[i] = sigmoid(X[i])")(X=x), [0, 1])
    np.testing.assert_array_equal(ts.program("Y[i] = softplus(X[i])")(X=x), [0, 1000])


def test_uniform_is_a_pure_function_of_its_arguments() -> None:
    program = ts.program("U[i,j] = uniform(seed, i, j)\nsize(i) = 200\nsize(j) = 300")
    first, again, other = program(seed=3), program(seed=3), program(seed=4)
    np.testing.assert_array_equal(first, again)
    assert (first != other).all()
    assert 0 <= first.min() < 1e-3
    assert 0.999 < first.max() < 1
    assert abs(first.mean() - 0.5) < 5e-3
    # independent along both indices: neighbours do not correlate
    assert abs(np.corrcoef(first[:-1].ravel(), first[1:].ravel())[0, 1]) < 0.02
    assert abs(np.corrcoef(first[:, :-1].ravel(), first[:, 1:].ravel())[0, 1]) < 0.02


def test_normal_has_the_right_moments() -> None:
    values = ts.program("N[i] = normal(seed, i)\nsize(i) = 100000")(seed=11)
    assert abs(values.mean()) < 0.02
    assert abs(values.std() - 1) < 0.02
    assert abs((values**4).mean() - 3) < 0.15


def test_dead_branches_are_not_evaluated() -> None:
    X = np.array([1.0, -1.0, 0.0])
    program = ts.program("Y[i] = log(X[i]) if X[i] > 0 else (X[i-1] if i > 0 else 0)")
    np.testing.assert_array_equal(program(X=X), [0.0, 1.0, -1.0])


def test_inside_counts_only_what_a_point_evaluates() -> None:
    X = np.arange(4.0)
    guarded = ts.program("size(i) = 5\nY[i] += (X[i-1] if i > 0 else 7) if inside")
    np.testing.assert_array_equal(guarded(X=X), [7, 0, 1, 2, 3])


def test_partial_sums_are_readable_in_a_block() -> None:
    program = ts.program("for t:\n    S[i] += X[t,i]\n    Y[t,i] = S[i]")
    X = R.standard_normal((4, 2))
    np.testing.assert_allclose(program(X=X), np.cumsum(X, axis=0))


def test_block_down() -> None:
    program = ts.program("for t down:\n    S[t] = X[t] + (S[t+1] if t < size(t)-1 else 0)")
    np.testing.assert_allclose(program(X=np.arange(5.0)), np.cumsum(np.arange(5.0)[::-1])[::-1])


def test_a_step_cannot_read_what_a_later_step_writes() -> None:
    program = ts.program("for t:\n    S[t] = X[t] + (S[t+1] if t < size(t)-1 else 0)")
    with pytest.raises(BoundsError, match="later step"):
        program(X=np.arange(5.0))


def test_updates_do_not_change_the_callers_array() -> None:
    W, g = np.ones(3), np.arange(3.0)
    result = ts.program("W[i] = W[i] - 0.5 * g[i]\nN += W[i] ** 2")(W=W, g=g)
    np.testing.assert_array_equal(W, 1)
    np.testing.assert_array_equal(result["W"], [1, 0.5, 0])
    assert result["N"] == 1.25


def test_update_in_a_block_runs_step_by_step() -> None:
    program = ts.program("size(t) = 3\nfor t:\n    u[i] = 2 * u[i]")
    np.testing.assert_array_equal(program(u=np.ones(2)), [8, 8])


def test_assignment_to_disjoint_parts_and_overlap() -> None:
    program = ts.program("Y[i] = A[i]\nY[size(i)+j] = B[j]")
    np.testing.assert_array_equal(program(A=np.ones(2), B=np.zeros(3)), [1, 1, 0, 0, 0])
    with pytest.raises(BoundsError, match="written before"):
        ts.program("Y[i] = A[i]\nY[j+1] = B[j]")(A=np.ones(2), B=np.zeros(3))


def test_scatter_assignment_needs_distinct_places() -> None:
    program = ts.program("size(Y, 0) = 5\nY[at[i]] = X[i]")
    np.testing.assert_array_equal(program(at=np.array([3, 0]), X=np.array([1.0, 2.0])), [2, 0, 0, 1, 0])
    with pytest.raises(BoundsError, match="more than once"):
        program(at=np.array([3, 3]), X=np.ones(2))


def test_batch_marker_takes_any_number_of_axes() -> None:
    program = ts.program("Y[...,i] += X[...,k] * W[i,k]")
    W = R.standard_normal((2, 3))
    for shape in [(3,), (4, 3), (2, 4, 3)]:
        X = R.standard_normal(shape)
        np.testing.assert_allclose(program(X=X, W=W), X @ W.T)


def test_sizes_by_keyword() -> None:
    program = ts.program("Y[i,j] = X[i]")
    assert program(X=np.ones(2), j=5).shape == (2, 5)


def test_zero_sizes() -> None:
    assert ts.program("Y[i] += A[i,k] * B[k]")(A=np.ones((0, 3)), B=np.ones(3)).shape == (0,)
    np.testing.assert_array_equal(ts.program("Y[i] += A[i,k]")(A=np.ones((2, 0))), [0, 0])
    np.testing.assert_array_equal(ts.program("Y[i] max= A[i,k]")(A=np.ones((2, 0))), [-np.inf, -np.inf])
    assert ts.program("for t:\n    p *= X[t]")(X=np.ones(0)) == 1
