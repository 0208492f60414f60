"""Whether two runs gave the same results, up to rounding, and where they first differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array

RELATIVE = 1e-6  # of the largest element: runs are in float64, and rounding is far below


@dataclass(frozen=True)
class Difference:
    """An element of an output that should be `wanted`."""

    output: str
    position: tuple[int, ...]
    wanted: Any
    found: Any

    def __str__(self) -> str:
        place = f"{self.output}[{','.join(map(str, self.position))}]" if self.position else self.output
        return f"{place} is {self.found:.6g}, and should be {self.wanted:.6g}"


def difference(wanted: Mapping[str, Array], found: Mapping[str, Array]) -> Difference | None:
    """The first element that differs. Where the right value is no finite number nothing is asked: another order of
    the same sum may overflow elsewhere."""
    for name, right in wanted.items():
        other = found.get(name)
        if other is None or other.shape != right.shape:
            return Difference(name, (), float(right.size), float("nan") if other is None else float(other.size))
        if right.dtype.kind != "f":
            bad = right != other
        else:
            finite = np.isfinite(right)
            scale = np.max(np.abs(right), where=finite, initial=0.0)
            with np.errstate(invalid="ignore"):
                near = np.abs(right - other) <= RELATIVE * scale + 1e-12
            bad = finite & ~near
        if bad.any():
            at = tuple(int(k) for k in np.unravel_index(int(np.argmax(bad)), bad.shape))
            return Difference(name, at, right[at], other[at])
    return None
