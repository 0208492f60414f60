"""Matrix products: numpy's matmul with its rules for vectors and stacks of matrices, and einsum as a program."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ..einsum.call import einsum_of_arrays, recipe_of
from ..einsum.recipe import Recipe
from ..einsum.subscripts import text_and_operands
from ..errors import ArgumentError, DtypeError, ShapeError
from ..program import Program
from .elementwise import multiply
from .make import constant, derived, fitted, is_active, plain, result
from .tensor import Tensor


def matmul(left: Any, right: Any) -> Any:
    """`left @ right`."""
    x, y = plain(left), plain(right)
    try:
        z = np.matmul(x, y)
    except ValueError as error:
        raise ShapeError(
            f"the shapes {np.shape(x)} and {np.shape(y)} of `@` do not fit",
            hint="the last axis of the left is as long as the last but one of the right; a single number takes `*`",
        ) from error
    return result(z, (left, right), (_by_left, _by_right), x, y)


def _by_left(g: Any, z: Any, x: Any, y: Any) -> Any:
    if x.ndim == 2 and y.ndim == 2:
        return g @ y.T
    g, x2, y2 = _as_matrices(g, x, y)
    return fitted(g @ np.swapaxes(y2, -1, -2), x2).reshape(x.shape)


def _by_right(g: Any, z: Any, x: Any, y: Any) -> Any:
    if x.ndim == 2 and y.ndim == 2:
        return x.T @ g
    g, x2, y2 = _as_matrices(g, x, y)
    return fitted(np.swapaxes(x2, -1, -2) @ g, y2).reshape(y.shape)


def _as_matrices(g: Any, x: Any, y: Any) -> tuple[Any, Any, Any]:
    """A vector on the left is a row, one on the right a column; the gradient gets the axes that they lost."""
    g = np.asarray(g)
    if y.ndim == 1:
        g = g[..., None]
    if x.ndim == 1:
        g = g[..., None, :]
    return g, x[None, :] if x.ndim == 1 else x, y[:, None] if y.ndim == 1 else y


def dot(left: Any, right: Any) -> Any:
    """numpy's dot, for what it shares with `@`: vectors and matrices; a single number multiplies."""
    ranks = np.ndim(plain(left)), np.ndim(plain(right))
    if 0 in ranks:
        return multiply(left, right)
    if max(ranks) > 2:
        raise ArgumentError("dot of more than two axes has no gradient here", hint="use `@`, or np.einsum")
    return matmul(left, right)


def einsum(
    *operands: Any, out: Any = None, dtype: Any = None, order: Any = "K", casting: Any = "safe", optimize: Any = False
) -> Any:
    """numpy's einsum, in all its forms, of tensors and of plain arrays."""
    for operand in operands:  # `any` would take longer than all else here
        if isinstance(operand, Tensor):
            break
    else:
        return einsum_of_arrays(operands, out, dtype, order, casting, optimize)
    if out is not None:
        raise ArgumentError("einsum of tensors writes to no out", hint="the result is a tensor of its own")
    text, given = text_and_operands(operands)
    arrays = _in_one_type([plain(value) for value in given])
    made = recipe_of(text, arrays, None, dtype, order, casting, optimize)
    if made.computed is None:
        raise DtypeError(f"{made.dtype} has no gradient here", hint="use float32 or float64")
    values = made.operands(arrays)
    value = made.run(values)
    active = {name: tensor for name, tensor in zip(made.names, given, strict=True) if is_active(tensor)}
    if not active or value.dtype.kind != "f":
        return constant(value)

    def back(seed: Any) -> list[Any]:
        pulled = _adjoint(made, tuple(active))({**values, "result.grad": made.in_memory(seed)})
        gradients = pulled if len(active) > 1 else {f"{name}.grad": pulled for name in active}
        return [fitted(gradients[f"{name}.grad"], tensor.value) for name, tensor in active.items()]

    return derived(value, tuple(active.values()), back)


@lru_cache(maxsize=1024)
def _adjoint(made: Recipe, wrt: tuple[str, ...]) -> Program:
    return made.program.adjoint(wrt=wrt)


def _in_one_type(values: list[Any]) -> list[Any]:
    """Plain Python numbers, which never widen, as arrays of the type of the others."""
    arrays = [v for v in values if isinstance(v, np.ndarray | np.generic)]
    found = np.result_type(*arrays, *(v for v in values if not isinstance(v, np.ndarray | np.generic)))
    return [np.asarray(v, None if isinstance(v, np.ndarray | np.generic) else found) for v in values]
