"""Moving elements: indexing, reshaping, transposing, joining. The gradient moves back; what was repeated adds up."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, BoundsError, ShapeError
from .make import constant, derived, fitted, is_active, plain
from .tensor import Tensor


def getitem(operand: Tensor, key: Any) -> Tensor:
    """Basic indices and slices, boolean masks, and integer arrays, which may name an element twice."""
    x = operand.value
    parts = tuple(_part(part) for part in key) if isinstance(key, tuple) else (_part(key),)
    try:
        z = np.asarray(x)[parts]
    except IndexError as error:
        raise BoundsError(f"an index of a tensor of shape {np.shape(x)}: {error}") from error
    if not is_active(operand):
        return constant(z)
    repeated = any(isinstance(part, np.ndarray) and part.dtype != np.bool_ for part in parts)

    def pull(g: Any) -> tuple[Any]:
        result = np.zeros(np.shape(x), g.dtype)
        if repeated:
            np.add.at(result, parts, g)
        else:
            result[parts] = g
        return (fitted(result, x),)

    return derived(z, (operand,), pull)


def _part(part: Any) -> Any:
    """One index as numpy takes it."""
    value = part.value if isinstance(part, Tensor) else part
    if value is None or value is Ellipsis or isinstance(value, slice | bool):
        return value
    if isinstance(value, list | np.ndarray):
        array = np.asarray(value, np.int64) if isinstance(value, list) and not value else np.asarray(value)
        if array.dtype.kind not in "iub":
            raise ArgumentError(f"an index holds integers, not {array.dtype}", hint="convert it: index.astype(int)")
        return array
    try:
        return operator.index(value)
    except TypeError as error:
        raise ArgumentError(
            f"{type(value).__name__} is no index", hint="use integers, slices, masks, `...` or integer arrays"
        ) from error


def _moved(operand: Any, move: Callable[[Any], Any], back: Callable[[Any, tuple[int, ...]], Any]) -> Any:
    """`back` is given the gradient and the shape that the operand had."""
    x = np.asarray(plain(operand))
    try:
        z = move(x)
    except ValueError as error:
        raise ShapeError(f"shape {x.shape}: {error}") from error
    if not isinstance(operand, Tensor):
        return z
    if not is_active(operand):
        return constant(z)
    value = operand.value
    return derived(z, (operand,), lambda g: (fitted(back(g, x.shape), value),))


def reshape(operand: Any, shape: Any) -> Any:
    return _moved(operand, lambda x: x.reshape(shape), lambda g, old: g.reshape(old))


def ravel(operand: Any) -> Any:
    return reshape(operand, -1)


def transpose(operand: Any, axes: Sequence[int] | None = None) -> Any:
    order = None if axes is None else tuple(axes)
    return _moved(
        operand,
        lambda x: np.transpose(x, order),
        lambda g, old: np.transpose(g, None if order is None else np.argsort([k % len(old) for k in order])),
    )


def swapaxes(operand: Any, first: int, second: int) -> Any:
    return _moved(operand, lambda x: np.swapaxes(x, first, second), lambda g, old: np.swapaxes(g, first, second))


def moveaxis(operand: Any, source: Any, destination: Any) -> Any:
    return _moved(
        operand, lambda x: np.moveaxis(x, source, destination), lambda g, old: np.moveaxis(g, destination, source)
    )


def expand_dims(operand: Any, axis: Any) -> Any:
    return _moved(operand, lambda x: np.expand_dims(x, axis), lambda g, old: g.reshape(old))


def squeeze(operand: Any, axis: Any = None) -> Any:
    return _moved(operand, lambda x: np.squeeze(x, axis), lambda g, old: g.reshape(old))


def broadcast_to(operand: Any, shape: Any) -> Any:
    return _moved(operand, lambda x: np.broadcast_to(x, shape), lambda g, old: g)


def concatenate(operands: Sequence[Any], axis: int = 0) -> Any:
    values = [np.asarray(plain(operand)) for operand in operands]
    return _joined(operands, values, lambda: np.concatenate(values, axis), axis)


def stack(operands: Sequence[Any], axis: int = 0) -> Any:
    values = [np.asarray(plain(operand)) for operand in operands]
    return _joined(operands, values, lambda: np.stack(values, axis), axis, stacked=True)


def _joined(
    operands: Sequence[Any], values: Sequence[Any], join: Callable[[], Any], axis: int, stacked: bool = False
) -> Any:
    try:
        z = join()
    except ValueError as error:
        raise ShapeError(f"the shapes {', '.join(str(v.shape) for v in values)} do not join: {error}") from error
    active = [k for k, operand in enumerate(operands) if is_active(operand)]
    if not active:
        return constant(z) if any(isinstance(operand, Tensor) for operand in operands) else z
    parents = tuple(operands[k] for k in active)
    ends = np.cumsum([1 if stacked else v.shape[axis] for v in values])

    def pull(g: Any) -> list[Any]:
        parts = np.split(g, ends[:-1], axis)
        return [fitted(np.reshape(parts[k], values[k].shape), operands[k].value) for k in active]

    return derived(z, parents, pull)


def where(condition: Any, then: Any, otherwise: Any) -> Any:
    """Elements of `then` where the condition holds, of `otherwise` elsewhere; gradients go the same way."""
    c, x, y = plain(condition), plain(then), plain(otherwise)
    try:
        z = np.where(c, x, y)
    except ValueError as error:
        raise ShapeError(f"the shapes {np.shape(c)}, {np.shape(x)} and {np.shape(y)} do not broadcast") from error
    parents = tuple(operand for operand in (then, otherwise) if is_active(operand))
    if not parents:
        return constant(z) if any(isinstance(operand, Tensor) for operand in (condition, then, otherwise)) else z

    def pull(g: Any) -> list[Any]:
        parts = []
        if is_active(then):
            parts.append(fitted(np.where(c, g, 0), x))
        if is_active(otherwise):
            parts.append(fitted(np.where(c, 0, g), y))
        return parts

    return derived(z, parents, pull)
