"""Convolution, its transpose, pooling and padding: affine indices and `if inside`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .entry import example, jnp, lax, normal


def convolve(signal: Any, kernel: Any, **options: Any) -> Any:
    rank = kernel.ndim - 2
    options = {"window_strides": (1,) * rank, "padding": [(0, 0)] * rank, **options}
    return lax.conv_general_dilated(signal, kernel, **options)


@example(
    """
    Y[n,o,i] += X[n,c,i+u] * W[o,c,u]
    """,
    wrt="X W",
    inputs=lambda g: normal(g, X=(2, 3, 7), W=(4, 3, 3)),
    second_order=True,
)
def conv1d(x: Mapping[str, Any]) -> Any:
    return convolve(x["X"], x["W"])


@example(
    """
    size(i) = (size(X, 2) + 4 - 3*(size(u)-1) - 1) // 2 + 1
    Y[n,o,i] += X[n,c,2*i+3*u-2] * W[o,c,u]   if inside
    """,
    wrt="X W",
    inputs=lambda g: normal(g, X=(2, 2, 9), W=(3, 2, 3)),
    second_order=True,
)
def conv1d_strided_dilated_padded(x: Mapping[str, Any]) -> Any:
    return convolve(x["X"], x["W"], window_strides=(2,), padding=[(2, 2)], rhs_dilation=(3,))


@example(
    """
    stride: int = 1
    pad: int = 0
    size(i) = (size(X, 2) + 2*pad - size(u)) // stride + 1
    size(j) = (size(X, 3) + 2*pad - size(v)) // stride + 1
    Y[n,o,i,j] += X[n,c,stride*i+u-pad,stride*j+v-pad] * W[o,c,u,v]   if inside
    Y[n,o,i,j] += b[o]
    """,
    wrt="X W b",
    inputs=lambda g: {**normal(g, X=(2, 2, 5, 6), W=(3, 2, 3, 2), b=3), "stride": 2, "pad": 1},
    second_order=True,
)
def conv2d_static_stride(x: Mapping[str, Any]) -> Any:
    padding = [(x["pad"], x["pad"])] * 2
    return convolve(x["X"], x["W"], window_strides=(x["stride"],) * 2, padding=padding) + x["b"][:, None, None]


@example(
    """
    Y = conv2d(X, W, b, stride=2, padding=2, dilation=2)
    """,
    wrt="X W b",
    inputs=lambda g: normal(g, X=(1, 2, 5, 4), W=(2, 2, 2, 3), b=2),
)
def library_conv2d(x: Mapping[str, Any]) -> Any:
    options = {"window_strides": (2, 2), "padding": [(2, 2)] * 2, "rhs_dilation": (2, 2)}
    return convolve(x["X"], x["W"], **options) + x["b"][:, None, None]


@example(
    """
    # each channel has its own kernel
    size(i) = size(X, 2)
    Y[n,c,i] += X[n,c,i+u-1] * W[c,u]   if inside
    """,
    wrt="X W",
    inputs=lambda g: normal(g, X=(2, 3, 5), W=(3, 3)),
)
def conv1d_depthwise(x: Mapping[str, Any]) -> Any:
    return convolve(x["X"], x["W"][:, None], padding=[(1, 1)], feature_group_count=3)


@example(
    """
    size(Y, 2) = 3*(size(i)-1) + size(u)
    Y[n,o,3*i+u] += X[n,c,i] * W[c,o,u]
    """,
    wrt="X W",
    inputs=lambda g: normal(g, X=(2, 3, 4), W=(3, 2, 5)),
    second_order=True,
)
def conv1d_transposed(x: Mapping[str, Any]) -> Any:
    kernel = jnp.flip(x["W"].transpose(1, 0, 2), axis=2)
    return convolve(x["X"], kernel, padding=[(4, 4)], lhs_dilation=(3,))


@example(
    """
    size(Y, 2) = 2*(size(i)-1) + size(u) - 2
    size(Y, 3) = 2*(size(j)-1) + size(v) - 2
    Y[n,o,2*i+u-1,2*j+v-1] += X[n,c,i,j] * W[c,o,u,v]   if inside
    """,
    wrt="X W",
    inputs=lambda g: normal(g, X=(1, 2, 3, 2), W=(2, 3, 3, 4)),
    second_order=True,
)
def conv2d_transposed_cropped(x: Mapping[str, Any]) -> Any:
    kernel = jnp.flip(x["W"].transpose(1, 0, 2, 3), axis=(2, 3))
    return convolve(x["X"], kernel, padding=[(1, 1), (2, 2)], lhs_dilation=(2, 2))


def windows(signal: Any, size: int, stride: int) -> Any:
    """All windows of a matrix, as [i, j, u, v]."""
    rows, columns = (range(0, extent - size + 1, stride) for extent in signal.shape[-2:])
    picked = [[signal[..., r : r + size, c : c + size] for c in columns] for r in rows]
    return jnp.stack([jnp.stack(row, axis=-3) for row in picked], axis=-4)


@example(
    """
    # windows of 3 at a stride of 2 overlap
    size(u) = 3
    size(v) = 3
    Y[n,i,j] max= X[n,2*i+u,2*j+v]
    """,
    wrt="X",
    inputs=lambda g: normal(g, X=(2, 7, 6)),
    second_order=True,
)
def max_pooling(x: Mapping[str, Any]) -> Any:
    return windows(x["X"], 3, 2).max(axis=(-1, -2))


@example(
    """
    # outside of the signal there is no candidate
    size(u) = 3
    size(i) = size(X, 1)
    Y[n,i] max= X[n,i+u-1]   if inside
    """,
    wrt="X",
    inputs=lambda g: normal(g, X=(3, 5)),
)
def max_pooling_padded(x: Mapping[str, Any]) -> Any:
    padded = jnp.pad(x["X"], ((0, 0), (1, 1)), constant_values=-jnp.inf)
    return jnp.stack([padded[:, u : u + 5] for u in range(3)]).max(axis=0)


@example(
    """
    size(u) = 2
    size(v) = 2
    Y[n,i,j] += X[n,2*i+u,2*j+v] / (size(u) * size(v))
    """,
    wrt="X",
    inputs=lambda g: normal(g, X=(3, 4, 7)),
)
def average_pooling(x: Mapping[str, Any]) -> Any:
    return windows(x["X"], 2, 2).mean(axis=(-1, -2))


@example(
    """
    # beyond the border: Y reads the last sample again, Z reads backwards
    size(i) = size(X, 0)
    size(u) = 5
    Y[i] += X[min(max(i+u-2, 0), size(X, 0)-1)] * W[u]
    Z[i] += X[size(X, 0) - 1 - abs(size(X, 0) - 1 - i - u)] * W[u] ** 2
    """,
    wrt="X W",
    inputs=lambda g: normal(g, X=7, W=5),
    second_order=True,
)
def border_repeated_and_mirrored(x: Mapping[str, Any]) -> Any:
    repeated, mirrored = jnp.pad(x["X"], 2, mode="edge"), jnp.pad(x["X"], (0, 4), mode="reflect")
    kernel = x["W"]
    return {
        "Y": sum(kernel[u] * repeated[u : u + 7] for u in range(5)),
        "Z": sum(kernel[u] ** 2 * mirrored[u : u + 7] for u in range(5)),
    }


@example(
    """
    # the energy of a picture's jumps
    energy += sqrt((X[i+1,j] - X[i,j]) ** 2 + (X[i,j+1] - X[i,j]) ** 2 + 0.01)   if inside
    """,
    wrt="X",
    inputs=lambda g: normal(g, X=(5, 4)),
    second_order=True,
)
def total_variation(x: Mapping[str, Any]) -> Any:
    down = x["X"][1:, :-1] - x["X"][:-1, :-1]
    right = x["X"][:-1, 1:] - x["X"][:-1, :-1]
    return jnp.sum(jnp.sqrt(down**2 + right**2 + 0.01))
