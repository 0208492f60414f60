"""Dask chunks: an output that stays on the workers, as an array of Dask's whose chunks are the parts of shards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .task_operands import Joined, Made, Operand


def dask_array(operand: Operand, chunk: Callable[[Made], Any]) -> Any:
    """`chunk` gives a future of each part."""
    import dask.array

    if isinstance(operand, Joined):
        return dask.array.concatenate([dask_array(part, chunk) for part in operand.parts], axis=operand.axis)
    assert isinstance(operand, Made), "an output is made by tasks"
    meta = np.empty((0,) * len(operand.shape), operand.dtype)
    return dask.array.from_delayed(chunk(operand), operand.shape, operand.dtype, meta=meta)
