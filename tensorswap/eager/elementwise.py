"""Elementwise functions: a table of numpy functions, each with its gradients, one line each; numpy broadcasts.

The gradient by an argument is given g, the gradient of the result, then the result z and the arguments x and y.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ShapeError
from .make import constant, derived, fitted, is_active, plain
from .scalar import RULES, Scalar, join, step
from .tensor import CONSTANT, Tensor

Gradient = Callable[..., Any]
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
        z = self.function(x)
        if not isinstance(operand, Tensor):
            return z
        gradient = self.gradient
        if gradient is None or operand.uses == CONSTANT:
            return constant(z)
        return derived(z, (operand,), lambda g: (fitted(gradient(g, z, x), x),))

    def of_scalar(self, operand: Scalar) -> Tensor:
        x = operand.value
        rule = RULES.get(self.name)
        try:
            if rule is not None:
                return step(operand, *rule(x))
        except (ArithmeticError, ValueError):
            pass  # numpy knows: inf or nan
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
        first = self.first if is_active(left) else None
        second = self.second if is_active(right) else None
        if type(x) in PYTHON and type(y) in PYTHON:
            return self.of_scalars(left, right, np.float64(x), np.float64(y), first, second)
        z = self.value(x, y)
        if first and second:
            return derived(z, (left, right), lambda g: (fitted(first(g, z, x, y), x), fitted(second(g, z, x, y), y)))
        if first:
            return derived(z, (left,), lambda g: (fitted(first(g, z, x, y), x),))
        if second:
            return derived(z, (right,), lambda g: (fitted(second(g, z, x, y), y),))
        return constant(z) if isinstance(left, Tensor) or isinstance(right, Tensor) else z

    def value(self, x: Any, y: Any) -> Any:
        try:
            return self.function(x, y)
        except ValueError as error:
            raise ShapeError(
                f"the shapes {np.shape(x)} and {np.shape(y)} of `{self.name}` do not broadcast",
                hint="from the last axis on, sizes are equal, or one of them is 1",
            ) from error

    def of_scalars(
        self, left: Any, right: Any, x: np.float64, y: np.float64, first: Gradient | None, second: Gradient | None
    ) -> Any:
        """By numpy's rules: Python raises where there is no result."""
        with np.errstate(all="ignore"):
            z = self.function(x, y)
            slopes = [0.0 if rule is None else float(rule(np.float64(1), z, x, y)) for rule in (first, second)]
        if first and second:
            return join(left, float(z), slopes[0], right, slopes[1])
        if first or second:
            return step(left if first else right, float(z), slopes[0 if first else 1])
        return constant(float(z)) if isinstance(left, Tensor) or isinstance(right, Tensor) else float(z)


def _power_by_base(g: Any, z: Any, x: Any, y: Any) -> Any:
    if type(y) in (int, float):
        return 2 * g * x if y == 2 else g * (y * x ** (y - 1)) if y != 0 else np.zeros_like(g)
    return np.where(y != 0, g * (y * np.power(x, np.where(y != 0, y - 1, 0))), 0)


add = Two("+", operator.add, lambda g, z, x, y: g, lambda g, z, x, y: g)
subtract = Two("-", operator.sub, lambda g, z, x, y: g, lambda g, z, x, y: -g)
multiply = Two("*", operator.mul, lambda g, z, x, y: g * y, lambda g, z, x, y: g * x)
divide = Two("/", operator.truediv, lambda g, z, x, y: g / y, lambda g, z, x, y: -g * z / y)
floor_divide = Two("//", operator.floordiv, None, None)
remainder = Two("%", operator.mod, lambda g, z, x, y: g, lambda g, z, x, y: -g * np.floor(x / y))
power = Two("**", operator.pow, _power_by_base, lambda g, z, x, y: np.where(x > 0, g * z * np.log(x), 0))
maximum = Two(
    "maximum", np.maximum, lambda g, z, x, y: np.where(x >= y, g, 0), lambda g, z, x, y: np.where(x >= y, 0, g)
)
minimum = Two(
    "minimum", np.minimum, lambda g, z, x, y: np.where(x <= y, g, 0), lambda g, z, x, y: np.where(x <= y, 0, g)
)
atan2 = Two(
    "atan2", np.arctan2, lambda g, z, x, y: g * y / (x * x + y * y), lambda g, z, x, y: -g * x / (x * x + y * y)
)
hypot = Two("hypot", np.hypot, lambda g, z, x, y: g * x / z, lambda g, z, x, y: g * y / z)
logaddexp = Two("logaddexp", np.logaddexp, lambda g, z, x, y: g * np.exp(x - z), lambda g, z, x, y: g * np.exp(y - z))

negative = One("negative", operator.neg, lambda g, z, x: -g)
absolute = One("abs", np.absolute, lambda g, z, x: g * np.sign(x))
square = One("square", np.square, lambda g, z, x: 2 * g * x)
reciprocal = One("reciprocal", np.reciprocal, lambda g, z, x: -g * z * z)
sqrt = One("sqrt", np.sqrt, lambda g, z, x: g * 0.5 / z)
exp = One("exp", np.exp, lambda g, z, x: g * z)
exp2 = One("exp2", np.exp2, lambda g, z, x: g * z * math.log(2))
expm1 = One("expm1", np.expm1, lambda g, z, x: g * (z + 1))
log = One("log", np.log, lambda g, z, x: g / x)
log2 = One("log2", np.log2, lambda g, z, x: g / (x * math.log(2)))
log10 = One("log10", np.log10, lambda g, z, x: g / (x * math.log(10)))
log1p = One("log1p", np.log1p, lambda g, z, x: g / (1 + x))
sin = One("sin", np.sin, lambda g, z, x: g * np.cos(x))
cos = One("cos", np.cos, lambda g, z, x: -g * np.sin(x))
tan = One("tan", np.tan, lambda g, z, x: g * (1 + z * z))
asin = One("asin", np.arcsin, lambda g, z, x: g / np.sqrt(1 - x * x))
acos = One("acos", np.arccos, lambda g, z, x: -g / np.sqrt(1 - x * x))
atan = One("atan", np.arctan, lambda g, z, x: g / (1 + x * x))
sinh = One("sinh", np.sinh, lambda g, z, x: g * np.cosh(x))
cosh = One("cosh", np.cosh, lambda g, z, x: g * np.sinh(x))
tanh = One("tanh", np.tanh, lambda g, z, x: g * (1 - z * z))
asinh = One("asinh", np.arcsinh, lambda g, z, x: g / np.sqrt(x * x + 1))
acosh = One("acosh", np.arccosh, lambda g, z, x: g / np.sqrt(x * x - 1))
atanh = One("atanh", np.arctanh, lambda g, z, x: g / (1 - x * x))
relu = One("relu", lambda x: np.maximum(x, 0), lambda g, z, x: np.where(x > 0, g, 0))
sign = One("sign", np.sign, None)
floor = One("floor", np.floor, None)
ceil = One("ceil", np.ceil, None)
rint = One("round", np.rint, None)
trunc = One("trunc", np.trunc, None)
