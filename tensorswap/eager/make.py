"""Making tensors: from what a user gives, and from what was computed of others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DtypeError
from ..run.arguments import as_array, check_dtype
from .scalar import leaf, step
from .tensor import CONSTANT, LEAF, OPEN, Array, Pull, Tensor

Gradient = Callable[..., Any]
LARGE = 2**1023  # whole numbers up to here have a floating-point one


def tensor(value: Any, *, copy: bool = True) -> Tensor:
    """A tensor whose gradient is wanted: of a number, a list, or a float32 or float64 array.

    A plain Python number stays one: it never widens a float32 array that it meets. Whole Python numbers become floating
    point. An integer array has no derivative: it is a constant. With `copy=False` the array itself is the value, and
    changes where the caller changes it.
    """
    if type(value) in (int, float):
        try:
            return leaf(float(value), LEAF)
        except OverflowError as error:
            raise too_large() from error
    if isinstance(value, Tensor):
        return tensor(value.value, copy=copy)
    array = as_array("the value of a tensor", value)
    if array.dtype.kind in "iu" and not hasattr(value, "dtype"):
        array = array.astype(np.float64)
    elif copy:
        array = array.copy()
    return _bare(array, LEAF if array.dtype.kind == "f" else CONSTANT)


def too_large() -> DtypeError:
    return DtypeError("the number is too large", hint="a floating-point number is below 1.8e308")


def constant(value: Any) -> Tensor:
    """A tensor without a gradient."""
    return leaf(value, CONSTANT) if type(value) is float else _bare(value, CONSTANT)


def _bare(value: Any, uses: int) -> Array:
    made = Array()
    made.value, made.grad, made.uses = value, None, uses
    made.parents, made.pull = (), None
    return made


def derived(value: Any, parents: tuple[Tensor, ...], pull: Pull) -> Tensor:
    """The tensor of a computed value: `pull(grad)` gives the gradients of its parents."""
    made = Array()
    made.value, made.grad, made.uses, made.parents, made.pull = value, None, OPEN, parents, pull
    return step(made, value, 1.0) if type(value) is float else made  # a Python float goes on as a scalar


def result(value: Any, operands: Sequence[Any], gradients: Sequence[Gradient | None], *context: Any) -> Any:
    """What was computed of operands: a tensor if one of them is. The gradient by each, None where it is zero, is given
    that of the value, the value and the context."""
    active = [(o, rule) for o, rule in zip(operands, gradients, strict=True) if rule is not None and is_active(o)]
    if active:
        parents = tuple([operand for operand, _ in active])
        return derived(value, parents, lambda g: [fitted(rule(g, value, *context), o.value) for o, rule in active])
    return constant(value) if any(isinstance(operand, Tensor) for operand in operands) else value


def plain(operand: Any) -> Any:
    """The value of a tensor; anything else as a number or an array of its own: the way back needs what is here now."""
    if isinstance(operand, Tensor):
        return operand.value
    if isinstance(operand, np.ndarray):
        check_dtype("an operand", operand.dtype)
        return own(operand)
    if type(operand) is int and not -LARGE < operand < LARGE:
        raise too_large()
    if isinstance(operand, np.generic):
        check_dtype("an operand", operand.dtype)
        return operand
    return operand if isinstance(operand, float | int) else as_array("an operand", operand)


def own(array: NDArray[Any]) -> NDArray[Any]:
    """A copy of what a caller may change before the gradient is taken."""
    return array.copy() if array.flags.writeable or array.base is not None else array


def is_active(operand: Any) -> bool:
    """Whether a gradient is wanted for an operand."""
    return isinstance(operand, Tensor) and operand.uses != CONSTANT


def fitted(grad: Any, value: Any) -> Any:
    """A gradient with the shape and type of its value: what broadcasting repeated is added up."""
    if type(value) is float:
        return float(np.sum(grad))
    if grad.shape != value.shape:
        grad = _unbroadcast(grad, value.shape)
    return grad if grad.dtype == value.dtype else grad.astype(value.dtype)


def _unbroadcast(grad: NDArray[Any], shape: tuple[int, ...]) -> Any:
    ahead = grad.ndim - len(shape)
    if ahead > 0:
        grad = np.add.reduce(grad, axis=tuple(range(ahead)))
    repeated = tuple(k for k, extent in enumerate(shape) if extent == 1 and grad.shape[k] != 1)
    if repeated:
        grad = np.add.reduce(grad, axis=repeated, keepdims=True)
    return grad if grad.shape == shape else np.broadcast_to(grad, shape)
