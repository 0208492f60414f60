"""A network that solves Poisson's equation: its Laplacian is given inside, its value on the edge."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.workload import Arrays, Sizes, Workload, normal

# one and two behind a name: the first and the second derivative of that layer along axis d
TEXT = """
A[n,h] += W1[h,d] * X[n,d]
Y[n,h] = tanh(A[n,h] + b1[h])
Y1[n,d,h] = (1 - Y[n,h] ** 2) * W1[h,d]
Y2[n,d,h] = -2 * Y[n,h] * Y1[n,d,h] * W1[h,d]
B[n,k] += W2[k,h] * Y[n,h]
B1[n,d,k] += W2[k,h] * Y1[n,d,h]
B2[n,d,k] += W2[k,h] * Y2[n,d,h]
Z[n,k] = tanh(B[n,k] + b2[k])
u[n] += W3[k] * Z[n,k]
laplacian[n] += W3[k] * (1 - Z[n,k] ** 2) * (B2[n,d,k] - 2 * Z[n,k] * B1[n,d,k] ** 2)
loss += (laplacian[n] - f[n]) ** 2 if inner[n]
loss += (u[n] - f[n]) ** 2 if not inner[n]
"""


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    n, h = sizes["points"], sizes["hidden"]
    return {
        "X": normal(generator, dtype, n, 2),
        "f": normal(generator, dtype, n),
        "inner": generator.uniform(size=n) < 0.8,
        "W1": normal(generator, dtype, h, 2),
        "b1": normal(generator, dtype, h),
        "W2": normal(generator, dtype, h, h, scale=h**-0.5),
        "b2": normal(generator, dtype, h),
        "W3": normal(generator, dtype, h, scale=h**-0.5),
    }


def jax_value(jax: Any, X: Any, f: Any, inner: Any, W1: Any, b1: Any, W2: Any, b2: Any, W3: Any) -> Any:
    jnp = jax.numpy

    def u(x: Any) -> Any:
        return W3 @ jnp.tanh(W2 @ jnp.tanh(W1 @ x + b1) + b2)

    laplacian = jax.vmap(lambda x: jnp.trace(jax.hessian(u)(x)))(X)
    return ((jnp.where(inner, laplacian, jax.vmap(u)(X)) - f) ** 2).sum()


WORKLOAD = Workload(
    name="physics_informed",
    title="physics-informed network, 512 points, 32 wide",
    kind="model",
    text=TEXT,
    wrt=("W1", "b1", "W2", "b2", "W3"),
    sizes={"points": 512, "hidden": 32},
    quick={"points": 5, "hidden": 4},
    make_arrays=make_arrays,
    jax_value=jax_value,
    terms=lambda sizes: sizes["points"] * sizes["hidden"],
)
