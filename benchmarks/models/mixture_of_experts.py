"""A layer of experts of which each token visits the best one, with the loss that balances them, as in Switch."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.workload import Arrays, Sizes, Workload, normal

TEXT = """
R[t,e] += X[t,d] * Wr[e,d]
P = softmax(R)
k[t] argmax= R[t,e]
F[t,f] += W1[k[t],f,d] * X[t,d]
Y[t,d] += P[t,k[t]] * W2[k[t],d,f] * relu(F[t,f])
load[k[t]] += 1 / size(t)
share[e] += P[t,e] / size(t)
loss += (Y[t,d] - target[t,d]) ** 2
loss += alpha * size(e) * load[e] * share[e]
"""


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    t, e, d, f = (sizes[name] for name in ("tokens", "experts", "width", "hidden"))
    return {
        "X": normal(generator, dtype, t, d),
        "Wr": normal(generator, dtype, e, d, scale=d**-0.5),
        "W1": normal(generator, dtype, e, f, d, scale=d**-0.5),
        "W2": normal(generator, dtype, e, d, f, scale=f**-0.5),
        "target": normal(generator, dtype, t, d),
        "alpha": 0.01,
    }


def jax_value(jax: Any, X: Any, Wr: Any, W1: Any, W2: Any, target: Any, alpha: float) -> Any:
    jnp = jax.numpy
    P = jax.nn.softmax(X @ Wr.T)
    chosen = jax.nn.one_hot(P.argmax(axis=1), len(Wr), dtype=X.dtype)
    F = jax.nn.relu(jnp.einsum("td,efd->etf", X, W1))
    Y = jnp.einsum("etf,edf,te->td", F, W2, chosen * P)
    balance = len(Wr) * (chosen.mean(axis=0) * P.mean(axis=0)).sum()
    return ((Y - target) ** 2).sum() + alpha * balance


WORKLOAD = Workload(
    name="mixture_of_experts",
    title="mixture of 8 experts, top-1, 512 tokens, 64 wide",
    kind="model",
    text=TEXT,
    wrt=("X", "Wr", "W1", "W2"),
    sizes={"tokens": 512, "experts": 8, "width": 64, "hidden": 128},
    quick={"tokens": 9, "experts": 3, "width": 4, "hidden": 5},
    make_arrays=make_arrays,
    jax_value=jax_value,
    terms=lambda sizes: sizes["tokens"] * sizes["width"],
)
