"""Pieces that several numpy twins share: each forward pass with its backward pass."""

from __future__ import annotations

import numpy as np
from workloads.numpy_parts import cross_entropy

from .twin import Array

__all__ = ["cross_entropy", "linear", "linear_backward", "one_hot", "windows"]


def linear(x: Array, W: Array, bias: Array) -> Array:
    y = x @ W.T
    y += bias
    return y


def linear_backward(seed: Array, x: Array, W: Array, input_too: bool = True) -> tuple[Array, Array, Array | None]:
    """The gradients by W, the bias and, where it is asked for, the input."""
    return seed.T @ x, seed.sum(axis=0), seed @ W if input_too else None


def one_hot(number: Array, count: int, dtype: np.dtype) -> Array:
    """Rows with a 1: a product with them is a gather or, turned, a sum of what belongs together."""
    return (number[:, None] == np.arange(count)).astype(dtype)


def windows(tokens: Array, start: Array, length: int) -> tuple[Array, Array]:
    """The characters of each window, and those behind each of them."""
    places = start[:, None] + np.arange(length)
    return tokens[places], tokens[places + 1]
