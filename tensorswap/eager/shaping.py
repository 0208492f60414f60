"""Moving elements: indexing, reshaping, transposing, joining. The gradient moves back; what was repeated adds up."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, BoundsError, ShapeError
from .make import Gradient, own, plain, result
from .tensor import Tensor


def getitem(operand: Tensor, key: Any) -> Tensor:
    """Basic indices and slices, boolean masks, and integer arrays, which may name an element twice."""
    x = operand.value
    parts = tuple(_part(part) for part in key) if isinstance(key, tuple) else (_part(key),)
    try:
        z = np.asarray(x)[parts]
    except IndexError as error:
        raise BoundsError(f"an index of a tensor of shape {np.shape(x)}: {error}") from error
    except TypeError as error:
        raise ArgumentError(f"an index of a tensor of shape {np.shape(x)}: {error}") from error
    repeated = any(isinstance(part, np.ndarray) and part.dtype != np.bool_ for part in parts)

    def back(g: Any, z: Any) -> Any:
        grad = np.zeros(np.shape(x), g.dtype)
        if repeated:
            np.add.at(grad, parts, g)
        else:
            grad[parts] = g
        return grad

    made: Tensor = result(z, (operand,), (back,))
    return made


def _part(part: Any) -> Any:
    """One index as numpy takes it."""
    value = part.value if isinstance(part, Tensor) else part
    if value is None or value is Ellipsis or isinstance(value, slice | bool):
        return value
    if isinstance(value, list | np.ndarray):
        array = np.asarray(value, np.int64) if isinstance(value, list) and not value else np.asarray(value)
        if array.dtype.kind not in "iub":
            raise ArgumentError(f"an index holds integers, not {array.dtype}", hint="convert it: index.astype(int)")
        return own(array) if array is value else array
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
    except TypeError as error:
        raise ArgumentError(f"shape {x.shape}: {error}", hint="axes and sizes are whole numbers") from error
    return result(z, (operand,), (lambda g, z: back(g, x.shape),))


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
    ends = np.cumsum([0, *(1 if stacked else v.shape[axis] for v in values)])

    def part(k: int) -> Gradient:
        def back(g: Any, z: Any) -> Any:
            own = np.moveaxis(g, axis, 0)[ends[k] : ends[k + 1]]
            return np.moveaxis(own, 0, axis).reshape(values[k].shape)

        return back

    return result(z, operands, [part(k) for k in range(len(values))])


def where(condition: Any, then: Any, otherwise: Any) -> Any:
    """Elements of `then` where the condition holds, of `otherwise` elsewhere; gradients go the same way."""
    c, x, y = plain(condition), plain(then), plain(otherwise)
    try:
        z = np.where(c, x, y)
    except ValueError as error:
        raise ShapeError(f"the shapes {np.shape(c)}, {np.shape(x)} and {np.shape(y)} do not broadcast") from error
    gradients = (None, lambda g, z: np.where(c, g, 0), lambda g, z: np.where(c, 0, g))
    return result(z, (condition, then, otherwise), gradients)
