"""The log posterior of a Gaussian mixture with full covariances and a Wishart prior.

The factor of each inverse covariance has exp(q) on its diagonal and `low` below it, packed column after column.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from harness.workload import Arrays, Sizes

from .problem import Function, rows

TEXT = """
Q[k,i,j] = exp(q[k,i]) if i == j else low[k,place[i,j]] if j <= i
centre[k,i] += Q[k,i,j] * mu[k,j]
R[n,k,i] += Q[k,i,j] * x[n,j]
F[n,k] += alpha[k]
F[n,k] += q[k,i]
F[n,k] -= 0.5 * (R[n,k,i] - centre[k,i]) ** 2
M[n] max= F[n,k]
Z[n] += exp(F[n,k] - stop(M[n]))
loss += log(Z[n]) + stop(M[n])
top max= alpha[k]
total += exp(alpha[k] - stop(top))
loss -= size(n) * (log(total) + stop(top))
loss -= 0.5 * gamma ** 2 * exp(2 * q[k,i])
loss -= 0.5 * gamma ** 2 * low[k,e] ** 2
loss += m * q[k,i]
loss += constant
"""


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    d, k, n = sizes["d"], sizes["k"], 7 if sizes["d"] < 4 and sizes["k"] < 4 else 1000
    gamma, m = 1.0, 0.0
    below = np.zeros((d, d), np.int64)  # the diagonal and what is above it are not read
    columns, under = np.triu_indices(d, 1)
    below[under, columns] = np.arange(len(columns))
    return {
        "alpha": generator.standard_normal(k).astype(dtype),
        "mu": generator.uniform(size=(k, d)).astype(dtype),
        "q": generator.standard_normal((k, d)).astype(dtype),
        "low": generator.standard_normal((k, d * (d - 1) // 2)).astype(dtype),
        "x": generator.standard_normal((n, d)).astype(dtype),
        "place": below,
        "gamma": gamma,
        "m": m,
        "constant": constant(n, d, k, gamma, m),
    }


def constant(n: int, d: int, k: int, gamma: float, m: float) -> float:
    """What does not depend on the parameters: of the Gaussians, and of the prior of each component."""
    freedom = d + m + 1
    gammas = sum(math.lgamma(0.5 * (freedom - i)) for i in range(d)) + 0.25 * d * (d - 1) * math.log(math.pi)
    prior = freedom * d * (math.log(gamma) - 0.5 * math.log(2)) - gammas
    return -0.5 * n * d * math.log(2 * math.pi) + k * prior


def jax_value(
    jax: Any, alpha: Any, mu: Any, q: Any, low: Any, x: Any, place: Any, gamma: float, m: float, constant: float
) -> Any:
    jnp, logsumexp = jax.numpy, jax.scipy.special.logsumexp
    n, d = x.shape
    Q = jnp.tril(low[:, place] if d > 1 else 0, -1) + jnp.exp(q)[:, :, None] * jnp.eye(d, dtype=x.dtype)
    R = (x @ Q.reshape(-1, d).T).reshape(n, *q.shape) - (Q @ mu[:, :, None])[:, :, 0]
    F = alpha + q.sum(axis=1) - 0.5 * (R * R).sum(axis=2)
    likelihood = logsumexp(F, axis=1).sum() - n * logsumexp(alpha)
    prior = m * q.sum() - 0.5 * gamma**2 * (jnp.exp(2 * q).sum() + (low**2).sum())
    return likelihood + prior + constant


def torch_value(
    torch: Any, alpha: Any, mu: Any, q: Any, low: Any, x: Any, place: Any, gamma: float, m: float, constant: float
) -> Any:
    n, d = x.shape
    Q = low[:, place].tril(-1) + torch.diag_embed(q.exp())
    R = (x @ Q.reshape(-1, d).T).reshape(n, *q.shape) - (Q @ mu[:, :, None])[:, :, 0]
    F = alpha + q.sum(dim=1) - 0.5 * (R * R).sum(dim=2)
    likelihood = F.logsumexp(dim=1).sum() - n * alpha.logsumexp(dim=0)
    prior = m * q.sum() - 0.5 * gamma**2 * ((2 * q).exp().sum() + (low**2).sum())
    return likelihood + prior + constant


PARAMETERS = ("alpha", "mu", "q", "low")

WORKLOADS = rows(
    "gmm",
    [
        Function("objective", TEXT, lambda arrays: {"loss": ()}, jax_value, torch_value),
        Function(
            "jacobian",
            TEXT,
            lambda arrays: {"loss": (), **{f"{name}.grad": arrays[name].shape for name in PARAMETERS}},
            jax_value,
            torch_value,
            wrt=PARAMETERS,
        ),
    ],
    sizes=[{"d": 10, "k": 25}, {"d": 32, "k": 50}],
    quick={"d": 3, "k": 2},
    make_arrays=make_arrays,
    c_sizes=lambda arrays: (*arrays["x"].shape, len(arrays["alpha"])),
    terms=lambda sizes: 1000 * sizes["d"] ** 2,
)
