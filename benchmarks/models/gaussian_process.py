"""The marginal likelihood of a Gaussian process, with its Cholesky factor written as loops."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.workload import Arrays, Sizes, Workload, normal

TEXT = """
D[i,j] += ((X[i,d] - X[j,d]) / exp(scale[d])) ** 2
K[i,j] = exp(2 * height - 0.5 * D[i,j]) + (exp(2 * noise) if i == j else 0)
for k:
    C[i,k] += K[i,k] if i >= k
    C[i,k] -= L[i,l] * L[k,l] if l < k and i >= k
    L[i,k] = C[i,k] / sqrt(C[k,k]) if i >= k
for k:
    r[k] += y[k]
    r[k] -= L[k,l] * z[l] if l < k
    z[k] = r[k] / L[k,k]
loss += 0.5 * z[k] ** 2 + log(L[k,k])
"""


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    n, d = sizes["points"], sizes["width"]
    return {
        "X": normal(generator, dtype, n, d),
        "y": normal(generator, dtype, n),
        "scale": normal(generator, dtype, d, scale=0.2),
        "height": np.asarray(0.1, dtype),
        "noise": np.asarray(-0.7, dtype),
    }


def jax_value(jax: Any, X: Any, y: Any, scale: Any, height: Any, noise: Any) -> Any:
    jnp = jax.numpy
    Z = X / jnp.exp(scale)
    D = ((Z[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2)
    K = jnp.exp(2 * height - 0.5 * D) + jnp.exp(2 * noise) * jnp.eye(len(X), dtype=X.dtype)
    L = jax.lax.linalg.cholesky(K, symmetrize_input=False)
    z = jax.scipy.linalg.solve_triangular(L, y, lower=True)
    return 0.5 * z @ z + jnp.log(jnp.diag(L)).sum()


WORKLOAD = Workload(
    name="gaussian_process",
    title="Gaussian process, 200 points, 4 wide",
    kind="model",
    text=TEXT,
    wrt=("X", "y", "scale", "height", "noise"),
    sizes={"points": 200, "width": 4},
    quick={"points": 6, "width": 2},
    make_arrays=make_arrays,
    jax_value=jax_value,
    terms=lambda sizes: sizes["points"] ** 3,
)
