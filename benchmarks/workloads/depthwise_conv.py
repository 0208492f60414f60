"""Convolution of each channel with a small kernel of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.cost import Cost
from harness.workload import Array, Arrays, Results, Sizes, Workload, normal

TEXT = "Y[n,c,i,j] += X[n,c,i+u,j+v] * W[c,u,v]"


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    n, c, edge, kernel = sizes["batch"], sizes["channels"], sizes["edge"], sizes["kernel"]
    out = edge - kernel + 1
    return {
        "X": normal(generator, dtype, n, c, edge, edge),
        "W": normal(generator, dtype, c, kernel, kernel, scale=1 / kernel),
        "Y.grad": normal(generator, dtype, n, c, out, out),
    }


def numpy_twin(X: Array, W: Array, seed: Array) -> Results:
    """One shifted multiply-add for each element of the kernel."""
    out = seed.shape[-1]
    Y, X_grad, W_grad = np.zeros_like(seed), np.zeros_like(X), np.empty_like(W)
    product = np.empty_like(seed)
    for u in range(W.shape[1]):
        for v in range(W.shape[2]):
            window = X[:, :, u : u + out, v : v + out]
            weight = W[:, u, v][:, None, None]
            Y += np.multiply(window, weight, out=product)
            X_grad[:, :, u : u + out, v : v + out] += np.multiply(seed, weight, out=product)
            W_grad[:, u, v] = np.multiply(window, seed, out=product).sum(axis=(0, 2, 3))
    return {"Y": Y, "X.grad": X_grad, "W.grad": W_grad}


def jax_value(jax: Any, X: Any, W: Any) -> Any:
    return jax.lax.conv_general_dilated(
        X,
        W[:, None],
        (1, 1),
        "VALID",
        dimension_numbers=("NCHW", "OIHW", "NCHW"),
        feature_group_count=X.shape[1],
    )


def torch_value(torch: Any, X: Any, W: Any) -> Any:
    return torch.nn.functional.conv2d(X, W[:, None], groups=X.shape[1])


def points(sizes: Sizes) -> int:
    """Of one channel of the output, over the batch."""
    return sizes["batch"] * (sizes["edge"] - sizes["kernel"] + 1) ** 2


WORKLOAD = Workload(
    name="depthwise_conv",
    title="depthwise conv, 32 channels, 32 x 32, 3 x 3, batch 32",
    text=TEXT,
    output="Y",
    wrt=("X", "W"),
    sizes={"batch": 32, "channels": 32, "edge": 32, "kernel": 3},
    quick={"batch": 2, "channels": 3, "edge": 7, "kernel": 3},
    make_arrays=make_arrays,
    numpy_twin=numpy_twin,
    jax_value=jax_value,
    torch_value=torch_value,
    cost=lambda sizes: Cost(pairs=3 * points(sizes) * sizes["channels"] * sizes["kernel"] ** 2),
    terms=points,
)
