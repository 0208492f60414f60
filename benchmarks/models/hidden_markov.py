"""The likelihood of a hidden Markov model by the forward algorithm with scaled probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.workload import Arrays, Sizes, Workload, normal

TEXT = """
start = softmax(p)
move = softmax(P)
emit = softmax(Q)
for t:
    A[t,b,j] += move[i,j] * F[t-1,b,i] if t > 0
    U[t,b,j] = (A[t,b,j] if t > 0 else start[j]) * emit[j,seen[b,t]]
    c[t,b] += U[t,b,j]
    F[t,b,j] = U[t,b,j] / c[t,b]
loss -= log(c[t,b])
"""


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    b, t, s, v = (sizes[name] for name in ("batch", "steps", "states", "symbols"))
    return {
        "p": normal(generator, dtype, s),
        "P": normal(generator, dtype, s, s),
        "Q": normal(generator, dtype, s, v),
        "seen": generator.integers(v, size=(b, t)),
    }


def jax_value(jax: Any, p: Any, P: Any, Q: Any, seen: Any) -> Any:
    jnp = jax.numpy
    start, move, emit = (jax.nn.softmax(logits) for logits in (p, P, Q))

    def step(F: Any, symbol: Any) -> Any:
        U = F @ move * emit[:, symbol].T
        c = U.sum(axis=1)
        return U / c[:, None], jnp.log(c)

    U = start * emit[:, seen[:, 0]].T
    c = U.sum(axis=1)
    _, logs = jax.lax.scan(step, U / c[:, None], seen[:, 1:].T)
    return -logs.sum() - jnp.log(c).sum()


WORKLOAD = Workload(
    name="hidden_markov",
    title="hidden Markov model, 64 steps, 32 states, batch 16",
    kind="model",
    text=TEXT,
    wrt=("p", "P", "Q"),
    sizes={"batch": 16, "steps": 64, "states": 32, "symbols": 50},
    quick={"batch": 3, "steps": 5, "states": 4, "symbols": 6},
    make_arrays=make_arrays,
    jax_value=jax_value,
    terms=lambda sizes: sizes["batch"] * sizes["steps"] * sizes["states"],
)
