"""The selective scan of Mamba: a linear recurrence whose step width, input and output weights follow the input."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.workload import Arrays, Sizes, Workload, normal

TEXT = """
S[b,t,d] = softplus(Z[b,t,d] + bias[d])
for t:
    H[b,t,d,n] = exp(-S[b,t,d] * exp(logA[d,n])) * (H[b,t-1,d,n] if t > 0 else 0) + S[b,t,d] * B[b,t,n] * X[b,t,d]
Y[b,t,d] += C[b,t,n] * H[b,t,d,n]
Y[b,t,d] += skip[d] * X[b,t,d]
loss += Y[b,t,d] * G[b,t,d]
"""


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    b, t, d, n = (sizes[name] for name in ("batch", "steps", "width", "states"))
    return {
        "X": normal(generator, dtype, b, t, d),
        "Z": normal(generator, dtype, b, t, d),
        "bias": normal(generator, dtype, d) - dtype.type(2),
        "logA": np.tile(np.log(np.arange(1, n + 1)), (d, 1)).astype(dtype),
        "B": normal(generator, dtype, b, t, n),
        "C": normal(generator, dtype, b, t, n),
        "skip": normal(generator, dtype, d),
        "G": normal(generator, dtype, b, t, d),
    }


def jax_value(jax: Any, X: Any, Z: Any, bias: Any, logA: Any, B: Any, C: Any, skip: Any, G: Any) -> Any:
    jnp = jax.numpy
    A = -jnp.exp(logA)

    def step(H: Any, now: Any) -> Any:
        x, s, b, c = now
        H = jnp.exp(s[:, :, None] * A) * H + (s * x)[:, :, None] * b[:, None, :]
        return H, jnp.einsum("bdn,bn->bd", H, c)

    S = jax.nn.softplus(Z + bias)
    start = jnp.zeros((len(X), *A.shape), X.dtype)
    Y = jax.lax.scan(step, start, tuple(jnp.swapaxes(part, 0, 1) for part in (X, S, B, C)))[1]
    return ((jnp.swapaxes(Y, 0, 1) + skip * X) * G).sum()


WORKLOAD = Workload(
    name="selective_scan",
    title="selective scan (Mamba), 128 steps, 64 wide, 16 states, batch 4",
    kind="model",
    text=TEXT,
    wrt=("X", "Z", "bias", "logA", "B", "C", "skip"),
    sizes={"batch": 4, "steps": 128, "width": 64, "states": 16},
    quick={"batch": 2, "steps": 5, "width": 3, "states": 4},
    make_arrays=make_arrays,
    jax_value=jax_value,
    terms=lambda sizes: sizes["batch"] * sizes["steps"] * sizes["width"],
)
