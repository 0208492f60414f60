"""A polynomial fitted to the sign of its argument: half the sum of squared residuals at n points of [-1, 1]."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.workload import Arrays, Sizes

from .problem import Function, rows

TEXT = """
size(i) = points
t[i] = -1 + 2 * i / (points - 1)
for j down:
    value[j,i] = x[j] + t[i] * (value[j+1,i] if j < size(j) - 1 else 0)
loss += 0.5 * (sign(t[i]) - value[0,i]) ** 2
return loss
"""


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    return {"x": generator.uniform(size=sizes["m"]).astype(dtype), "points": sizes["n"]}


def jax_value(jax: Any, x: Any, points: int) -> Any:
    jnp = jax.numpy
    t = -1 + 2 * jnp.arange(points, dtype=x.dtype) / (points - 1)
    factors = jnp.broadcast_to(t[:, None], (points, len(x))).at[:, 0].set(1)
    value = jnp.cumprod(factors, axis=1) @ x
    return 0.5 * ((jnp.sign(t) - value) ** 2).sum()


def torch_value(torch: Any, x: Any, points: int) -> Any:
    t = -1 + 2 * torch.arange(points, dtype=x.dtype) / (points - 1)
    value = torch.vander(t, len(x), increasing=True) @ x
    return 0.5 * ((t.sign() - value) ** 2).sum()


WORKLOADS = rows(
    "llsq",
    [
        Function("primal", TEXT, lambda arrays: {"loss": ()}, jax_value, torch_value),
        Function(
            "gradient",
            TEXT,
            lambda arrays: {"loss": (), "x.grad": arrays["x"].shape},
            jax_value,
            torch_value,
            wrt=("x",),
        ),
    ],
    sizes=[{"n": 128, "m": 128}, {"n": 4096, "m": 128}],
    quick={"n": 6, "m": 4},
    make_arrays=make_arrays,
    c_sizes=lambda arrays: arrays["x"].shape,
    terms=lambda sizes: sizes["n"] * sizes["m"],
)
