"""What np.einsum takes beside subscripts and operands, checked: order, casting, dtype, out and optimize."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError, DtypeError

CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")
SEARCHES = ("greedy", "optimal")


class PathError(ArgumentError, RuntimeError):
    """A contraction path that leaves something over, or contracts what is not there: numpy's is a RuntimeError."""


def checked_order(order: Any) -> str:
    if order is None:
        return "K"
    if not isinstance(order, str) or order.upper() not in ("C", "F", "A", "K"):
        raise ArgumentError(f"order is {str(order)[:80]!r}", hint="the orders are 'C', 'F', 'A' and 'K'")
    return order.upper()


def checked_casting(casting: Any) -> str:
    if not isinstance(casting, str):
        raise DtypeError(f"casting is a text, not {type(casting).__name__}", hint=f"one of {', '.join(CASTINGS)}")
    if casting not in CASTINGS:
        raise ArgumentError(f"casting is {casting[:80]!r}", hint=f"one of {', '.join(CASTINGS)}")
    return casting


def checked_dtype(dtype: Any) -> np.dtype[Any] | None:
    if dtype is None:
        return None
    try:
        found: np.dtype[Any] = np.dtype(dtype)
        return found.newbyteorder("=")
    except (TypeError, ValueError) as error:
        raise DtypeError(f"dtype is {str(dtype)[:80]!r}, which numpy does not know", hint="dtype=np.float64") from error


def checked_out(out: Any) -> NDArray[Any]:
    if not isinstance(out, np.ndarray):
        raise DtypeError(f"out is an array to write to, not {type(out).__name__}", hint="out=np.empty(shape)")
    if not out.flags.writeable:
        raise ArgumentError("out is read-only", hint="pass an array that may be written")
    return out


def checked_optimize(optimize: Any, operands: int) -> bool:
    """Whether numpy would contract in steps. The order of steps is the planner's: it finds a good one for each shape,
    once. A path is looked at, so that a wrong one does not pass here and fail there."""
    if optimize is None or isinstance(optimize, bool | np.bool_):
        return bool(optimize)
    if isinstance(optimize, str):
        optimize = (optimize, 0)
    if not isinstance(optimize, Sequence) or not optimize or not isinstance(optimize[0], str):
        raise DtypeError(
            f"optimize is {str(optimize)[:80]!r}",
            hint="one of True, False, 'greedy', 'optimal', or what np.einsum_path gave",
        )
    if optimize[0] == "einsum_path":
        _check_path(optimize[1:], operands)
    elif optimize[0] not in SEARCHES or len(optimize) != 2 or not isinstance(optimize[1], int | float | np.number):
        raise ArgumentError(
            f"optimize is {str(optimize)[:80]!r}", hint="one of True, False, 'greedy', 'optimal', ('greedy', limit)"
        )
    return True


def _check_path(path: Sequence[Any], operands: int) -> None:
    left = operands
    for step in path:
        if not isinstance(step, Sequence) or not all(isinstance(k, int | np.integer) for k in step):
            raise DtypeError(f"a step of a path is a tuple of whole numbers, not {str(step)[:80]!r}")
        if not step or len(set(step)) != len(step) or not all(0 <= k < left for k in step):
            raise PathError(f"the step {tuple(step)[:20]} of the path does not fit {left} operands")
        left += 1 - len(step)
    if left != 1:
        raise PathError(f"the path leaves {left} operands", hint="a path contracts until one is left")
