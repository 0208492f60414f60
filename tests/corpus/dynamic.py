"""Solvers, simulations, factorisations and dynamic programming: `for` blocks that are not time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .entry import example, jnp, lax, nn, normal, positive


@example(
    """
    size(k) = 6
    K[i,j] = exp(-C[i,j] / 0.5)
    V[0,j] = 1
    for k:
        R[k,i] += K[i,j] * V[k,j]
        U[k,i]  = a[i] / R[k,i]
        Q[k,j] += K[i,j] * U[k,i]
        V[k+1,j] = b[j] / Q[k,j]
    P[i,j] = U[size(k)-1,i] * K[i,j] * V[size(k),j]
    cost  += P[i,j] * C[i,j]
    return P, cost
    """,
    wrt="C a b",
    inputs=lambda g: positive(g, C=(3, 4), a=3, b=4),
    second_order=True,
)
def sinkhorn(x: Mapping[str, Any]) -> Any:
    kernel, v = jnp.exp(-x["C"] / 0.5), jnp.ones(4)
    for _ in range(6):
        u = x["a"] / (kernel @ v)
        v = x["b"] / (kernel.T @ u)
    plan = u[:, None] * kernel * v
    return {"P": plan, "cost": jnp.sum(plan * x["C"])}


@example(
    """
    # explicit steps on a rod that loses no heat at its ends
    size(t) = 50
    U[0,i] = start[i]
    for t:
        left[t,i]  = U[t,i-1] - U[t,i] if i > 0 else 0
        right[t,i] = U[t,i+1] - U[t,i] if i < size(i) - 1 else 0
        U[t+1,i]   = U[t,i] + 0.2 * speed[i] * (left[t,i] + right[t,i])
    last[i] = U[size(t),i]
    """,
    wrt="start speed",
    inputs=lambda g: {**normal(g, start=8), **positive(g, speed=8)},
    second_order=True,
)
def heat_equation(x: Mapping[str, Any]) -> Any:
    def step(state: Any, _: None) -> tuple[Any, None]:
        padded = jnp.pad(state, 1, mode="edge")
        return state + 0.2 * x["speed"] * (padded[:-2] - 2 * state + padded[2:]), None

    return lax.scan(step, x["start"], None, length=50)[0]


@example(
    """
    # the price of turning one word into another: replace at C[i,j], or leave a gap
    size(u) = size(i) + 1
    D[u,0]   = u * gap
    D[0,j+1] = (j + 1) * gap
    for i:
        for j:
            D[i+1,j+1] = min(D[i,j] + C[i,j], D[i,j+1] + gap, D[i+1,j] + gap)
    distance = D[size(i),size(j)]
    """,
    wrt="C gap",
    inputs=lambda g: {**positive(g, C=(3, 5)), "gap": np.array(0.55)},
)
def edit_distance(x: Mapping[str, Any]) -> Any:
    table = {(u, 0): u * x["gap"] for u in range(4)} | {(0, v): v * x["gap"] for v in range(6)}
    for i in range(3):
        for j in range(5):
            gap = jnp.minimum(table[i, j + 1], table[i + 1, j]) + x["gap"]
            table[i + 1, j + 1] = jnp.minimum(table[i, j] + x["C"][i, j], gap)
    return table[3, 5]


@example(
    """
    # the soft minimum over all monotone ways to walk through two series
    C[i,j] += (X[i,d] - Y[j,d]) ** 2
    for i:
        for j:
            above[i,j]  = exp(-R[i-1,j] / gamma) if i > 0 else 0
            before[i,j] = exp(-R[i,j-1] / gamma) if j > 0 else 0
            both[i,j]   = exp(-R[i-1,j-1] / gamma) if i > 0 and j > 0 else (1 if i == 0 and j == 0 else 0)
            R[i,j]      = C[i,j] - gamma * log(above[i,j] + before[i,j] + both[i,j])
    distance = R[size(i)-1,size(j)-1]
    """,
    wrt="X Y gamma",
    inputs=lambda g: {**normal(g, X=(3, 2), Y=(4, 2)), "gamma": np.array(1.5)},
    second_order=True,
)
def soft_dtw(x: Mapping[str, Any]) -> Any:
    cost = jnp.sum((x["X"][:, None] - x["Y"]) ** 2, axis=-1)
    table: dict[tuple[int, int], Any] = {}
    for i in range(3):
        for j in range(4):
            before = [table[at] for at in ((i - 1, j), (i, j - 1), (i - 1, j - 1)) if at in table]
            soft = -x["gamma"] * nn.logsumexp(-jnp.stack(before) / x["gamma"]) if before else 0
            table[i, j] = cost[i, j] + soft
    return table[2, 3]


@example(
    """
    # all shortest paths: one more stop allowed at each step
    size(k) = size(W, 0)
    D[0,i,j] = W[i,j]
    for k:
        D[k+1,i,j] = min(D[k,i,j], D[k,i,k] + D[k,k,j])
    Y[i,j] = D[size(k),i,j]
    """,
    wrt="W",
    inputs=lambda g: {"W": g.uniform(0.1, 3.0, (5, 5))},
)
def shortest_paths(x: Mapping[str, Any]) -> Any:
    distance = x["W"]
    for k in range(5):
        distance = jnp.minimum(distance, distance[:, k, None] + distance[k])
    return distance


@example(
    """
    A[i,j] += B[i,m] * B[j,m]
    A[i,i] += 1
    for j:
        S[i,j] += L[i,k] * L[j,k]              if k < j
        L[j,j]  = sqrt(A[j,j] - S[j,j])
        L[i,j]  = (A[i,j] - S[i,j]) / L[j,j]   if i > j
    return L
    """,
    wrt="B",
    inputs=lambda g: normal(g, B=(4, 3)),
    second_order=True,
)
def cholesky(x: Mapping[str, Any]) -> Any:
    return jnp.linalg.cholesky(x["B"] @ x["B"].T + jnp.eye(4))


@example(
    """
    for i down:
        S[i,n] += U[i,j] * X[j,n]   if j > i
        X[i,n]  = (B[i,n] - S[i,n]) / U[i,i]
    return X
    """,
    wrt="U B",
    inputs=lambda g: {**positive(g, U=(4, 4)), **normal(g, B=(4, 2))},
    second_order=True,
)
def triangular_solve(x: Mapping[str, Any]) -> Any:
    return jnp.linalg.solve(jnp.triu(x["U"]), x["B"])


@example(
    """
    # Newton's iteration for the inverse of a matrix
    size(k) = 5
    size(j) = size(A, 1)
    X[0,i,j] = 0.3 if i == j else 0
    for k:
        E[k,i,j]  += A[i,m] * X[k,m,j]
        F[k,i,j]  += X[k,i,m] * E[k,m,j]
        X[k+1,i,j] = 2 * X[k,i,j] - F[k,i,j]
    Y[i,j] = X[size(k),i,j]
    """,
    wrt="A",
    inputs=lambda g: {"A": 2 * np.eye(3) + 0.3 * g.standard_normal((3, 3))},
    second_order=True,
)
def newton_inverse(x: Mapping[str, Any]) -> Any:
    inverse = 0.3 * jnp.eye(3)
    for _ in range(5):
        inverse = 2 * inverse - inverse @ x["A"] @ inverse
    return inverse


@example(
    """
    # a pendulum, by the leapfrog rule
    size(t) = 10
    q[0,n] = q0[n]
    p[0,n] = p0[n]
    for t:
        half[t,n] = p[t,n] - 0.05 * gravity * sin(q[t,n])
        q[t+1,n]  = q[t,n] + 0.1 * half[t,n]
        p[t+1,n]  = half[t,n] - 0.05 * gravity * sin(q[t+1,n])
    energy[n] = 0.5 * p[size(t),n] ** 2 - gravity * cos(q[size(t),n])
    return energy, q
    """,
    wrt="q0 p0 gravity",
    inputs=lambda g: {**normal(g, q0=3, p0=3), **positive(g, gravity=())},
    second_order=True,
)
def pendulum(x: Mapping[str, Any]) -> Any:
    gravity = x["gravity"]

    def step(state: Any, _: None) -> tuple[Any, Any]:
        q, p = state
        half = p - 0.05 * gravity * jnp.sin(q)
        moved = q + 0.1 * half
        return (moved, half - 0.05 * gravity * jnp.sin(moved)), q

    (q, p), path = lax.scan(step, (x["q0"], x["p0"]), None, length=10)
    return {"energy": 0.5 * p**2 - gravity * jnp.cos(q), "q": jnp.vstack([path, q])}


@example(
    """
    # Horner's rule
    for k down:
        H[k,n] = c[k] + x[n] * (H[k+1,n] if k < size(k) - 1 else 0)
    y[n] = H[0,n]
    """,
    wrt="c x",
    inputs=lambda g: normal(g, c=6, x=4),
    second_order=True,
)
def polynomial(x: Mapping[str, Any]) -> Any:
    return jnp.polyval(x["c"][::-1], x["x"])


@example(
    """
    # a share d of the rank follows the links, the rest is spread evenly
    size(k) = 8
    out[j]   += A[i,j]
    R[0,i]    = 1 / size(i)
    for k:
        flow[k,i] += A[i,j] / out[j] * R[k,j]
        R[k+1,i]   = d * flow[k,i] + (1 - d) / size(i)
    rank[i] = R[size(k),i]
    """,
    wrt="A d",
    inputs=lambda g: {**positive(g, A=(4, 4)), "d": np.array(0.85)},
    second_order=True,
)
def page_rank(x: Mapping[str, Any]) -> Any:
    links = x["d"] * x["A"] / x["A"].sum(axis=0) + (1 - x["d"]) / 4
    return jnp.linalg.matrix_power(links, 8) @ jnp.full(4, 0.25)
