"""The Gaussian kernel between all pairs of points, weighted and summed; gradient by the points."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.workload import Array, Arrays, Results, Sizes, Workload, normal

TEXT = """
D[i,j] += (X[i,k] - X[j,k]) ** 2
K[i,j] = exp(-0.5 * D[i,j])
loss += K[i,j] * C[i,j]
"""


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    n, d = sizes["points"], sizes["width"]
    return {"X": normal(generator, dtype, n, d, scale=0.5), "C": generator.uniform(size=(n, n)).astype(dtype)}


def numpy_twin(X: Array, C: Array) -> Results:
    """|x - y|^2 = |x|^2 + |y|^2 - 2 xy turns the distances, and the gradient, into matrix products."""
    norms = 0.5 * np.square(X).sum(axis=1)
    K = X @ X.T
    K -= norms[:, None]
    K -= norms
    np.exp(K, out=K)
    K *= C
    loss = K.sum()
    K += K.T.copy()
    return {"loss": loss, "X.grad": K @ X - K.sum(axis=1)[:, None] * X}


def jax_value(jax: Any, X: Any, C: Any) -> Any:
    norms = 0.5 * (X * X).sum(axis=1)
    return (jax.numpy.exp(X @ X.T - norms[:, None] - norms) * C).sum()


def torch_value(torch: Any, X: Any, C: Any) -> Any:
    norms = 0.5 * (X * X).sum(dim=1)
    return ((X @ X.T - norms[:, None] - norms).exp() * C).sum()


def flops(sizes: Sizes) -> float:
    """A distance, a kernel value, and what each pair adds to the gradients of both its points."""
    return sizes["points"] ** 2 * (7 * sizes["width"] + 5)


WORKLOAD = Workload(
    name="pairwise_kernel",
    title="pairwise Gaussian kernel, 1024 points, 8 wide",
    text=TEXT,
    wrt=("X",),
    sizes={"points": 1024, "width": 8},
    quick={"points": 9, "width": 3},
    make_arrays=make_arrays,
    numpy_twin=numpy_twin,
    jax_value=jax_value,
    torch_value=torch_value,
    flops=flops,
    terms=lambda sizes: sizes["points"] * sizes["width"],
)
