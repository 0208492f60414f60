"""Multi-layer perceptron with Adam."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import data
from .numpy_parts import cross_entropy, linear, linear_backward
from .twin import Array, Arrays, Case, Twin


def numpy_gradient(p: Arrays, batch: Arrays) -> tuple[Any, Arrays]:
    inner = [*zip(p["W"], p["bias"], strict=True)]
    layers = [(p["W_in"], p["b_in"]), *inner]
    values = [batch["x"]]
    for W, bias in layers:
        h = linear(values[-1], W, bias)
        values.append(np.maximum(h, 0, out=h))
    loss, seed = cross_entropy(linear(values[-1], p["W_out"], p["b_out"]), batch["label"])
    W_out, b_out, seed = linear_backward(seed, values[-1], p["W_out"])
    grads: list[tuple[Array, Array]] = []
    for depth in reversed(range(len(layers))):
        seed *= values[depth + 1] > 0
        W, bias, seed = linear_backward(seed, values[depth], layers[depth][0], input_too=depth > 0)
        grads.insert(0, (W, bias))
    return loss, {
        "W_in": grads[0][0],
        "b_in": grads[0][1],
        "W": np.array([W for W, _ in grads[1:]]).reshape(p["W"].shape),
        "bias": np.array([bias for _, bias in grads[1:]]).reshape(p["bias"].shape),
        "W_out": W_out,
        "b_out": b_out,
    }


def jax_loss(jax: Any, p: Arrays, batch: Arrays) -> Any:
    h = jax.nn.relu(batch["x"] @ p["W_in"].T + p["b_in"])
    for layer in range(len(p["W"])):
        h = jax.nn.relu(h @ p["W"][layer].T + p["bias"][layer])
    logs = jax.nn.log_softmax(h @ p["W_out"].T + p["b_out"])
    return -jax.numpy.take_along_axis(logs, batch["label"][:, None], axis=1).mean()


def torch_loss(torch: Any, p: Arrays, batch: Arrays) -> Any:
    functional = torch.nn.functional
    h = functional.linear(batch["x"], p["W_in"], p["b_in"]).relu()
    for layer in range(len(p["W"])):
        h = functional.linear(h, p["W"][layer], p["bias"][layer]).relu()
    return functional.cross_entropy(functional.linear(h, p["W_out"], p["b_out"]), batch["label"])


TWIN = Twin(
    name="mlp",
    title="MLP 64-128-10, batch 64",
    case=Case({"width": 128, "layers": 1}, {"examples": 8192, "inputs": 64, "classes": 10}, batch=64),
    small=Case({"width": 9, "layers": 2}, {"examples": 60, "inputs": 7, "classes": 4}, batch=12),
    examples=("x", "label"),
    make_data=data.classes,
    numpy_gradient=numpy_gradient,
    jax_loss=jax_loss,
    torch_loss=torch_loss,
)
