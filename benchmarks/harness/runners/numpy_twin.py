"""numpy: forward and backward passes written by hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..workload import Arrays, Results, Workload
from .base import split, written


class NumpyTwin:
    def __init__(self, name: str, threads: int) -> None:
        self.versions = {"numpy": np.__version__}
        self.eager = True

    def prepare(self, workload: Workload, arrays: Arrays, dtype: str) -> Callable[[], Results]:
        twin = written(workload.numpy_twin)
        inputs = split(workload, arrays)
        named = {**inputs.parameters, **inputs.data, **inputs.numbers}
        if workload.seed:
            named["seed"] = inputs.seed

        def gradient() -> Results:
            return twin(**named)

        def step() -> Results:
            found = twin(**named)
            new = {name: old - workload.rate * found[f"{name}.grad"] for name, old in inputs.parameters.items()}
            return {workload.output: found[workload.output], **new}

        return step if workload.update else gradient

    def results(self, raw: Results) -> Results:
        return {name: np.asarray(value) for name, value in raw.items()}


make = NumpyTwin
