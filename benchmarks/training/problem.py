"""A problem: one training with its first parameters, its data and the rows of every batch, the same for all peers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import BY_NAME
from .twin import Array, Arrays, Case, Sizes, Twin

BETA1, BETA2, EPS = 0.9, 0.999, 1e-8  # of Adam, in all libraries


@dataclass(frozen=True)
class Problem:
    name: str
    settings: Sizes
    start: Mapping[str, Array]
    data: Arrays
    rows: Array  # [epoch, step, example]
    seed: int = 0

    @property
    def twin(self) -> Twin:
        return BY_NAME[self.name]

    @property
    def steps(self) -> int:
        """Of an epoch."""
        return int(self.rows.shape[1])

    def batch(self, data: Mapping[str, Any], rows: Any) -> Arrays:
        return self.twin.batch(self.settings, data, rows)

    def widened(self) -> Problem:
        """The same numbers in float64."""
        return replace(self, start=_wide(self.start), data=_wide(self.data))


def problem(twin: Twin, case: Case, dtype: Any, epochs: int, seed: int = 0) -> Problem:
    """As ts.fit would train it: its first parameters, and its order of examples. Full batches only."""
    from tensorswap import models
    from tensorswap.training.shuffle import shuffled

    data = twin.data(case, dtype)
    start = models.get(twin.name).initial(data, seed, dtype, **case.settings)
    count = len(data[twin.examples[0]])
    if count % case.batch:
        raise ValueError(f"{count} examples are no whole number of batches of {case.batch}")
    orders = [shuffled(np.arange(count), count, seed, epoch) for epoch in range(epochs)]
    return Problem(twin.name, case.settings, start, data, np.stack(orders).reshape(epochs, -1, case.batch), seed)


def _wide(arrays: Mapping[str, Any]) -> Arrays:
    return {name: array.astype(np.float64) if array.dtype.kind == "f" else array for name, array in arrays.items()}
