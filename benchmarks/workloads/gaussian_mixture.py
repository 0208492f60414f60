"""The likelihood of a Gaussian mixture with full covariances and a Wishart prior, as in ADBench, up to constants.

The factor of each inverse covariance has exp(q) on its diagonal and L below it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.cost import Cost
from harness.workload import Array, Arrays, Results, Sizes, Workload, normal

from .numpy_parts import softmax_in_place

TEXT = """
Q[k,i,j] = exp(q[k,i]) if i == j else L[k,i,j] if j <= i
centre[k,i] += Q[k,i,j] * mean[k,j] if j <= i
R[n,k,i] += Q[k,i,j] * X[n,j] if j <= i
F[n,k] += alpha[k]
F[n,k] += q[k,i]
F[n,k] -= 0.5 * (R[n,k,i] - centre[k,i]) ** 2
M[n] max= F[n,k]
Z[n] += exp(F[n,k] - stop(M[n]))
loss += log(Z[n]) + stop(M[n])
top max= alpha[k]
total += exp(alpha[k] - stop(top))
loss -= size(n) * (log(total) + stop(top))
loss += 0.5 * gamma ** 2 * exp(2 * q[k,i])
loss += 0.5 * gamma ** 2 * L[k,i,j] ** 2 if j < i
loss -= m * q[k,i]
"""


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    n, k, d = sizes["points"], sizes["components"], sizes["width"]
    return {
        "X": normal(generator, dtype, n, d),
        "alpha": normal(generator, dtype, k),
        "mean": normal(generator, dtype, k, d, scale=0.3),
        "q": normal(generator, dtype, k, d, scale=0.1),
        "L": normal(generator, dtype, k, d, d, scale=0.1),
        "gamma": 1.0,
        "m": 1.0,
    }


def numpy_twin(X: Array, alpha: Array, mean: Array, q: Array, L: Array, gamma: float, m: float) -> Results:
    n, d = X.shape
    k = len(alpha)
    diagonal = np.arange(d)
    exponentials = np.exp(q)
    strict = np.tril(L, -1)
    Q = strict.copy()
    Q[:, diagonal, diagonal] = exponentials
    R = (X @ Q.reshape(k * d, d).T).reshape(n, k, d)
    R -= (Q @ mean[:, :, None])[:, :, 0]
    F = np.square(R).sum(axis=2)
    F *= -0.5
    F += alpha + q.sum(axis=1)
    top = F.max(axis=1)
    likelihood = np.sum(top + np.log(np.exp(F - top[:, None]).sum(axis=1)))
    weights = np.exp(alpha - alpha.max())
    likelihood -= n * (np.log(weights.sum()) + alpha.max())
    prior = 0.5 * gamma**2 * (np.square(exponentials).sum() + np.square(strict).sum()) - m * q.sum()

    F_grad = softmax_in_place(F)
    alpha_grad = F_grad.sum(axis=0)
    q_grad = alpha_grad[:, None] + gamma**2 * np.square(exponentials) - m
    R *= -F_grad[:, :, None]
    centre_grad = -R.sum(axis=0)
    Q_grad = (R.reshape(n, k * d).T @ X).reshape(k, d, d)
    Q_grad += centre_grad[:, :, None] * mean[:, None, :]
    q_grad += Q_grad[:, diagonal, diagonal] * exponentials
    return {
        "loss": likelihood + prior,
        "alpha.grad": alpha_grad - n * weights / weights.sum(),
        "mean.grad": (Q.transpose(0, 2, 1) @ centre_grad[:, :, None])[:, :, 0],
        "q.grad": q_grad,
        "L.grad": np.tril(Q_grad, -1) + gamma**2 * strict,
    }


def jax_value(jax: Any, X: Any, alpha: Any, mean: Any, q: Any, L: Any, gamma: float, m: float) -> Any:
    jnp, logsumexp = jax.numpy, jax.scipy.special.logsumexp
    n, d = X.shape
    strict = jnp.tril(L, -1)
    exponentials = jnp.exp(q)
    Q = strict + exponentials[:, :, None] * jnp.eye(d, dtype=X.dtype)
    R = (X @ Q.reshape(-1, d).T).reshape(n, *q.shape) - (Q @ mean[:, :, None])[:, :, 0]
    F = alpha + q.sum(axis=1) - 0.5 * (R * R).sum(axis=2)
    likelihood = logsumexp(F, axis=1).sum() - n * logsumexp(alpha)
    prior = 0.5 * gamma**2 * ((exponentials**2).sum() + (strict**2).sum()) - m * q.sum()
    return likelihood + prior


def torch_value(torch: Any, X: Any, alpha: Any, mean: Any, q: Any, L: Any, gamma: float, m: float) -> Any:
    n, d = X.shape
    strict = L.tril(-1)
    exponentials = q.exp()
    Q = strict + torch.diag_embed(exponentials)
    R = (X @ Q.reshape(-1, d).T).reshape(n, *q.shape) - (Q @ mean[:, :, None])[:, :, 0]
    F = alpha + q.sum(dim=1) - 0.5 * (R * R).sum(dim=2)
    likelihood = F.logsumexp(dim=1).sum() - n * alpha.logsumexp(dim=0)
    prior = 0.5 * gamma**2 * ((exponentials**2).sum() + (strict**2).sum()) - m * q.sum()
    return likelihood + prior


def cost(sizes: Sizes) -> Cost:
    """Two products with triangles, one forward and one backward, and some work on each residual."""
    n, k, d = sizes["points"], sizes["components"], sizes["width"]
    return Cost(pairs=2 * n * k * d * (d + 1) / 2 + 2 * n * k * d, others=n * k * d, calls={"exp": n * k})


WORKLOAD = Workload(
    name="gaussian_mixture",
    title="Gaussian mixture, 1000 points, 64 wide, 100 components",
    text=TEXT,
    wrt=("alpha", "mean", "q", "L"),
    sizes={"points": 1000, "components": 100, "width": 64},
    quick={"points": 6, "components": 3, "width": 4},
    make_arrays=make_arrays,
    numpy_twin=numpy_twin,
    jax_value=jax_value,
    torch_value=torch_value,
    cost=cost,
    terms=lambda sizes: sizes["points"] * sizes["width"],
)
