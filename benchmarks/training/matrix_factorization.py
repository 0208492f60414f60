"""Matrix factorisation of ratings with Adam."""

from __future__ import annotations

from typing import Any

import numpy as np

from .numpy_parts import one_hot
from .twin import Array, Arrays, Case, Sizes, Twin

DECAY = 0.02  # as the model has it


def make_data(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    user = generator.integers(sizes["users"], size=sizes["examples"])
    item = generator.integers(sizes["items"], size=sizes["examples"])
    user[-1], item[-1] = sizes["users"] - 1, sizes["items"] - 1  # so that the data tells how many there are
    U, V = (generator.standard_normal((sizes[name], 3)) for name in ("users", "items"))
    noise = 0.1 * generator.standard_normal(sizes["examples"])
    return {"user": user, "item": item, "rating": (3 + (U[user] * V[item]).sum(axis=1) + noise).astype(dtype)}


def numpy_gradient(p: Arrays, batch: Arrays) -> tuple[Any, Arrays]:
    user, item = batch["user"], batch["item"]
    b = len(user)
    U, V, of_user, of_item = p["U"][user], p["V"][item], p["of_user"][user], p["of_item"][item]
    error = p["mean"] + of_user + of_item + (U * V).sum(axis=1) - batch["rating"]
    squares = np.square(of_user).sum() + np.square(of_item).sum() + np.square(U).sum() + np.square(V).sum()
    loss = np.square(error).mean() + DECAY * squares / b

    def collected(change: Array, number: Array, count: int) -> Array:
        return one_hot(number, count, change.dtype).T @ change

    seed = error * (2 / b)
    decay = 2 * DECAY / b
    users, items = len(p["U"]), len(p["V"])
    return loss, {
        "U": collected(seed[:, None] * V + decay * U, user, users),
        "V": collected(seed[:, None] * U + decay * V, item, items),
        "of_user": collected(seed + decay * of_user, user, users),
        "of_item": collected(seed + decay * of_item, item, items),
        "mean": seed.sum(),
    }


def jax_loss(jax: Any, p: Arrays, batch: Arrays) -> Any:
    user, item = batch["user"], batch["item"]
    U, V, of_user, of_item = p["U"][user], p["V"][item], p["of_user"][user], p["of_item"][item]
    error = p["mean"] + of_user + of_item + (U * V).sum(axis=1) - batch["rating"]
    squares = (of_user**2).sum() + (of_item**2).sum() + (U**2).sum() + (V**2).sum()
    return (error**2).mean() + DECAY * squares / len(user)


def torch_loss(torch: Any, p: Arrays, batch: Arrays) -> Any:
    return jax_loss(None, p, batch)  # the same text serves both


TWIN = Twin(
    name="matrix_factorization",
    title="Matrix factorisation, 500 users, 400 items, rank 16, batch 256",
    case=Case({"rank": 16}, {"examples": 16384, "users": 500, "items": 400}, batch=256),
    small=Case({"rank": 3}, {"examples": 60, "users": 9, "items": 8}, batch=12),
    examples=("user", "item", "rating"),
    make_data=make_data,
    numpy_gradient=numpy_gradient,
    jax_loss=jax_loss,
    torch_loss=torch_loss,
    lr=0.01,
)
