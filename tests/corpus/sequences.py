"""Recurrent networks and scans: `for t:` in time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .entry import example, jnp, lax, nn, normal, positive


@example(
    """
    def rnn(X[t,b,d], Wx[h,d], Wh[h,g], H0[b,h]) -> H[t,b,h]:
        P[t,b,h] += Wx[h,d] * X[t,b,d]
        for t:
            P[t,b,h] += Wh[h,g] * (H[t-1,b,g] if t > 0 else H0[b,g])
            H[t,b,h]  = tanh(P[t,b,h])
    """,
    wrt="X Wx Wh H0",
    inputs=lambda g: normal(g, X=(5, 2, 3), Wx=(4, 3), Wh=(4, 4), H0=(2, 4)),
    second_order=True,
)
def rnn(x: Mapping[str, Any]) -> Any:
    def step(state: Any, row: Any) -> tuple[Any, Any]:
        state = jnp.tanh(row @ x["Wx"].T + state @ x["Wh"].T)
        return state, state

    return lax.scan(step, x["H0"], x["X"])[1]


@example(
    """
    # the gates are 0: input, 1: forget, 2: candidate, 3: output
    def lstm(X[t,b,d], Wx[g,h,d], Wh[g,h,k], bias[g,h]) -> H[t,b,h], C[t,b,h]:
        P[t,b,g,h] += Wx[g,h,d] * X[t,b,d]
        P[t,b,g,h] += bias[g,h]
        for t:
            P[t,b,g,h] += Wh[g,h,k] * H[t-1,b,k]   if t > 0
            C[t,b,h] = sigmoid(P[t,b,0,h]) * tanh(P[t,b,2,h]) + sigmoid(P[t,b,1,h]) * (C[t-1,b,h] if t > 0 else 0)
            H[t,b,h] = sigmoid(P[t,b,3,h]) * tanh(C[t,b,h])
    """,
    wrt="X Wx Wh bias",
    inputs=lambda g: normal(g, X=(4, 2, 3), Wx=(4, 3, 3), Wh=(4, 3, 3), bias=(4, 3)),
    second_order=True,
)
def lstm(x: Mapping[str, Any]) -> Any:
    def step(state: Any, row: Any) -> tuple[Any, Any]:
        hidden, cell = state
        pre = jnp.einsum("ghd,bd->gbh", x["Wx"], row) + jnp.einsum("ghk,bk->gbh", x["Wh"], hidden) + x["bias"][:, None]
        cell = nn.sigmoid(pre[0]) * jnp.tanh(pre[2]) + nn.sigmoid(pre[1]) * cell
        hidden = nn.sigmoid(pre[3]) * jnp.tanh(cell)
        return (hidden, cell), (hidden, cell)

    nothing = jnp.zeros((2, 3))
    hidden, cell = lax.scan(step, (nothing, nothing), x["X"])[1]
    return {"H": hidden, "C": cell}


@example(
    """
    for t:
        old[t,h] = H[t-1,h] if t > 0 else H0[h]
        R[t,h]  += Wr[h,d] * X[t,d]
        R[t,h]  += Ur[h,k] * old[t,k]
        Z[t,h]  += Wz[h,d] * X[t,d]
        Z[t,h]  += Uz[h,k] * old[t,k]
        N[t,h]  += Wn[h,d] * X[t,d]
        N[t,h]  += Un[h,k] * sigmoid(R[t,k]) * old[t,k]
        H[t,h]   = (1 - sigmoid(Z[t,h])) * tanh(N[t,h]) + sigmoid(Z[t,h]) * old[t,h]
    return H
    """,
    wrt="X H0 Wr Ur Wz Uz Wn Un",
    inputs=lambda g: normal(g, X=(4, 2), H0=3, Wr=(3, 2), Ur=(3, 3), Wz=(3, 2), Uz=(3, 3), Wn=(3, 2), Un=(3, 3)),
    second_order=True,
)
def gru(x: Mapping[str, Any]) -> Any:
    def step(state: Any, row: Any) -> tuple[Any, Any]:
        reset = nn.sigmoid(x["Wr"] @ row + x["Ur"] @ state)
        keep = nn.sigmoid(x["Wz"] @ row + x["Uz"] @ state)
        state = (1 - keep) * jnp.tanh(x["Wn"] @ row + x["Un"] @ (reset * state)) + keep * state
        return state, state

    return lax.scan(step, x["H0"], x["X"])[1]


@example(
    """
    A[0,s] = start[s] + emit[s,seen[0]]
    for t:
        M[t,s] max= A[t,q] + move[q,s]
        Z[t,s]   += exp(A[t,q] + move[q,s] - stop(M[t,s]))
        A[t+1,s]  = stop(M[t,s]) + log(Z[t,s]) + emit[s,seen[t+1]]
    top  max= A[size(t),s]
    total  += exp(A[size(t),s] - stop(top))
    likelihood = stop(top) + log(total)
    """,
    wrt="start move emit",
    inputs=lambda g: {**normal(g, start=3, move=(3, 3), emit=(3, 4)), "seen": np.array([2, 0, 0, 3, 1, 2])},
    second_order=True,
)
def hmm_forward(x: Mapping[str, Any]) -> Any:
    alpha = x["start"] + x["emit"][:, 2]
    for symbol in x["seen"][1:]:
        alpha = nn.logsumexp(alpha[:, None] + x["move"], axis=0) + x["emit"][:, symbol]
    return nn.logsumexp(alpha)


@example(
    """
    # the score of the best path: max in the place of the sum
    V[0,s] = start[s]
    for t:
        M[t,s] max= V[t,q] + move[q,s]
        V[t+1,s]  = M[t,s] + score[t,s]
    best max= V[size(t),s]
    """,
    wrt="start move score",
    inputs=lambda g: normal(g, start=3, move=(3, 3), score=(5, 3)),
)
def viterbi_score(x: Mapping[str, Any]) -> Any:
    value = x["start"]
    for row in x["score"]:
        value = jnp.max(value[:, None] + x["move"], axis=0) + row
    return jnp.max(value)


@example(
    """
    for t:
        Y[t,b] = X[t,b] + (Y[t-1,b] if t > 0 else 0)
    """,
    wrt="X",
    inputs=lambda g: normal(g, X=(6, 2)),
)
def cumulative_sum(x: Mapping[str, Any]) -> Any:
    return jnp.cumsum(x["X"], axis=0)


@example(
    """
    size(i) = size(X, 0)
    Y[i] += X[j] ** 3   if j <= i
    """,
    wrt="X",
    inputs=lambda g: normal(g, X=6),
    second_order=True,
)
def cumulative_sum_by_guard(x: Mapping[str, Any]) -> Any:
    return jnp.cumsum(x["X"] ** 3)


@example(
    """
    for t:
        Y[t,b] = X[t,b] * (Y[t-1,b] if t > 0 else 1)
    """,
    wrt="X",
    inputs=lambda g: normal(g, X=(5, 3)),
    second_order=True,
)
def cumulative_product(x: Mapping[str, Any]) -> Any:
    return jnp.cumprod(x["X"], axis=0)


@example(
    """
    size(i) = size(X, 0)
    Y[i] *= X[j]   if j <= i
    """,
    wrt="X",
    inputs=lambda g: {"X": np.array([1.5, -0.5, 0.0, 2.0, 0.0, 0.7])},
    second_order=True,
)
def cumulative_product_with_zeros(x: Mapping[str, Any]) -> Any:
    return jnp.stack([jnp.prod(x["X"][: n + 1]) for n in range(6)])


@example(
    """
    size(i) = size(X, 0)
    M[i] max= X[j]                    if j <= i
    Z[i]   += exp(X[j] - stop(M[i]))  if j <= i
    Y[i]    = stop(M[i]) + log(Z[i])
    """,
    wrt="X",
    inputs=lambda g: normal(g, X=7),
    second_order=True,
)
def cumulative_logsumexp(x: Mapping[str, Any]) -> Any:
    return lax.cumlogsumexp(x["X"])


@example(
    """
    for t:
        Y[t] = max(X[t], Y[t-1]) + log1p(exp(-abs(X[t] - Y[t-1]))) if t > 0 else X[0]
    """,
    wrt="X",
    inputs=lambda g: normal(g, X=7),
    second_order=True,
)
def cumulative_logsumexp_by_steps(x: Mapping[str, Any]) -> Any:
    return lax.cumlogsumexp(x["X"])


@example(
    """
    # what is still to come, discounted: the steps run backwards
    for t down:
        G[t] = reward[t] + gamma * (G[t+1] if t < size(t) - 1 else 0)
    """,
    wrt="reward gamma",
    inputs=lambda g: {**normal(g, reward=6), **positive(g, gamma=())},
    second_order=True,
)
def discounted_returns(x: Mapping[str, Any]) -> Any:
    power = jnp.arange(6) - jnp.arange(6)[:, None]
    return jnp.where(power >= 0, x["gamma"] ** jnp.maximum(power, 0), 0) @ x["reward"]


@example(
    """
    # diagonal state space: one decay for each channel, read out at each step
    for t:
        S[t,n] = exp(-rate[n]) * (S[t-1,n] if t > 0 else 0) + B[n] * u[t]
    y[t] += C[n] * S[t,n]
    y[t] += D * u[t]
    """,
    wrt="rate B C D u",
    inputs=lambda g: {**normal(g, B=3, C=3, D=(), u=8), **positive(g, rate=3)},
    second_order=True,
)
def state_space(x: Mapping[str, Any]) -> Any:
    kernel = jnp.einsum("n,n,tn->t", x["B"], x["C"], jnp.exp(-jnp.arange(8)[:, None] * x["rate"]))
    return jnp.convolve(kernel, x["u"])[:8] + x["D"] * x["u"]
