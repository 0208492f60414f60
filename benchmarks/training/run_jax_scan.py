"""JAX: all steps of an epoch in one call, inside lax.scan."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from . import run_jax
from .problem import Problem
from .twin import Arrays

VERSIONS = run_jax.VERSIONS


class Training(run_jax.Training):
    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)

        def steps(params: Arrays, state: Any, data: Arrays, rows: Any) -> Any:
            def body(carry: Any, rows: Any) -> Any:
                params, state, loss = self.one(*carry, data, rows)
                return (params, state), loss

            return jax.lax.scan(body, (params, state), rows)

        self.steps = jax.jit(steps, donate_argnums=(0, 1))

    def epoch(self, number: int) -> list[float]:
        (self.params, self.state), losses = self.steps(self.params, self.state, self.data, self.rows[number])
        return [float(loss) for loss in np.asarray(losses)]


def prepare(problem: Problem, threads: int) -> Training:
    return Training(problem)
