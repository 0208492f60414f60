"""The colours of rays through a radiance field: each sample is seen through the density before it, as in NeRF."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.workload import Arrays, Sizes, Workload, normal

TEXT = """
T[r,s] = softplus(density[r,s]) * step[r,s]
for s:
    A[r,s] = A[r,s-1] + T[r,s-1] if s > 0
w[r,s] = exp(-A[r,s]) * (1 - exp(-T[r,s]))
pixel[r,c] += w[r,s] * sigmoid(colour[r,s,c])
loss += (pixel[r,c] - target[r,c]) ** 2
"""


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    r, s = sizes["rays"], sizes["samples"]
    return {
        "density": normal(generator, dtype, r, s),
        "colour": normal(generator, dtype, r, s, 3),
        "step": (normal(generator, dtype, r, s) ** 2) / s,
        "target": normal(generator, dtype, r, 3) ** 2,
    }


def jax_value(jax: Any, density: Any, colour: Any, step: Any, target: Any) -> Any:
    jnp = jax.numpy
    T = jax.nn.softplus(density) * step
    A = jnp.cumsum(T, axis=1) - T
    w = jnp.exp(-A) * (1 - jnp.exp(-T))
    pixel = jnp.einsum("rs,rsc->rc", w, jax.nn.sigmoid(colour))
    return ((pixel - target) ** 2).sum()


WORKLOAD = Workload(
    name="volume_rendering",
    title="NeRF volume rendering, 1024 rays, 64 samples",
    kind="model",
    text=TEXT,
    wrt=("density", "colour"),
    sizes={"rays": 1024, "samples": 64},
    quick={"rays": 3, "samples": 6},
    make_arrays=make_arrays,
    jax_value=jax_value,
    terms=lambda sizes: sizes["rays"] * sizes["samples"],
)
