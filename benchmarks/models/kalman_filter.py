"""The likelihood of a linear Gaussian state-space model by the Kalman filter, each gain through a Cholesky factor."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.workload import Arrays, Sizes, Workload, normal

TEXT = """
for t:
    x[t,i] += A[i,j] * (x1[t-1,j] if t > 0 else 0)
    AP[t,i,k] += A[i,j] * (P1[t-1,j,k] if t > 0 else P0[j,k])
    P[t,i,l] += AP[t,i,k] * A[l,k]
    P[t,i,i] += exp(q[i])
    v[t,m] += y[t,m]
    v[t,m] -= H[m,i] * x[t,i]
    HP[t,m,i] += H[m,j] * P[t,j,i]
    S[t,m,n] += HP[t,m,i] * H[n,i]
    S[t,m,m] += exp(r[m])
    for c:
        D[t,m,c] += S[t,m,c] if m >= c
        D[t,m,c] -= L[t,m,n] * L[t,c,n] if n < c and m >= c
        L[t,m,c] = D[t,m,c] / sqrt(D[t,c,c]) if m >= c
    for c:
        z[t,c] += v[t,c]
        z[t,c] -= L[t,c,n] * e[t,n] if n < c
        e[t,c] = z[t,c] / L[t,c,c]
        U[t,c,i] += HP[t,c,i]
        U[t,c,i] -= L[t,c,n] * W[t,n,i] if n < c
        W[t,c,i] = U[t,c,i] / L[t,c,c]
    x1[t,i] += x[t,i]
    x1[t,i] += W[t,c,i] * e[t,c]
    P1[t,i,j] += P[t,i,j]
    P1[t,i,j] -= W[t,c,i] * W[t,c,j]
loss += log(L[t,c,c]) + 0.5 * e[t,c] ** 2
"""


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    t, n, m = (sizes[name] for name in ("steps", "states", "seen"))
    return {
        "A": (0.9 * np.linalg.qr(generator.standard_normal((n, n)))[0]).astype(dtype),
        "H": normal(generator, dtype, m, n),
        "q": normal(generator, dtype, n),
        "r": normal(generator, dtype, m),
        "P0": np.eye(n, dtype=dtype),
        "y": normal(generator, dtype, t, m),
    }


def jax_value(jax: Any, A: Any, H: Any, q: Any, r: Any, P0: Any, y: Any) -> Any:
    jnp, solve = jax.numpy, jax.scipy.linalg.solve_triangular

    def step(state: Any, seen: Any) -> Any:
        x, P = state
        x, P = A @ x, A @ P @ A.T + jnp.diag(jnp.exp(q))
        HP = H @ P
        L = jax.lax.linalg.cholesky(HP @ H.T + jnp.diag(jnp.exp(r)), symmetrize_input=False)
        e = solve(L, seen - H @ x, lower=True)
        W = solve(L, HP, lower=True)
        return (x + W.T @ e, P - W.T @ W), jnp.log(jnp.diag(L)).sum() + 0.5 * e @ e

    return jax.lax.scan(step, (jnp.zeros(len(A), A.dtype), P0), y)[1].sum()


WORKLOAD = Workload(
    name="kalman_filter",
    title="Kalman filter, 4 states, 4 seen, 200 steps",
    kind="model",
    text=TEXT,
    wrt=("A", "H", "q", "r"),
    sizes={"steps": 200, "states": 4, "seen": 4},
    quick={"steps": 4, "states": 3, "seen": 2},
    make_arrays=make_arrays,
    jax_value=jax_value,
    terms=lambda sizes: sizes["steps"] * sizes["states"] ** 4,
)
