"""Local alignment with the maximum made smooth: the log of the summed weights of all alignments of two sequences."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.workload import Arrays, Sizes, Workload, normal

TEXT = """
S[b,i,j] += X[b,i,d] * Y[b,j,d]
for i:
    for j:
        m[b,i,j] = stop(max(0, H[b,i,j] + S[b,i,j], H[b,i,j+1] - gap, H[b,i+1,j] - gap))
        w[b,i,j] = exp(-m[b,i,j]) + exp(H[b,i,j] + S[b,i,j] - m[b,i,j])
        v[b,i,j] = exp(H[b,i,j+1] - gap - m[b,i,j]) + exp(H[b,i+1,j] - gap - m[b,i,j])
        H[b,i+1,j+1] = m[b,i,j] + log(w[b,i,j] + v[b,i,j])
top[b] max= H[b,i+1,j+1]
Z[b] += exp(H[b,i+1,j+1] - stop(top[b]))
loss -= stop(top[b]) + log(Z[b])
"""


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    b, n, m, d = (sizes[name] for name in ("batch", "first", "second", "width"))
    return {
        "X": normal(generator, dtype, b, n, d, scale=d**-0.25),
        "Y": normal(generator, dtype, b, m, d, scale=d**-0.25),
        "gap": np.asarray(0.7, dtype),
    }


def jax_value(jax: Any, X: Any, Y: Any, gap: Any) -> Any:
    """Row k of the turned scores is the diagonal on which the two positions add up to k; all of it is one step."""
    jnp, logsumexp = jax.numpy, jax.scipy.special.logsumexp
    b, n, _ = X.shape
    m = Y.shape[1]
    S = jnp.einsum("bid,bjd->bij", X, Y)
    i = jnp.arange(n)
    j = jnp.arange(n + m - 1)[:, None] - i
    inside = (j >= 0) & (j < m)
    turned = S[:, i, jnp.clip(j, 0, m - 1)]

    def step(state: Any, now: Any) -> Any:
        before, last = state
        scores, valid = now
        above = jnp.pad(last, ((0, 0), (1, 0)))[:, :-1]
        corner = jnp.pad(before, ((0, 0), (1, 0)))[:, :-1]
        parts = jnp.stack([jnp.zeros_like(last), corner + scores, above - gap, last - gap])
        H = jnp.where(valid, logsumexp(parts, axis=0), 0)
        return (last, H), H

    zeros = jnp.zeros((b, n), X.dtype)
    H = jax.lax.scan(step, (zeros, zeros), (jnp.swapaxes(turned, 0, 1), inside))[1]
    return -logsumexp(jnp.where(inside[:, None], H, -jnp.inf), axis=(0, 2)).sum()


WORKLOAD = Workload(
    name="smith_waterman",
    title="Smith-Waterman, smooth, 96 x 96, batch 8",
    kind="model",
    text=TEXT,
    wrt=("X", "Y", "gap"),
    sizes={"batch": 8, "first": 96, "second": 96, "width": 16},
    quick={"batch": 2, "first": 5, "second": 6, "width": 3},
    make_arrays=make_arrays,
    jax_value=jax_value,
    terms=lambda sizes: sizes["batch"] * sizes["first"] * sizes["second"],
)
