"""NaN comes through: compiled arithmetic makes no infinity of 0 * inf or inf - inf, as a sum that is factored would."""

from __future__ import annotations

import numpy as np
import pytest

import tensorswap as ts

X = np.ones(37)
X[3] = np.inf
ONES, ZEROS, FEW = np.ones(37), np.zeros(37), np.array([0.0, 1.0, 2.0])
SMALL = ONES * 1e-200
CASES = {
    "an index as a number": ("size(j) = 3\nY[l] += x[l] * j", {"x": X}),
    "many steps": ("size(j) = 64\nY[l] -= x[l] * j", {"x": X}),
    "an index and another factor": ("size(j) = 4\nY[l] += x[l] * j * y[l]", {"x": X, "y": ONES}),
    "a constant zero": ("Y[l] = x[l] * 0 + x[l] * 2", {"x": X}),
    "a zero beside the value": ("Y[l] = x[l] * 0.0 + x[l] + y[l] * x[l]", {"x": X, "y": ONES}),
    "scalars": ("Y[l] = x[l] * a + x[l] * b", {"x": X, "a": 0.0, "b": 1.0}),
    "fixed elements": ("Y[l] = x[l] * w[0] + x[l] * w[1] + x[l] * w[2]", {"x": X, "w": FEW}),
    "a difference of products": ("Y[l] = x[l] * y[l] - x[l] * z[l]", {"x": X, "y": ZEROS, "z": ONES}),
    "a common divisor": ("Y[l] = y[l] / x[l] + z[l] / x[l]", {"x": ZEROS, "y": ZEROS, "z": ONES}),
    "added and taken away": ("Y[l] = (y[l] + x[l]) - x[l]", {"x": X, "y": ONES}),
    "taken away and added": ("Y[l] = (y[l] - x[l]) + x[l]", {"x": X, "y": ONES}),
    "large and small": ("Y[l] = (x[l] * y[l]) * (x[l] * z[l])", {"x": ONES * 1e200, "y": SMALL, "z": SMALL}),
    "lost digits": ("Y[l] = (x[l] + y[l]) - x[l]", {"x": ONES * 1e16, "y": ONES * 1.5}),
}  # fmt: skip


@pytest.mark.compiled
@pytest.mark.parametrize("name", CASES)
def test_compiled_values_are_not_finite_where_the_interpreter_says_so(name: str) -> None:
    text, arrays = CASES[name]
    program = ts.program(text)
    np.testing.assert_allclose(program(arrays), program.run_reference(arrays), rtol=1e-12)


@pytest.mark.compiled
@pytest.mark.parametrize("text", ["Y[i] = X[i] ** Z[i]", "Y[i] = pow(X[i], Z[i])"])
def test_the_derivative_by_an_exponent_is_nan_where_there_is_none(text: str) -> None:
    """As in PyTorch: 0 at base 0 while the power is finite there, and nowhere a 0 that only seems to be one."""
    derivative = ts.program(text).adjoint(wrt=["Z"])
    bases = np.array([0.0, 0.0, 0.0, np.nan, 2.0, -1.0, -1.5, np.inf, 0.0, 3.0])
    exponents = np.array([-1.0, 0.0, 2.0, 1.5, np.nan, 2.0, 3.0, 1.0, np.nan, 2.0])
    expected = [-np.inf, 0, 0, np.nan, np.nan, np.nan, np.nan, np.inf, np.nan, 9 * np.log(3)]
    given = {"X": bases, "Z": exponents, "Y.grad": np.ones(10)}
    np.testing.assert_allclose(derivative.run_reference(given), expected)
    np.testing.assert_allclose(derivative(given), expected)


QUOTIENTS = [
    "Z[i] / X[i]",
    "1 / X[i]",
    "Z[i] / sqrt(X[i])",
    "1 / sqrt(X[i])",
    "sqrt(X[i]) / Z[i]",
    "sqrt(X[i])",
    "X[i] / 3",
]


@pytest.mark.optimised
@pytest.mark.compiled
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", QUOTIENTS)
def test_quotients_and_roots_of_all_there_is(value: str, dtype: type) -> None:
    """An estimate of a CPU's that is refined would be NaN for zeros, infinities and the smallest numbers."""
    info = np.finfo(dtype)
    some = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, info.max, info.tiny, info.tiny / 4, info.smallest_subnormal]
    program = ts.program(f"Y[i] = {value}")
    for length in (len(some) ** 2, 5):  # in vectors, and one by one
        X, Z = (part.ravel()[:length].astype(dtype) for part in np.meshgrid(some, some))
        with np.errstate(all="ignore"):
            arrays = {name: {"X": X, "Z": Z}[name] for name in program.inputs}
            found, expected = program(arrays), program.run_reference(arrays)
        np.testing.assert_allclose(found, expected, rtol=4 * info.eps, atol=info.tiny)
