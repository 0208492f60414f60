"""Scalar functions, branches and branches not taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .entry import example, jnp, lax, nn, normal, positive, special


@example(
    """
    A[i] = gelu(X[i])
    B[i] = silu(X[i])
    C[i] = softplus(X[i])
    D[i] = erf(X[i])
    E[i] = sigmoid(X[i])
    F[i] = relu(X[i])
    G[i] = tanh(X[i])
    """,
    wrt="X",
    inputs=lambda g: {"X": 2 * g.standard_normal(9)},
    second_order=True,
)
def activations(x: Mapping[str, Any]) -> Any:
    value = x["X"]
    return {
        "A": nn.gelu(value, approximate=False),
        "B": nn.silu(value),
        "C": nn.softplus(value),
        "D": special.erf(value),
        "E": nn.sigmoid(value),
        "F": nn.relu(value),
        "G": jnp.tanh(value),
    }


@example(
    """
    A[i] = exp(X[i]) + expm1(X[i])
    B[i] = log(X[i]) * log1p(X[i])
    C[i] = sqrt(X[i]) + abs(X[i] - 1)
    D[i] = sinh(X[i]) / cosh(X[i])
    """,
    wrt="X",
    inputs=lambda g: positive(g, X=6),
    second_order=True,
)
def exponentials_and_roots(x: Mapping[str, Any]) -> Any:
    value = x["X"]
    return {
        "A": jnp.exp(value) + jnp.expm1(value),
        "B": jnp.log(value) * jnp.log1p(value),
        "C": jnp.sqrt(value) + jnp.abs(value - 1),
        "D": jnp.sinh(value) / jnp.cosh(value),
    }


@example(
    """
    A[i] = sin(X[i]) * cos(X[i])
    B[i] = tan(X[i])
    C[i] = asin(X[i]) + acos(X[i]) ** 2
    D[i] = atan(X[i])
    """,
    wrt="X",
    inputs=lambda g: {"X": g.uniform(-0.9, 0.9, 6)},
    second_order=True,
)
def trigonometry(x: Mapping[str, Any]) -> Any:
    value = x["X"]
    return {
        "A": jnp.sin(value) * jnp.cos(value),
        "B": jnp.tan(value),
        "C": jnp.arcsin(value) + jnp.arccos(value) ** 2,
        "D": jnp.arctan(value),
    }


@example(
    """
    A[i,j] = atan2(X[i], Y[j])
    B[i,j] = hypot(X[i], Y[j])
    C[i,j] = pow(abs(X[i]), Y[j])
    D[i,j] = abs(X[i]) ** Y[j] + X[i] ** 3
    """,
    wrt="X Y",
    inputs=lambda g: normal(g, X=4, Y=3),
    second_order=True,
)
def functions_of_two(x: Mapping[str, Any]) -> Any:
    first, second = x["X"][:, None], x["Y"]
    power = jnp.abs(first) ** second
    return {
        "A": jnp.arctan2(first, second),
        "B": jnp.hypot(first, second),
        "C": power,
        "D": power + first**3,
    }


@example(
    """
    A[i] = min(X[i], Y[i], 0.3) + max(X[i] * Y[i], Y[i])
    B[i] = X[i] * floor(Y[i]) + sign(X[i]) * Y[i]
    C[i] = X[i] % 0.7 + stop(X[i]) * Y[i]
    D[i] = where(X[i] < Y[i], X[i] * Y[i], X[i] / Y[i])
    """,
    wrt="X Y",
    inputs=lambda g: normal(g, X=8, Y=8),
    second_order=True,
)
def kinks(x: Mapping[str, Any]) -> Any:
    a, b = x["X"], x["Y"]
    return {
        "A": jnp.minimum(jnp.minimum(a, b), 0.3) + jnp.maximum(a * b, b),
        "B": a * jnp.floor(b) + jnp.sign(a) * b,
        "C": jnp.remainder(a, 0.7) + lax.stop_gradient(a) * b,
        "D": jnp.where(a < b, a * b, a / b),
    }


@example(
    """
    # neither log nor sqrt is asked where it has no value
    A[i] = log(X[i]) if X[i] > 0 else X[i] ** 2
    B[i] = where(X[i] < 0, 1, sqrt(X[i]) * Y[i])
    C[i] = sqrt(X[i])   if X[i] > 0
    """,
    wrt="X Y",
    inputs=lambda g: {"X": np.array([1.5, -0.5, 0.25, -2.0, 3.0]), **normal(g, Y=5)},
    second_order=True,
)
def branch_not_taken(x: Mapping[str, Any]) -> Any:
    value, taken = x["X"], x["X"] > 0
    safe = jnp.where(taken, value, 1)
    return {
        "A": jnp.where(taken, jnp.log(safe), value**2),
        "B": jnp.where(taken, jnp.sqrt(safe) * x["Y"], 1),
        "C": jnp.where(taken, jnp.sqrt(safe), 0),
    }


@example(
    """
    # NaN in the data is harmless where it is not read
    loss += W[j] * (X[i,j] if known[i,j] == 1 else guess[j])
    """,
    wrt="X W guess",
    inputs=lambda g: {
        **normal(g, W=3, guess=3),
        "X": np.array([[0.5, np.nan, 1.0], [np.nan, np.nan, -2.0]]),
        "known": np.array([[1, 0, 1], [0, 0, 1]]),
    },
)
def missing_values(x: Mapping[str, Any]) -> Any:
    return jnp.sum(jnp.where(x["known"] == 1, x["X"], x["guess"]) @ x["W"])


@example(
    """
    # Huber's loss, and one that gives up on what is far away
    r[n]     = X[n] - Y[n]
    huber   += 0.5 * r[n] ** 2 if abs(r[n]) < 1 else abs(r[n]) - 0.5
    clipped += r[n] ** 2   if r[n] * r[n] < 4 and not r[n] > 1.5
    """,
    wrt="X Y",
    inputs=lambda g: normal(g, X=9, Y=9),
    second_order=True,
)
def robust_losses(x: Mapping[str, Any]) -> Any:
    rest = x["X"] - x["Y"]
    near = (rest**2 < 4) & (rest <= 1.5)
    return {
        "huber": jnp.sum(jnp.where(jnp.abs(rest) < 1, 0.5 * rest**2, jnp.abs(rest) - 0.5)),
        "clipped": jnp.sum(jnp.where(near, rest**2, 0)),
    }


@example(
    """
    y = exp(a) * b / (1 + a ** 2) - b
    """,
    wrt="a b",
    inputs=lambda g: normal(g, a=(), b=()),
    second_order=True,
)
def scalars_only(x: Mapping[str, Any]) -> Any:
    return jnp.exp(x["a"]) * x["b"] / (1 + x["a"] ** 2) - x["b"]
