"""Scalars: tensors of one Python float, for long chains of small steps.

The derivative of a step is computed with it: a scalar links to one or two others, each with a slope, and backward only
multiplies and adds. Where Python's arithmetic would raise (1 / 0, log(0), an overflow), numpy's rules hold: inf or nan.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .tensor import OPEN, Tensor


class Scalar(Tensor):
    """A Python float with links to what it was computed from; `right` is None where there is only one."""

    __slots__ = ("left", "left_slope", "right", "right_slope")

    value: float
    left: Tensor | None
    left_slope: float
    right: Tensor | None
    right_slope: float

    # Written out where one more call would show: these steps are all that a chain of scalars does.

    def __add__(self, other: Any) -> Tensor:
        kind = type(other)
        if kind is Scalar:
            made = Scalar()
            made.value = self.value + other.value
            made.grad, made.uses = None, OPEN
            made.left, made.left_slope = self, 1.0
            made.right, made.right_slope = other, 1.0
            return made
        return step(self, self.value + other, 1.0) if kind is float or kind is int else Tensor.__add__(self, other)

    def __radd__(self, other: Any) -> Tensor:
        if type(other) is float or type(other) is int:
            return step(self, other + self.value, 1.0)
        return Tensor.__radd__(self, other)

    def __sub__(self, other: Any) -> Tensor:
        kind = type(other)
        if kind is Scalar:
            return join(self, self.value - other.value, 1.0, other, -1.0)
        return step(self, self.value - other, 1.0) if kind is float or kind is int else Tensor.__sub__(self, other)

    def __rsub__(self, other: Any) -> Tensor:
        if type(other) is float or type(other) is int:
            return step(self, other - self.value, -1.0)
        return Tensor.__rsub__(self, other)

    def __mul__(self, other: Any) -> Tensor:
        kind = type(other)
        if kind is Scalar:
            made = Scalar()
            made.value = (left := self.value) * (right := other.value)
            made.grad, made.uses = None, OPEN
            made.left, made.left_slope = self, right
            made.right, made.right_slope = other, left
            return made
        return step(self, self.value * other, other) if kind is float or kind is int else Tensor.__mul__(self, other)

    def __rmul__(self, other: Any) -> Tensor:
        if type(other) is float or type(other) is int:
            return step(self, other * self.value, other)
        return Tensor.__rmul__(self, other)

    def __truediv__(self, other: Any) -> Tensor:
        kind = type(other)
        try:
            if kind is Scalar:
                value = self.value / other.value
                return join(self, value, 1.0 / other.value, other, -value / other.value)
            if kind is float or kind is int:
                return step(self, self.value / other, 1.0 / other)
        except ArithmeticError:
            pass
        return Tensor.__truediv__(self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        if type(other) is float or type(other) is int:
            try:
                value = other / self.value
                return step(self, value, -value / self.value)
            except ArithmeticError:
                pass
        return Tensor.__rtruediv__(self, other)

    def __pow__(self, other: Any) -> Tensor:
        kind = type(other)
        base = self.value
        try:
            if (kind is float or kind is int) and other != 0 and (base > 0 or other == int(other)):
                return step(self, base**other, other * base ** (other - 1))
            if kind is Scalar and base > 0:
                exponent = other.value
                value = base**exponent
                return join(self, value, exponent * base ** (exponent - 1), other, value * math.log(base))
        except (ArithmeticError, ValueError):
            pass
        return Tensor.__pow__(self, other)

    def __neg__(self) -> Tensor:
        return step(self, -self.value, -1.0)

    def __lt__(self, other: Any) -> Any:
        kind = type(other)
        return self.value < other if kind is float or kind is int else Tensor.__lt__(self, other)

    def __gt__(self, other: Any) -> Any:
        kind = type(other)
        return self.value > other if kind is float or kind is int else Tensor.__gt__(self, other)

    def relu(self) -> Tensor:
        made = Scalar()
        value = self.value
        made.value, made.left_slope = (value, 1.0) if value > 0.0 else (0.0 if value <= 0.0 else value, 0.0)
        made.grad, made.uses = None, OPEN
        made.left, made.right = self, None
        return made

    def tanh(self) -> Tensor:
        value = math.tanh(self.value)
        return step(self, value, 1.0 - value * value)

    def exp(self) -> Tensor:
        try:
            value = math.exp(self.value)
        except OverflowError:
            value = math.inf
        return step(self, value, value)


def leaf(value: float, uses: int) -> Scalar:
    """A scalar that is computed from nothing."""
    made = Scalar()
    made.value, made.grad, made.uses = value, None, uses
    made.left = made.right = None
    return made


def step(source: Tensor, value: float, slope: float) -> Scalar:
    """A scalar computed from one other."""
    made = Scalar()
    made.value, made.grad, made.uses = value, None, OPEN
    made.left, made.left_slope = source, slope
    made.right = None
    return made


def join(left: Tensor, value: float, left_slope: float, right: Tensor, right_slope: float) -> Scalar:
    """A scalar computed from two others."""
    made = Scalar()
    made.value, made.grad, made.uses = value, None, OPEN
    made.left, made.left_slope = left, left_slope
    made.right, made.right_slope = right, right_slope
    return made


Rule = Callable[[float], tuple[float, float]]


def _of_value(function: Callable[[float], float], slope: Callable[[float, float], float]) -> Rule:
    """A rule from a function and its slope, which is given x and the value y."""

    def rule(x: float) -> tuple[float, float]:
        value = function(x)
        return value, slope(x, value)

    return rule


def _sigmoid(x: float) -> float:
    if x >= 0:
        return 1.0 / (1.0 + math.exp(-x))
    small = math.exp(x)
    return small / (1.0 + small)


def _softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def _normal(x: float) -> float:
    """The normal distribution function."""
    return 0.5 * math.erfc(-x * math.sqrt(0.5))


def _sign(x: float) -> float:
    return float((x > 0) - (x < 0)) if x == x else x


# Value and slope at a float; what raises is left to numpy.
RULES: dict[str, Rule] = {
    "abs": _of_value(abs, lambda x, y: _sign(x)),
    "sqrt": _of_value(math.sqrt, lambda x, y: 0.5 / y),
    "exp": _of_value(math.exp, lambda x, y: y),
    "log": _of_value(math.log, lambda x, y: 1.0 / x),
    "log1p": _of_value(math.log1p, lambda x, y: 1.0 / (1.0 + x)),
    "expm1": _of_value(math.expm1, lambda x, y: y + 1.0),
    "sin": _of_value(math.sin, lambda x, y: math.cos(x)),
    "cos": _of_value(math.cos, lambda x, y: -math.sin(x)),
    "tan": _of_value(math.tan, lambda x, y: 1.0 + y * y),
    "asin": _of_value(math.asin, lambda x, y: 1.0 / math.sqrt(1.0 - x * x)),
    "acos": _of_value(math.acos, lambda x, y: -1.0 / math.sqrt(1.0 - x * x)),
    "atan": _of_value(math.atan, lambda x, y: 1.0 / (1.0 + x * x)),
    "sinh": _of_value(math.sinh, lambda x, y: math.cosh(x)),
    "cosh": _of_value(math.cosh, lambda x, y: math.sinh(x)),
    "tanh": _of_value(math.tanh, lambda x, y: 1.0 - y * y),
    "sigmoid": _of_value(_sigmoid, lambda x, y: y * (1.0 - y)),
    "gelu": _of_value(
        lambda x: x * _normal(x), lambda x, y: _normal(x) + x * math.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    ),
    "silu": _of_value(lambda x: x * _sigmoid(x), lambda x, y: _sigmoid(x) * (1.0 + x * (1.0 - _sigmoid(x)))),
    "softplus": _of_value(_softplus, lambda x, y: _sigmoid(x)),
    "erf": _of_value(math.erf, lambda x, y: 2.0 / math.sqrt(math.pi) * math.exp(-x * x)),
}
