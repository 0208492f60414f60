"""The entropic transport cost between two clouds of points, by Sinkhorn's iteration."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.workload import Arrays, Sizes, Workload, normal

TEXT = """
size(l) = steps
C[i,j] += (X[i,d] - Y[j,d]) ** 2
K[i,j] = exp(-C[i,j] / epsilon)
for l:
    r[l,i] += K[i,j] * (v[l-1,j] if l > 0 else 1)
    u[l,i] = a[i] / r[l,i]
    c[l,j] += K[i,j] * u[l,i]
    v[l,j] = b[j] / c[l,j]
loss += u[size(l)-1,i] * K[i,j] * v[size(l)-1,j] * C[i,j]
"""


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    n, m, d = (sizes[name] for name in ("first", "second", "width"))
    return {
        "X": normal(generator, dtype, n, d, scale=0.5),
        "Y": normal(generator, dtype, m, d, scale=0.5),
        "a": np.full(n, 1 / n, dtype),
        "b": np.full(m, 1 / m, dtype),
        "epsilon": 0.5,
        "steps": sizes["steps"],
    }


def jax_value(jax: Any, X: Any, Y: Any, a: Any, b: Any, epsilon: float, steps: int) -> Any:
    jnp = jax.numpy
    C = ((X[:, None, :] - Y[None, :, :]) ** 2).sum(axis=2)
    K = jnp.exp(-C / epsilon)

    def step(state: Any, _: Any) -> Any:
        u = a / (K @ state[1])
        return (u, b / (u @ K)), None

    (u, v), _ = jax.lax.scan(step, (a, jnp.ones_like(b)), length=steps)
    return (u[:, None] * K * v * C).sum()


WORKLOAD = Workload(
    name="sinkhorn",
    title="Sinkhorn, 200 x 200 points, 50 steps",
    kind="model",
    text=TEXT,
    wrt=("X", "Y", "a", "b"),
    sizes={"first": 200, "second": 200, "width": 2, "steps": 50},
    quick={"first": 4, "second": 5, "width": 2, "steps": 4},
    make_arrays=make_arrays,
    jax_value=jax_value,
    terms=lambda sizes: sizes["first"] * sizes["second"] * sizes["steps"],
)
