"""The Gaussian kernel between all pairs of points, weighted and summed; gradient by the points.

Two ways to the distances, each the same for every library: by differences, as the formula says; and by products,
|x - y|^2 = |x|^2 + |y|^2 - 2 xy, with less work and fewer true digits for points that are close, but far from 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.cost import Cost
from harness.workload import Array, Arrays, Results, Sizes, Workload, normal

DIFFERENCES = """
D[i,j] += (X[i,k] - X[j,k]) ** 2
K[i,j] = exp(-0.5 * D[i,j])
loss += K[i,j] * C[i,j]
"""
PRODUCTS = """
N[i] += 0.5 * X[i,k] ** 2
S[i,j] += X[i,k] * X[j,k]
K[i,j] = exp(S[i,j] - N[i] - N[j])
loss += K[i,j] * C[i,j]
"""


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    n, d = sizes["points"], sizes["width"]
    return {"X": normal(generator, dtype, n, d, scale=0.5), "C": generator.uniform(size=(n, n)).astype(dtype)}


def numpy_differences(X: Array, C: Array) -> Results:
    """The differences of all pairs stay for the gradient."""
    apart = X[:, None] - X
    K = np.einsum("ijk,ijk->ij", apart, apart)
    K *= -0.5
    np.exp(K, out=K)
    K *= C
    loss = K.sum()
    K += K.T.copy()
    return {"loss": loss, "X.grad": -np.matmul(K[:, None], apart)[:, 0]}


def jax_differences(jax: Any, X: Any, C: Any) -> Any:
    distances = ((X[:, None] - X) ** 2).sum(axis=-1)
    return (jax.numpy.exp(-0.5 * distances) * C).sum()


def torch_differences(torch: Any, X: Any, C: Any) -> Any:
    distances = ((X[:, None] - X) ** 2).sum(dim=-1)
    return ((-0.5 * distances).exp() * C).sum()


def numpy_products(X: Array, C: Array) -> Results:
    """Distances and gradient are matrix products."""
    norms = 0.5 * np.square(X).sum(axis=1)
    K = X @ X.T
    K -= norms[:, None]
    K -= norms
    np.exp(K, out=K)
    K *= C
    loss = K.sum()
    K += K.T.copy()
    return {"loss": loss, "X.grad": K @ X - K.sum(axis=1)[:, None] * X}


def jax_products(jax: Any, X: Any, C: Any) -> Any:
    norms = 0.5 * (X * X).sum(axis=1)
    return (jax.numpy.exp(X @ X.T - norms[:, None] - norms) * C).sum()


def torch_products(torch: Any, X: Any, C: Any) -> Any:
    norms = 0.5 * (X * X).sum(dim=1)
    return ((X @ X.T - norms[:, None] - norms).exp() * C).sum()


def cost(sizes: Sizes, operations: int) -> Cost:
    """So many instructions for each number of each pair of points, and a few for each pair."""
    pairs = sizes["points"] ** 2
    return Cost(others=pairs * (operations * sizes["width"] + 4), calls={"exp": pairs})


def workload(way: str, text: str, numpy_twin: Any, jax_value: Any, torch_value: Any, operations: int) -> Workload:
    """`operations`: of each pair and coordinate, for the distance and both points' gradients."""
    return Workload(
        name=f"pairwise_kernel_by_{way}",
        title=f"pairwise Gaussian kernel by {way}, 1024 points, 8 wide",
        text=text,
        wrt=("X",),
        sizes={"points": 1024, "width": 8},
        quick={"points": 9, "width": 3},
        make_arrays=make_arrays,
        numpy_twin=numpy_twin,
        jax_value=jax_value,
        torch_value=torch_value,
        cost=lambda sizes: cost(sizes, operations),
        terms=lambda sizes: sizes["points"] * sizes["width"],
    )


WORKLOADS = (
    workload("differences", DIFFERENCES, numpy_differences, jax_differences, torch_differences, operations=4),
    workload("products", PRODUCTS, numpy_products, jax_products, torch_products, operations=3),
)
