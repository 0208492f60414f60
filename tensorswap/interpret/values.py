"""Values on a grid and how they combine: numpy's promotion, with plain numbers that never widen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .functions import FUNCTIONS, KEEP_INTEGERS

Array = NDArray[Any]

OPERATIONS: dict[str, Any] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "**": np.power, "//": np.floor_divide, "%": np.mod,
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal,
}  # fmt: skip


@dataclass(frozen=True)
class Value:
    """An array that broadcasts to the grid. `weak` values (numbers, indices) take the type of what they meet."""

    array: Array
    weak: bool = False


@dataclass(frozen=True)
class Kind:
    dtype: np.dtype[Any]
    weak: bool


def promote(*values: Value) -> Kind:
    """numpy's promotion, with weak values like plain Python numbers: they never widen."""
    strong = [v.array.dtype for v in values if not v.weak]
    weak = [v.array.dtype for v in values if v.weak]
    if not strong:
        return Kind(np.result_type(*weak), True)
    stand_ins: list[Any] = [0.0 if np.issubdtype(d, np.floating) else 0 for d in weak if d != np.bool_]
    return Kind(np.result_type(*strong, *stand_ins), False)


def as_number(value: Value) -> Value:
    """Truth values count as 0 and 1 in arithmetic."""
    return Value(value.array.astype(np.int64), weak=True) if value.array.dtype == np.bool_ else value


def _floating(kind: Kind) -> Kind:
    if np.issubdtype(kind.dtype, np.floating):
        return kind
    return Kind(np.dtype(np.float64), kind.weak)


def binary(operator: str, left: Value, right: Value) -> Value:
    left, right = as_number(left), as_number(right)
    kind = promote(left, right)
    negative = np.issubdtype(kind.dtype, np.integer) and bool((right.array < 0).any())
    if operator == "/" or (operator == "**" and negative):
        kind = _floating(kind)
    a, b = left.array.astype(kind.dtype), right.array.astype(kind.dtype)
    return Value(OPERATIONS[operator](a, b), kind.weak)


def compare(operator: str, left: Value, right: Value) -> Value:
    left, right = as_number(left), as_number(right)
    dtype = promote(left, right).dtype
    a, b = left.array.astype(dtype), right.array.astype(dtype)
    return Value(OPERATIONS[operator](a, b))


def call(function: str, arguments: list[Value]) -> Value:
    kind = promote(*arguments)
    if function not in KEEP_INTEGERS:
        kind = _floating(kind)
    result = FUNCTIONS[function](*(a.array.astype(kind.dtype) for a in arguments))
    return Value(result, kind.weak)


def widen(array: Array, dtype: np.dtype[Any]) -> Array:
    """Another type for a tensor in the making; the identity of an integer max= becomes that of a float's."""
    wide = array.astype(dtype)
    if np.issubdtype(array.dtype, np.integer) and np.issubdtype(dtype, np.floating):
        limits = np.iinfo(array.dtype)
        if array.dtype == np.int64:
            wide[array == limits.min], wide[array == limits.max] = -np.inf, np.inf
    return wide


def wide_type(array: Array) -> np.dtype[Any]:
    """Sums of float32 are kept in float64 until they are complete, whatever the order of their terms."""
    return np.dtype(np.float64) if array.dtype == np.float32 else array.dtype


def extreme(array: Array, start: float) -> Any:
    if np.issubdtype(array.dtype, np.integer):
        return np.iinfo(array.dtype).min if start < 0 else np.iinfo(array.dtype).max
    return array.dtype.type(start)
