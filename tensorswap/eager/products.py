"""Matrix products: numpy's matmul with its rules for vectors and stacks of matrices, and einsum as a program."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..einsum import einsum as plain_einsum
from ..einsum import einsum_program
from ..errors import ArgumentError, ShapeError
from .apply import apply
from .elementwise import multiply
from .make import fitted, plain, result
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


def einsum(subscripts: str, *operands: Any) -> Any:
    """numpy's einsum, all its string forms, of tensors and of plain arrays."""
    if not isinstance(subscripts, str) or not any(isinstance(operand, Tensor) for operand in operands):
        return plain_einsum(subscripts, *operands)
    program = einsum_program(subscripts, tuple(np.shape(plain(operand)) for operand in operands))
    return apply(program, {f"A{k}": operand for k, operand in enumerate(operands)})
