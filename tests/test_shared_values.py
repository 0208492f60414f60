"""Values that blocks need: held before them, or by the step that makes them, and only where they stay what they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorswap as ts

pytestmark = pytest.mark.compiled

RANDOM = np.random.default_rng(4)
X, Z = RANDOM.standard_normal((6, 5)) / 4, RANDOM.standard_normal((6, 5)) / 4
a, s = RANDOM.standard_normal(5) / 4, np.array([1, 2, 4])
Text = tuple[str, dict[str, Any], str]

HELD: dict[str, Text] = {  # what the plan of the gradient says
    "before the block": (
        "for t:\n    H[t,i] = exp(a[i]) * (H[t-1,i] if t > 0 else 1) + X[t,i]", {"X": X, "a": a},
        "value_1[i] = exp(a[i])"),
    "a power": (
        "for t:\n    H[t,i] = (a[i]**2 + 1) ** 1.5 * (H[t-1,i] if t > 0 else 1) + X[t,i]", {"X": X, "a": a},
        "value_1[i] = (a[i] ** 2 + 1) ** 1.5"),
    "of steps, for their adjoints": (
        "for t:\n    H[t,i] = exp(X[t,i]) * (H[t-1,i] if t > 0 else 1)", {"X": X}, "value_1[t,i] = exp(X[t,i])"),
    "made by a step": (
        "for t:\n    K[t,i] = X[t,i] + (H[t-1,i] if t > 0 else 1)\n    H[t,i] = exp(K[t,i]) * X[t,i]", {"X": X},
        "value_1[t,i] = exp(K[0,i])"),
    "of what the step before made, down": (
        "size(H, 0) = 7\nfor t down:\n    H[t,i] = X[t,i] * exp(H[t+1,i])", {"X": X}, "value_1[t,i] = exp(H[t+1,i])"),
    "in blocks of blocks": (
        "for t:\n    for i:\n        H[t+1,i+1] = X[t,i] * exp(H[t,i+1] + a[i]) + exp(H[t+1,i] + a[i])",
        {"X": X, "a": a}, "[t,i] = exp(H[t,i+1] + a[i])"),
    "a part of a value": (
        "for t:\n    H[t,i] = exp(exp(a[i]) * X[t,i]) * (H[t-1,i] if t > 0 else 1)", {"X": X, "a": a},
        "[t,i] = exp(value_2[i] * X[t,i])"),
    "for a guard": (
        "for t:\n    H[t,i] += exp(a[i]) * X[t,i]\n    H[t,i] += exp(a[i]) * H[t-1,i] if t > 0", {"X": X, "a": a},
        "value_1[i] = exp(a[i])"),
    "a place": (
        "size(k) = 8\nfor t:\n    for q:\n"
        "        H[t,q+1,k] = H[t,q,k] * 0.5 + H[t,q,k+s[q]*(1-2*(k//s[q]%2))] * X[t,k%5] + 1\n"
        "    H[t+1,0,k] = H[t,size(q),k]", {"X": X, "s": s}, "_1[q,k] = "),
}  # fmt: skip

FREE: dict[str, Text] = {  # what a plan may not say
    "changed by each step": (
        "for t:\n    Y[t,i] = exp(W[i]) * X[t,i]\n    W[i] = W[i] * 0.5 + X[t,i]\nV[i] = exp(W[i])", {"X": X, "W": a},
        "value"),
    "added up by the steps": (
        "for t:\n    W[i] += X[t,i]\n    Y[t,i] = 2 * exp(W[i] * X[t,i])\nV[t,i] = Y[t,i] * exp(W[i] * X[t,i])",
        {"X": X}, "value"),
    "changed between blocks": (
        "for t:\n    Y[t,i] = exp(W[i]) + X[t,i]\nW[i] = W[i] * 2\nfor t:\n    V[t,i] = exp(W[i]) * X[t,i]",
        {"X": X, "W": a}, "V[t,i] = value_1[i]"),
    "only where a guard holds": (
        "for t:\n    H[t,i] += X[t,i] * a[i]\n    H[t,i] += exp(H[t-1,i]) if t > 0\nV[t,i] = exp(H[t,i])",
        {"X": X, "a": a}, "value"),
}  # fmt: skip


def check(program: ts.Program, given: dict[str, Any]) -> None:
    found, wanted = program(given), program.run_reference(given)
    if not isinstance(wanted, dict):
        found, wanted = {"": found}, {"": wanted}
    for name, array in wanted.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-12, atol=1e-14, err_msg=name)


@pytest.mark.parametrize("name", HELD)
def test_a_value_is_computed_once(name: str) -> None:
    text, given, said = HELD[name]
    squares = "loss += H[t,q,k] ** 2" if "q" in text else "loss += H[t,i] ** 2"
    program = ts.program(f"{text}\n{squares}")
    floats = [key for key, array in given.items() if array.dtype.kind == "f"]
    gradient = program.grad(wrt=floats)
    check(program, given)
    check(gradient, given)
    assert said in str(gradient.plan(**given))


@pytest.mark.parametrize("name", FREE)
def test_what_changes_is_computed_again(name: str) -> None:
    text, given, said = FREE[name]
    program = ts.program(text)
    check(program, given)
    assert said not in str(program.plan(**given))


def test_a_value_of_each_step_is_not_kept_for_few() -> None:
    """Where steps keep nothing as large, the block computes it and so does what comes behind."""
    text = "for t:\n    h[t+1,i] = h[t,i] * 0.5 + exp(X[t,i])\nY[t] += exp(X[t,i])\nloss += h[size(t),i]"
    program = ts.program(text, outputs=["loss", "Y"])
    given = {"X": X}
    check(program, given)
    assert "value" not in str(program.plan(**given))


def test_nothing_is_divided_for_a_block_without_steps() -> None:
    text = "size(k) = 8\nfor t:\n    Y[t,k] = X[t, k // s[0] % 5] + (Y[t-1,k] if t > 0 else 0)"
    program = ts.program(text)
    check(program, {"X": X, "s": np.array([2])})
    assert program(X=X[:0], s=np.array([0])).shape == (0, 8)


def test_plain_numbers_are_not_rounded_for_others() -> None:
    program = ts.program("E = exp(c)\nF = exp(c) * exp(-c)\nY[i] = X[i] * F\nreturn E, F, Y")
    for number in (100.0, -200.0):
        found = program(X=np.ones(2, np.float32), c=number)
        np.testing.assert_allclose(found["F"], 1, rtol=1e-6)
