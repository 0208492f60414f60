"""Products: a program that is nothing but large matrix products, which a library computes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array
from ..language.bound import Bound
from ..plan.blas import MatrixProduct, matrix_products
from .alone import is_alone
from .expected_time import without_vectors
from .interrupt import STOP, interruptibly
from .ready import Runs

PIECE = 2**31  # products of two numbers in one call of a library
LONG = 1e9  # nanoseconds of work by our guess, of which a library takes a tenth: from here on a signal must be heard


@dataclass(frozen=True)
class Products(Runs):
    """The products, in their order."""

    products: tuple[MatrixProduct, ...]

    def results(self, arrays: list[Array]) -> dict[str, Array]:
        return self.multiply(arrays) if self.work < LONG else interruptibly(lambda: self.multiply(arrays))

    def multiply(self, arrays: list[Array]) -> dict[str, Array]:
        known = {name: array for (name, _), array in zip(self.inputs, arrays, strict=True)}
        for product in self.products:
            left, right = known[product.left], known[product.right]
            result = _product(left.T if product.turn_left else left, right.T if product.turn_right else right)
            known[product.target] = result if product.sign > 0 else np.negative(result, out=result)
        return {name: known[name] for name in self.outputs}


def products_of(bound: Bound) -> tuple[MatrixProduct, ...]:
    """The products that a library computes, if there is nothing else."""
    same = {array.dtype for array in bound.arrays.values()} == {bound.dtype} and bound.dtype.kind == "f"
    return tuple(matrix_products(bound.loops, bound.sizes) or ()) if same and not is_alone() else ()


def by_library(bound: Bound) -> Products | None:
    """A program as large matrix products, if it is nothing else."""
    found = products_of(bound)
    if not found:
        return None
    loops = bound.loops
    work = sum(without_vectors(s, [b.index for b in blocks], bound.sizes.index) for s, blocks in loops.located)
    return Products(tuple((name, bound.dtype) for name in loops.inputs), loops.outputs, work, found)


def _product(left: Array, right: Array) -> Any:
    """A matrix product; a long one in pieces, between which it can be stopped."""
    (rows, depth), columns = left.shape, right.shape[1]
    piece = max(PIECE // max(depth * columns, 1), 64)
    if rows <= 2 * piece:
        return np.matmul(left, right)
    result = np.empty((rows, columns), left.dtype)
    for start in range(0, rows, piece):
        if not STOP.value:
            np.matmul(left[start : start + piece], right, out=result[start : start + piece])
    return result
