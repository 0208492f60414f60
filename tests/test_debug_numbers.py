"""ts.debug(nan=True): the element, the statement and the operation that first made NaN or infinity."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.errors import BoundsError, NumberError
from tensorswap.interpret import watch

pytestmark = pytest.mark.compiled  # p(...) is the user's: under the switches it goes through the interpreter


def told(program: ts.Program | str, **arrays: Any) -> str:
    """What the error of a call says."""
    made = ts.program(program) if isinstance(program, str) else program
    with ts.debug(nan=True), pytest.raises(NumberError) as caught:
        made(arrays)
    return str(caught.value)


def fine(program: str, **arrays: Any) -> None:
    """Nothing is said, and the result is the interpreter's."""
    made = ts.program(program)
    with ts.debug(nan=True, bounds=True):
        result = made(arrays)
    np.testing.assert_equal(result, made.run_reference(arrays))


# -- the operation


def test_the_element_the_statement_and_the_operation_are_named() -> None:
    p = np.ones((5, 8))
    p[3, 7] = -1
    text = "Q[t,b] = 2 * P[t,b]\nfor t:\n    H[t,b] = 1 + log(Q[t,b]) + (H[t-1,b] if t > 0 else 0)"
    said = told(text, P=p)
    assert "H[t=3,b=7] is NaN, first made in statement 2: log(Q[t=3,b=7]) with Q = -2\n" in said
    assert "line 3, column 18:" in said
    assert "^^^^^^^^^^^" in said
    assert "log needs a positive number" in said


@pytest.mark.parametrize(
    ("text", "values", "operation"),
    [
        ("Y[i] = log(X[i])", [1, 0], "Y[i=1] is infinite, first made in statement 1: log(X[i=1]) with X = 0"),
        ("Y[i] = 1 + sqrt(X[i] - 1)", [1, 0], "sqrt(X[i=1] - 1) with X = 0, X[i=1] - 1 = -1"),
        ("Y[i] = X[i] / X[i]", [1, 0], "X[i=1] / X[i=1] with X = 0"),
        ("Y[i] = 3 / X[i]", [1, 0], "Y[i=1] is infinite, first made in statement 1: 3 / X[i=1] with X = 0"),
        ("Y[i] = exp(X[i])", [1, 1000], "Y[i=1] is infinite, first made in statement 1: exp(X[i=1]) with X = 1000"),
        ("Y[i] = exp(X[i]) - exp(X[i])", [1, 800], "exp(X[i=1]) - exp(X[i=1]) with X = 800, exp(X[i=1]) = inf"),
        (
            "Y[i] = (i - 1) * exp(X[i])",
            [1, 800],
            "(i-1) * exp(X[i=1]) with i = 1, X = 800, i - 1 = 0, exp(X[i=1]) = inf",
        ),
        ("Y[i] = X[i] ** 0.5", [1, -1], "X[i=1] ** 0.5 with X = -1"),
        ("Y[i] = asin(X[i]) if i > 0", [7, 2], "asin(X[i=1]) with X = 2"),
        ("Y[i] = log(X[i]) if X[i] > 0 else sqrt(X[i])", [1, -4], "sqrt(X[i=1]) with X = -4"),
        ("Y += log(X[i])", [1, -4], "Y is NaN, first made in statement 1: log(X[i=1]) with X = -4"),
        ("Y[2*i+1] = log(X[i])", [1, -4], "Y[2*i+1=3] is NaN"),
        ("Y argmax= log(X[i])", [1, -4], "a candidate for Y is NaN, first made in statement 1: log(X[i=1])"),
        ("Y *= exp(X[i]) if i > 0\nZ = Y * 0", [1, 800], "; Y is infinite, first made in statement 1: exp(X[i=1])"),
        ("Y[...] = log(X[...])", [1, -4], "is NaN, first made in statement 1: log(X["),
        ("Y[i] = log(hypot(X[i], 0) - 4)", [1, -4], "hypot(X[i=0], 0) - 4) with X = 1, hypot(X[i=0], 0) - 4 = -3"),
    ],
)
def test_each_operation(text: str, values: list[float], operation: str) -> None:
    assert operation in told(text, X=np.array(values, np.float64))


def test_several_reads_of_one_tensor_are_told_apart() -> None:
    assert "sqrt(X[i=0] - X[i+1=1]) with X[i=0] = 1, X[i+1=1] = 3" in told(
        "Y[i] = sqrt(X[i] - X[i+1]) if inside", X=np.array([1.0, 3, 2])
    )


def test_gathered_positions_are_told() -> None:
    said = told("Y[n,d] = log(E[tok[n],d])", E=np.full((3, 2), -1.0), tok=np.array([2, 0]))
    assert "Y[n=0,d=0] is NaN, first made in statement 1: log(E[tok[n]=2,d=0]) with E = -1" in said


# -- sums


def test_a_sum_that_overflows() -> None:
    said = told("Y[i] += X[i,k]", X=np.full((2, 4), 3e38, np.float32))
    assert "Y[i=0] is infinite, first made in statement 1: `+=` of finite numbers is too large for float32" in said


def test_a_value_too_large_for_its_type() -> None:
    said = told("Y[i] = 2 * a * X[i]", X=np.ones(2, np.float32), a=1e39)
    assert "Y[i=0] is infinite" in said


def test_infinities_of_both_signs_in_one_sum() -> None:
    said = told("L[k] = log(X[k])\nY += L[k] * s[k]", X=np.array([1.0, 0, 0]), s=np.array([1.0, 1, -1]))
    assert "Y is NaN, first made in statement 2: `+=` of -inf, inf" in said
    assert "; L[k=1] is infinite, first made in statement 1: log(X[k=1]) with X = 0" in said


# -- what was given, and what is right


def test_a_nan_of_an_input_is_reported_as_the_input_s() -> None:
    x = np.zeros((3, 4))
    x[1, 2] = np.nan
    said = told("S[i] += X[i,k]\nY[i] = 2 * S[i]", X=x)
    assert "S[i=1] is NaN: statement 1 reads X[i=1,k=2] = nan, which the input X holds" in said


def test_a_nan_that_nothing_takes_does_no_harm() -> None:
    fine("Y[i] = X[i] if X[i] == X[i] else 0", X=np.array([1.0, np.nan]))
    fine("Y[i] = X[i] if i < 1", X=np.array([1.0, np.nan]))


def test_infinities_that_are_right() -> None:
    fine("Y[i] = 1 / (1 + exp(X[i]))", X=np.array([0.0, 1000]))  # gone before the end
    fine("Y[i] max= X[i,k]", X=np.zeros((3, 0)))  # no candidates
    fine("Y[i] max= X[i,k] if k > 5\nZ[i] = 2 * Y[i]", X=np.zeros((3, 4)))
    fine("Y[i] = 2 * X[i]\nZ += Y[i]", X=np.array([1.0, np.inf]))  # given
    fine("Y[i] = X[i] + log(Z[i])", X=np.array([np.inf]), Z=np.ones(1))


def test_no_candidates_are_said_to_be_the_reason() -> None:
    said = told("M[i] max= X[i,k]\nE[i] = M[i] - M[i]", X=np.zeros((3, 0)))
    assert "E[i=0] is NaN, first made in statement 2: M[i=0] - M[i=0] with M = -inf; M[i=0] had no candidates" in said


def test_an_infinity_of_an_input_that_makes_nan() -> None:
    said = told("Y[i] = X[i] * 0", X=np.array([1.0, np.inf]))
    assert "X[i=1] * 0 with X = inf; X[i=1] is infinite in the input" in said


# -- through several statements, blocks, updates


def test_an_infinity_is_followed_to_its_first_statement() -> None:
    text = "E[i,k] = exp(X[i,k])\nF[i,k] = 3 * E[i,k]\nS[i] += F[i,k]\nY[i,k] = E[i,k] / S[i]"
    said = told(text, X=np.array([[1.0, 2, 800]]))
    assert "Y[i=0,k=2] is NaN, first made in statement 4: E[i=0,k=2] / S[i=0] with E = inf, S = inf" in said
    assert "; E[i=0,k=2] is infinite, first made in statement 1: exp(X[i=0,k=2]) with X = 800" in said


def test_steps_of_a_block() -> None:
    said = told("for t:\n    H[t] = (H[t-1] if t > 0 else x) * 2e100", x=1.0, t=6)
    assert "H[t=3] is infinite, first made in statement 1: (H[t-1=2] if t > 0 else x) * 2e+100 with H = 8e+300" in said


def test_updates_are_looked_back_at_as_they_were() -> None:
    said = told("L[i] = log(W[i])\nW[i] = W[i] + 0.1 * L[i]", W=np.array([1.0, 0]))
    assert "W[i=1] is infinite, first made in statement 1: log(W[i=1]) with W = 0" in said
    assert "W[i=0] * 1e+300 with W = 1e+200" in told("W[i] = W[i] * 1e300", W=np.full(3, 1e200))


# -- derivatives


def test_an_adjoint_names_its_statement_and_the_rule() -> None:
    p = np.ones((4, 8))
    p[3, 7] = 0
    gradient = ts.program("S[t,b] = sqrt(P[t,b])\nloss += S[t,b] * w[b]").grad(wrt=["P"])
    said = told(gradient, P=p, w=np.zeros(8))
    assert "P.grad[t=3,b=7] is NaN, first made in statement" in said
    number = int(said.split("first made in statement ")[1].split(":")[0])
    assert f"statement {number}: {str(gradient).splitlines()[number - 1]}" in said
    assert "by the rule swap, from statement 1 of the program: S[t,b] = sqrt(P[t,b])" in said


def test_eager_values_on_the_way_back() -> None:
    x = ts.tensor(np.array([1.0, 0.0]))
    with ts.debug(nan=True):
        y = ts.apply("Y[i] = sqrt(X[i]) * c[i]", X=x, c=np.zeros(2))
        with pytest.raises(NumberError, match=r"X\.grad\[i=1\] is NaN"):
            ts.apply("loss += Y[i]", Y=y).backward()


# -- training


DATA = {"X": np.array([[1.0, 1.0], [1.0, -9.0], [1.0, 1.0]])}
MODEL = "Z[b] += X[b,d] * W[d]\nY[b] = log(Z[b])\nloss += Y[b] / size(b)"


def test_a_training_names_step_and_examples() -> None:
    with ts.debug(nan=True), pytest.raises(NumberError) as caught:
        ts.fit(ts.program(MODEL), {"W": np.ones(2)}, DATA, batch_size=1, shuffle=False, progress=False)
    said = str(caught.value)
    assert said.startswith("step 2, on the examples 1\n")
    assert "Y[b=0] is NaN, first made in statement 2: log(Z[b=0]) with Z = -7.992" in said


def test_a_parameter_that_is_lost_is_told_at_once() -> None:
    """The loss of this step is finite; what it does to the parameter is not."""
    model = ts.program("loss += sqrt(X[b,d] * W[d])")
    with ts.debug(nan=True), pytest.raises(NumberError, match="step 1, on the examples 0, 1") as caught:
        ts.fit(model, {"W": np.zeros(2)}, {"X": np.ones((2, 2))}, optimizer="sgd", batch_size=2, shuffle=False,
               progress=False)  # fmt: skip
    assert "W.grad" in str(caught.value)


def test_a_training_under_the_switch_is_the_same_training() -> None:
    model = ts.program("Z[b] += X[b,d] * W[d]\nloss += (Z[b] - 1) ** 2 / size(b)")
    options: dict[str, Any] = {"batch_size": 2, "epochs": 3, "optimizer": "adam", "progress": False}
    plain = ts.fit(model, {"W": np.ones(2)}, DATA, **options)
    with ts.debug(nan=True, bounds=True):
        watched = ts.fit(model, {"W": np.ones(2)}, DATA, **options)
    np.testing.assert_allclose(watched.params["W"], plain.params["W"], rtol=1e-12)
    np.testing.assert_allclose(watched.history.loss, plain.history.loss, rtol=1e-12)


def test_a_single_step() -> None:
    step = ts.step(ts.program(MODEL), {"W": np.ones(2)})
    with ts.debug(nan=True), pytest.raises(NumberError, match=r"Y\[b=1\] is NaN"):
        step(DATA)
    assert step.count == 0


# -- the switches


def test_statements_larger_than_a_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the interpreter refuses for its size is walked index by index."""
    monkeypatch.setattr(watch, "GRID_POINTS", 50)
    a, b = np.arange(48.0).reshape(6, 8) + 1, np.arange(40.0).reshape(8, 5)
    fine("Y[i,j] += A[i,k] * B[k,j]\nZ[j,i] = log(Y[i,j] + 1)\nM[i] max= Z[j,i]", A=a, B=b)
    a[3, 2] = -2
    assert "Y[i=3,j=0] is NaN, first made in statement 1: sqrt(A[i=3,k=2])" in told(
        "Y[i,j] += sqrt(A[i,k]) * B[k,j]", A=a, B=b
    )
    with ts.debug(bounds=True), pytest.raises(BoundsError, match="which statement 1 has written at"):
        ts.program("Y[i//2,k] = A[i,k]")(A=np.ones((20, 8)))


def test_threads_that_switch_at_the_same_time() -> None:
    """Each lets go of its own switches, in whatever order they end."""
    first, second = ts.debug(nan=True), ts.debug(bounds=True)
    first.__exit__(None, None, None)
    assert ts.debug().__enter__().bounds
    second.__exit__(None, None, None)
    barrier = threading.Barrier(8)

    def work() -> None:
        barrier.wait()
        for _ in range(50):
            with ts.debug(nan=True) as switches:
                assert switches.nan

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with ts.debug() as switches:
        assert not switches.nan
        assert not switches.bounds
