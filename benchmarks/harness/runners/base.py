"""What every runner does, and how the inputs of a workload fall apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..workload import Arrays, Results, Workload


class Runner(Protocol):
    """Lives in a worker. `prepare` gives the call that is timed; `results` turns what it gave into numpy arrays."""

    versions: dict[str, str]
    eager: bool  # whether the same code runs for all sizes

    def prepare(self, workload: Workload, arrays: Arrays, dtype: str) -> Callable[[], Any]: ...

    def results(self, raw: Any) -> Results: ...


class NotApplicable(Exception):
    """The peer has no way to write this workload."""


@dataclass(frozen=True)
class Inputs:
    """The inputs of a workload by the part that they play."""

    parameters: Arrays  # those that get a gradient
    data: Arrays  # the other arrays
    numbers: Arrays  # constants
    seed: Any  # the gradient of the output, or None


def written(function: Callable[..., Any] | None) -> Callable[..., Any]:
    """The function that a workload has for this peer."""
    if function is None:
        raise NotApplicable("it is not written for this peer")
    return function


def split(workload: Workload, arrays: Arrays) -> Inputs:
    numbers = {name: value for name, value in arrays.items() if not isinstance(value, np.ndarray)}
    special = {*numbers, *workload.wrt, workload.seed}
    return Inputs(
        parameters={name: arrays[name] for name in workload.wrt},
        data={name: value for name, value in arrays.items() if name not in special},
        numbers=numbers,
        seed=arrays.get(workload.seed),
    )
