"""A program bound to the arguments of one call: what every run of it starts from."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array
from ..lazy import cached_property
from . import ir
from .bounds import Use, unproven
from .interval import Bounds
from .ir import Number
from .sizes import Sizes
from .types import Kind, Types, infer_types

Ranges = Mapping[str, tuple[int, int]]


def ranges_of(arrays: Mapping[str, Any], names: Container[str] | None = None) -> dict[str, tuple[int, int]]:
    """The least and greatest value of integer arrays: of all, or of those named and of words that may be too large for
    signed ones. Of an array that holds none, nothing is ever read."""
    return {
        name: (int(value.min()), int(value.max())) if value.size else (0, 0)
        for name, value in arrays.items()
        if isinstance(value, np.ndarray)
        and value.dtype.kind in "iu"
        and (names is None or name in names or value.dtype == np.uint64)
    }


@dataclass(frozen=True)
class Bound:
    """What a run needs. The kinds of inputs that were plain Python numbers are weak; weak results become `dtype`."""

    loops: ir.Loops
    arrays: dict[str, Array]
    kinds: dict[str, Kind]
    sizes: Sizes
    dtype: np.dtype[Any]

    def gathered(self, ranges: Ranges | None = None) -> dict[str, Bounds]:
        """Numbers between which the elements of integer inputs lie; `ranges` where more than these arrays come."""
        found = {**ranges_of(self.arrays), **(ranges or {})}
        return {n: (Number(low), Number(high)) for n, (low, high) in found.items() if n not in self.loops.updated}

    def unproven(self, ranges: Ranges | None = None) -> list[Use]:
        """The accesses that intervals cannot show to be in bounds."""
        return unproven(self.loops, self.sizes, self.gathered(ranges))

    @cached_property
    def types(self) -> Types:
        return infer_types(self.loops, self.kinds)
