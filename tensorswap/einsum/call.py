"""einsum on arrays: numpy's function, argument for argument, computed by kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import einsum as numpys_einsum  # bound here, so that a user may put this einsum in its place
from numpy.typing import NDArray

from ..errors import ShapeError
from ..run.arguments import as_array
from .layout import diagonal_view
from .recipe import Recipe, recipe
from .settings import checked_casting, checked_dtype, checked_optimize, checked_order, checked_out
from .shortcut import remember, taken
from .subscripts import text_and_operands

Array = NDArray[Any]


def einsum_of_arrays(given: tuple[Any, ...], out: Any, dtype: Any, order: Any, casting: Any, optimize: Any) -> Any:
    """Complex numbers, objects and long doubles have no kernels: numpy itself computes those."""
    usual = out is None and dtype is None and optimize is False and order == "K" and casting == "safe"
    if usual and (short := taken(given)) is not None:
        return short
    text, operands = text_and_operands(given)
    arrays = [value if type(value) is np.ndarray else operand(k, value) for k, value in enumerate(operands)]
    made = recipe_of(text, arrays, out, dtype, order, casting, optimize)
    if made.is_view and out is None:
        result = diagonal_view(arrays[0], made.subscripts.terms[0], made.subscripts.output)
    elif made.computed is not None:
        result = made.run(made.operands(arrays))
        if usual:
            remember(given[0], made)
    else:
        return numpys_einsum(
            made.for_numpy, *arrays, out=out, dtype=dtype, order=order, casting=casting, optimize=optimize
        )
    if out is None:
        return result if result.ndim else result[()]
    return _written(out, result)


def operand(k: int, value: Any) -> Array:
    """What is no plain array, as one."""
    if type(value) is np.ndarray or (isinstance(value, np.ndarray) and not isinstance(value, np.ma.MaskedArray)):
        return np.asarray(value)
    if isinstance(value, bool | int | float | complex | np.generic):
        return np.asarray(value)
    if isinstance(value, list | tuple):
        try:
            return np.asarray(value)
        except ValueError:  # as_array says what is wrong with it
            pass
    return as_array(f"operand {k}", value)


def recipe_of(text: str, arrays: list[Array], out: Any, dtype: Any, order: Any, casting: Any, optimize: Any) -> Recipe:
    """The recipe of a call; the usual settings need no look."""
    if order != "K":
        order = checked_order(order)
        if order == "A":
            order = "F" if all(array.flags.f_contiguous for array in arrays) else "C"
    if casting != "safe":
        casting = checked_casting(casting)
    in_steps = optimize is not False and checked_optimize(optimize, len(arrays)) and len(arrays) > 1
    target = None
    if out is not None:
        # What numpy contracts in steps it assigns in the end, and an assignment casts whatever it meets.
        target = checked_out(out).dtype, None if in_steps else casting
    kinds = [(array.shape, array.strides, array.dtype) for array in arrays]
    return recipe(text, None if dtype is None else checked_dtype(dtype), order, casting, target, *kinds)


def _written(out: Array, result: Array) -> Array:
    if out.ndim != result.ndim:
        raise ShapeError(f"out has {out.ndim} axes, the result {result.ndim}", hint=f"out=np.empty({result.shape})")
    try:
        np.copyto(out, result, casting="unsafe")
    except ValueError as error:
        raise ShapeError(f"out has the shape {out.shape}, the result {result.shape}") from error
    return out
