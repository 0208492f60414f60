"""A program bound to the arguments of one call: what every run of it starts from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array
from ..lazy import cached_property
from . import ir
from .sizes import Sizes
from .types import Kind, Types, infer_types


@dataclass(frozen=True)
class Bound:
    """What a run needs. The kinds of inputs that were plain Python numbers are weak; weak results become `dtype`."""

    loops: ir.Loops
    arrays: dict[str, Array]
    kinds: dict[str, Kind]
    sizes: Sizes
    dtype: np.dtype[Any]

    @cached_property
    def types(self) -> Types:
        return infer_types(self.loops, self.kinds)
