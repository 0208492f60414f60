"""Layers and losses of neural networks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import tensorswap as ts

from .entry import example, jnp, lax, nn, normal, positive


@example(
    """
    H[b,h] += W1[h,d] * X[b,d]
    H[b,h] += b1[h]
    A[b,h]  = tanh(H[b,h])
    L[b,c] += W2[c,h] * A[b,h]
    L[b,c] += b2[c]
    M[b] max= L[b,c]
    Z[b]   += exp(L[b,c] - stop(M[b]))
    loss   += (stop(M[b]) + log(Z[b]) - L[b,label[b]]) / size(b)
    """,
    wrt="X W1 b1 W2 b2",
    inputs=lambda g: {**normal(g, X=(5, 3), W1=(4, 3), b1=4, W2=(6, 4), b2=6), "label": np.array([5, 0, 2, 2, 4])},
    second_order=True,
)
def mlp_cross_entropy(x: Mapping[str, Any]) -> Any:
    hidden = jnp.tanh(x["X"] @ x["W1"].T + x["b1"])
    logits = hidden @ x["W2"].T + x["b2"]
    return -jnp.mean(nn.log_softmax(logits)[jnp.arange(5), x["label"]])


def attend(q: Any, k: Any, v: Any, keep: Any = True) -> Any:
    scores = jnp.where(keep, jnp.einsum("hid,hjd->hij", q, k) / np.sqrt(q.shape[-1]), -jnp.inf)
    return jnp.einsum("hij,hje->hie", nn.softmax(scores), v)


@example(
    """
    S[h,i,j]   += Q[h,i,d] * K[h,j,d] / sqrt(size(d))
    M[h,i]    max= S[h,i,j]
    E[h,i,j]    = exp(S[h,i,j] - stop(M[h,i]))
    Z[h,i]     += E[h,i,j]
    O[h,i,e]   += E[h,i,j] / Z[h,i] * V[h,j,e]
    """,
    wrt="Q K V",
    inputs=lambda g: normal(g, Q=(2, 3, 4), K=(2, 5, 4), V=(2, 5, 1)),
    second_order=True,
)
def attention(x: Mapping[str, Any]) -> Any:
    return attend(x["Q"], x["K"], x["V"])


@example(
    """
    S[h,i,j]   += Q[h,i,d] * K[h,j,d] / sqrt(size(d))   if j <= i
    M[h,i]    max= S[h,i,j]                             if j <= i
    E[h,i,j]    = exp(S[h,i,j] - stop(M[h,i]))          if j <= i
    Z[h,i]     += E[h,i,j]                              if j <= i
    O[h,i,e]   += E[h,i,j] / Z[h,i] * V[h,j,e]          if j <= i
    """,
    wrt="Q K V",
    inputs=lambda g: normal(g, Q=(2, 4, 3), K=(2, 4, 3), V=(2, 4, 5)),
    second_order=True,
)
def causal_attention(x: Mapping[str, Any]) -> Any:
    return attend(x["Q"], x["K"], x["V"], jnp.tril(jnp.ones((4, 4), bool)))


@example(
    """
    # four query heads share two heads of keys and values
    size(h) = size(Q, 0)
    S[h,i,j]   += Q[h,i,d] * K[h//2,j,d]
    P           = softmax(S)
    O[h,i,e]   += P[h,i,j] * V[h//2,j,e]
    """,
    wrt="Q K V",
    inputs=lambda g: normal(g, Q=(4, 3, 2), K=(2, 5, 2), V=(2, 5, 3)),
)
def grouped_query_attention(x: Mapping[str, Any]) -> Any:
    scores = jnp.einsum("hid,hjd->hij", x["Q"], jnp.repeat(x["K"], 2, axis=0))
    return jnp.einsum("hij,hje->hie", nn.softmax(scores), jnp.repeat(x["V"], 2, axis=0))


@example(
    """
    # pairs of features turn by an angle that grows with the position
    Y[t,2*i]   = X[t,2*i] * cos(t * w[i]) - X[t,2*i+1] * sin(t * w[i])
    Y[t,2*i+1] = X[t,2*i] * sin(t * w[i]) + X[t,2*i+1] * cos(t * w[i])
    """,
    wrt="X w",
    inputs=lambda g: normal(g, X=(5, 6), w=3),
    second_order=True,
)
def rotary_positions(x: Mapping[str, Any]) -> Any:
    angle = jnp.arange(5)[:, None] * x["w"]
    turned = (x["X"][:, 0::2] + 1j * x["X"][:, 1::2]) * jnp.exp(1j * angle)
    return jnp.stack([turned.real, turned.imag], axis=-1).reshape(5, 6)


@example(
    """
    mean[b]     += X[b,d] / size(d)
    variance[b] += (X[b,d] - mean[b]) ** 2 / size(d)
    Y[b,d]       = (X[b,d] - mean[b]) / sqrt(variance[b] + 1e-5) * gain[d] + bias[d]
    """,
    wrt="X gain bias",
    inputs=lambda g: normal(g, X=(3, 7), gain=7, bias=7),
    second_order=True,
)
def layer_norm(x: Mapping[str, Any]) -> Any:
    centred = x["X"] - x["X"].mean(axis=1, keepdims=True)
    return centred * lax.rsqrt(x["X"].var(axis=1, keepdims=True) + 1e-5) * x["gain"] + x["bias"]


@example(
    """
    square[b] += X[b,d] * X[b,d] / size(d)
    Y[b,d]     = X[b,d] * gain[d] * (square[b] + eps) ** -0.5
    """,
    wrt="X gain",
    inputs=lambda g: {**normal(g, X=(4, 5), gain=5), "eps": 1e-6},
    second_order=True,
)
def rms_norm(x: Mapping[str, Any]) -> Any:
    return x["X"] * x["gain"] * lax.rsqrt(jnp.mean(x["X"] ** 2, axis=1, keepdims=True) + x["eps"])


@example(
    """
    count        = size(n) * size(h) * size(w)
    mean[c]     += X[n,c,h,w] / count
    variance[c] += (X[n,c,h,w] - mean[c]) ** 2 / count
    scale[c]     = gain[c] / sqrt(variance[c] + 1e-3)
    Y[n,c,h,w]   = (X[n,c,h,w] - mean[c]) * scale[c] + bias[c]
    return Y, mean, variance
    """,
    wrt="X gain bias",
    inputs=lambda g: normal(g, X=(2, 3, 4, 1), gain=3, bias=3),
    second_order=True,
)
def batch_norm(x: Mapping[str, Any]) -> Any:
    mean, variance = x["X"].mean(axis=(0, 2, 3)), x["X"].var(axis=(0, 2, 3))
    normed = (x["X"] - mean[:, None, None]) / jnp.sqrt(variance + 1e-3)[:, None, None]
    return {"Y": normed * x["gain"][:, None, None] + x["bias"][:, None, None], "mean": mean, "variance": variance}


@example(
    """
    H[b,h] += W[h,d] * X[b,d]
    Y[b,h]  = tanh(H[b,h]) / 0.7   if uniform(seed, b, h) < 0.7
    """,
    wrt="X W",
    inputs=lambda g: {**normal(g, X=(4, 3), W=(6, 3)), "seed": 11},
    second_order=True,
)
def dropout(x: Mapping[str, Any]) -> Any:
    mask = ts.program("U[b,h] = uniform(seed, b, h)")(seed=x["seed"], b=4, h=6) < 0.7
    assert 0 < mask.sum() < mask.size
    return jnp.where(mask, jnp.tanh(x["X"] @ x["W"].T) / 0.7, 0)


@example(
    """
    X[0,b,i] = X0[b,i]
    for l:
        Z[l,b,i]  += W[l,i,j] * X[l,b,j]
        X[l+1,b,i] = X[l,b,i] + tanh(Z[l,b,i] + c[l,i])
    Y[b,i] = X[size(l),b,i]
    """,
    wrt="X0 W c",
    inputs=lambda g: normal(g, X0=(3, 4), W=(5, 4, 4), c=(5, 4)),
    second_order=True,
)
def deep_residual_network(x: Mapping[str, Any]) -> Any:
    state = x["X0"]
    for weight, shift in zip(x["W"], x["c"], strict=True):
        state = state + jnp.tanh(state @ weight.T + shift)
    return state


@example(
    """
    def layer(X[b,i], W[o,i]) -> Y[b,o]:
        H[b,o] += W[o,i] * X[b,i]
        Y[b,o]  = H[b,o] * sigmoid(H[b,o])

    Y[0,b,i] = X[b,i]
    for l:
        Y[l+1] = layer(Y[l], W[l])
    loss += Y[size(W, 0),b,i] ** 2
    """,
    wrt="X W",
    inputs=lambda g: normal(g, X=(2, 3), W=(4, 3, 3)),
    second_order=True,
)
def layers_by_call(x: Mapping[str, Any]) -> Any:
    state = x["X"]
    for weight in x["W"]:
        state = nn.silu(state @ weight.T)
    return jnp.sum(state**2)


@example(
    """
    def scale(X[b,i], s) -> Y[b,i]:
        Y[b,i] = s * X[b,i]

    def split(X[b,i], V[i,j]) -> P[b,j], N[b,j]:
        H[b,j] += X[b,i] * V[i,j]
        P[b,j]  = relu(H[b,j])
        N[b,j]  = relu(-H[b,j])

    A    = scale(X, 0.5)
    P, N = split(A, V)
    B    = scale(N, s=leak)
    Y[b,j] = P[b,j] - B[b,j]
    """,
    wrt="X V leak",
    inputs=lambda g: {**normal(g, X=(3, 2), V=(2, 4)), **positive(g, leak=())},
    second_order=True,
)
def definitions_with_calls(x: Mapping[str, Any]) -> Any:
    hidden = 0.5 * x["X"] @ x["V"]
    return jnp.where(hidden > 0, hidden, x["leak"] * hidden)


@example(
    """
    H = linear(X, W, b)
    N = layer_norm(H, gain, bias, eps=1e-3)
    P = softmax(N)
    """,
    wrt="X W b gain bias",
    inputs=lambda g: normal(g, X=(2, 3, 4), W=(5, 4), b=5, gain=5, bias=5),
    second_order=True,
)
def library_calls(x: Mapping[str, Any]) -> Any:
    hidden = x["X"] @ x["W"].T + x["b"]
    centred = hidden - hidden.mean(axis=-1, keepdims=True)
    normed = centred / jnp.sqrt(hidden.var(axis=-1, keepdims=True) + 1e-3) * x["gain"] + x["bias"]
    return nn.softmax(normed)


@example(
    """
    P = softmax(X)
    entropy[n] -= P[n,j] * log(P[n,j])
    """,
    wrt="X",
    inputs=lambda g: normal(g, X=(3, 4)),
    second_order=True,
)
def entropy_of_a_library_call(x: Mapping[str, Any]) -> Any:
    return -jnp.sum(nn.softmax(x["X"]) * nn.log_softmax(x["X"]), axis=-1)


@example(
    """
    O = attention(Q, K, V)
    Y[b,i,o] += O[b,h,i,e] * W[h,e,o]
    """,
    wrt="Q K V W",
    inputs=lambda g: normal(g, Q=(1, 2, 3, 4), K=(1, 2, 5, 4), V=(1, 2, 5, 2), W=(2, 2, 3)),
)
def library_attention(x: Mapping[str, Any]) -> Any:
    return jnp.einsum("hie,heo->io", attend(x["Q"][0], x["K"][0], x["V"][0]), x["W"])[None]


@example(
    """
    S[i,j] += A[i,d] * B[j,d] / temperature
    L       = log_softmax(S)
    loss   -= L[i,i] / size(i)
    """,
    wrt="A B temperature",
    inputs=lambda g: {**normal(g, A=(4, 3), B=(4, 3)), **positive(g, temperature=())},
    second_order=True,
)
def contrastive_loss(x: Mapping[str, Any]) -> Any:
    return -jnp.mean(jnp.diagonal(nn.log_softmax(x["A"] @ x["B"].T / x["temperature"])))


@example(
    """
    # messages along the edges of a graph
    size(M, 0) = size(X, 0)
    M[target[e],h] += A[e] * X[source[e],d] * W[h,d]
    Y[n,h]          = relu(M[n,h] + c[h])
    """,
    wrt="X W A c",
    inputs=lambda g: {
        **normal(g, X=(5, 3), W=(4, 3), A=7, c=4),
        "source": np.array([0, 1, 1, 3, 4, 4, 2]),
        "target": np.array([1, 0, 2, 1, 1, 3, 3]),
    },
    second_order=True,
)
def graph_convolution(x: Mapping[str, Any]) -> Any:
    message = x["A"][:, None] * (x["X"] @ x["W"].T)[x["source"]]
    return nn.relu(jnp.zeros((5, 4)).at[x["target"]].add(message) + x["c"])
