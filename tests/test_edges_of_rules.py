"""Where rules are easily wrong by one point, one sign or one moment: ties, borders, guards, directions and names."""

from __future__ import annotations

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.errors import BoundsError
from tensorswap.rules.written_once import shown_by_text

X = np.array([0.5, -1.0, 2.0, 0.25, 1.5])
ONES = np.ones(5)


def test_a_tie_of_two_values_goes_to_the_first() -> None:
    for function in ("max", "min"):
        adjoint = ts.program(f"Y[i] = {function}(A[i], B[i])").adjoint(wrt=["A", "B"])
        found = adjoint({"A": X, "B": X, "Y.grad": ONES})
        np.testing.assert_array_equal(found["A.grad"], ONES)
        np.testing.assert_array_equal(found["B.grad"], 0 * ONES)
    relu = ts.program("Y[i] = relu(A[i])").adjoint(wrt=["A"])
    np.testing.assert_array_equal(relu({"A": 0 * X, "Y.grad": ONES}), 0 * ONES)


OPERATIONS = ("A[i] / B[i]", "A[i] ** B[i]", "A[i] % B[i]", "A[i] * B[i] * A[i]", "-A[i] - B[i]", "B[i] / A[i] / B[i]")


@pytest.mark.parametrize("value", OPERATIONS)
def test_the_derivative_of_every_operation_is_its_slope(value: str) -> None:
    ts.gradcheck(ts.program(f"Y[i] = {value}"), A=np.array([0.7, 1.9]), B=np.array([1.3, 0.6]))


def test_a_sum_that_subtracts_has_a_negative_derivative() -> None:
    program = ts.program("Y[i] -= A[i,j] * V[j]")
    A, V = np.arange(6.0).reshape(2, 3), np.array([1.0, 2.0, 4.0])
    np.testing.assert_array_equal(program(A=A, V=V), -(A @ V))
    np.testing.assert_array_equal(program.adjoint(wrt=["V"])({"A": A, "V": V, "Y.grad": np.ones(2)}), -A.sum(axis=0))
    np.testing.assert_array_equal(program.tangent(wrt=["V"])({"A": A, "V": V, "V.dot": np.ones(3)}), -A.sum(axis=1))


def test_maximum_over_three_statements_routes_to_one() -> None:
    adjoint = ts.program("y max= A[i]\ny max= B[i]\ny max= C[i]").adjoint(wrt=["A", "B", "C"])
    for winner in "ABC":
        given = {name: X + 10 * (name == winner) for name in "ABC"}
        found = adjoint({**given, "y.grad": 1.0})
        for name in "ABC":
            np.testing.assert_array_equal(found[f"{name}.grad"], (X == 2) * (name == winner), err_msg=f"{winner}{name}")


def test_a_value_held_at_some_points_is_not_read_at_others() -> None:
    program = ts.program("H[i] = exp(A[i]) if M[i] > 0\nY[i] = exp(A[i]) * W[i]\nreturn H, Y")
    adjoint = program.adjoint(wrt=["W"], of=["Y"])
    given = {"A": X, "M": np.array([1.0, 0, 1, 0, 1]), "W": ONES, "Y.grad": ONES}
    np.testing.assert_allclose(adjoint({k: v for k, v in given.items() if k in adjoint.inputs}), np.exp(X))


def test_a_value_over_leading_axes_is_shared() -> None:
    """Whichever of its indices stands first in it."""
    program = ts.program("T[...] += sigmoid(W[k] * X[...,k])\nloss += T[...]\nreturn loss")
    random = np.random.default_rng(4)
    assert "W.shared[...,k]" in str(program.grad(wrt=["X", "W"]))
    ts.gradcheck(program, {"X": random.standard_normal((2, 3, 4)), "W": random.standard_normal(4)}, wrt=["X", "W"])


def test_a_value_shared_under_a_guard_is_not_read_at_other_points() -> None:
    program = ts.program("loss += exp(A[i] * B[i]) * C[i] if i < 2\nloss += exp(A[i] * B[i]) * D[i] if i >= 2")
    ts.gradcheck(program, A=X, B=X[::-1].copy(), C=ONES, D=3 * ONES)


def test_both_branches_meet_at_their_border() -> None:
    for condition in ("i > 2", "not i <= 2", "i >= 3", "2 < i"):
        adjoint = ts.program(f"Y[i] = A[i] if {condition} else 2 * A[i]").adjoint(wrt=["A"])
        np.testing.assert_array_equal(adjoint({"A": X, "Y.grad": ONES}), [2, 2, 2, 1, 1], err_msg=condition)


@pytest.mark.parametrize(("read", "expected"), [("i+1", "01110000"), ("2*i", "10101000"), ("7-2*i", "00010101")])
def test_what_no_point_reads_has_no_gradient(read: str, expected: str) -> None:
    """Nothing but its own size tells where the index ends."""
    adjoint = ts.program(f"size(i) = 3\ntotal += A[{read}]").adjoint(wrt=["A"])
    np.testing.assert_array_equal(adjoint({"A": np.ones(8), "total.grad": 1.0}), [int(digit) for digit in expected])


def test_batch_counts_axes_behind_the_new_one() -> None:
    batched = ts.program("Y[i] = A[i] * size(A, 0)").batch("n", over=["A"])
    np.testing.assert_array_equal(batched(A=np.ones((2, 5))), np.full((2, 5), 5.0))


def test_an_index_of_a_definition_is_not_the_callers() -> None:
    program = ts.program(
        "def total(A[i]) -> s:\n    s += A[i]\nY[i] = A[i] * 2\nt = total(B)\nZ[i] = Y[i] * t\nreturn Z"
    )
    np.testing.assert_array_equal(program(A=np.ones(3), B=np.ones(5)), [10, 10, 10])


def test_a_block_down_reads_what_stands_behind() -> None:
    behind = ts.program("for t down:\n    H[t] = A[t] + (H[t+1] if t < size(t) - 1 else 0)")
    np.testing.assert_allclose(behind(A=X), np.cumsum(X[::-1])[::-1])
    ahead = ts.program("for t down:\n    H[t] = A[t] + (H[t-1] if t > 0 else 0)")
    assert shown_by_text(behind.loops)
    assert not shown_by_text(ahead.loops)
    with pytest.raises(BoundsError, match="later step"):
        ahead(A=X)


def test_targets_that_share_one_element_are_not_apart() -> None:
    apart = ts.program("Y[i] = A[i]\nY[i+size(i)] = B[i]")
    touching = ts.program("Y[i] = A[i]\nY[i+size(i)-1] = B[i]")
    assert shown_by_text(apart.loops)
    assert not shown_by_text(touching.loops)
    np.testing.assert_array_equal(apart(A=X, B=X), [*X, *X])
    with pytest.raises(BoundsError, match="written before"):
        touching(A=X, B=X)


GROWING = {
    "held behind the block": "for t:\n    s += X[t]\n    C[t] = tanh(s)\nE = tanh(s)\nreturn C, E",
    "held later in the step": (
        "for t:\n    P[t,i] += X[t]\n    C[t,i] = exp(P[t,i])\n"
        "    P[t,i] += Y[t,i]\n    E[t,i] = exp(P[t,i])\nreturn C, E"
    ),
}


@pytest.mark.parametrize("name", GROWING)
def test_a_value_of_a_sum_that_grows_is_held_by_nothing_that_comes_later(name: str) -> None:
    """The adjoint would read what the sum has become. The tangent is made when it is known, and right."""
    program = ts.program(GROWING[name])
    with pytest.raises(ts.SwapError, match="still being accumulated"):
        program.adjoint(wrt=["X"])
    random = np.random.default_rng(2)
    given = {"X": random.standard_normal(4), "Y": random.standard_normal((4, 3))}
    given = {key: array for key, array in given.items() if key in program.inputs}
    way, step = random.standard_normal(4), 1e-6
    pushed = program.tangent(wrt=["X"]).run_reference({**given, "X.dot": way})
    above, below = (program.run_reference({**given, "X": given["X"] + s * way}) for s in (step, -step))
    for output in ("C", "E"):
        slope = (above[output] - below[output]) / (2 * step)
        np.testing.assert_allclose(pushed[f"{output}.dot"], slope, rtol=1e-6, atol=1e-8)


GUARDS = {
    "written otherwise": ("i == 1", "not (i == 1)"),
    "three, two of which meet": ("i < 1", "i >= 1", "i >= 1 and i < 9"),
    "three, one of which meets both": ("i < 2", "i >= 1 and i < 3", "i >= 2"),
    "in another order": ("i >= 1 and i < 9", "i < 1", "i >= 1"),
}


@pytest.mark.parametrize("operator", ["*=", "max=", "min="])
@pytest.mark.parametrize("guards", GUARDS.values(), ids=list(GUARDS))
def test_tangents_of_guarded_statements_stand_once(guards: tuple[str, ...], operator: str) -> None:
    names = "ABC"[: len(guards)]
    pairs = zip(names, guards, strict=True)
    program = ts.program("\n".join(f"Y[i] {operator} {name}[i] if {guard}" for name, guard in pairs))
    rng = np.random.default_rng(0)
    given = {name: rng.uniform(0.5, 2, 5) for name in names}
    way = {f"{name}.dot": rng.standard_normal(5) for name in names}
    later, before = (
        program.run_reference({name: given[name] + sign * 1e-6 * way[f"{name}.dot"] for name in names})
        for sign in (1, -1)
    )
    pushed = program.tangent(wrt=list(names)).run_reference({**given, **way})
    np.testing.assert_allclose(pushed, (later - before) / 2e-6, rtol=1e-6, atol=1e-8)
