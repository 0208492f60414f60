"""Convolution of images with several channels, without padding, at stride 1 and 2."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from harness.cost import Cost
from harness.workload import Array, Arrays, Results, Sizes, Workload, normal
from numpy.lib.stride_tricks import sliding_window_view

TEXTS = {
    1: "Y[n,o,i,j] += X[n,c,i+u,j+v] * W[o,c,u,v]",
    2: "Y[n,o,i,j] += X[n,c,2*i+u,2*j+v] * W[o,c,u,v]",
}


def output_edge(sizes: Sizes, stride: int) -> int:
    return (sizes["edge"] - sizes["kernel"]) // stride + 1


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator, stride: int) -> Arrays:
    n, c, o = sizes["batch"], sizes["input"], sizes["output"]
    edge, kernel, out = sizes["edge"], sizes["kernel"], output_edge(sizes, stride)
    return {
        "X": normal(generator, dtype, n, c, edge, edge),
        "W": normal(generator, dtype, o, c, kernel, kernel, scale=(c * kernel * kernel) ** -0.5),
        "Y.grad": normal(generator, dtype, n, o, out, out),
    }


def numpy_twin(X: Array, W: Array, seed: Array, stride: int) -> Results:
    """All windows as columns of a matrix; backward the columns are added up where they came from."""
    o, c, kernel, _ = W.shape
    n, _, out, _ = seed.shape
    windows = sliding_window_view(X, (kernel, kernel), axis=(2, 3))[:, :, ::stride, ::stride]
    columns = windows.transpose(0, 1, 4, 5, 2, 3).reshape(n, c * kernel * kernel, out * out)
    weights, seeds = W.reshape(o, -1), seed.reshape(n, o, out * out)
    Y = (weights @ columns).reshape(n, o, out, out)
    W_grad = (seeds @ columns.transpose(0, 2, 1)).sum(axis=0).reshape(W.shape)
    parts = (weights.T @ seeds).reshape(n, c, kernel, kernel, out, out)
    X_grad = np.zeros_like(X)
    reach = stride * (out - 1) + 1
    for u in range(kernel):
        for v in range(kernel):
            X_grad[:, :, u : u + reach : stride, v : v + reach : stride] += parts[:, :, u, v]
    return {"Y": Y, "X.grad": X_grad, "W.grad": W_grad}


def jax_value(jax: Any, X: Any, W: Any, stride: int) -> Any:
    return jax.lax.conv_general_dilated(X, W, (stride, stride), "VALID", dimension_numbers=("NCHW", "OIHW", "NCHW"))


def torch_value(torch: Any, X: Any, W: Any, stride: int) -> Any:
    return torch.nn.functional.conv2d(X, W, stride=stride)


def cost(sizes: Sizes, stride: int) -> Cost:
    window = sizes["input"] * sizes["kernel"] ** 2
    return Cost(pairs=3 * sizes["batch"] * sizes["output"] * output_edge(sizes, stride) ** 2 * window)


def workload(stride: int, dtypes: tuple[str, ...]) -> Workload:
    return Workload(
        name=f"conv2d_stride{stride}",
        title=f"conv2d 16->32, 28 x 28, 3 x 3, batch 32, stride {stride}",
        text=TEXTS[stride],
        output="Y",
        wrt=("X", "W"),
        sizes={"batch": 32, "input": 16, "output": 32, "edge": 28, "kernel": 3},
        quick={"batch": 2, "input": 3, "output": 4, "edge": 8, "kernel": 3},
        dtypes=dtypes,
        make_arrays=partial(make_arrays, stride=stride),
        numpy_twin=partial(numpy_twin, stride=stride),
        jax_value=partial(jax_value, stride=stride),
        torch_value=partial(torch_value, stride=stride),
        cost=partial(cost, stride=stride),
        terms=lambda sizes: sizes["batch"] * output_edge(sizes, stride) ** 2,
    )


WORKLOADS = (workload(1, ("float32", "float64")), workload(2, ("float32",)))
