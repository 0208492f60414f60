"""Flat gradient code: straight-line Python that gives the value and the gradient of a scalar program."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import tensorswap as ts
from tensorswap.errors import ArgumentError, DerivativeError, ProgramError
from tensorswap.language.functions import FUNCTIONS, RANDOM
from tensorswap.teaching.flat import flat
from tensorswap.teaching.flat.python import BUILT_IN, HELPERS, MATH


def compiled(program: ts.Program, of: str | None = None) -> Callable[..., Any]:
    """The function that the text defines."""
    namespace: dict[str, Any] = {}
    text = flat(program, of)
    exec(text, namespace)
    name = next(line for line in reversed(text.splitlines()) if line.startswith("def ")).split("(")[0][4:]
    function = namespace[name]
    assert callable(function)
    return function  # type: ignore[no-any-return]


def check_flat(program: ts.Program, point: dict[str, float]) -> None:
    value, gradient = compiled(program)(*(point[name] for name in program.inputs))
    expected = program.grad(of=program.outputs[0])(point)
    assert value == pytest.approx(float(expected[program.outputs[0]]), rel=1e-12)
    for name, derivative in gradient.items():
        assert derivative == pytest.approx(float(expected[f"{name}.grad"]), rel=1e-12, abs=1e-12)
    assert {f"{name}.grad" for name in gradient} == {n for n in expected if n.endswith(".grad")}


def test_the_check_finds_a_planted_wrong_function(monkeypatch: pytest.MonkeyPatch) -> None:
    program, point = ts.program("f = sigmoid(x)"), {"x": 0.3}
    check_flat(program, point)
    monkeypatch.setitem(HELPERS, "sigmoid", "1 / (1 + exp(x))")
    with pytest.raises(AssertionError):
        check_flat(program, point)


def test_the_code_of_the_slides() -> None:
    text = flat(ts.program("f = sigmoid(w0*x0 + w1*x1 + w2)"))
    body = [line.strip() for line in text.partition("def f(w0, x0, w1, x1, w2):")[2].splitlines() if line]
    assert body[:5] == ["s0 = w0 * x0", "s1 = w1 * x1", "s2 = s0 + s1", "s3 = s2 + w2", "f = sigmoid(s3)"]
    assert set(body[5:-1]) == {
        "grad_f = 1.0", "grad_s3 = grad_f * f * (1 - f)", "grad_w2 = grad_s3", "grad_s2 = grad_s3",
        "grad_s0 = grad_s2", "grad_s1 = grad_s2", "grad_w1 = grad_s1 * x1", "grad_x1 = grad_s1 * w1",
        "grad_w0 = grad_s0 * x0", "grad_x0 = grad_s0 * w0",
    }  # fmt: skip
    assert body[-1].startswith("return f, {")


@pytest.mark.parametrize(
    "text",
    [
        "q = x + y\nf = q * z",
        "f = log(x) + x * y - sin(y)",
        "a = x * x\nf = a * x / (1 + a)",
        "f = max(x, y, z) * min(x, y)",
        "f = relu(x) + abs(y) + gelu(z) + silu(x) + softplus(y) + erf(z)",
        "f = x ** 3 + pow(x, y) + x ** y + hypot(x, z) + atan2(x, y)",
        "f = sqrt(x) if x > 0 else log(1 - x)",
        "f = (log(x) if x > 0 else y) if y > 0 and z > 0 else (sqrt(y) if y > 9 else tanh(x))",
        "f += x * y\nf -= z if z > 2\nf += exp(x)",
        "f *= x\nf *= tanh(y)\nf *= 1 / z",
        "f max= x * y\nf max= z\nf max= 0.3",
        "f min= x if x > 3\nf min= y",
        "f = where(x > y, x * z, -y) + stop(x) * y + floor(z) * x",
        "lambda = x * y\nin = lambda + z\nf = in * lambda",
        "grad_x = x * x\nf = grad_x + x * y + z",
        "f = -x + 0 * y - (z - 1) % 3",
        "f = 2.5",
        "f = x",
    ],
)
@pytest.mark.parametrize("point", [(0.7, 1.3, 0.4), (1.9, 0.2, 2.6)])
def test_value_and_gradient(text: str, point: tuple[float, ...]) -> None:
    program = ts.program(text, outputs=["f"])
    if not program.inputs:
        assert compiled(program)() == (2.5, {})
        return
    check_flat(program, dict(zip(program.inputs, point, strict=False)))


def test_a_branch_that_is_not_taken_is_not_evaluated() -> None:
    function = compiled(ts.program("f = log(x) / x if x > 0 else x / (1 - x)"))
    assert function(-1.0) == (-0.5, {"x": 0.25})
    assert function(math.e)[0] == pytest.approx(1 / math.e)


def test_every_function_of_the_language_has_its_python() -> None:
    assert set(FUNCTIONS) - RANDOM - {"where"} <= {*MATH, *BUILT_IN, *HELPERS}


def test_a_function_of_the_users_own() -> None:
    ts.define("flat_blend(a, b)", "a * sigmoid(b)", {"a": "sigmoid(b)", "b": "y * (1 - sigmoid(b))"})
    program = ts.program("f = flat_blend(x, y * x) ** 2")
    assert "def flat_blend(a, b):\n    return a * sigmoid(b)" in flat(program)
    check_flat(program, {"x": 0.7, "y": -0.4})


def test_a_default_and_a_chosen_output() -> None:
    program = ts.program("def f(x, rate=0.5) -> y, z:\n    y = rate * x\n    z = y * y")
    assert compiled(program, "y")(3.0) == (1.5, {"x": 0.5, "rate": 3.0})
    assert compiled(program, "z")(3.0, rate=1.0)[0] == 9.0
    assert "z" not in flat(program, "y")
    assert flat(program, "y", wrt=["x"]).rstrip().endswith('return y, {"x": grad_x}')


def test_what_is_refused() -> None:
    with pytest.raises(ProgramError, match=r"Y\[i\] has indices; flat code is for programs of single numbers"):
        flat(ts.program("Y[i] = 2 * X[i]"))
    with pytest.raises(ProgramError, match="has the outputs a, b"):
        flat(ts.program("a = x\nb = x"))
    with pytest.raises(ProgramError, match="uniform"):
        flat(ts.program("f = x * uniform(seed)"))
    with pytest.raises(ProgramError, match="static integer"):
        flat(ts.program("n: int\nf = x * n"))
    with pytest.raises(ArgumentError, match="not computed"):
        flat(ts.program("f = x"), of="g")
    with pytest.raises(DerivativeError, match="updated"):
        flat(ts.program("x = x - y"))


NAMES = ("x", "y", "z")


def expressions(depth: int = 4) -> st.SearchStrategy[str]:
    """Expressions that are smooth and finite for numbers in (0.4, 1.6)."""
    atoms = st.sampled_from([*NAMES, "0.7", "2"])
    if not depth:
        return atoms
    inner = expressions(depth - 1)
    two = st.tuples(inner, inner)
    return st.one_of(
        atoms,
        two.map("({0[0]} + {0[1]})".format),
        two.map("({0[0]} - {0[1]})".format),
        two.map("({0[0]} * {0[1]})".format),
        two.map("({0[0]} / (2 + {0[1]} ** 2))".format),
        two.map("({0[0]} if {0[1]} > 0.9 else sin({0[1]}))".format),
        two.map("max({0[0]}, {0[1]})".format),
        inner.map("tanh({})".format),
        inner.map("exp(-{} ** 2)".format),
        inner.map("sigmoid({})".format),
        inner.map("log(1 + {} ** 2)".format),
    )


@seed(3)
@settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(first=expressions(), second=expressions(2), point=st.tuples(*[st.floats(0.4, 1.6)] * 3))
def test_generated_programs(first: str, second: str, point: tuple[float, float, float]) -> None:
    program = ts.program(f"u = {second}\nf = {first} * u + x * y * z")
    values = dict(zip(NAMES, point, strict=True))
    expected = program.grad(of="f")(values)
    if not all(np.isfinite(v) for v in expected.values()):
        return
    value, gradient = compiled(program)(*(values[name] for name in program.inputs))
    assert value == pytest.approx(float(expected["f"]), rel=1e-9, abs=1e-9)
    for name, derivative in gradient.items():
        assert derivative == pytest.approx(float(expected[f"{name}.grad"]), rel=1e-9, abs=1e-9)
