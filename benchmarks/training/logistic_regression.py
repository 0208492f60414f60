"""Logistic regression with gradient descent."""

from __future__ import annotations

from typing import Any

from . import data
from .numpy_parts import cross_entropy, linear, linear_backward
from .twin import Arrays, Case, Twin


def numpy_gradient(p: Arrays, batch: Arrays) -> tuple[Any, Arrays]:
    loss, seed = cross_entropy(linear(batch["x"], p["W"], p["bias"]), batch["label"])
    W, bias, _ = linear_backward(seed, batch["x"], p["W"], input_too=False)
    return loss, {"W": W, "bias": bias}


def jax_loss(jax: Any, p: Arrays, batch: Arrays) -> Any:
    logs = jax.nn.log_softmax(batch["x"] @ p["W"].T + p["bias"])
    return -jax.numpy.take_along_axis(logs, batch["label"][:, None], axis=1).mean()


def torch_loss(torch: Any, p: Arrays, batch: Arrays) -> Any:
    scores = torch.nn.functional.linear(batch["x"], p["W"], p["bias"])
    return torch.nn.functional.cross_entropy(scores, batch["label"])


TWIN = Twin(
    name="logistic_regression",
    title="Logistic regression 64-10, batch 64",
    case=Case({}, {"examples": 8192, "inputs": 64, "classes": 10}, batch=64),
    small=Case({}, {"examples": 60, "inputs": 7, "classes": 4}, batch=12),
    examples=("x", "label"),
    make_data=data.classes,
    numpy_gradient=numpy_gradient,
    jax_loss=jax_loss,
    torch_loss=torch_loss,
    optimizer="sgd",
    lr=0.1,
)
