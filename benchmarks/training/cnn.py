"""Convolutional network with Adam."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from . import data
from .numpy_parts import cross_entropy
from .twin import Array, Arrays, Case, Twin

STRIDES = (1, 2)  # of the two convolutions

# In numpy and JAX the channels stand last, so that a convolution is one product of matrices.


def convolution(x: Array, W: Array, bias: Array, stride: int) -> tuple[Array, Array]:
    """The output, and the windows as rows."""
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = sliding_window_view(padded, (3, 3), axis=(1, 2))[:, ::stride, ::stride]
    b, y, w = windows.shape[:3]
    rows = windows.reshape(b * y * w, -1)
    out = rows @ W.reshape(len(W), -1).T
    out += bias
    return out.reshape(b, y, w, len(W)), rows


def convolution_backward(seed: Array, rows: Array, W: Array) -> tuple[Array, Array]:
    """The gradients by the weights."""
    flat = seed.reshape(-1, len(W))
    return (flat.T @ rows).reshape(W.shape), flat.sum(axis=0)


def convolution_input(seed: Array, W: Array, stride: int, shape: tuple[int, ...]) -> Array:
    """The gradient by the input."""
    b, y, w, f = seed.shape
    parts = (seed.reshape(-1, f) @ W.reshape(f, -1)).reshape(b, y, w, W.shape[1], 3, 3)
    padded = np.zeros((b, shape[1] + 2, shape[2] + 2, shape[3]), seed.dtype)
    for u in range(3):
        for v in range(3):
            padded[:, u : u + stride * y : stride, v : v + stride * w : stride] += parts[..., u, v]
    return padded[:, 1:-1, 1:-1]


def numpy_gradient(p: Arrays, batch: Arrays) -> tuple[Any, Arrays]:
    B, rows1 = convolution(batch["image"].transpose(0, 2, 3, 1), p["W1"], p["b1"], STRIDES[0])
    np.maximum(B, 0, out=B)
    E, rows2 = convolution(B, p["W2"], p["b2"], STRIDES[1])
    np.maximum(E, 0, out=E)
    flat = E.reshape(len(E), -1)
    c, g, m, n = p["W"].shape
    W = p["W"].transpose(0, 2, 3, 1).reshape(c, -1)
    loss, seed = cross_entropy(flat @ W.T + p["bias"], batch["label"])
    E_grad = (seed @ W).reshape(E.shape)
    E_grad *= E > 0
    W2, b2 = convolution_backward(E_grad, rows2, p["W2"])
    B_grad = convolution_input(E_grad, p["W2"], STRIDES[1], B.shape) * (B > 0)
    W1, b1 = convolution_backward(B_grad, rows1, p["W1"])
    W_grad = (seed.T @ flat).reshape(c, m, n, g).transpose(0, 3, 1, 2)
    return loss, {"W1": W1, "b1": b1, "W2": W2, "b2": b2, "W": W_grad, "bias": seed.sum(axis=0)}


def jax_loss(jax: Any, p: Arrays, batch: Arrays) -> Any:
    x = batch["image"].transpose(0, 2, 3, 1)
    edge, axes = ((1, 1), (1, 1)), ("NHWC", "HWIO", "NHWC")
    for W, bias, stride in zip((p["W1"], p["W2"]), (p["b1"], p["b2"]), STRIDES, strict=True):
        W = W.transpose(2, 3, 1, 0)
        x = jax.nn.relu(jax.lax.conv_general_dilated(x, W, (stride, stride), edge, dimension_numbers=axes) + bias)
    scores = x.reshape(len(x), -1) @ p["W"].transpose(2, 3, 1, 0).reshape(-1, len(p["W"])) + p["bias"]
    return -jax.numpy.take_along_axis(jax.nn.log_softmax(scores), batch["label"][:, None], axis=1).mean()


def torch_loss(torch: Any, p: Arrays, batch: Arrays) -> Any:
    functional = torch.nn.functional
    x = batch["image"]
    for W, bias, stride in zip((p["W1"], p["W2"]), (p["b1"], p["b2"]), STRIDES, strict=True):
        x = functional.conv2d(x, W, bias, padding=1, stride=stride).relu()
    scores = functional.linear(x.flatten(1), p["W"].flatten(1), p["bias"])
    return functional.cross_entropy(scores, batch["label"])


TWIN = Twin(
    name="cnn",
    title="CNN of 8 x 8 images, 16 and 32 channels, batch 64",
    case=Case({"width": 16}, {"examples": 2048, "pixels": 8, "channels": 1, "classes": 10}, batch=64),
    small=Case({"width": 3}, {"examples": 40, "pixels": 7, "channels": 2, "classes": 4}, batch=8),
    examples=("image", "label"),
    make_data=data.images,
    numpy_gradient=numpy_gradient,
    jax_loss=jax_loss,
    torch_loss=torch_loss,
)
