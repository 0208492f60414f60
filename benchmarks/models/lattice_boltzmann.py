"""Lattice Boltzmann in two dimensions with nine velocities on a periodic grid: collide, stream, step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.workload import Arrays, Sizes, Workload, normal

TEXT = """
size(t) = steps
F[0,q,y,x] = F0[q,y,x]
for t:
    rho[t,y,x] += F[t,q,y,x]
    u[t,a,y,x] += C[q,a] * F[t,q,y,x] / rho[t,y,x]
    s[t,y,x] += u[t,a,y,x] ** 2
    p[t,q,y,x] += C[q,a] * u[t,a,y,x]
    E[t,q,y,x] = w[q] * rho[t,y,x] * (1 + 3 * p[t,q,y,x] + 4.5 * p[t,q,y,x] ** 2 - 1.5 * s[t,y,x])
    N[t,q,y,x] = F[t,q,y,x] + omega * (E[t,q,y,x] - F[t,q,y,x])
    F[t+1,q,y,x] = N[t,q,(y-shift[q,0])%size(y),(x-shift[q,1])%size(x)]
loss += (F[size(t),q,y,x] - target[q,y,x]) ** 2
"""

SHIFTS = ((0, 0), (0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, -1), (-1, 1))


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    n = sizes["grid"]
    w = np.array([4 / 9] + 4 * [1 / 9] + 4 * [1 / 36]).astype(dtype)
    return {
        "F0": w[:, None, None] * (1 + normal(generator, dtype, 9, n, n, scale=0.05)),
        "omega": np.asarray(1.2, dtype),
        "w": w,
        "C": np.array(SHIFTS).astype(dtype),
        "shift": np.array(SHIFTS),
        "target": w[:, None, None] * (1 + normal(generator, dtype, 9, n, n, scale=0.05)),
        "steps": sizes["steps"],
    }


def jax_value(jax: Any, F0: Any, omega: Any, w: Any, C: Any, shift: Any, target: Any, steps: int) -> Any:
    """The shifts are known when it is compiled, which is faster than those of an array."""
    jnp = jax.numpy

    def step(F: Any, _: Any) -> Any:
        rho = F.sum(axis=0)
        u = jnp.einsum("qa,qyx->ayx", C, F) / rho
        p = jnp.einsum("qa,ayx->qyx", C, u)
        E = w[:, None, None] * rho * (1 + 3 * p + 4.5 * p**2 - 1.5 * (u * u).sum(axis=0))
        N = F + omega * (E - F)
        return jnp.stack([jnp.roll(N[q], by, axis=(0, 1)) for q, by in enumerate(SHIFTS)]), None

    F, _ = jax.lax.scan(step, F0, length=steps)
    return ((F - target) ** 2).sum()


WORKLOAD = Workload(
    name="lattice_boltzmann",
    title="lattice Boltzmann, 64 x 64, 50 steps",
    kind="model",
    text=TEXT,
    wrt=("F0", "omega"),
    sizes={"grid": 64, "steps": 50},
    quick={"grid": 4, "steps": 3},
    make_arrays=make_arrays,
    jax_value=jax_value,
    terms=lambda sizes: sizes["grid"] ** 2 * sizes["steps"],
)
