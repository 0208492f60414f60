"""Elementwise functions: numpy's, each with its derivative as a text of the language; numpy broadcasts.

Functions of the language have theirs in its table. The gradient by an argument is a function that is given g, the
gradient of the result, then the result and the arguments.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..language.formula import gradient, of_arrays
from ..language.functions import FUNCTIONS
from .make import Gradient, constant, is_active, plain, result
from .scalar import RULES, Scalar, join, step
from .tensor import Tensor

PYTHON = (float, int)


@dataclass(frozen=True)
class One:
    """A function of one argument. `None` for a gradient: zero wherever there is one."""

    name: str
    function: Callable[[Any], Any]
    gradient: Gradient | None

    def __call__(self, operand: Any) -> Any:
        if type(operand) is Scalar:
            return self.of_scalar(operand)
        x = plain(operand)
        return result(self.function(x), (operand,), (self.gradient,), x)

    def of_scalar(self, operand: Scalar) -> Tensor:
        rule = RULES.get(self.name)
        try:
            if rule is not None:
                return rule(operand)
        except (ArithmeticError, ValueError):
            pass  # numpy knows: inf or nan
        x = operand.value
        with np.errstate(all="ignore"):
            z = self.function(np.float64(x))
            if self.gradient is None:
                return constant(float(z))
            return step(operand, float(z), float(self.gradient(np.float64(1), z, np.float64(x))))


@dataclass(frozen=True)
class Two:
    """A function of two arguments that numpy broadcasts against each other."""

    name: str
    function: Callable[[Any, Any], Any]
    first: Gradient | None
    second: Gradient | None

    def __call__(self, left: Any, right: Any) -> Any:
        x, y = plain(left), plain(right)
        if type(x) in PYTHON and type(y) in PYTHON:
            return self.of_scalars(left, right, np.float64(x), np.float64(y))
        return result(self.value(x, y), (left, right), (self.first, self.second), x, y)

    def value(self, x: Any, y: Any) -> Any:
        try:
            return self.function(x, y)
        except ValueError as error:
            raise ShapeError(
                f"the shapes {np.shape(x)} and {np.shape(y)} of `{self.name}` do not broadcast",
                hint="from the last axis on, sizes are equal, or one of them is 1",
            ) from error

    def of_scalars(self, left: Any, right: Any, x: np.float64, y: np.float64) -> Any:
        """By numpy's rules: Python raises where there is no result."""
        links: list[Any] = []  # operands and slopes
        with np.errstate(all="ignore"):
            z = self.function(x, y)
            for operand, rule in ((left, self.first), (right, self.second)):
                if rule is not None and is_active(operand):
                    links += [operand, float(rule(np.float64(1), z, x, y))]
        if links:
            return join(links[0], float(z), *links[1:]) if links[2:] else step(links[0], float(z), links[1])
        return constant(float(z)) if isinstance(left, Tensor) or isinstance(right, Tensor) else float(z)


def _one(name: str, function: Callable[[Any], Any] | None = None, derivative: str = "") -> One:
    """By its derivative, or by the row of the language's table."""
    derivative = derivative or FUNCTIONS[name].slopes[0]
    return One(name, function or of_arrays(name), None if derivative == "0" else gradient("x", derivative))


def _two(name: str, function: Callable[[Any, Any], Any], *derivatives: str) -> Two:
    """By its derivatives, in which the arguments are a and b, and y is the result."""
    return Two(name, function, *(gradient("a, b", text) for text in derivatives or FUNCTIONS[name].slopes))


def _power_by_base(g: Any, y: Any, a: Any, b: Any) -> Any:
    """Without a power of zero that is less than nothing; a plain number is mostly 2."""
    if type(b) in (int, float):
        return 2 * g * a if b == 2 else g * (b * a ** (b - 1)) if b != 0 else np.zeros_like(g)
    return np.where(b != 0, g * (b * np.power(a, np.where(b != 0, b - 1, 0))), 0)


add = _two("+", operator.add, "1", "1")
subtract = _two("-", operator.sub, "1", "-1")
multiply = _two("*", operator.mul, "b", "a")
divide = _two("/", operator.truediv, "1 / b", "-y / b")
floor_divide = Two("//", operator.floordiv, None, None)
remainder = _two("%", operator.mod, "1", "-floor(a / b)")
power = Two("**", operator.pow, _power_by_base, gradient("a, b", FUNCTIONS["pow"].slopes[1]))
maximum = _two("maximum", np.maximum, *FUNCTIONS["max"].slopes)
minimum = _two("minimum", np.minimum, *FUNCTIONS["min"].slopes)
atan2 = _two("atan2", np.arctan2)
hypot = _two("hypot", np.hypot)
logaddexp = _two("logaddexp", np.logaddexp, "exp(a - y)", "exp(b - y)")

sqrt, exp, expm1, log, log1p = map(_one, ("sqrt", "exp", "expm1", "log", "log1p"))
sin, cos, tan, asin, acos, atan = map(_one, ("sin", "cos", "tan", "asin", "acos", "atan"))
sinh, cosh, tanh, absolute = map(_one, ("sinh", "cosh", "tanh", "abs"))
sign, floor, ceil = map(_one, ("sign", "floor", "ceil"))
rint = _one("round", np.rint)
trunc = _one("trunc", np.trunc, "0")
relu = _one("relu", lambda x: np.maximum(x, 0))
negative = _one("negative", operator.neg, "-1")
square = _one("square", np.square, "2 * x")
reciprocal = _one("reciprocal", np.reciprocal, "-y * y")
exp2 = _one("exp2", np.exp2, f"{math.log(2)} * y")
log2 = _one("log2", np.log2, f"1 / x / {math.log(2)}")
log10 = _one("log10", np.log10, f"1 / x / {math.log(10)}")
asinh = _one("asinh", np.arcsinh, "1 / sqrt(x * x + 1)")
acosh = _one("acosh", np.arccosh, "1 / sqrt(x * x - 1)")
atanh = _one("atanh", np.arctanh, "1 / (1 - x * x)")
