"""Autoencoder with Adam."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import data
from .numpy_parts import linear, linear_backward
from .twin import Arrays, Case, Sizes, Twin


def make_data(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    return {"x": data.classes(sizes, dtype, generator)["x"]}


def numpy_gradient(p: Arrays, batch: Arrays) -> tuple[Any, Arrays]:
    x = batch["x"]
    H = np.maximum(linear(x, p["W1"], p["b1"]), 0)
    code = linear(H, p["W2"], p["b2"])
    G = np.maximum(linear(code, p["W3"], p["b3"]), 0)
    error = linear(G, p["W4"], p["b4"]) - x
    W4, b4, seed = linear_backward(error * (2 / x.size), G, p["W4"])
    W3, b3, seed = linear_backward(seed * (G > 0), code, p["W3"])
    W2, b2, seed = linear_backward(seed, H, p["W2"])
    W1, b1, _ = linear_backward(seed * (H > 0), x, p["W1"], input_too=False)
    grads = {"W1": W1, "b1": b1, "W2": W2, "b2": b2, "W3": W3, "b3": b3, "W4": W4, "b4": b4}
    return np.square(error).mean(), grads


def jax_loss(jax: Any, p: Arrays, batch: Arrays) -> Any:
    H = jax.nn.relu(batch["x"] @ p["W1"].T + p["b1"])
    G = jax.nn.relu((H @ p["W2"].T + p["b2"]) @ p["W3"].T + p["b3"])
    return ((G @ p["W4"].T + p["b4"] - batch["x"]) ** 2).mean()


def torch_loss(torch: Any, p: Arrays, batch: Arrays) -> Any:
    functional = torch.nn.functional
    H = functional.linear(batch["x"], p["W1"], p["b1"]).relu()
    G = functional.linear(functional.linear(H, p["W2"], p["b2"]), p["W3"], p["b3"]).relu()
    return functional.mse_loss(functional.linear(G, p["W4"], p["b4"]), batch["x"])


TWIN = Twin(
    name="autoencoder",
    title="Autoencoder 64-128-16-128-64, batch 64",
    case=Case({"width": 128, "code": 16}, {"examples": 8192, "inputs": 64, "classes": 10}, batch=64),
    small=Case({"width": 9, "code": 3}, {"examples": 60, "inputs": 7, "classes": 4}, batch=12),
    examples=("x",),
    make_data=make_data,
    numpy_gradient=numpy_gradient,
    jax_loss=jax_loss,
    torch_loss=torch_loss,
)
