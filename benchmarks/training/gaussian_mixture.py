"""Gaussian mixture with diagonal covariances, with Adam."""

from __future__ import annotations

from typing import Any

import numpy as np
from workloads.numpy_parts import softmax_in_place

from . import data
from .twin import Arrays, Case, Sizes, Twin

LOG_ROOT = 0.9189385332046727  # log(2 pi) / 2


def make_data(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    return {"x": data.classes(sizes, dtype, generator)["x"]}


def numpy_gradient(p: Arrays, batch: Arrays) -> tuple[Any, Arrays]:
    x = batch["x"]
    b = len(x)
    inverse = np.exp(-p["spread"])
    R = (x[:, None] - p["mean"]) * inverse
    top = p["share"].max()
    weight = p["share"] - top - np.log(np.exp(p["share"] - top).sum())
    F = weight - 0.5 * np.square(R).sum(axis=2) - (p["spread"] + LOG_ROOT).sum(axis=1)
    most = F.max(axis=1)
    loss = -np.mean(most + np.log(np.exp(F - most[:, None]).sum(axis=1)))
    seed = softmax_in_place(F) / -b
    total = seed.sum(axis=0)
    R_seed = seed[:, :, None] * R
    return loss, {
        "share": total + np.exp(weight),
        "mean": R_seed.sum(axis=0) * inverse,
        "spread": (R_seed * R).sum(axis=0) - total[:, None],
    }


def jax_loss(jax: Any, p: Arrays, batch: Arrays) -> Any:
    R = (batch["x"][:, None] - p["mean"]) * jax.numpy.exp(-p["spread"])
    F = jax.nn.log_softmax(p["share"]) - 0.5 * (R * R).sum(axis=2) - (p["spread"] + LOG_ROOT).sum(axis=1)
    return -jax.scipy.special.logsumexp(F, axis=1).mean()


def torch_loss(torch: Any, p: Arrays, batch: Arrays) -> Any:
    R = (batch["x"][:, None] - p["mean"]) * (-p["spread"]).exp()
    F = p["share"].log_softmax(0) - 0.5 * (R * R).sum(dim=2) - (p["spread"] + LOG_ROOT).sum(dim=1)
    return -F.logsumexp(dim=1).mean()


TWIN = Twin(
    name="gaussian_mixture",
    title="Gaussian mixture, 16 wide, 10 components, batch 256",
    case=Case({"components": 10}, {"examples": 8192, "inputs": 16, "classes": 10}, batch=256),
    small=Case({"components": 3}, {"examples": 60, "inputs": 4, "classes": 3}, batch=12),
    examples=("x",),
    make_data=make_data,
    numpy_gradient=numpy_gradient,
    jax_loss=jax_loss,
    torch_loss=torch_loss,
    lr=0.01,
)
