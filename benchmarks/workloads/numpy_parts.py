"""Pieces of the numpy twins that several workloads share: each forward pass with its backward pass."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

ROOT_HALF = 0.5**0.5
NORMAL_DENSITY = 0.3989422804014327  # of the standard normal distribution, at 0


def softmax_in_place(S: Array) -> Array:
    """Over the last axis."""
    S -= S.max(axis=-1, keepdims=True)
    np.exp(S, out=S)
    S /= S.sum(axis=-1, keepdims=True)
    return S


def cross_entropy(S: Array, label: Array) -> tuple[Array, Array]:
    """The mean loss of rows of scores, and its gradient."""
    rows = np.arange(len(S))
    shifted = S - S.max(axis=1, keepdims=True)
    chosen = shifted[rows, label]
    np.exp(shifted, out=shifted)
    total = shifted.sum(axis=1, keepdims=True)
    loss = np.mean(np.log(total[:, 0]) - chosen)
    shifted *= 1 / (total * len(S))
    shifted[rows, label] -= 1 / len(S)
    return loss, shifted


def attention(Q: Array, K: Array, V: Array, causal: bool) -> tuple[Array, Array]:
    """The output, and the probabilities that the backward pass needs. Leading axes are batches."""
    S = (Q * Q.shape[-1] ** -0.5) @ K.swapaxes(-1, -2)
    if causal:
        S[..., ~np.tri(S.shape[-2], S.shape[-1], dtype=bool)] = -np.inf
    P = softmax_in_place(S)
    return P @ V, P


def attention_backward(Q: Array, K: Array, V: Array, mixed: Array, P: Array, seed: Array) -> tuple[Array, Array, Array]:
    """From the output and the probabilities of the forward pass."""
    S_grad = seed @ V.swapaxes(-1, -2)
    S_grad -= (seed * mixed).sum(axis=-1, keepdims=True)
    S_grad *= P
    S_grad *= Q.shape[-1] ** -0.5
    return S_grad @ K, S_grad.swapaxes(-1, -2) @ Q, P.swapaxes(-1, -2) @ seed


def layer_norm(X: Array, gain: Array, bias: Array) -> tuple[Array, Array, Array]:
    """The output; the normalised rows and their scale, which the backward pass needs."""
    normalised = X - X.mean(axis=-1, keepdims=True)
    scale = 1 / np.sqrt(np.square(normalised).mean(axis=-1, keepdims=True) + 1e-5)
    normalised *= scale
    return normalised * gain + bias, normalised, scale


def layer_norm_backward(seed: Array, normalised: Array, scale: Array, gain: Array) -> tuple[Array, Array, Array]:
    """The gradients by the input, the gain and the bias."""
    leading = tuple(range(seed.ndim - 1))
    product = seed * normalised
    gain_grad, bias_grad = product.sum(axis=leading), seed.sum(axis=leading)
    inner = seed * gain
    product *= gain
    inner -= inner.mean(axis=-1, keepdims=True)
    inner -= normalised * product.mean(axis=-1, keepdims=True)
    inner *= scale
    return inner, gain_grad, bias_grad


def gelu(X: Array) -> tuple[Array, Array]:
    """x times the normal distribution function, and that function."""
    from scipy.special import erf  # numpy has none; other workers do without scipy

    share = erf(X * ROOT_HALF)
    share += 1
    share *= 0.5
    return X * share, share


def gelu_backward(seed: Array, X: Array, share: Array) -> Array:
    slope = np.square(X)
    slope *= -0.5
    np.exp(slope, out=slope)
    slope *= NORMAL_DENSITY
    slope *= X
    slope += share
    slope *= seed
    return slope
