"""Linear-chain conditional random fields: likelihood by the forward algorithm, and the perceptron loss by Viterbi."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.workload import Arrays, Sizes, Workload, normal

LIKELIHOOD = """
A[b,0,k] = E[b,0,k]
for t:
    S[b,t,j,k] = A[b,t,j] + T[j,k]
    top[b,t,k] max= S[b,t,j,k]
    Z[b,t,k] += exp(S[b,t,j,k] - stop(top[b,t,k]))
    A[b,t+1,k] = E[b,t+1,k] + log(Z[b,t,k]) + stop(top[b,t,k])
last[b,k] = A[b,size(t),k]
partition = logsumexp(last)
loss += partition[b]
loss -= E[b,s,label[b,s]]
loss -= T[label[b,t+0],label[b,t+1]]
"""

VITERBI = """
V[b,0,k] = E[b,0,k]
for t:
    back[b,t,k] argmax= V[b,t,j] + T[j,k]
    V[b,t+1,k] = E[b,t+1,k] + V[b,t,back[b,t,k]] + T[back[b,t,k],k]
last[b] argmax= V[b,size(t),k]
path[b,size(t)] = last[b]
for t down:
    path[b,t] = back[b,t,path[b,t+1]]
loss += E[b,s,path[b,s]] - E[b,s,label[b,s]]
loss += T[path[b,t+0],path[b,t+1]] - T[label[b,t+0],label[b,t+1]]
"""


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    b, t, k = (sizes[name] for name in ("batch", "steps", "labels"))
    return {
        "E": normal(generator, dtype, b, t, k),
        "T": normal(generator, dtype, k, k),
        "label": generator.integers(k, size=(b, t)),
    }


def score(jax: Any, E: Any, T: Any, label: Any) -> Any:
    emitted = jax.numpy.take_along_axis(E, label[:, :, None], axis=2)
    return emitted.sum() + T[label[:, :-1], label[:, 1:]].sum()


def jax_likelihood(jax: Any, E: Any, T: Any, label: Any) -> Any:
    logsumexp = jax.scipy.special.logsumexp

    def step(A: Any, emission: Any) -> Any:
        return emission + logsumexp(A[:, :, None] + T, axis=1), None

    A, _ = jax.lax.scan(step, E[:, 0], jax.numpy.swapaxes(E[:, 1:], 0, 1))
    return logsumexp(A, axis=1).sum() - score(jax, E, T, label)


def jax_viterbi(jax: Any, E: Any, T: Any, label: Any) -> Any:
    jnp = jax.numpy

    def forward(V: Any, emission: Any) -> Any:
        S = V[:, :, None] + T
        return emission + S.max(axis=1), S.argmax(axis=1)

    def backward(k: Any, back: Any) -> Any:
        return jnp.take_along_axis(back, k[:, None], axis=1)[:, 0], k

    V, backs = jax.lax.scan(forward, E[:, 0], jnp.swapaxes(E[:, 1:], 0, 1))
    first, path = jax.lax.scan(backward, V.argmax(axis=1), backs, reverse=True)
    path = jnp.concatenate([first[None], path]).T
    return score(jax, E, T, path) - score(jax, E, T, label)


SIZES = {"batch": 16, "steps": 64, "labels": 16}
QUICK = {"batch": 3, "steps": 5, "labels": 4}


def terms(sizes: Sizes) -> int:
    return sizes["batch"] * sizes["steps"] * sizes["labels"]


WORKLOADS = (
    Workload(
        name="crf_likelihood",
        title="CRF likelihood, 64 steps, 16 labels, batch 16",
        kind="model",
        text=LIKELIHOOD,
        wrt=("E", "T"),
        sizes=SIZES,
        quick=QUICK,
        make_arrays=make_arrays,
        jax_value=jax_likelihood,
        terms=terms,
    ),
    Workload(
        name="crf_viterbi",
        title="CRF perceptron by Viterbi, 64 steps, 16 labels, batch 16",
        kind="model",
        text=VITERBI,
        wrt=("E", "T"),
        sizes=SIZES,
        quick=QUICK,
        make_arrays=make_arrays,
        jax_value=jax_viterbi,
        terms=terms,
    ),
)
