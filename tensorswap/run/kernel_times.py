"""Kernel times: each kernel of a call on its own, again and again, on the arrays that the whole call has."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from ..arrays import Array
from ..plan.table import Row, row
from .execute import Executable
from .frame import Frame
from .rows import Entry
from .words import ready

ROUNDS = 5  # at least, so that a median means something


@dataclass(frozen=True)
class KernelTime:
    """One kernel: what it computes and how, the median of its seconds, and on how many threads."""

    row: Row
    seconds: float
    threads: int


def kernel_times(made: Executable, arguments: Mapping[str, Any], seconds: float) -> list[KernelTime]:
    """The kernels in their order. Each round runs all of them, so that each finds the caches as in a call."""
    inputs = [np.array(arguments[name], dtype, order="C") for name, dtype in made.inputs]
    run = ready(made)
    table = run.table
    alone = table.copy()
    alone[:, Entry.BACK] = 0  # of a block, the first step
    frames = [
        Frame(alone[k : k + 1].copy(), run.words, run.links, run.memory_slot + 1, made.work) for k in range(len(table))
    ]
    times: list[list[float]] = [[] for _ in frames]

    def one_by_one(arrays: list[Array]) -> bool:
        for frame, found in zip(frames, times, strict=True):
            start = time.perf_counter()
            frame(arrays)
            found.append(time.perf_counter() - start)
        return True

    end = time.perf_counter() + seconds
    rounds = 0
    while rounds < ROUNDS or time.perf_counter() < end:
        run.complete(list(inputs), one_by_one)
        rounds += 1
    return [
        KernelTime(
            row(kernel.nest, made.sizes, made.default.itemsize),
            median(found) * int(entry[Entry.TIMES]),
            int(entry[Entry.THREADS]),
        )
        for kernel, found, entry in zip((made.kernels[k] for k in made.used), times, table, strict=True)
    ]
