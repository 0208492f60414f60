"""Numerical differentiation of a program or a Python function that gives one number: differences, a complex step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...arrays import Array
from ...errors import ArgumentError, DerivativeError
from ...program import Program
from ...rules.activity import integer_uses, names_of
from ...run.arguments import as_array
from ..flat.gates import gates
from .complexes import at_complex

Function = Callable[..., Any]

METHODS = ("forward", "central", "complex")
# What rounding and truncation leave over together is least near these powers of the machine precision.
BEST_POWER = {"forward": 1 / 2, "central": 1 / 3, "complex": 4}


@dataclass(frozen=True)
class Difference:
    """A gradient, and how often the function was evaluated for it."""

    gradient: dict[str, Array]
    evaluations: int
    step: float
    method: str


def numerical(
    function: Program | Function,
    at: Mapping[str, Any],
    wrt: Sequence[str] | None = None,
    method: str = "central",
    step: float | None = None,
    dtype: Any = np.float64,
) -> Difference:
    """The gradient of a program with one scalar output, or of a Python function of keyword arguments, at a point.

    `forward` is (f(x+h) - f(x)) / h, `central` is (f(x+h) - f(x-h)) / 2h, and `complex` is the imaginary part of
    f(x+ih) / h, which subtracts nothing and needs functions with a complex derivative. Inputs are taken as `dtype`.
    """
    if method not in METHODS:
        raise ArgumentError(f"method is one of {', '.join(METHODS)}, not {method!r}", hint='method="central"')
    kind = np.dtype(dtype)
    if kind not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ArgumentError(f"differences are taken in float32 or float64, not {kind}", hint="dtype=np.float64")
    if step is None:
        step = float(np.finfo(np.float64 if method == "complex" else kind).eps) ** BEST_POWER[method]
    if not (np.isfinite(step) and step > 0):
        raise ArgumentError(f"the step must be positive, not {step}", hint="step=1e-6")
    whole = _whole_numbers(function)
    values = {n: as_array(n, v) if n in whole else _floating(n, v, kind) for n, v in at.items()}
    names = [n for n in values if values[n].dtype.kind == "f"] if wrt is None else names_of("wrt", wrt)
    unknown = next((name for name in names if name not in values), None)
    if unknown is not None or not names:
        raise ArgumentError(f"{unknown or 'no input'} has a value at the point", hint=f"wrt={list(values)[:1]!r}")
    work = _Work(function, values, step, method)
    gradient = {name: work.along(name) for name in names}
    return Difference(gradient, work.evaluations, step, method)


def _whole_numbers(function: Program | Function) -> set[str]:
    """Inputs that have no derivative: positions, seeds, sizes and static integers."""
    if not isinstance(function, Program):
        return set()
    return {*integer_uses(function.loops), *function.loops.static_names, *function.loops.indices}


def _floating(name: str, value: Any, kind: np.dtype[Any]) -> Array:
    array = as_array(name, value)
    return array.astype(kind) if array.dtype.kind == "f" or np.ndim(value) == 0 else array


@dataclass
class _Work:
    function: Program | Function
    values: dict[str, Array]
    step: float
    method: str
    evaluations: int = 0

    def __post_init__(self) -> None:
        self.middle = self.value(self.values) if self.method == "forward" else np.float64(0)

    def along(self, name: str) -> Array:
        result = np.zeros(self.values[name].shape, self.values[name].dtype)
        for at in np.ndindex(result.shape):
            result[at] = self.derivative(name, at)
        return result

    def derivative(self, name: str, at: tuple[int, ...]) -> Any:
        if self.method == "complex":
            return self.complex_value(self.moved(name, at, 1j * self.step)).imag / self.step
        # the step is taken in the type of the input: what is added there is what is divided by
        step = self.values[name].dtype.type(self.step)
        above = self.value(self.moved(name, at, step))
        if self.method == "forward":
            return (above - self.middle) / step
        return (above - self.value(self.moved(name, at, -step))) / (2 * step)

    def moved(self, name: str, at: tuple[int, ...], by: Any) -> dict[str, Array]:
        array = np.array(self.values[name], np.complex128 if isinstance(by, complex) else self.values[name].dtype)
        array[at] += by
        return {**self.values, name: array}

    def value(self, values: Mapping[str, Array]) -> Any:
        self.evaluations += 1
        if isinstance(self.function, Program):
            return _one(self.function.run_reference(values))
        return _one(self.function(**{name: _unpacked(array) for name, array in values.items()}))

    def complex_value(self, values: Mapping[str, Array]) -> complex:
        self.evaluations += 1
        if isinstance(self.function, Program):
            scalars = {name: complex(array) for name, array in values.items() if array.ndim == 0}
            return at_complex(gates(self.function.loops), scalars)
        result = _one(self.function(**{name: _unpacked(array) for name, array in values.items()}))
        if not np.iscomplexobj(result):
            raise DerivativeError(
                "the function gives a real number at a complex point, so that a complex step sees nothing",
                hint='use method="central", or functions that keep the imaginary part',
            )
        return complex(result)


def _unpacked(array: Array) -> Any:
    return array[()] if array.ndim == 0 else array


def _one(result: Any) -> Any:
    """A single number, in its own type."""
    array = np.asarray(next(iter(result.values())) if isinstance(result, dict) and len(result) == 1 else result)
    if array.shape != () or array.dtype == object:
        raise ArgumentError(
            "numerical differentiation is for a function with one number as its result",
            hint="choose an output: ts.program(text, outputs=['loss'])",
        )
    return array[()]


def steps(first: int = 1, last: int = 12) -> Iterator[float]:
    """1e-1, 1e-2, ..."""
    return (10.0**-k for k in range(first, last + 1))
