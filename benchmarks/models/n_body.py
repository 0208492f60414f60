"""Bodies that attract each other, moved by leapfrog steps, and how far from their targets they end."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.workload import Arrays, Sizes, Workload, normal

TEXT = """
size(t) = steps
X[0,i,x] = X0[i,x]
V[0,i,x] = V0[i,x]
for t:
    R[t,i,j] += (X[t,i,x] - X[t,j,x]) ** 2
    A[t,i,x] += mass[j] * (X[t,j,x] - X[t,i,x]) / (R[t,i,j] + 0.01) ** 1.5
    V[t+1,i,x] = V[t,i,x] + rate * A[t,i,x]
    X[t+1,i,x] = X[t,i,x] + rate * V[t+1,i,x]
loss += (X[size(t),i,x] - target[i,x]) ** 2
"""


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    n = sizes["bodies"]
    return {
        "X0": normal(generator, dtype, n, 3),
        "V0": normal(generator, dtype, n, 3, scale=0.3),
        "mass": normal(generator, dtype, n) ** 2 / n,
        "target": normal(generator, dtype, n, 3),
        "rate": 0.002,
        "steps": sizes["steps"],
    }


def jax_value(jax: Any, X0: Any, V0: Any, mass: Any, target: Any, rate: float, steps: int) -> Any:
    def step(state: Any, _: Any) -> Any:
        X, V = state
        D = X[None, :, :] - X[:, None, :]
        weight = mass * ((D * D).sum(axis=2) + 0.01) ** -1.5
        V = V + rate * (weight[:, :, None] * D).sum(axis=1)
        return (X + rate * V, V), None

    (X, _), _ = jax.lax.scan(step, (X0, V0), length=steps)
    return ((X - target) ** 2).sum()


WORKLOAD = Workload(
    name="n_body",
    title="48 bodies, 100 steps",
    kind="model",
    text=TEXT,
    wrt=("X0", "V0", "mass"),
    sizes={"bodies": 48, "steps": 100},
    quick={"bodies": 5, "steps": 4},
    make_arrays=make_arrays,
    jax_value=jax_value,
    terms=lambda sizes: sizes["bodies"] * sizes["steps"],
)
