"""A chain of differential equations, y_0' = x_0 and y_i' = x_i y_(i-1), from 0 to 2 in steps of Runge and Kutta."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.workload import Arrays, Sizes

from .problem import Function, rows

STEPS = """
steps: int
size(t) = steps
h = 2 / steps
Y[0,i] = 0
for t:
    a[t,i] = x[i] * (Y[t,i-1] if i > 0 else 1)
    b[t,i] = x[i] * (Y[t,i-1] + h / 2 * a[t,i-1] if i > 0 else 1)
    c[t,i] = x[i] * (Y[t,i-1] + h / 2 * b[t,i-1] if i > 0 else 1)
    d[t,i] = x[i] * (Y[t,i-1] + h * c[t,i-1] if i > 0 else 1)
    Y[t+1,i] = Y[t,i] + h / 6 * (a[t,i] + 2 * b[t,i] + 2 * c[t,i] + d[t,i])
"""
PRIMAL = f"{STEPS}y[i] = Y[steps,i]\nreturn y\n"
LAST = f"{STEPS}loss = Y[steps,size(i)-1]\nreturn loss\n"


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    return {"x": generator.uniform(size=sizes["n"]).astype(dtype), "steps": sizes["s"]}


def jax_primal(jax: Any, x: Any, steps: int) -> Any:
    jnp = jax.numpy
    h = 2 / steps

    def slope(y: Any) -> Any:
        return x * jnp.concatenate([jnp.ones(1, x.dtype), y[:-1]])

    def step(y: Any, _: Any) -> Any:
        a = slope(y)
        b = slope(y + h / 2 * a)
        c = slope(y + h / 2 * b)
        d = slope(y + h * c)
        return y + h / 6 * (a + 2 * b + 2 * c + d), None

    return jax.lax.scan(step, jnp.zeros_like(x), None, length=steps)[0]


def torch_primal(torch: Any, x: Any, steps: int) -> Any:
    h = 2 / steps
    one, y = torch.ones(1, dtype=x.dtype), torch.zeros_like(x)

    def slope(y: Any) -> Any:
        return x * torch.cat([one, y[:-1]])

    for _ in range(steps):
        a = slope(y)
        b = slope(y + h / 2 * a)
        c = slope(y + h / 2 * b)
        d = slope(y + h * c)
        y = y + h / 6 * (a + 2 * b + 2 * c + d)
    return y


WORKLOADS = rows(
    "ode",
    [
        Function("primal", PRIMAL, lambda arrays: {"y": arrays["x"].shape}, jax_primal, torch_primal, output="y"),
        Function(
            "gradient",
            LAST,
            lambda arrays: {"loss": (), "x.grad": arrays["x"].shape},
            lambda jax, **inputs: jax_primal(jax, **inputs)[-1],
            lambda torch, **inputs: torch_primal(torch, **inputs)[-1],
            wrt=("x",),
        ),
    ],
    sizes=[{"n": 1000, "s": 10}, {"n": 10_000, "s": 100}],
    quick={"n": 5, "s": 3},
    make_arrays=make_arrays,
    c_sizes=lambda arrays: (*arrays["x"].shape, arrays["steps"]),
    terms=lambda sizes: sizes["s"] * sizes["n"],
)
