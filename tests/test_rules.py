"""The rules: batch, tangent, gradient, second order, inlining, held values, refusals, and checks that can fail."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.errors import DerivativeError, GradientMismatch, ProgramError
from tensorswap.language.functions import FUNCTIONS

from .generate import Case
from .test_generated import check_derivatives

R = np.random.default_rng(3)


def lines(program: ts.Program) -> list[str]:
    return str(program).splitlines()


# -- batch


def test_batch_equals_a_loop_of_calls() -> None:
    program = ts.program("H[j] += W[j,i] * x[i]\ny[j] = tanh(H[j]) * size(x, 0)")
    batched = program.batch("n", over=["x"])
    assert ts.program(str(batched)) == batched
    assert "H[n,j] += W[j,i] * x[n,i]" in lines(batched)
    W, x = R.standard_normal((3, 4)), R.standard_normal((5, 4))
    np.testing.assert_allclose(batched(W=W, x=x), np.stack([program(W=W, x=row) for row in x]))


def test_batch_commutes_with_the_adjoint() -> None:
    program = ts.program("y[j] += W[j,i] * sin(x[i])")
    adjoint = program.batch("n", over=["x"]).adjoint(wrt=["x"])
    single = program.adjoint(wrt=["x"])
    W, x, g = R.standard_normal((3, 4)), R.standard_normal((5, 4)), R.standard_normal((5, 3))
    expected = np.stack([single({"W": W, "x": a, "y.grad": b}) for a, b in zip(x, g, strict=True)])
    np.testing.assert_allclose(adjoint({"W": W, "x": x, "y.grad": g}), expected)


def test_batch_of_a_block_and_of_a_definition() -> None:
    text = "def f(X[t,i], a) -> S[t,i]:\n    for t:\n        S[t,i] = a * (S[t-1,i] if t > 0 else 0) + X[t,i]"
    program = ts.program(text)
    batched = program.batch("n", over=["X", "a"])
    assert ts.program(str(batched)) == batched
    X, a = R.standard_normal((2, 4, 3)), np.array([0.5, 2.0])
    np.testing.assert_allclose(batched(X=X, a=a), np.stack([program(X=X[n], a=a[n]) for n in range(2)]))


# -- first and second order


def test_gradient_gives_loss_and_gradients() -> None:
    program = ts.program("loss += (X[i,j] * w[j] - y[i]) ** 2")
    result = program.grad(of="loss", wrt=["w"])(X=np.eye(3), w=np.ones(3), y=np.zeros(3))
    assert set(result) == {"loss", "w.grad"}


def test_hessian_vector_equals_differences() -> None:
    program = ts.program("H[j] += W[j,i] * x[i]\nloss += tanh(H[j]) ** 2 * c")
    arrays = {"W": R.standard_normal((3, 4)), "x": R.standard_normal(4), "c": 0.7}
    v = R.standard_normal((3, 4))
    product = program.hessian_vector(of="loss", wrt=["W"])
    assert product.outputs == ("W.grad.dot",)
    gradient = program.grad(of="loss", wrt=["W"])
    high, low = (gradient({**arrays, "W": arrays["W"] + s * v})["W.grad"] for s in (1e-5, -1e-5))
    np.testing.assert_allclose(product({**arrays, "W.dot": v}), (high - low) / 2e-5, atol=1e-8)


def test_third_order_and_numbered_suffixes() -> None:
    program = ts.program("y = x ** 4")
    second = program.adjoint(wrt=["x"]).adjoint(wrt=["x"], of=["x.grad"])
    assert second.outputs == ("x.grad2",)
    third = second.adjoint(wrt=["x"], of=["x.grad2"])
    assert third.outputs == ("x.grad3",)
    seeds = {"y.grad": 1.0, "x.grad.grad2": 1.0, "x.grad2.grad3": 1.0}
    assert third({"x": 2.0, **seeds}) == pytest.approx(48.0)
    for derived in (second, third):
        assert ts.program(str(derived)) == derived
    assert program.tangent(wrt=["x"]).tangent(wrt=["x"]).outputs == ("y.dot.dot2",)


def test_value_of_the_forward_pass_is_reused() -> None:
    adjoint = ts.program("Y[i] = tanh(X[i])").adjoint(wrt=["X"])
    assert lines(adjoint) == ["Y[i] = tanh(X[i])", "X.grad[i] += Y.grad[i] * (1 - Y[i] * Y[i])"]


@pytest.mark.parametrize(
    ("text", "adjoint"),
    [
        ("r[i] = sqrt(x[i] ** 2 + y[i] ** 2)", "x.grad[i] += r.grad[i] * x[i] / r[i]"),
        ("r[i] = 0.25 * (2 * x[i] - y[i]) * 4", "x.grad[i] += 2 * r.grad[i]"),
        ("r[i] = 0.5 * y[i] * x[i] ** 2", "x.grad[i] += y[i] * r.grad[i] * x[i]"),
        ("r[i] = 0.5 * x[i] ** 3", "x.grad[i] += 0.5 * r.grad[i] * 3 * x[i] ** 2"),
        ("r[i] = 2 * x[i] ** 2", "x.grad[i] += 2 * r.grad[i] * 2 * x[i]"),
    ],
)
def test_numbers_that_cancel_each_other_vanish(text: str, adjoint: str) -> None:
    program = ts.program(f"{text}\nreturn r")
    arrays = {name: R.uniform(0.5, 2, 4) for name in program.inputs}
    assert lines(program.adjoint(wrt=["x"]))[-1] == adjoint
    ts.gradcheck(program, arrays)


@pytest.mark.parametrize(
    "value",
    [
        "2 * n[i] * 0.5 * m[i] * x[i]",
        "0.5 * n[i] * 2 * m[i] * x[i]",
        "1.0 * n[i] * m[i] * x[i]",
        "n[i] * 1.0 * m[i] * x[i]",
    ],
)
def test_whole_numbers_stay_real_where_a_number_made_them_so(value: str) -> None:
    """Without it their product would not fit a word."""
    program = ts.program(f"y[i] = {value}\nreturn y")
    n = np.array([4_000_000_000, 3])
    expected = n.astype(float) ** 2
    seed = np.ones(2)
    np.testing.assert_allclose(program.adjoint(wrt=["x"])({"n": n, "m": n, "x": seed, "y.grad": seed}), expected)
    np.testing.assert_allclose(program.tangent(wrt=["x"])({"n": n, "m": n, "x": seed, "x.dot": seed}), expected)


def test_they_do_so_in_each_term_of_a_sum() -> None:
    program = ts.program("r = sqrt(x ** 2 + y ** 2)")
    assert lines(program.tangent(wrt=["x", "y"]))[-1] == "r.dot = (x * x.dot + y * y.dot) / r"
    program = ts.program("r = sqrt(x ** 2 + y)")
    assert lines(program.tangent(wrt=["x", "y"]))[-1] == "r.dot = 0.5 / r * (2 * x * x.dot + y.dot)"


def test_dead_statements_are_removed() -> None:
    adjoint = ts.program("H[j] += W[j,i] * x[i]\nY[j] = H[j] + b[j]").adjoint(wrt=["b"])
    assert lines(adjoint) == ["b.grad[j] += Y.grad[j]"]


def test_an_index_that_vanishes_counts() -> None:
    adjoint = ts.program("S += A[i] + B[j]").adjoint(wrt=["A"])
    result = adjoint({"A": np.ones(2), "B": np.ones(5), "S.grad": 1.0})
    np.testing.assert_array_equal(result, [5, 5])


def test_an_independent_input_has_the_derivative_zero() -> None:
    program = ts.program("Y[i] += X[i] + stop(Z[i]) + floor(V[i,j]) if V[i,j] > 9")
    zero = program.adjoint(wrt=["Z", "V"])
    result = zero({"X": np.ones(2), "Z": np.ones(2), "V": np.ones((2, 3)), "Y.grad": np.ones(2)})
    np.testing.assert_array_equal(result["Z.grad"], [0, 0])
    np.testing.assert_array_equal(result["V.grad"], np.zeros((2, 3)))


def test_an_output_that_is_also_read_gathers_both_parts() -> None:
    program = ts.program("Y[i] = sin(X[i])\nZ[i] = Y[i] ** 2", outputs=["Y", "Z"])
    adjoint = program.adjoint(wrt=["X"])
    x, a, b = R.standard_normal(3), R.standard_normal(3), R.standard_normal(3)
    expected = np.cos(x) * (a + 2 * np.sin(x) * b)
    np.testing.assert_allclose(adjoint({"X": x, "Y.grad": a, "Z.grad": b}), expected)


def test_maximum_routes_to_the_first_winner() -> None:
    adjoint = ts.program("Y[i] max= X[i,j]").adjoint(wrt=["X"])
    result = adjoint({"X": np.array([[2.0, 5.0, 5.0], [1.0, 1.0, 1.0]]), "Y.grad": np.array([3.0, 4.0])})
    np.testing.assert_array_equal(result, [[0, 3, 0], [4, 0, 0]])


def test_maximum_over_two_statements_routes_to_one() -> None:
    adjoint = ts.program("Y[i] max= A[i,j]\nY[i] max= B[i,k]").adjoint(wrt=["A", "B"])
    A, B = np.array([[1.0, 2.0], [0.0, 0.0]]), np.array([[2.0], [3.0]])
    result = adjoint({"A": A, "B": B, "Y.grad": np.array([10.0, 20.0])})
    np.testing.assert_array_equal(result["A.grad"], [[0, 10], [0, 0]])
    np.testing.assert_array_equal(result["B.grad"], [[0], [20]])


@pytest.mark.parametrize("row", [[2.0, 3.0, 4.0], [0.0, 3.0, 4.0], [0.0, 0.0, 4.0], [0.0, 0.0, 0.0]])
def test_product_is_right_with_zeros_in_first_and_second_order(row: list[float]) -> None:
    program = ts.program("y *= x[i]")
    x = np.array(row)
    others = np.array([np.prod(np.delete(x, i)) for i in range(3)])
    adjoint = program.adjoint(wrt=["x"])
    np.testing.assert_array_equal(adjoint({"x": x, "y.grad": 1.0}), others)
    v = np.array([1.0, 10.0, 100.0])
    hessian = np.array([[0 if i == j else np.prod(np.delete(x, [i, j])) for j in range(3)] for i in range(3)])
    second = adjoint.tangent(wrt=["x"])
    np.testing.assert_allclose(second({"x": x, "y.grad": 1.0, "x.dot": v}), hessian @ v)


def test_not_a_number_in_the_dead_branch_stays_there() -> None:
    adjoint = ts.program("Y[i] = sqrt(X[i]) if X[i] > 0 else 0").adjoint(wrt=["X"])
    result = adjoint({"X": np.array([4.0, 0.0, -1.0]), "Y.grad": np.ones(3)})
    np.testing.assert_array_equal(result, [0.25, 0, 0])


def test_random_numbers_are_replayed() -> None:
    program = ts.program("Y[i] = X[i] * 2 if uniform(seed, i) < 0.5")
    X = np.ones(50)
    kept = program(X=X, seed=5) != 0
    gradient = program.adjoint(wrt=["X"])({"X": X, "seed": 5, "Y.grad": np.ones(50)})
    np.testing.assert_array_equal(gradient, np.where(kept, 2, 0))
    assert 10 < kept.sum() < 40


def test_known_but_unused_inputs_may_be_passed() -> None:
    adjoint = ts.program("Y[i] = X[i] + b").adjoint(wrt=["X"])
    np.testing.assert_array_equal(adjoint({"X": np.ones(2), "b": 1.0, "Y.grad": np.ones(2)}), [1, 1])


# -- what is refused


def test_integers_have_no_derivative() -> None:
    with pytest.raises(DerivativeError, match="tok is used as an index"):
        ts.program("Y[n,d] = E[tok[n],d]").adjoint(wrt=["tok"])


def test_updates_are_refused() -> None:
    with pytest.raises(DerivativeError, match="updated in place"):
        ts.program("W[i] = W[i] - 0.1 * g[i]").adjoint(wrt=["g"])


def test_a_value_gone_by_the_time_it_is_needed_is_refused() -> None:
    program = ts.program("for t:\n    S[i] += X[t,i]\n    Y[t,i] = S[i] ** 2")
    with pytest.raises(DerivativeError, match="give S the index t"):
        program.adjoint(wrt=["X"])


def test_reading_an_unfinished_maximum_is_refused() -> None:
    program = ts.program("for t:\n    M[i] max= X[t,i]\n    Y[t,i] = 2 * M[i]")
    with pytest.raises(DerivativeError):
        program.adjoint(wrt=["X"])
    with pytest.raises(DerivativeError):
        program.tangent(wrt=["X"])


def test_a_derivative_is_refused_where_its_program_is() -> None:
    adjoint = ts.program("size(Y, 0) = 5\nY[at[i]] = X[i]").adjoint(wrt=["X"])
    arrays = {"X": np.ones(2), "Y.grad": np.arange(5.0)}
    np.testing.assert_array_equal(adjoint({**arrays, "at": np.array([4, 1])}), [4, 1])
    with pytest.raises(ts.SwapError, match="more than once"):
        adjoint({**arrays, "at": np.array([1, 1])})


# -- inlining


def test_calls_take_the_callers_indices() -> None:
    definition = "def double(A[i]) -> B[i]:\n    T[i] = A[i] * 2\n    B[i] = T[i]\n"
    text = definition + "X2[n] = X[n] + 1\nY = double(X2)\nZ = double(Y)"
    program = ts.program(text)
    np.testing.assert_array_equal(program(X=np.ones(3)), [8, 8, 8])
    assert "double_T[n] = X2[n] * 2" in lines(program)


def test_calls_inside_a_block_take_slices() -> None:
    text = (
        "def layer(X[b,i], W[o,i]) -> Y[b,o]:\n    P[b,o] += X[b,i] * W[o,i]\n    Y[b,o] = tanh(P[b,o])\n"
        "H[0,b,i] = X[b,i]\nfor l:\n    H[l+1] = layer(H[l], W[l])\nreturn H"
    )
    program = ts.program(text)
    assert ts.program(str(program)) == program
    X, W = R.standard_normal((2, 3)), R.standard_normal((4, 3, 3))
    expected = X
    for weights in W:
        expected = np.tanh(expected @ weights.T)
    np.testing.assert_allclose(program(X=X, W=W)[-1], expected)
    ts.gradcheck(program, X=X, W=W)


def test_calls_of_the_standard_library() -> None:
    program = ts.program("S[b,i] += X[b,k] * W[i,k]\nP = softmax(S)\nloss += P[b,i] * T[b,i]")
    arrays = {"X": R.standard_normal((2, 3)), "W": R.standard_normal((4, 3)), "T": R.standard_normal((2, 4))}
    ts.gradcheck(program, arrays)


def test_an_update_may_be_called() -> None:
    text = "def sgd(W[i], g[i], rate) -> W[i]:\n    W[i] = W[i] - rate * g[i]\n"
    here = ts.program(text + "W = sgd(W, g, 0.5)")
    np.testing.assert_array_equal(here(W=np.ones(2), g=np.ones(2)), [0.5, 0.5])
    elsewhere = ts.program(text + "V = sgd(W, g, 0.5)")
    np.testing.assert_array_equal(elsewhere(W=np.ones(2), g=np.ones(2)), [0.5, 0.5])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("Y = f(X, X)", "takes 2 arguments|static"),
        ("Y = f()", "lacks its argument X"),
        ("Y = f(X, n=1.5)", "static integer"),
        ("Y = f(X, m=1)", "no argument m"),
        ("Y, Z = f(X)", "gives 1 results"),
        ("Y = g(X)", "neither a function"),
        ("Y = f(X[i] + 1)", "is the tensor"),
        ("Y += f(X)", "stands alone"),
    ],
)
def test_wrong_calls_name_the_argument(call: str, message: str) -> None:
    with pytest.raises(ts.SwapError, match=message):
        ts.program(f"def f(X[i], n: int = 1) -> Y[i]:\n    Y[i] = X[i] * n\n{call}")


def test_recursion_is_refused() -> None:
    with pytest.raises(ProgramError, match="calls itself"):
        ts.program("def f(X[i]) -> Y[i]:\n    Y = f(X)\nZ = f(A)")


# -- explain, gradcheck, and checks that can fail


def test_explain_names_the_rule() -> None:
    text = ts.program("Y[i] += X[2*i+p] * W[p]\nZ max= Y[i]").explain()
    assert "X.grad[s] += Y.grad[(s-p)//2] * W[p] if (s-p) % 2 == 0 and inside" in text
    assert "solved for a gather" in text
    assert "route to the first winner" in text


def test_gradcheck_finds_a_planted_wrong_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    program = ts.program("Y[i] = tanh(X[i])")
    x = np.array([0.3, -0.7])
    assert ts.gradcheck(program, X=x).difference_error < 1e-6
    monkeypatch.setitem(FUNCTIONS, "tanh", replace(FUNCTIONS["tanh"], derivatives=("1 - y",)))
    with pytest.raises(GradientMismatch, match=r"X\[0\]"):
        ts.gradcheck(program, X=x)


def test_the_property_test_finds_a_planted_wrong_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("Y[i] = sin(X[i])", {"X": np.array([0.3, -0.7])}, ["X"])
    assert check_derivatives(case)
    monkeypatch.setitem(FUNCTIONS, "sin", replace(FUNCTIONS["sin"], derivatives=("-cos(x)",)))
    with pytest.raises(AssertionError):
        check_derivatives(case)


@pytest.mark.parametrize("name", [row.name for row in FUNCTIONS.values() if not row.flat and row.name != "where"])
def test_every_scalar_rule_in_first_and_second_order(name: str) -> None:
    arguments = "X[i]" if FUNCTIONS[name].most == 1 else "X[i], Z[i]"
    program = ts.program(f"Y[i] = {name}({arguments})")
    arrays = {"X": np.array([0.2, 0.45, 0.81]), "Z": np.array([0.6, 0.3, 1.7])}
    given = {k: v for k, v in arrays.items() if k in program.inputs}
    ts.gradcheck(program, given)
    adjoint = program.adjoint(wrt=list(given))
    ts.gradcheck(adjoint, {**given, "Y.grad": np.array([0.5, -1.0, 2.0])})
