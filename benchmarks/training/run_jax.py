"""JAX: one jitted step, called for every batch. Data and parameters stay on the device."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from .problem import BETA1, BETA2, EPS, Problem
from .twin import Arrays

VERSIONS = {"jax": jax.__version__, "numpy": np.__version__}


class Training:
    def __init__(self, problem: Problem) -> None:
        wide = next(iter(problem.start.values())).dtype == np.float64
        jax.config.update("jax_enable_x64", wide)
        self.problem = problem
        self.params = jax.device_put(dict(problem.start))
        self.data = jax.device_put(problem.data)
        zeros = jax.tree.map(jax.numpy.zeros_like, self.params)
        self.state = (jax.numpy.zeros(()), zeros, jax.tree.map(jax.numpy.zeros_like, self.params))
        self.rows = problem.rows.astype(np.int64 if wide else np.int32)
        self.step = jax.jit(self.one, donate_argnums=(0, 1))

    def one(self, params: Arrays, state: Any, data: Arrays, rows: Any) -> tuple[Arrays, Any, Any]:
        twin = self.problem.twin

        def value(params: Arrays) -> Any:
            return twin.jax_loss(jax, params, self.problem.batch(data, rows))

        loss, grads = jax.value_and_grad(value)(params)
        if twin.optimizer == "sgd":
            return jax.tree.map(lambda p, g: p - twin.lr * g, params, grads), state, loss
        count, m, v = state
        count = count + 1
        m = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, m, grads)
        v = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, v, grads)
        rate = twin.lr / (1 - BETA1**count)
        root = jax.numpy.sqrt(1 - BETA2**count)
        params = jax.tree.map(
            lambda p, m, v: p - (rate * m / (jax.numpy.sqrt(v) / root + EPS)).astype(p.dtype), params, m, v
        )
        return params, (count, m, v), loss

    def epoch(self, number: int) -> list[float]:
        losses = []
        for rows in self.rows[number]:
            self.params, self.state, loss = self.step(self.params, self.state, self.data, rows)
            losses.append(loss)
        return [float(loss) for loss in losses]


def prepare(problem: Problem, threads: int) -> Training:
    return Training(problem)
