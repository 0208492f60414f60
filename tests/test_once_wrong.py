"""Programs that compiled calls once had wrong, in silence: each does what the interpreter does, or is refused alike."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.errors import DerivativeError

ONES, WEAK = np.ones, np.ones(60, np.float32)
LONG = np.arange(39.0).reshape(3, 13)
UNSIGNED = np.array([[5, 7, 9, 11]], np.uint64)
STEPS = """
for t:
    G[b,t] = tanh(X[b,t] + (H[b,t-1] if t > 0 else 0))
    H[b,t] = G[b,t] * X[b,t] if {}
Y[b] += H[b,t] * X[b,t]
return Y
"""

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "an empty range in a strip of vectors": (
        "for t:\n    H[j,t] = exp(X[j,t])\n    S[j,t] = H[j,t] if j < t\nreturn S", {"X": np.zeros((16, 4))}),
    "guards of steps: above": (STEPS.format("b < t - 4"), {"X": ONES((40, 30))}),
    "guards of steps: a corner": (STEPS.format("b + t < 6"), {"X": ONES((40, 30))}),
    "guards of steps: nobody": (STEPS.format("b >= 12"), {"X": ONES((8, 2))}),
    "a rolling buffer that is read too early": (
        "for t:\n    Y[t] = U[t] + X[t]\n    U[t] += X[t] + (U[t-1] if t > 0 else 0)\nreturn Y", {"X": ONES(5)}),
    "the step of a winner in a rolling buffer": (
        "for t:\n    S[t] = c[t]\n    Y argmax= S[t]\nreturn Y", {"c": ONES(3) * [1, 2, 9]}),
    "the step of a winner among others": (
        "for t:\n    S[t,i] = c[t] * w[i]\n    Y[i] argmin= S[t,i]\nreturn Y", {"c": ONES(3) * [5, 2, 9], "w": ONES(4)}
    ),
    "the step of a winner in a block within a block": (
        "for r:\n    for t:\n        S[r,t] += c[t] * w[r] if t < 2\n        Y[r] argmax= S[r,t]\nreturn Y",
        {"c": ONES(3) * [1, 2, 0], "w": ONES(4)}),
    "a rolling buffer whose writer reads its own element": (
        "for t:\n    U[t,i] += X[t,i] + 0.5 * U[t,i] + (U[t-1,i] if t > 0 else 0)\nY[i] = U[size(t)-1,i]\nreturn Y",
        {"X": ONES((5, 3))}),
    "the size of a folded axis, counted from the end": (
        "U[0,i] = u[i]\nfor t:\n    U[t+1,i] = U[t,i] + 1\nY[i] = U[size(t),i] * size(U,-2)\nsize(t) = 6\nreturn Y",
        {"u": np.zeros(1)}),
    "sums that read what their neighbours add": (
        "for t:\n    G[t,i] += A[t,i] + (G[t,i-1] if i > 0 else 0)\n    G[t,i] += 2 * G[t,i+1] if i + 1 < size(i)",
        {"A": ONES((1, 4))}),
    "a division that a guard hides from a product": (
        "Y[t,q] += V[k // s[q] % 2] * X[t,k] if q > 0",
        {"V": ONES(2) * [1, 2], "s": np.array([0, 2, 1]), "X": ONES((9, 16))}),
    "a division that a guard hides from a copy": (
        "for t:\n    H[t,q] += X[t,q]\n    H[t,q] += H[t,k // s[q] % 2] if q > 0 and k < 2\nreturn H",
        {"s": np.array([0, 2, 1]), "X": ONES((4, 3)), "k": 5}),
    "a division that a guard hides in steps": (
        "for t:\n    Y[t,q] += V[k // s[q] % 2] * X[t,k] if q > 0",
        {"V": ONES(2) * [1, 2], "s": np.array([0, 2, 1]), "X": ONES((9, 16))}),
    "a branch of `inside` beyond an axis": (
        "T[2*a] = Z[a]\nY[q] = (T[q] if c[q] > 0 else 0.0) + X[q] if inside",
        {"Z": ONES(2), "c": ONES(6), "X": 10 * ONES(6)}),
    "two sums into a part of an axis": (
        "size(Y,0) = 4\nY[i] += A[i] if i < 4\nY[i] += B[i] if i < 4", {"A": ONES(9), "B": ONES(9)}),
    "a lifted sum into a part of an axis": (
        "size(Y,0) = 5\nsize(m) = 4\nY[n,m] += S[n,d] if n < 5", {"S": ONES((400, 2))}),
    "a turned target of which a part is there": (
        "size(Y,0) = 5\nY[k,c] += exp(X[n,k]*W[c,k]) if k < 5", {"X": np.zeros((3, 1000)), "W": np.zeros((4, 1000))}),
    "a scatter whose sum goes beyond an axis": (
        "T[2*a,k] += Q[a,k]\nsize(q) = 300\nsize(Y,0) = 200\nY[3*q+u] += T[q,k] * W[u,k] if inside",
        {"Q": ONES((8, 6)), "W": ONES((4, 6))}),
    "a count of steps as a place to read": (
        "size(z) = 1\nsize(t) = 50\nfor t:\n    n[z] += 1\nY[z] = X[n[z]]", {"X": ONES(5)}),
    "a count of steps as a place to write": (
        "size(z) = 1\nsize(t) = 50\nsize(Y,0) = 5\nfor t:\n    n[z] += 1\nY[n[z]] += X[z]", {"X": ONES(1)}),
    "a winner before there is one": (
        "for t:\n    Y[t,i] = X[a[i]]\n    a[i] argmax= S[t,i]\nreturn Y",
        {"S": ONES((2, 1)), "X": np.array([7.0, 8.0])}),
    "a sum of no points": (
        "n: index\nY[n,k] += S[idx[k],d]", {"S": ONES((4, 5)), "idx": np.array([0, 3, 10**9]), "n": 0}),
    "a quotient in a branch": (
        "size(s) = 12\nX[s] += (Y[s//2] if s < 4 else 5.0) if s % 2 == 0 and inside", {"Y": ONES(2)}),
    "two quotients": (
        "size(s) = 4\nsize(r) = 3\nX[s,r] += Y[(s-r)//2] * Z[r//2] if (s-r) % 2 == 0 and r % 2 == 0 and inside",
        {"Y": ONES(2), "Z": ONES(2)}),
    "positions in a copy": (
        "G[i,j] = C[j,i]\na argmax= G[i,j]\nreturn a", {"C": np.array([[0.0, 0, 9], [0, 0, 0]])}),
    "positions in gathered rows": (
        "size(k) = 3\nsize(j) = 4\nL[c,d] = X[d,c]\na argmax= L[k+0,j+0]\nreturn a",
        {"X": 1e4 * (np.arange(1200).reshape(30, 40) == 2) - np.arange(1200).reshape(30, 40)}),
    "positions among shared values": (
        "P[j,i] = exp(X[i,j])\na[n] argmax= exp(X[i,j]) + W[n]\nreturn P, a",
        {"X": np.random.default_rng(0).normal(size=(3, 4)), "W": ONES(2)}),
    "a statement that stands twice": (
        "H[t] += Z[t]\nfor t:\n    S += H[t]\n    H[t] += X[t]\n    S += H[t]\nreturn S", {"Z": ONES(3), "X": ONES(3)}),
    "opposite guards of what changes in between": (
        "Y[i] = 1.0 if x[i] == 0\nx[i] = x[i] + 1\nY[i] = 2.0 if x[i] != 0\nreturn Y", {"x": np.zeros(2)}),
    "zeros that are divided": (
        "G[n,l[n]] += v[n]\nZ[n] += G[n,c] / E[n,c]",
        {"l": np.array([0]), "v": ONES(1), "E": np.array([[2.0, 0.0]])}),
    "unsigned labels": (
        "G[n,label[n]] += v[n]\nZ[n] += G[n,c] * (c - 5) * E[c]",
        {"label": np.array([1, 3], np.uint64), "v": ONES(2), "E": ONES(4)}),
    "a guard that holds nowhere": ("Y[i,j] = X[i,j] if j < -3", {"X": LONG.astype(np.float32)}),
    "a shift beyond the end": ("Y[i,j] = X[i,j] - X[i,j+16] if j + 16 < size(j)", {"X": LONG}),
    "a mask with a third index, in panels of each": (
        "Y[n,h,i,j] += A[n,h,i,k] * B[n,k,j] if k <= j + 5*h", {"A": ONES((2, 2, 16, 16)), "B": ONES((2, 16, 8))}),
    "a mask with a third index, in panels of all": (
        "Y[h,i,j] += A[h,i,k] * B[k,j] if k <= j + h", {"A": ONES((2, 16, 16)), "B": ONES((16, 8))}),
    "a mask with the step of a block": (
        "H[0,b,j] = X[b,j]\nfor t:\n    P[t,b,j] += H[t,b,k] * W[k,j] if k <= j + t\n"
        "    H[t+1,b,j] = tanh(P[t,b,j]) / 9\nsize(t) = 3\nreturn H", {"W": ONES((16, 16)), "X": ONES((16, 16))}),
    "the least of unsigned words": ("M[i] min= X[i,k] if k > 1", {"X": UNSIGNED}),
    "the least of no unsigned words": ("M min= X[k]", {"X": np.zeros(0, np.uint64)}),
    "the greatest of no small numbers": ("M max= X[k]", {"X": np.zeros(0, np.int8)}),
    "the least of no small numbers": ("M min= X[k]", {"X": np.zeros(0, np.int16)}),
    "no terms times infinity": (
        "Y[i,j] += A[i,k] * B[k,j] * s if k < i", {"A": ONES((16, 16)), "B": ONES((16, 16)), "s": np.inf}),
    "a product over nothing": ("Y[i,j] += A[k,i] * B[k,j]", dict.fromkeys("AB", np.zeros((0, 16)))),
    "a plain number beside integers": (
        "Y[i] = s * G[i]\nZ[i] = B[i] + 1", {"B": ONES(3, np.float32), "G": np.arange(3), "s": 0.1}),
    "a plain number that jumps": ("Y[i] = X[i] * floor(s * 100)", {"X": WEAK, "s": 0.29}),
    "a comparison of plain numbers": ("Y[i] = X[i] if i * 0.1 <= 0.3 else 0", {"X": WEAK}),
    "a plain number that cancels": ("Y[i] = X[i] * (s - 16777216)", {"X": WEAK, "s": 16777217.0}),
    "a plain number that is tiny": ("Y[i] = X[i] if s > 0 else 5", {"X": WEAK, "s": 1e-60}),
    "a plain number that is large": ("Y[i] = X[i] * (s / 1e300)", {"X": WEAK, "s": 1e300}),
    "a plain tensor between": ("h = s * 3\nu[i] = h * i\nY[i] = X[i] * floor(u[i])\nreturn Y", {"X": WEAK, "s": 0.1}),
    "factors in their order": (
        "Y[i] = X[i] / W[i] * Z[i]", dict.fromkeys("XWZ", np.full(40, 1e20, np.float32))),
    "powers of negative numbers": (
        "Y[i] = X[i] ** a * X[i] ** b", {"X": np.full(40, -2.0), "a": np.array(0.5), "b": np.array(0.5)}),
    "powers of zero": ("Y[i] = (Z[i] / Z[i]) * Z[i] ** a", {"Z": np.zeros(40), "a": np.array(0.3)}),
}  # fmt: skip


def outcome(call: Any, arguments: dict[str, Any]) -> Any:
    with np.errstate(all="ignore"):
        try:
            return call({name: np.copy(a) if isinstance(a, np.ndarray) else a for name, a in arguments.items()})
        except ts.SwapError as error:
            return type(error)


def check(program: ts.Program, arguments: dict[str, Any]) -> None:
    got, right = outcome(program, arguments), outcome(program.run_reference, arguments)
    if isinstance(right, type):
        assert got is right
        return
    found, wanted = ({"": value} if not isinstance(value, dict) else value for value in (got, right))
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        assert found[name].dtype == value.dtype
        np.testing.assert_allclose(found[name], value, rtol=1e-5 if value.dtype == np.float32 else 1e-12)


@pytest.mark.compiled
@pytest.mark.filterwarnings("ignore::tensorswap.SwapWarning")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_compiled_as_interpreted(case: tuple[str, dict[str, Any]]) -> None:
    check(ts.program(case[0]), case[1])


@pytest.mark.compiled
@pytest.mark.parametrize("dtype", [np.int32, np.int8, bool])
def test_a_large_product_of_whole_numbers_is_not_left_to_numpy(dtype: type) -> None:
    """Which would compute it in their own type."""
    A = np.full((700, 700), 100, dtype)
    found = ts.program("Y[i,j] -= A[i,k] * B[k,j]")(A=A, B=A)
    assert found.dtype == np.int64
    assert (found == -(A.astype(float) @ A.astype(float))).all()  # which is exact, and quicker


@pytest.mark.compiled
def test_a_gradient_of_whole_numbers_in_a_copy() -> None:
    adjoint = ts.program("B[i] = A[i] * N[i]\nY[i] = B[i]").adjoint(wrt=["A"])
    check(adjoint, {"A": ONES(2), "N": np.full(2, 2**40), "Y.grad": np.full(2, 2**40)})


@pytest.mark.compiled
@pytest.mark.parametrize("name", ["two sums into a part of an axis", "a lifted sum into a part of an axis"])
def test_passes_keep_an_index_from_beyond_an_axis(name: str) -> None:
    """A write beyond the end may go unnoticed; the interpreter notices it, after every pass."""
    text, arguments = CASES[name]
    with ts.debug(validate=True):
        ts.program(text)(arguments)


@pytest.mark.compiled
def test_a_gradient_of_an_empty_batch() -> None:
    gradient = ts.program("Y[n,o] += X[n,d] * W[o,d]\nloss += Y[n,o] * Y[n,o]").grad(wrt=["W"])
    check(gradient, {"X": np.zeros((0, 20)), "W": ONES((30, 20))})


def test_an_index_beyond_an_axis_has_no_part_in_a_gradient() -> None:
    """T has three elements: what `inside` leaves out of the sum, it leaves out of all of its derivatives."""
    program = ts.program("T[2*a] = Z[a]\nY[q] += T[q] + X[q] if inside\nloss += Y[q]")
    given = {"Z": ONES(2), "X": ONES(6)}
    assert program.grad(wrt=["X"]).run_reference(given)["X.grad"].tolist() == [1, 1, 1, 0, 0, 0]
    moved = program.tangent(wrt=["X"]).run_reference({**given, "X.dot": ONES(6)})
    assert (moved["loss.dot"] if isinstance(moved, dict) else moved) == 3
    counted = ts.program("T[2*a] = Z[a]\nsize(q) = 20\nY[i] += X[i] + T[q] if inside\nloss += Y[i]")
    assert counted.grad(wrt=["X"]).run_reference(given)["X.grad"].tolist() == [3] * 6


def test_a_place_that_later_steps_change_has_no_derivative() -> None:
    text = "size(z) = 1\nfor t:\n    n[z] += step[t]\n    Y[t,z] = X[n[z]]\nloss += Y[t,z] * V[t]"
    with pytest.raises(DerivativeError, match="still being accumulated"):
        ts.program(text).grad(wrt=["X"])


@pytest.mark.compiled
@pytest.mark.parametrize("wrong", [["a", "b"], np.array(["2020-01-01"] * 2, "datetime64[s]"), np.array([None, 1])])
def test_a_later_call_with_what_is_no_number(wrong: Any) -> None:
    program = ts.program("Y[i] = B[n[i]]")
    for _ in range(3):
        program(B=ONES(4), n=np.array([1, 2], np.int32))
    with pytest.raises(ts.SwapError):
        program(B=ONES(4), n=np.asarray(wrong))


LONG_PRODUCTS = {
    "Y[j,k] += A[j+1,i] * B[k+1,i] * C[i]": {"A": (6, 8), "B": (9, 8), "C": (8,), "Y.grad": (5, 8)},
    "Y[j,k] += A[j+1,i] * B[2*k,l] * C[i,j,l]": {"A": (5, 3), "B": (7, 4), "C": (3, 4, 4), "Y.grad": (4, 4)},
    "Y[o,i] += A[p+1] * B[c,i+p] * C[o,c,p]": {"A": (4,), "B": (2, 9), "C": (3, 2, 3), "Y.grad": (3, 7)},
    "Y[a,d] += A[a+1,b] * B[b,c] * C[c,d+2]": {"A": (5, 3), "B": (3, 4), "C": (4, 8), "Y.grad": (4, 6)},
    "Y[j,i] += C[k,i] * (0) * B[j,k] * A[j]": {"A": (5,), "B": (5, 4), "C": (4, 6), "Y.grad": (5, 6)},
}


@pytest.mark.compiled
@pytest.mark.parametrize("text", LONG_PRODUCTS)
def test_adjoints_of_long_products_that_are_read_off_their_places(text: str) -> None:
    """Indices that a derivative adds had the sizes of others, where its products are taken in steps."""
    generator = np.random.default_rng(1)
    arrays = {name: generator.standard_normal(shape) for name, shape in LONG_PRODUCTS[text].items()}
    for wrt in itertools.permutations("ABC", 2):
        adjoint = ts.program(text).adjoint(wrt=list(wrt))
        given = {name: arrays[name] for name in adjoint.inputs}
        found, wanted = adjoint(given), adjoint.run_reference(given)
        for name in adjoint.outputs:
            np.testing.assert_allclose(found[name], wanted[name], rtol=1e-10, atol=1e-12, err_msg=f"{wrt}: {name}")
        assert "interpreted" not in str(adjoint.plan(given))
