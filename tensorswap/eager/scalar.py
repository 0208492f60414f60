"""Scalars: tensors of one Python float, for long chains of small steps.

The derivative of a step is computed with it: a scalar links to one or two others, each with a slope, and backward only
multiplies and adds. Where Python's arithmetic would raise (1 / 0, log(0), an overflow), numpy's rules hold: inf or nan.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..language.formula import compiled, of_numbers
from ..language.functions import FUNCTIONS, Function
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
        try:
            if kind is float or kind is int:
                return step(self, self.value + other, 1.0)
        except OverflowError:  # of a whole number that is too large
            pass
        return Tensor.__add__(self, other)

    def __radd__(self, other: Any) -> Tensor:
        try:
            if type(other) is float or type(other) is int:
                return step(self, other + self.value, 1.0)
        except OverflowError:
            pass
        return Tensor.__radd__(self, other)

    def __sub__(self, other: Any) -> Tensor:
        kind = type(other)
        if kind is Scalar:
            return join(self, self.value - other.value, 1.0, other, -1.0)
        try:
            if kind is float or kind is int:
                return step(self, self.value - other, 1.0)
        except OverflowError:  # of a whole number that is too large
            pass
        return Tensor.__sub__(self, other)

    def __rsub__(self, other: Any) -> Tensor:
        try:
            if type(other) is float or type(other) is int:
                return step(self, other - self.value, -1.0)
        except OverflowError:
            pass
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
        try:
            if kind is float or kind is int:
                return step(self, self.value * other, other)
        except OverflowError:  # of a whole number that is too large
            pass
        return Tensor.__mul__(self, other)

    def __rmul__(self, other: Any) -> Tensor:
        try:
            if type(other) is float or type(other) is int:
                return step(self, other * self.value, other)
        except OverflowError:
            pass
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


def _rule(row: Function) -> Callable[[Scalar], Scalar]:
    """A step by a function of the language: its value y, and its derivative as the table of functions has it."""
    value = EXACT.get(row.name) or of_numbers(row.name)
    text = f"step(operand, y := value(x := operand.value), {row.derivatives[0]})"
    return compiled("operand", text, of_numbers, step=step, value=value)


EXACT = {"gelu": lambda x: 0.5 * x * math.erfc(-x * math.sqrt(0.5))}  # to the last digit of small values, too

# What raises is left to numpy.
RULES = {row.name: _rule(row) for row in FUNCTIONS.values() if len(row.derivatives) == 1 and not row.flat}

Scalar.tanh = RULES["tanh"]
