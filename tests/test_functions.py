"""One table of scalar functions: no row lacks a fact, and whoever knows functions reads it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap import library
from tensorswap.eager.scalar import RULES
from tensorswap.errors import DerivativeError, GradientMismatch
from tensorswap.kernel.functions import INSTRUCTIONS, REAL
from tensorswap.language.formula import of_arrays, of_numbers
from tensorswap.language.functions import DEFINED, FUNCTIONS, Cost, Function
from tensorswap.language.parse import parse_expression
from tensorswap.teaching.compare.complexes import at_complex
from tensorswap.teaching.flat.gates import gates

ROWS = [row for row in FUNCTIONS.values() if row.name != "where"]  # which the parser makes a conditional of
ONE = [row.name for row in ROWS if row.most == 1]
HELD = [row.name for row in ROWS if row.cost is not Cost.CHEAP and not row.random]


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    yield
    DEFINED.clear()


# -- rows


@pytest.mark.parametrize(
    ("facts", "lacking"),
    [
        ({"numpy": "cbrt"}, "cube lacks a derivative"),
        ({"derivatives": ("x", "x"), "numpy": "cbrt"}, "cube lacks a derivative"),
        ({"derivatives": ("x",), "least": 2, "most": 2, "numpy": "cbrt"}, "cube lacks a derivative"),
        ({"derivatives": ("x",), "random": True}, "cube lacks a derivative"),
        ({"derivatives": ("x",)}, "cube lacks a value"),
        ({"derivatives": ("x",), "numpy": "cube"}, "is no cube of numpy"),
    ],
)
def test_a_row_that_lacks_a_fact_is_refused(facts: Any, lacking: str) -> None:
    with pytest.raises(AssertionError, match=lacking):
        Function("cube", Cost.COSTLY, **facts)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_texts_of_a_row_are_of_the_language(row: Function) -> None:
    for text in filter(None, (*row.derivatives, *row.slopes, row.branches, row.value)):
        parse_expression(text, FUNCTIONS)


@pytest.mark.parametrize("name", ONE)
def test_numbers_and_arrays_have_one_value(name: str) -> None:
    for x in (-0.75, -0.5, 0.25, 0.5, 0.96875):
        if name in ("sqrt", "log") and x < 0:
            continue
        value = of_numbers(name)(x)
        for kind, close in ((np.float32, 1e-6), (np.float64, 1e-15)):
            found = of_arrays(name)(np.array([x], kind))
            assert found.dtype == kind
            np.testing.assert_allclose(found, [value], rtol=close)
        assert ts.program(f"y = {name}(x)").run_reference(x=x) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize("name", [row.name for row in ROWS if row.keeps_integers])
def test_functions_that_keep_integers(name: str) -> None:
    arguments = [np.array([3, -2])] * FUNCTIONS[name].least
    assert of_arrays(name)(*arguments).dtype == np.int64


@pytest.mark.parametrize("name", [name for name in ONE if not FUNCTIONS[name].flat])
def test_a_complex_step_is_right_or_refused(name: str) -> None:
    program, step = ts.program(f"y = {name}(x)"), 1e-30
    for x in (0.3, -0.6):
        if name in ("sqrt", "log") and x < 0:
            continue
        if name in ("abs", "gelu", "erf"):
            with pytest.raises(DerivativeError, match=f"`{name}` has no complex derivative"):
                at_complex(gates(program.loops), {"x": x})
            continue
        found = at_complex(gates(program.loops), {"x": complex(x, step)}).imag / step
        expected = program.grad(of="y").run_reference(x=x)["x.grad"]
        assert found == pytest.approx(float(expected), rel=1e-13)


def test_scalars_have_a_rule_for_every_smooth_function() -> None:
    assert RULES.keys() == {name for name in ONE if not FUNCTIONS[name].flat and not FUNCTIONS[name].branches}


def test_gelu_of_a_scalar_keeps_its_small_values() -> None:
    assert ts.eager.gelu(ts.tensor(-8.0)).value == pytest.approx(-4 * math.erfc(8 * math.sqrt(0.5)), rel=1e-14)


# -- costs


def test_quick_functions_are_those_with_a_vector_implementation() -> None:
    cheap, quick = ({row.name for row in ROWS if row.cost is cost} for cost in (Cost.CHEAP, Cost.QUICK))
    vectors = {*REAL, *INSTRUCTIONS} & {row.name for row in ROWS}
    assert vectors - cheap == quick
    assert cheap - vectors == {"min", "max", "relu", "stop"}  # a comparison, or nothing at all


def guarded(name: str) -> str:
    source = ts.program(f"Y[i] = {name}(X[i]) if X[i] > 0 else 0").source(X=(1000,))
    return (
        source[source.index("def step0_0") :]
        .replace(f"{name}_f8(", "f(")
        .replace(f"math.{name}(", "f(")
        .replace(f"{name}(", "f(")
    )


@pytest.mark.parametrize(
    "name", sorted({row.name for row in ROWS if row.cost is Cost.QUICK} - {"gelu"})
)  # a plan's erf
def test_a_guarded_quick_function_is_computed_everywhere_and_chosen(name: str) -> None:
    """But for gelu, which plans take apart: what they compute is erf."""
    assert guarded(name) == guarded("exp")
    assert guarded(name) != guarded("tan")


@pytest.mark.parametrize("name", HELD)
def test_a_value_of_two_statements_is_computed_once(name: str) -> None:
    call = f"{name}({'X[i], 0.5' if FUNCTIONS[name].most == 2 else 'X[i]'})"
    plan = str(ts.program(f"Y[i] = {call} * A[i]\nZ[i] = {call} * B[i]").plan(X=(9,), A=(9,), B=(9,)))
    assert plan.count("erf(" if name == "gelu" else f"{name}(") == 1


def test_a_cheap_value_is_computed_again() -> None:
    for name in ("relu", "stop", "floor"):
        program = ts.program(f"Y[i] = {name}(X[i]) * A[i]\nZ[i] = {name}(X[i]) * B[i]")
        assert str(program.plan(X=(9,), A=(9,), B=(9,))).count(f"{name}(") == 2


# -- functions that a user defines


def test_a_refused_name_stays_unknown() -> None:
    with pytest.raises(GradientMismatch):
        ts.define("foo", "x * x", "foo(x)")
    for _ in range(2):
        with pytest.raises(ts.SwapError, match="`foo`"):
            ts.define("bar", "foo(x)", "2 * x")
        with pytest.raises(ts.SwapError, match="`foo`"):
            ts.program("y = 2 * foo(x)")
    ts.define("foo", "x * x", "2 * x")
    ts.define("bar", "foo(x) + x", "2 * x + foo(1)")
    assert ts.program("y = bar(x)").run_reference(x=3.0) == 12


def test_no_other_text_sees_a_name_before_it_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []
    run = ts.Program.run_reference

    def watched(self: ts.Program, *arguments: Any) -> Any:
        seen.append("foo" in DEFINED)
        return run(self, *arguments)

    monkeypatch.setattr(ts.Program, "run_reference", watched)
    ts.define("foo", "x * x", "y / x + foo(1) * x")
    assert seen
    assert not any(seen)
    assert "foo" in DEFINED


def test_the_library_means_its_own_names() -> None:
    library.definitions().parsed.pop("ctc_loss_none", None)
    ts.define("best", "x * x", "2 * x")  # the name of a tensor there
    assert "best[n]" in str(ts.load("ctc_loss_none"))
