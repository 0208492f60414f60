"""Convolutional network with Adam."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from . import data
from .numpy_parts import cross_entropy
from .twin import Array, Arrays, Case, Twin

# In numpy the channels stand last, so that a convolution is one product of matrices.


def convolution(x: Array, W: Array, bias: Array) -> tuple[Array, Array]:
    """The output, and the windows as rows."""
    b, y, w, _ = x.shape
    edge = W.shape[2] // 2
    padded = np.pad(x, ((0, 0), (edge, edge), (edge, edge), (0, 0)))
    rows = sliding_window_view(padded, W.shape[2:], axis=(1, 2)).reshape(b * y * w, -1)
    out = rows @ W.reshape(len(W), -1).T
    out += bias
    return out.reshape(b, y, w, len(W)), rows


def convolution_backward(seed: Array, rows: Array, W: Array, input_too: bool) -> tuple[Array, Array, Array | None]:
    b, y, w, f = seed.shape
    flat = seed.reshape(-1, f)
    W_grad, bias_grad = (flat.T @ rows).reshape(W.shape), flat.sum(axis=0)
    if not input_too:
        return W_grad, bias_grad, None
    _, c, u, v = W.shape
    parts = (flat @ W.reshape(f, -1)).reshape(b, y, w, c, u, v)
    padded = np.zeros((b, y + u - 1, w + v - 1, c), seed.dtype)
    for k in range(u):
        for n in range(v):
            padded[:, k : k + y, n : n + w] += parts[..., k, n]
    return W_grad, bias_grad, padded[:, u // 2 : u // 2 + y, v // 2 : v // 2 + w]


def pool(x: Array) -> tuple[Array, Array]:
    """relu and the largest of 2 x 2, and which of the four it is."""
    b, y, w, c = x.shape
    fours = x[:, : y // 2 * 2, : w // 2 * 2].reshape(b, y // 2, 2, w // 2, 2, c).transpose(0, 1, 3, 5, 2, 4)
    fours = fours.reshape(b, y // 2, w // 2, c, 4)
    return np.maximum(fours.max(axis=-1), 0), fours.argmax(axis=-1)


def pool_backward(seed: Array, pooled: Array, which: Array, shape: tuple[int, ...]) -> Array:
    b, y, w, c = seed.shape
    fours = ((which[..., None] == np.arange(4)) * (seed * (pooled > 0))[..., None]).reshape(b, y, w, c, 2, 2)
    out = np.zeros(shape, seed.dtype)
    out[:, : 2 * y, : 2 * w] = fours.transpose(0, 1, 4, 2, 5, 3).reshape(b, 2 * y, 2 * w, c)
    return out


def numpy_gradient(p: Arrays, batch: Arrays) -> tuple[Any, Arrays]:
    A, rows1 = convolution(batch["image"].transpose(0, 2, 3, 1), p["W1"], p["b1"])
    P1, which1 = pool(A)
    D, rows2 = convolution(P1, p["W2"], p["b2"])
    P2, which2 = pool(D)
    flat = P2.reshape(len(P2), -1)
    W = p["W"].transpose(0, 2, 3, 1).reshape(len(p["W"]), -1)
    loss, seed = cross_entropy(flat @ W.T + p["bias"], batch["label"])
    c, g, m, n = p["W"].shape
    D_grad = pool_backward((seed @ W).reshape(P2.shape), P2, which2, D.shape)
    W2, b2, P1_grad = convolution_backward(D_grad, rows2, p["W2"], input_too=True)
    W1, b1, _ = convolution_backward(pool_backward(P1_grad, P1, which1, A.shape), rows1, p["W1"], input_too=False)
    W_grad = (seed.T @ flat).reshape(c, m, n, g).transpose(0, 3, 1, 2)
    return loss, {"W1": W1, "b1": b1, "W2": W2, "b2": b2, "W": W_grad, "bias": seed.sum(axis=0)}


def jax_loss(jax: Any, p: Arrays, batch: Arrays) -> Any:
    """With the channels last, and the largest of neighbours by a reshape: the fastest way on a CPU."""
    x = batch["image"].transpose(0, 2, 3, 1)
    for W, bias in ((p["W1"], p["b1"]), (p["W2"], p["b2"])):
        axes = ("NHWC", "HWIO", "NHWC")
        x = jax.lax.conv_general_dilated(x, W.transpose(2, 3, 1, 0), (1, 1), "SAME", dimension_numbers=axes) + bias
        b, y, w, c = x.shape
        fours = x[:, : y // 2 * 2, : w // 2 * 2].reshape(b, y // 2, 2, w // 2, 2, c)
        x = jax.nn.relu(fours).max(axis=(2, 4))
    scores = x.reshape(len(x), -1) @ p["W"].transpose(2, 3, 1, 0).reshape(-1, len(p["W"])) + p["bias"]
    return -jax.numpy.take_along_axis(jax.nn.log_softmax(scores), batch["label"][:, None], axis=1).mean()


def torch_loss(torch: Any, p: Arrays, batch: Arrays) -> Any:
    functional = torch.nn.functional
    x = batch["image"]
    for W, bias in ((p["W1"], p["b1"]), (p["W2"], p["b2"])):
        x = functional.max_pool2d(functional.conv2d(x, W, bias, padding=W.shape[2] // 2).relu(), 2)
    scores = functional.linear(x.flatten(1), p["W"].flatten(1), p["bias"])
    return functional.cross_entropy(scores, batch["label"])


TWIN = Twin(
    name="cnn",
    title="CNN of 8 x 8 images, 16 and 32 channels, batch 64",
    case=Case({"width": 16}, {"examples": 2048, "pixels": 8, "channels": 1, "classes": 10}, batch=64),
    small=Case({"width": 3}, {"examples": 40, "pixels": 8, "channels": 2, "classes": 4}, batch=8),
    examples=("image", "label"),
    make_data=data.images,
    numpy_gradient=numpy_gradient,
    jax_loss=jax_loss,
    torch_loss=torch_loss,
)
