"""Guards with fractions, and positions counted under a conditional: interpreter and kernels, values and derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.language.bounds import at_least_zero
from tensorswap.language.ir import Index
from tensorswap.language.name_kinds import resolve_names
from tensorswap.language.parse import parse

HOLDS = {
    "i > 0.5": [1, 2, 3],
    "i >= 1.5": [2, 3],
    "i < 2.5": [0, 1, 2],
    "i <= 1.5": [0, 1],
    "1.5 < i": [2, 3],
    "-1.5 < -i": [0, 1],
    "2 * i > 1.5": [1, 2, 3],
    "i == 1.0": [1],
    "i == 1.5": [],
    "i != 1.5": [0, 1, 2, 3],
    "i > -0.5": [0, 1, 2, 3],
    "i < inf": [0, 1, 2, 3],
    "i < size(i) / 2": [0, 1],
    "0.5 * i > 0.6": [2, 3],
    "i > 0.5 and i < 2.5": [1, 2],
}


@pytest.mark.parametrize("guard", HOLDS)
def test_a_bound_read_off_a_guard_holds_where_the_guard_does(guard: str) -> None:
    main = parse(f"Y[i+0] = X[i] if {guard}").main
    assert main is not None
    condition = resolve_names(main).statements[0].guard
    assert condition is not None
    for bound in at_least_zero(condition):
        value = ts.program(f"Y[i] = 1.0 * ({ts.language.render.expression(bound)})\nZ[i] = X[i]\nreturn Y")
        found = value.run_reference(X=np.ones(4), i=4)
        assert all(found[HOLDS[guard]] >= 0), f"{guard}: {bound}"
        assert Index("i") in ts.language.ir.walk(bound)


@pytest.mark.compiled
def test_guards_with_fractions_keep_the_right_points() -> None:
    values = np.arange(1.0, 5.0)
    for number, (guard, points) in enumerate(HOLDS.items()):
        program = ts.program(f"Y[i+0] = X[i] if {guard}")
        adjoint = program.adjoint(wrt=["X"])
        expected = np.zeros(4)
        expected[points] = values[points]
        arguments = {"X": values, "Y.grad": np.ones(4)}
        np.testing.assert_array_equal(program.run_reference(X=values), expected, err_msg=guard)
        np.testing.assert_array_equal(adjoint.run_reference(arguments), expected != 0, err_msg=guard)
        if number % 8 == 0:
            np.testing.assert_array_equal(program(X=values), expected, err_msg=guard)
            np.testing.assert_array_equal(adjoint(arguments), expected != 0, err_msg=guard)


@pytest.mark.compiled
def test_a_shifted_read_behind_a_guard_with_a_fraction() -> None:
    program = ts.program("Y[i] = X[i-1] if i > 0.5")
    values = np.arange(1.0, 5.0)
    for result in (program(X=values), program.run_reference(X=values)):
        assert result.tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ts.SwapError, match="position -1"):
        ts.program("size(i) = size(X, 0)\nY[i] = X[i-1] if i > -0.5").run_reference(X=values)


@pytest.mark.compiled
def test_positions_under_a_conditional_count_in_the_order_of_the_text() -> None:
    generator = np.random.default_rng(5)
    X, Z = generator.standard_normal((3, 4)), generator.standard_normal((4, 3))
    condition = generator.standard_normal((4, 3))
    chosen = np.where(condition.T > 0, X, Z.T)
    arrays = {"X": X, "Z": Z, "c": condition}
    program = ts.program("a argmax= X[i,j] if c[j,i] > 0 else Z[j,i]")
    assert program.loops.statements[0].indices == ("i", "j")
    for result in (program(arrays), program.run_reference(arrays)):
        assert int(result) == int(chosen.argmax())
    least = ts.program("a argmin= where(c[j,i] > 0, X[i,j], Z[j,i])")
    assert int(least.run_reference(arrays)) == int(chosen.argmin())


def test_a_size_given_at_the_call_sizes_the_derivative_too() -> None:
    program = ts.program("Y[2*m+1] = a * m")
    tangent = program.tangent(wrt=["a"])
    assert ts.program(str(tangent)) == tangent
    assert tangent.run_reference({"a": 2.0, "a.dot": 1.0, "m": 3}).tolist() == [0, 0, 0, 1, 0, 2]
    assert program.adjoint(wrt=["a"]).run_reference({"a": 2.0, "Y.grad": np.ones(6), "m": 3}) == 3


@pytest.mark.compiled
@pytest.mark.parametrize("rows", [1, 7, 8, 9, 26])
@pytest.mark.parametrize(
    "text",
    [
        "size(i) = size(k)\nfor k down:\n    Y[k,l] -= A[i,l] * B[i,k] if l < k and i >= k",
        "size(i) = size(k)\nfor k:\n    Y[k,l] += A[i,l] * B[i,k] if i > k + 2 and l >= k",
        "Y[l] += A[i,l] * B[i,0] if i >= 9 and l < 20",
        "Y[l] += A[i,l] * B[i,0] if i >= l and l > 1",
        "Y[k,l] += A[i,l] * B[i,k] if i < 12 and i > 4 and k > 2",
    ],
)
def test_sums_whose_guards_are_bounds_run_along_memory(text: str, rows: int) -> None:
    """The loop along the target is the innermost, several terms in one go, whatever the guards leave of the sum."""
    rng = np.random.default_rng(rows)
    arguments = {"A": rng.normal(size=(rows, 40)), "B": rng.normal(size=(rows, rows))}
    program = ts.program(text)
    np.testing.assert_allclose(program(arguments), program.run_reference(arguments), rtol=1e-12, atol=1e-12)


@pytest.mark.compiled
@pytest.mark.parametrize("guard", ["j + k > j", "k + j < j + 7", "i + k >= i + 3", "j + k <= j + i"])
def test_an_index_that_cancels_in_a_guard_of_a_contraction(guard: str) -> None:
    rng = np.random.default_rng(3)
    arguments = {"A": rng.normal(size=(33, 33)), "B": rng.normal(size=(33, 33))}
    program = ts.program(f"Y[i,j] += A[i,k] * B[k,j] if {guard}")
    np.testing.assert_allclose(program(arguments), program.run_reference(arguments), rtol=1e-12, atol=1e-12)
