"""What may stand in brackets: gathers, scatters, diagonals, reversal, division, remainder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .entry import example, jnp, normal


@example(
    """
    Y[b,t,d] = E[token[b,t],d] * scale[d]
    """,
    wrt="E scale",
    inputs=lambda g: {**normal(g, E=(5, 3), scale=3), "token": np.array([[1, 4, 1, 0], [3, 1, 3, 3]])},
    second_order=True,
)
def embedding(x: Mapping[str, Any]) -> Any:
    return x["E"][x["token"]] * x["scale"]


@example(
    """
    size(H, 0) = 6
    H[bin[n]] += weight[n] ** 2
    """,
    wrt="weight",
    inputs=lambda g: {**normal(g, weight=7), "bin": np.array([0, 3, 3, 5, 0, 3, 1])},
    second_order=True,
)
def histogram(x: Mapping[str, Any]) -> Any:
    return jnp.zeros(6).at[x["bin"]].add(x["weight"] ** 2)


@example(
    """
    def segment_mean(X[n,d], segment[n], segments: int) -> Y[m,d]:
        size(m) = segments
        S[segment[n],d]  += X[n,d]
        count[segment[n]] += 1
        size(S, 0) = segments
        size(count, 0) = segments
        Y[m,d] = S[m,d] / max(count[m], 1)
    """,
    wrt="X",
    inputs=lambda g: {**normal(g, X=(6, 2)), "segment": np.array([2, 0, 2, 2, 0, 4]), "segments": 5},
)
def segment_mean(x: Mapping[str, Any]) -> Any:
    member = jnp.eye(5)[x["segment"]]
    return member.T @ x["X"] / jnp.maximum(member.sum(axis=0), 1)[:, None]


@example(
    """
    # where nothing falls, the floor stays
    size(m) = 4
    size(Y, 0) = size(m)
    Y[m] max= -9
    Y[segment[n]] max= X[n]
    """,
    wrt="X",
    inputs=lambda g: {**normal(g, X=6), "segment": np.array([2, 0, 2, 2, 0, 3])},
)
def segment_maximum(x: Mapping[str, Any]) -> Any:
    return jnp.full(4, -9.0).at[x["segment"]].max(x["X"])


@example(
    """
    # a permutation, and its inverse on the left
    size(Z, 0) = size(X, 0)
    Y[i]    = X[p[i]] * w[i]
    Z[p[i]] = X[i] * w[i]
    """,
    wrt="X w",
    inputs=lambda g: {**normal(g, X=5, w=5), "p": np.array([3, 0, 4, 1, 2])},
    second_order=True,
)
def permutation(x: Mapping[str, Any]) -> Any:
    return {"Y": x["X"][x["p"]] * x["w"], "Z": jnp.zeros(5).at[x["p"]].set(x["X"] * x["w"])}


@example(
    """
    # one of the entries stands twice in the same product
    Y[n] = X[a[n]] * X[b[n]]
    """,
    wrt="X",
    inputs=lambda g: {**normal(g, X=4), "a": np.array([0, 1, 3, 3, 0]), "b": np.array([1, 1, 0, 2, 1])},
    second_order=True,
)
def products_of_pairs(x: Mapping[str, Any]) -> Any:
    return x["X"][x["a"]] * x["X"][x["b"]]


@example(
    """
    D[i]    = X[i,i] ** 2
    trace  += X[i,i] * X[j,j]
    """,
    wrt="X",
    inputs=lambda g: normal(g, X=(4, 4)),
    second_order=True,
)
def diagonal_and_trace(x: Mapping[str, Any]) -> Any:
    return {"D": jnp.diagonal(x["X"]) ** 2, "trace": jnp.trace(x["X"]) ** 2}


@example(
    """
    Y[i,i,j] = exp(X[i,j])
    """,
    wrt="X",
    inputs=lambda g: normal(g, X=(3, 2)),
)
def diagonal_matrices(x: Mapping[str, Any]) -> Any:
    return jnp.eye(3)[:, :, None] * jnp.exp(x["X"])[:, None]


@example(
    """
    Y[i,b] = X[size(i)-1-i,b] * X[i,b]
    """,
    wrt="X",
    inputs=lambda g: normal(g, X=(5, 2)),
    second_order=True,
)
def reversal(x: Mapping[str, Any]) -> Any:
    return x["X"][::-1] * x["X"]


@example(
    """
    size(i) = 2 * size(X, 0)
    size(j) = 3 * size(X, 1)
    Y[i,j] = sin(X[i//2,j//3])
    """,
    wrt="X",
    inputs=lambda g: normal(g, X=(3, 2)),
    second_order=True,
)
def nearest_upsampling(x: Mapping[str, Any]) -> Any:
    return jnp.sin(jnp.repeat(jnp.repeat(x["X"], 2, axis=0), 3, axis=1))


@example(
    """
    Y[i] = X[i%3] * w[i]
    """,
    wrt="X w",
    inputs=lambda g: normal(g, X=3, w=8),
    second_order=True,
)
def remainder(x: Mapping[str, Any]) -> Any:
    return jnp.tile(x["X"], 3)[:8] * x["w"]


@example(
    """
    # blocks of two by two become channels
    size(u) = 2
    size(v) = 2
    Y[2*u+v,i,j] = X[2*i+u,2*j+v]
    """,
    wrt="X",
    inputs=lambda g: normal(g, X=(4, 6)),
)
def space_to_depth(x: Mapping[str, Any]) -> Any:
    return x["X"].reshape(2, 2, 3, 2).transpose(1, 3, 0, 2).reshape(4, 2, 3)


@example(
    """
    # neighbours on a ring
    size(i) = size(X, 0)
    Y[i] = X[(i+1)%size(X, 0)] * X[(i-1)%size(X, 0)]
    """,
    wrt="X",
    inputs=lambda g: normal(g, X=6),
    second_order=True,
)
def ring(x: Mapping[str, Any]) -> Any:
    return jnp.roll(x["X"], -1) * jnp.roll(x["X"], 1)


@example(
    """
    # a band of width three, stored by diagonals
    size(u) = 3
    y[i] += B[u,i] * x[i+u-1]   if inside
    """,
    wrt="B x",
    inputs=lambda g: normal(g, B=(3, 5), x=5),
    second_order=True,
)
def band_matrix(x: Mapping[str, Any]) -> Any:
    band = x["B"]
    return (jnp.diag(band[0, 1:], -1) + jnp.diag(band[1]) + jnp.diag(band[2, :-1], 1)) @ x["x"]


@example(
    """
    # positions between the samples are read by the straight line
    Y[n] = (1 - f[n]) * X[k[n]] + f[n] * X[min(k[n]+1, size(X, 0)-1)]
    """,
    wrt="X f",
    inputs=lambda g: {**normal(g, X=5), "f": g.uniform(size=4), "k": np.array([0, 3, 4, 3])},
    second_order=True,
)
def linear_interpolation(x: Mapping[str, Any]) -> Any:
    return jnp.interp(x["k"] + x["f"], jnp.arange(6), jnp.append(x["X"], x["X"][-1]))


@example(
    """
    # a square index has no inverse in the language: the adjoint scatters
    Y[i,j] = X[i*i,j] * w[i]
    """,
    wrt="X w",
    inputs=lambda g: normal(g, X=(5, 2), w=3),
    second_order=True,
)
def square_index(x: Mapping[str, Any]) -> Any:
    return x["X"][jnp.array([0, 1, 4])] * x["w"][:, None]
