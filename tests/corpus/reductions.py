"""Every operator that reduces: sums, products, extremes and their positions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .entry import example, jnp, nn, normal


@example(
    """
    P[i] *= X[i,j]
    """,
    wrt="X",
    inputs=lambda g: normal(g, X=(3, 4)),
    second_order=True,
)
def product(x: Mapping[str, Any]) -> Any:
    return jnp.prod(x["X"], axis=1)


def with_zeros(g: np.random.Generator) -> dict[str, Any]:
    """Rows with no zero, one, two, and nothing but zeros."""
    values = g.standard_normal((4, 4))
    values[1, 2] = values[2, 0] = values[2, 3] = 0
    values[3] = 0
    return {"X": values}


@example(
    """
    P[i] *= X[i,j]
    """,
    wrt="X",
    inputs=with_zeros,
    second_order=True,
)
def product_with_zeros(x: Mapping[str, Any]) -> Any:
    columns = x["X"].T
    return columns[0] * columns[1] * columns[2] * columns[3]


@example(
    """
    # two statements share one product
    P[i] *= X[i,j] + 2
    P[i] *= sin(Y[i])
    """,
    wrt="X Y",
    inputs=lambda g: normal(g, X=(3, 2), Y=3),
    second_order=True,
)
def product_of_two_statements(x: Mapping[str, Any]) -> Any:
    return jnp.prod(x["X"] + 2, axis=1) * jnp.sin(x["Y"])


@example(
    """
    top[i]    max= X[i,j] * Y[j]
    bottom    min= X[i,j] ** 2
    """,
    wrt="X Y",
    inputs=lambda g: normal(g, X=(4, 5), Y=5),
    second_order=True,
)
def extremes(x: Mapping[str, Any]) -> Any:
    return {"top": jnp.max(x["X"] * x["Y"], axis=1), "bottom": jnp.min(x["X"] ** 2)}


@example(
    """
    # the best of two sources
    best[i] max= X[i,j]
    best[i] max= Y[k,i] ** 2
    """,
    wrt="X Y",
    inputs=lambda g: normal(g, X=(4, 3), Y=(2, 4)),
    second_order=True,
)
def maximum_of_two_statements(x: Mapping[str, Any]) -> Any:
    return jnp.maximum(jnp.max(x["X"], axis=1), jnp.max(x["Y"] ** 2, axis=0))


@example(
    """
    top[i]      max= X[i,j]
    where_top[i] argmax= X[i,j]
    far[j]      argmin= X[i,j]
    picked[i]     = Y[where_top[i]] * top[i]
    return picked, where_top, far
    """,
    wrt="X Y",
    inputs=lambda g: normal(g, X=(4, 3), Y=3),
    second_order=True,
)
def positions(x: Mapping[str, Any]) -> Any:
    place = jnp.argmax(x["X"], axis=1)
    return {
        "picked": x["Y"][place] * jnp.max(x["X"], axis=1),
        "where_top": place,
        "far": jnp.argmin(x["X"], axis=0),
    }


@example(
    """
    M[i] max= X[i,j]
    Z[i]   += exp(X[i,j] - M[i])
    Y[i]    = M[i] + log(Z[i])
    """,
    wrt="X",
    inputs=lambda g: normal(g, X=(3, 5)),
    second_order=True,
)
def logsumexp(x: Mapping[str, Any]) -> Any:
    return nn.logsumexp(x["X"], axis=1)


@example(
    """
    mean      += X[i] / size(i)
    moment2   += (X[i] - mean) ** 2 / size(i)
    moment3   += (X[i] - mean) ** 3 / size(i)
    skew       = moment3 / moment2 ** 1.5
    """,
    wrt="X",
    inputs=lambda g: normal(g, X=7),
    second_order=True,
)
def skewness(x: Mapping[str, Any]) -> Any:
    centred = x["X"] - jnp.mean(x["X"])
    return jnp.mean(centred**3) / jnp.mean(centred**2) ** 1.5


@example(
    """
    Y[i,j]  = X[i]
    S[j]   += 3 * X[i] - Z[j]
    S[j]   -= X[i] * Z[j]
    """,
    wrt="X Z",
    inputs=lambda g: normal(g, X=3, Z=1),
    second_order=True,
)
def broadcast_by_name(x: Mapping[str, Any]) -> Any:
    column, row = x["X"][:, None], x["Z"]
    return {"Y": column + 0 * row, "S": jnp.sum(3 * column - row - column * row, axis=0)}
