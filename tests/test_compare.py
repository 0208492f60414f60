"""Other ways to a derivative: differences, the complex step, symbols, and the tables that compare them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import tensorswap as ts
from tensorswap.compare import METHODS, error_table, numerical, swell, symbolic
from tensorswap.errors import ArgumentError, DerivativeError, LimitError, ProgramError
from tensorswap.teaching.compare.swell import operations
from tensorswap.teaching.compare.symbolic import symbolic_gradient

from .test_flat import NAMES, expressions

EXAMPLE = "f = log(x1) + x1 * x2 - sin(x2)"
POINT = {"x1": 2.0, "x2": 5.0}
EXACT = {"x1": 5.5, "x2": 2 - np.cos(5.0)}


def function(x1: Any, x2: Any) -> Any:
    return np.log(x1) + x1 * x2 - np.sin(x2)


# -- numerical


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("f", [function, ts.program(EXAMPLE)], ids=["callable", "program"])
def test_every_method_finds_the_gradient(method: str, f: Any) -> None:
    found = numerical(f, POINT, method=method)
    accuracy = {"forward": 1e-7, "central": 1e-9, "complex": 1e-15}[method]
    for name, expected in EXACT.items():
        assert float(found.gradient[name]) == pytest.approx(expected, rel=accuracy)
    assert found.evaluations == {"forward": 3, "central": 4, "complex": 2}[method]


def test_arrays_take_an_evaluation_for_each_element() -> None:
    program = ts.program("loss += w[i,j] ** 3")
    w = np.arange(6.0).reshape(2, 3)
    found = numerical(program, {"w": w}, method="central")
    np.testing.assert_allclose(found.gradient["w"], 3 * w**2, atol=1e-6)
    assert found.evaluations == 12


def test_whole_numbers_stay_whole() -> None:
    program = ts.program("n: int\nloss += n * E[tok[b]] * uniform(seed, b)")
    arrays = {"E": np.ones(3), "tok": np.array([2, 0]), "seed": 5, "n": 2}
    found = numerical(program, arrays)
    assert set(found.gradient) == {"E"}
    np.testing.assert_allclose(found.gradient["E"], program.grad(of="loss", wrt=["E"])(arrays)["E.grad"], atol=1e-9)


def test_single_precision_stays_single() -> None:
    found = numerical(function, POINT, ["x2"], "forward", 1e-5, np.float32)
    assert found.gradient["x2"].dtype == np.float32


@pytest.mark.parametrize(
    "text",
    [
        "f = sqrt(x) + exp(x) * log1p(x) + expm1(x)",
        "f = sin(x) + cos(x) * tan(x) + asin(x) - acos(x) + atan(x)",
        "f = sinh(x) + cosh(x) + tanh(x) * sigmoid(x) + softplus(x) + silu(x) + softplus(-x)",
        "f = pow(x, 3) + hypot(x, 2) + x ** 2 / (1 + x) - -x + stop(x)",
        "f = relu(x) + max(x, 0.2) + min(x, 0.2)",
        "f = log(x) if x > 0 and not x > 2 else x ** 2",
        "f = x ** 2 if x < 0 or x > 0.3 else 0",
    ],
)
def test_the_complex_step_is_exact(text: str) -> None:
    program = ts.program(text)
    expected = program.grad(of="f")(x=0.37)["x.grad"]
    assert float(numerical(program, {"x": 0.37}, method="complex").gradient["x"]) == pytest.approx(expected, rel=1e-13)


def test_what_numerical_refuses() -> None:
    program = ts.program("f = abs(x) + floor(y)")
    with pytest.raises(DerivativeError, match="`abs` has no complex derivative"):
        numerical(program, {"x": 1.0, "y": 2.0}, method="complex")
    with pytest.raises(DerivativeError, match="real number at a complex point"):
        numerical(lambda x: np.abs(x), {"x": 1.0}, method="complex")
    with pytest.raises(ProgramError, match="has indices"):
        numerical(ts.program("f += x[i] ** 2"), {"x": np.ones(3)}, method="complex")
    with pytest.raises(ArgumentError, match="method is one of"):
        numerical(function, POINT, method="backward")
    with pytest.raises(ArgumentError, match="step must be positive"):
        numerical(function, POINT, step=0.0)
    with pytest.raises(ArgumentError, match="float32 or float64"):
        numerical(function, POINT, dtype=np.int64)
    with pytest.raises(ArgumentError, match="one number"):
        numerical(ts.program("Y[i] = X[i]"), {"X": np.ones(2)})
    with pytest.raises(ArgumentError, match="x3"):
        numerical(function, POINT, ["x3"])
    with pytest.raises(ArgumentError, match="x1 is missing"):
        numerical(ts.program(EXAMPLE), {"x2": 1.0}, method="complex")


# -- the table of errors


def test_the_table_of_errors() -> None:
    table = error_table(ts.program(EXAMPLE), POINT, "x2")
    assert table.exact == pytest.approx(EXACT["x2"], rel=1e-15)
    at = table.steps.index(1e-05)
    assert table.errors["forward", "float32"][at] > 0.01
    assert table.errors["forward", "float64"][at] < 1e-5
    assert table.errors["central", "float64"][at] < 1e-9
    assert table.errors["complex", "float64"][-1] < 1e-15
    assert table.adjoint["float64"] == 0
    assert table.adjoint["float32"] < 1e-6
    assert str(table).splitlines()[1].split() == [
        "step", "forward", "float32", "forward", "float64", "central", "float32", "central", "float64", "complex",
        "float64",
    ]  # fmt: skip


def test_a_python_function_needs_the_exact_derivative() -> None:
    assert error_table(function, POINT, "x2", exact=EXACT["x2"], steps=[1e-5], methods=["central"]).adjoint == {}
    with pytest.raises(ArgumentError, match="exact"):
        error_table(function, POINT, "x2")


# -- symbolic


def test_the_example_of_the_expression_swell() -> None:
    found = symbolic("sin(exp(x))", "x")
    assert str(found) == "cos(exp(x)) * exp(x)"
    assert (found.operations, found.shared_operations) == (4, 3)
    assert str(found.shared()) == "t0 = exp(x)\nderivative = cos(t0) * t0"


@pytest.mark.parametrize(
    ("text", "by", "derivative"),
    [
        ("x * y", "x", "y"),
        ("x ** 2", "x", "2 * x"),
        ("3 * x + 1", "x", "3"),
        ("y * y", "x", "0"),
        ("x / y", "y", "-(x / y / y)"),
        ("log(x)", "x", "1 / x"),
        ("x if x > y else 2 * y", "y", "0 if x > y else 2"),
    ],
)
def test_rules_of_calculus(text: str, by: str, derivative: str) -> None:
    assert str(symbolic(f"{text} + 0 * x * y", by)) == derivative


def logistic(n: int) -> ts.Program:
    """n steps of x -> 4x(1 - x)."""
    return ts.program("l0 = x\n" + "\n".join(f"l{k + 1} = 4 * l{k} * (1 - l{k})" for k in range(n)))


def test_written_out_derivatives_swell_and_shared_ones_do_not() -> None:
    table = swell({str(n): logistic(n) for n in (1, 2, 4, 8, 16)})
    written, shared, adjoint = ([getattr(r, k) for r in table.rows] for k in ("written_out", "shared", "adjoint"))
    assert all(b > 2 ** (n - 1) * a for a, b, n in zip(written, written[1:], (1, 2, 3, 4), strict=False))
    assert shared == [5, 13, 29, 61, 125]
    assert adjoint == [5, 12, 26, 54, 110]
    assert str(table).splitlines()[0].split() == ["function", "value", "written", "out", "shared", "adjoint"]


def test_the_size_of_a_text_too_long_to_write_is_known() -> None:
    found = symbolic(logistic(100), "x")
    assert found.operations > 10**30
    with pytest.raises(LimitError, match="written out"):
        str(found)
    expected = logistic(100).grad(of="l100")(x=0.3)["x.grad"]
    assert float(found.shared()(x=0.3)) == pytest.approx(float(expected), rel=1e-6)


def test_the_gradient_of_a_product_by_symbols_is_quadratic() -> None:
    rows = swell({str(n): ts.program("f = " + " * ".join(f"x{k}" for k in range(n))) for n in (4, 8, 16)}).rows
    assert [row.written_out for row in rows] == [8, 48, 224]  # n (n - 2)
    assert [row.adjoint for row in rows] == [7, 19, 43]  # 3n - 5


def test_operations_count_accumulations() -> None:
    assert operations(ts.program("f = x * y + z")) == 2
    assert operations(ts.program("f += x\nf += y")) == 1


def test_what_symbolic_refuses() -> None:
    with pytest.raises(ArgumentError, match="not an input"):
        symbolic("sin(x)", "y")
    with pytest.raises(ts.SwapError):
        symbolic("sin(x", "x")
    with pytest.raises(ProgramError, match="has indices"):
        symbolic(ts.program("Y[i] = X[i]"), "X")


@seed(5)
@settings(max_examples=50, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(text=expressions(3), point=st.tuples(*[st.floats(0.4, 1.6)] * 3))
def test_all_ways_agree(text: str, point: tuple[float, float, float]) -> None:
    program = ts.program(f"f = {text} + x * y * z")
    values = dict(zip(NAMES, point, strict=True))
    expected = program.grad(of="f")(values)
    for found in symbolic_gradient(program, NAMES):
        derivative = found.shared()
        given_values = {name: values[name] for name in derivative.inputs}
        actual = float(derivative(given_values))
        assert actual == pytest.approx(float(expected[f"{found.by}.grad"]), rel=1e-9, abs=1e-9)
    stepped = numerical(program, values, method="complex").gradient
    for name in NAMES:
        assert float(stepped[name]) == pytest.approx(float(expected[f"{name}.grad"]), rel=1e-9, abs=1e-9)
