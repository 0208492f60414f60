"""Reductions over some axes or all: sum, mean, max and min (to the first winner), product, variance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ArgumentError, ShapeError
from .elementwise import sqrt
from .make import Gradient, plain, result
from .tensor import Tensor


@dataclass(frozen=True)
class Reduction:
    """`gradient` is given the gradient with the reduced axes kept at size 1, the value, the operand and its axes."""

    function: Any
    gradient: Gradient

    def __call__(self, operand: Any, axis: Any = None, keepdims: bool = False) -> Any:
        function, x = self.function, np.asarray(plain(operand))
        axes = _axes(axis, x.ndim)
        empty = next((k for k in axes if x.shape[k] == 0), None)
        if function in EXTREME and empty is not None and all(n for k, n in enumerate(x.shape) if k not in axes):
            raise ShapeError(
                f"no element is the {EXTREME[function]}: axis {empty} of shape {x.shape} is empty",
                hint="look at the shape first, or join a first value to it",
            )
        z = function(x, axis=axes, keepdims=keepdims)
        if isinstance(operand, Tensor) and type(operand.value) is float:
            return operand + 0.0 if function is not np.var else operand * 0.0  # one number: its own sum, mean, max
        kept = tuple(1 if k in axes else extent for k, extent in enumerate(x.shape))
        return result(z, (operand,), (lambda g, z: self.gradient(np.reshape(g, kept), z, x, axes),))


def _count(x: Any, axes: tuple[int, ...]) -> int:
    return math.prod(x.shape[k] for k in axes)


def _by_spread(g: Any, z: Any, x: Any, axes: tuple[int, ...]) -> Any:
    return g * (x - np.mean(x, axis=axes, keepdims=True)) * (2 / _count(x, axes))


EXTREME = {np.max: "largest", np.min: "smallest"}
sum = Reduction(np.sum, lambda g, z, x, axes: np.broadcast_to(g, x.shape))
mean = Reduction(np.mean, lambda g, z, x, axes: np.broadcast_to(g / _count(x, axes), x.shape))
max = Reduction(np.max, lambda g, z, x, axes: _to_winner(g, x, axes, np.argmax))
min = Reduction(np.min, lambda g, z, x, axes: _to_winner(g, x, axes, np.argmin))
prod = Reduction(np.prod, lambda g, z, x, axes: g * _others(x, axes))
var = Reduction(np.var, _by_spread)


def std(operand: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return sqrt(var(operand, axis, keepdims))


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, tuple | list) else (axis,)
    if not all(isinstance(k, int | np.integer) and not isinstance(k, bool) for k in given):
        raise ArgumentError(f"an axis is a whole number, not {str(axis)[:80]}", hint="axis=0, or axis=(0, 1)")
    outside = next((k for k in given if not -ndim <= k < ndim), None)
    if outside is not None:
        raise ShapeError(f"there is no axis {outside} among {ndim}", hint=f"axes are 0 to {ndim - 1}")
    axes = tuple(int(k) % ndim for k in given)
    if len(set(axes)) < len(axes):
        raise ArgumentError(f"axis {axis} names an axis twice", hint="name each axis once")
    return axes


def _last(x: Any, axes: tuple[int, ...]) -> tuple[Any, tuple[int, ...], tuple[int, ...]]:
    """The reduced axes as one axis behind the others, with the order and shape that lead back."""
    order = (*(k for k in range(x.ndim) if k not in axes), *sorted(axes))
    moved = np.transpose(x, order)
    kept = moved.shape[: x.ndim - len(axes)]
    flat = moved.reshape(*kept, math.prod(moved.shape[len(kept) :]))
    return flat, order, moved.shape


def _back(flat: Any, order: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    return np.transpose(flat.reshape(shape), np.argsort(order))


def _to_winner(g: Any, x: Any, axes: tuple[int, ...], argument: Any) -> Any:
    """The gradient at the first of the winners, zero elsewhere."""
    flat, order, shape = _last(x, axes)
    result = np.zeros(flat.shape, np.asarray(g).dtype)
    winner = argument(flat, axis=-1)[..., None]
    np.put_along_axis(result, winner, _last(g, axes)[0], axis=-1)
    return _back(result, order, shape)


def _others(x: Any, axes: tuple[int, ...]) -> Any:
    """For each element the product of all others: right where elements are 0, too."""
    flat, order, shape = _last(x, axes)
    before, behind = np.ones_like(flat), np.ones_like(flat)
    np.cumprod(flat[..., :-1], axis=-1, out=before[..., 1:])
    behind[..., :-1] = np.cumprod(flat[..., :0:-1], axis=-1)[..., ::-1]
    return _back(before * behind, order, shape)
