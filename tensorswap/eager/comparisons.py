"""Comparisons: plain truth values, or arrays of them; they have no derivative."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ShapeError
from .make import plain
from .tensor import Tensor

KNOWN = (Tensor, float, int, list, tuple, np.ndarray, np.generic)


@dataclass(frozen=True)
class Comparison:
    function: Callable[[Any, Any], Any]

    def __call__(self, left: Any, right: Any) -> Any:
        if not isinstance(left, KNOWN) or not isinstance(right, KNOWN):
            return NotImplemented
        x, y = plain(left), plain(right)
        try:
            return self.function(x, y)
        except ValueError as error:
            raise ShapeError(
                f"the shapes {np.shape(x)} and {np.shape(y)} cannot be compared",
                hint="from the last axis on, sizes are equal, or one of them is 1",
            ) from error


less, less_equal = Comparison(operator.lt), Comparison(operator.le)
greater, greater_equal = Comparison(operator.gt), Comparison(operator.ge)
equal, not_equal = Comparison(operator.eq), Comparison(operator.ne)
