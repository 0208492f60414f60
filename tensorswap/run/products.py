"""Products: a program that is nothing but large matrix products, which a library computes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..arrays import Array
from ..kernel.registers import registers
from ..language.bound import Bound
from ..plan.blas import MatrixProduct, matrix_products
from .again import Way
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
            with np.errstate(all="ignore"):  # as in kernels
                result = _product(left.T if product.turn_left else left, right.T if product.turn_right else right)
            known[product.target] = result if product.sign > 0 else np.subtract(0, result, out=result)
        return {name: known[name] for name in self.outputs}

    def way(self, like: Mapping[str, Any]) -> Callable[[Way, bool, ctypes.c_int64], Way]:
        """What makes a way for calls with arrays like these; it keeps none of them."""
        return partial(self._way, [_signature(like[name]) for name, _ in self.inputs])

    def _way(self, expected: list[Any], otherwise: Way, single: bool, watched: ctypes.c_int64) -> Way:
        """A call for arrays of the same shapes, which passes all others on. It is short: a large product leaves nothing
        of Python in the caches, and each line of a longer one would come from memory."""
        names = tuple(name for name, _ in self.inputs)
        several, output = {*names}, self.outputs[0]

        def way(mapping: Mapping[str, Any] | None = None, /, *more: Any, **arrays: Any) -> Any:
            told = arrays if mapping is None else mapping if type(mapping) is dict and not arrays else {}
            if told.keys() == several and not watched.value and not more:
                given = [told[name] for name in names]
                if [_signature(array) for array in given] == expected:
                    results = self.results(given)
                    return results[output] if single else results
            return otherwise(mapping, *more, **arrays)

        return way


def _signature(array: Any) -> tuple[Any, ...]:
    """What decides if an array can be read as another was."""
    return (array.shape, array.strides, array.dtype) if type(array) is np.ndarray else ()


def products_of(bound: Bound) -> tuple[MatrixProduct, ...]:
    """The products that a library computes, if there is nothing else. Tiles that take numbers of memory as factors are
    faster, save where they would read columns of the left side as rows."""
    same = {array.dtype for array in bound.arrays.values()} == {bound.dtype} and bound.dtype.kind == "f"
    found = tuple(matrix_products(bound.loops, bound.sizes) or ()) if same and not is_alone() else ()
    by_tiles = bool(found) and registers().takes_numbers and not any(product.turn_left for product in found)
    return () if by_tiles else found


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
