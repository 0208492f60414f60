"""Corners where a derivative, a type or a size once went wrong: each stays right."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.errors import ArgumentError, BoundsError, DerivativeError, GradientMismatch, ProgramError
from tensorswap.language.functions import FUNCTIONS

R = np.random.default_rng(11)


def normal(*shape: int) -> np.ndarray:
    return np.asarray(R.standard_normal(shape))


RIGHT = {
    "held_with_more_indices": ("C[i] = exp(s)\nD[i] = C[i] * V[i]\nE = exp(s) * z", {"s": (), "V": (3,), "z": ()}),
    "held_with_more_indices_2": ("A[i,j] = exp(X[i])\nY[i] = exp(X[i]) * A[i,0]\nsize(j) = 3", {"X": (4,)}),
    "held_at_another_moment": (
        "for t:\n    S[t] = (S[t-1] if t > 0 else 0) + X[t]\n    A[t] = exp(S[t])\n"
        "Z[t] = exp(S[t]) * W[t]\nreturn A, Z",
        {"X": (3,), "W": (3,)},
    ),
    "inside_with_a_condition_of_two_parts": (
        "Y[i] = (X[i] * 3 if i > 0 and V[i-1] > 0 else 2 * X[i]) if inside", {"X": (3,), "V": (3,)}),
    "short_target_index": ("size(Y, 0) = 4\nY[i] += X[i]", {"X": (1,)}),
    "two_targets_of_different_reach": ("Y[i] += X[i] ** 2\nY[j+1] += Z[j]", {"X": (1,), "Z": (2,)}),
    "state_one_longer_than_its_steps": ("H[0] = h\nfor t:\n    H[t+1] = H[t] * w + X[t]\nL += H[t] ** 2",
                                        {"h": (), "w": (), "X": (3,)}),
    "merged_only_if_of_one_shape": ("A[i] = X[i] ** 2\nB[j] = Z[j] ** 2\nY[n] = A[n+0] + B[n+0]\nsize(n) = 3",
                                    {"X": (3,), "Z": (5,)}),
    "batch_marker_and_a_window": ("Y[...,i] += X[...,i+p] * W[p]", {"X": (2, 2, 5), "W": (3,)}),
    "sum_over_the_batch_marker": ("loss += sin(X[...])", {"X": (2, 3)}),
    "nested_floor_division": ("size(i) = 12\nY[i] = X[i//2//3] ** 2", {"X": (2,)}),
    "floor_division_beside_a_stride": ("Y[i] = X[2*i] * r[i//2]\nsize(i) = 4", {"X": (8,), "r": (2,)}),
    "viterbi": ("D[0,j] max= S[j]\nfor t:\n    D[t+1,j] max= D[t,k] + T[k,j] * O[t,j]\nreturn D",
                {"S": (3,), "T": (3, 3), "O": (4, 3)}),
    "product_of_many_factors": (f"Y[i] = {' * '.join('X[i]' for _ in range(20))}", {"X": (2,)}),
    "power_zero": ("Y[i] = X[i] ** 0 + 0 * X[i] + Z[i]", {"X": (2,), "Z": (2,)}),
    "window_in_a_definition": ("def win(X[h], W[u]) -> Y[i]:\n    Y[i] += X[i+u] * W[u]\nA = win(S, K)\nB = win(A, K)",
                               {"S": (7,), "K": (2,)}),
    "negative_modulo": ("size(i) = 5\nY[i] = X[-(i % -3)]", {"X": (3,)}),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_derivatives_are_right_to_second_order(name: str) -> None:
    text, shapes = RIGHT[name]
    program = ts.program(text)
    arrays = {k: normal(*shape) for k, shape in shapes.items()}
    if name == "product_of_many_factors":
        arrays = {"X": np.array([1.01, 0.99])}
    ts.gradcheck(program, arrays)
    adjoint, tangent = program.adjoint(wrt=list(shapes)), program.tangent(wrt=list(shapes))
    for derived in (program, adjoint, tangent, adjoint.tangent(wrt=list(shapes))):
        assert ts.program(str(derived)) == derived
    result = program(arrays)
    outputs = result if isinstance(result, dict) else {program.outputs[0]: result}
    ts.gradcheck(adjoint, {**arrays, **{f"{y}.grad": normal(*a.shape) for y, a in outputs.items()}}, wrt=list(shapes))


def test_values_at_another_moment_are_refused_not_reused() -> None:
    program = ts.program("for t:\n    C[t] = exp(s)\n    s += X[t]\n    D[t] = exp(s) * Z[t]\nreturn C, D")
    with pytest.raises(DerivativeError, match="still being accumulated"):
        program.adjoint(wrt=["Z"])


def test_an_update_between_equal_statements_keeps_them_apart() -> None:
    program = ts.program("A[i] = sin(W[i])\nW[i] = W[i] + 1\nB[i] = sin(W[i])\nY[i] = X[i] * A[i] * B[i]\nreturn Y")
    W = np.array([0.3, 0.7])
    gradient = program.adjoint(wrt=["X"])({"W": W, "X": np.ones(2), "Y.grad": np.ones(2)})
    np.testing.assert_allclose(gradient, np.sin(W) * np.sin(W + 1))


def test_an_update_may_use_the_step() -> None:
    program = ts.program("for k:\n    W[i] = W[i] - 0.1 * g[k,i] * k")
    g = normal(3, 2)
    np.testing.assert_allclose(program(W=np.ones(2), g=g), 1 - 0.1 * (g[1] + 2 * g[2]))


@pytest.mark.parametrize(
    ("text", "index", "expected"),
    [
        ("Y[j] = X[2*k[j]]", np.array([130], np.uint8), 260),
        ("Y[j] = X[k[j]+200]", np.array([100], np.uint8), 300),
        ("Y[j] = X[k[j]+100]", np.array([100], np.int8), 200),
    ],
)
def test_small_integers_do_not_wrap_in_brackets(text: str, index: np.ndarray, expected: int) -> None:
    np.testing.assert_array_equal(ts.program(text)(X=np.arange(400.0), k=index), [expected])


def test_small_integers_do_not_wrap_in_values() -> None:
    k = np.array([200, 100], np.uint8)
    assert ts.program("s += k[i]")(k=k) == 300
    np.testing.assert_array_equal(ts.program("Y[i] = (k[i] > -1) + (k[i] < 300)")(k=k), [2, 2])
    np.testing.assert_array_equal(ts.program("Y[i] = min(k[i], 300) - 150")(k=k), [50, -50])
    np.testing.assert_array_equal(ts.program("Y[i] = k[i]")(k=k).dtype, np.uint8)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s -= k[i]", -300),
        ("s += k[i]\nz = s - 500", -200),
        ("s *= k[i]\nz = s - 20001", -1),
        ("s += k[i]\ns -= 2 * k[i]", -300),
    ],
)
@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32])
@pytest.mark.compiled
def test_sums_of_numbers_without_a_sign_have_one(text: str, expected: int, kind: type) -> None:
    program, k = ts.program(text), np.array([200, 100], kind)
    assert program(k=k) == program.run_reference(k=k) == expected
    assert program(k=k).dtype == np.int64


def test_a_maximum_of_two_types_starts_below_both() -> None:
    program = ts.program("m max= k[i]\nm max= x[j]")
    assert program(k=np.zeros(0, np.int32), x=np.array([-1e12])) == -1e12
    assert program(k=np.zeros(0, np.int32), x=np.zeros(0)) == -np.inf


@pytest.mark.parametrize("text", ["loss += x[i]", "loss += 3 * x[i]", "loss += relu(x[i])", "loss max= x[i]"])
def test_gradients_have_the_type_of_their_input(text: str) -> None:
    x = np.array([1, 2, 3], np.float32)
    assert ts.program(text).grad()(x=x)["x.grad"].dtype == np.float32


def test_a_plain_number_never_widens_a_derivative() -> None:
    product = ts.program("loss += x[i] * c").hessian_vector(wrt=["x"])
    result = product({"x": np.ones(2, np.float32), "c": 2.0, "x.dot": np.ones(2, np.float32)})
    assert result.dtype == np.float32


def test_a_derivative_is_out_of_bounds_where_its_program_is() -> None:
    adjoint = ts.program("size(i) = 5\nY[i] += X[i+p] * W[p]").adjoint(wrt=["X"])
    with pytest.raises(BoundsError, match=r"X\[i\+p\]"):
        adjoint({"X": np.ones(5), "W": np.ones(3), "Y.grad": np.ones(5)})
    gather = ts.program("Y[b] = E[tok[b]] + F[tok[b]]").adjoint(wrt=["E"])
    with pytest.raises(BoundsError, match=r"F\[tok\[b\]\]"):
        gather({"E": np.ones(4), "F": np.ones(2), "tok": np.array([3]), "Y.grad": np.ones(1)})
    batched = ts.program("size(H, 0) = 3\nH[b[n]] = w[n]").adjoint(wrt=["w"]).batch("m", over=["H.grad"])
    with pytest.raises(BoundsError, match="more than once"):
        batched({"b": np.array([0, 0]), "w": np.ones(2), "H.grad": np.ones((2, 3))})


def test_sizes_given_at_the_call_reach_the_derivatives() -> None:
    program = ts.program("loss += X[i+1] ** 2")
    X = np.arange(6.0)
    gradient = program.grad()(X=X, i=3)
    assert gradient["loss"] == program(X=X, i=3) == 14
    np.testing.assert_array_equal(gradient["X.grad"], [0, 2, 4, 6, 0, 0])


def test_an_input_that_is_only_sized_has_no_derivative() -> None:
    with pytest.raises(DerivativeError, match="only asked for its size"):
        ts.program("size(i) = size(S, 0)\nY[i] = X[i+0] * size(S, 1)").adjoint(wrt=["S"])


def test_axes_count_from_the_end_too() -> None:
    assert ts.program("size(j) = size(X, -1)\nY[j] = 1 + 0 * X[0,j]")(X=np.ones((2, 5))).shape == (5,)
    with pytest.raises(ProgramError, match="asks for another"):
        ts.program("size(j) = size(X, -3)\nY[j] = X[0,j]")


def test_an_unrelated_input_stays_out_of_the_gradient() -> None:
    assert set(ts.program("loss += A[i]\nacc += B[i]").grad().outputs) == {"loss", "A.grad"}


def test_a_definition_sees_its_own_names_only() -> None:
    with pytest.raises(ProgramError, match="Z is neither an argument nor written"):
        ts.program("def f(X[i]) -> Y[i]:\n    Y[i] = X[i] * Z[i]\nZ[i] = A[i]\nB = f(A)")


def test_a_scalar_argument_brings_no_index() -> None:
    with pytest.raises(ProgramError, match="sum over it"):
        ts.program("def f(X[i], r) -> Y:\n    Y += X[i] * r\nY = f(X, a[k])")


def test_calls_with_negative_constants_print_and_parse() -> None:
    program = ts.program("def f(X[i], k: int) -> Y[i]:\n    Y[i] = X[i] * -k\nZ = f(X, 2)")
    assert ts.program(str(program)) == program


def test_a_default_may_be_infinite() -> None:
    program = ts.program("def f(X[i], c=inf) -> Y[i]:\n    Y[i] = min(X[i], c)")
    assert ts.program(str(program)) == program
    np.testing.assert_array_equal(program(X=np.ones(2)), [1, 1])


def test_batching_an_argument_drops_its_default() -> None:
    batched = ts.program("def f(X[i], a=2.0) -> Y[i]:\n    Y[i] = a * X[i]").batch("n", over=["a"])
    assert ts.program(str(batched)) == batched


def test_gathers_through_a_batched_index() -> None:
    program = ts.program("Y[...,d] = E[tok[...],d]")
    assert program(E=np.ones((4, 3)), tok=np.zeros((2, 5), int)).shape == (2, 5, 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [("size(i) = 3", "no statement"), ("size(...) = 4\nY[...] = X[...]", "comes from the arrays"),
     ("Y = X[" + "i+" * 3000 + "i]", "levels"), ("size(i) = " + "1+" * 3000 + "1\nY[i] = 1", "levels"),
     ("S += A[i]\nfor t:\n    Y[t] = S\nfor t:\n    S += B[t]", "written after it was read")],
)  # fmt: skip
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(ts.SwapError, match=message):
        ts.program(text)


def test_an_input_shows_the_batch_of_its_derivative() -> None:
    adjoint = ts.program(str(ts.program("loss += X[...]").adjoint(wrt=["X"])))
    with pytest.raises(ArgumentError, match="the input X is missing"):
        adjoint({"loss.grad": 1.0})
    assert adjoint({"loss.grad": 1.0, "X": np.ones((2, 3))}).shape == (2, 3)


def test_an_argmax_alone_has_no_tangent() -> None:
    with pytest.raises(DerivativeError, match="no output with a derivative"):
        ts.program("a argmax= X[i]").tangent(wrt=["X"])


def test_a_wrong_rule_beside_a_large_one_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FUNCTIONS, "sin", replace(FUNCTIONS["sin"], derivatives=("2 * cos(x)",)))
    with pytest.raises(GradientMismatch):
        ts.gradcheck(ts.program("loss = 1e6 * A * A + sin(B)"), A=0.5, B=0.3)


def test_a_syntax_error_in_a_file_shows_the_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.loop"
    path.write_text("def f(X[i]) -> Y[i]:\n    Y[i] = X[i\n")
    with pytest.raises(ts.SwapError, match="bracket is not closed"):
        ts.load(path)


def test_control_characters_are_not_shown() -> None:
    with pytest.raises(ts.SwapError) as caught:
        ts.program("Y[i] = X[i] \x1b[31m")
    assert "\x1b" not in str(caught.value)
