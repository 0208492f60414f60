"""jax: value and gradient in one jitted function, inputs already on the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from ..workload import Arrays, Results, Workload
from .base import split


class JaxJit:
    def __init__(self, name: str, threads: int) -> None:
        self.versions = {"jax": jax.__version__, "numpy": np.__version__}
        self.eager = False

    def prepare(self, workload: Workload, arrays: Arrays, dtype: str) -> Callable[[], Any]:
        jax.config.update("jax_enable_x64", dtype == "float64")
        inputs = split(workload, arrays)
        # all arrays are arguments: as constants of the compiled function they could be computed with beforehand
        parameters, data, seed = jax.device_put((inputs.parameters, inputs.data, inputs.seed))

        def value(parameters: Arrays, data: Arrays) -> Any:
            return workload.jax_value(jax, **parameters, **data, **inputs.numbers)

        compiled = jax.jit(step(workload, value))
        return lambda: jax.block_until_ready(compiled(parameters, data, seed))

    def results(self, raw: Arrays) -> Results:
        return {name: np.asarray(value) for name, value in raw.items()}


def step(workload: Workload, value: Callable[[Arrays, Arrays], Any]) -> Callable[[Arrays, Arrays, Any], Arrays]:
    """The function that is compiled: everything that one timed call does."""

    def forward(parameters: Arrays, data: Arrays, seed: Any) -> Arrays:
        return {workload.output: value(parameters, data)}

    def gradient(parameters: Arrays, data: Arrays, seed: Any) -> Arrays:
        if workload.seed:
            found, pull = jax.vjp(lambda at: value(at, data), parameters)
            gradients = pull(seed)[0]
        else:
            found, gradients = jax.value_and_grad(value)(parameters, data)
        return {workload.output: found, **{f"{name}.grad": gradients[name] for name in workload.wrt}}

    def update(parameters: Arrays, data: Arrays, seed: Any) -> Arrays:
        found = gradient(parameters, data, seed)
        new = {name: old - workload.rate * found[f"{name}.grad"] for name, old in parameters.items()}
        return {workload.output: found[workload.output], **new}

    def several(parameters: Arrays, data: Arrays, seed: Any) -> Arrays:
        found: Arrays = value(parameters, data)
        return found

    if workload.outputs:
        return several
    if not workload.wrt:
        return forward
    return update if workload.update else gradient


make = JaxJit
