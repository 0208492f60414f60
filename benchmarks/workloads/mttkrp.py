"""The matricised tensor times Khatri-Rao product, the core of CP decompositions, with all its gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.cost import Cost
from harness.workload import Array, Arrays, Results, Sizes, Workload, normal


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    n, r = sizes["edge"], sizes["rank"]
    return {
        "T": normal(generator, dtype, n, n, n),
        "A": normal(generator, dtype, n, r),
        "B": normal(generator, dtype, n, r),
        "Y.grad": normal(generator, dtype, n, r),
    }


def numpy_twin(T: Array, A: Array, B: Array, seed: Array) -> Results:
    i, j, k = T.shape
    flat = T.reshape(i * j, k)
    partial = (flat @ B).reshape(i, j, -1)
    rows = (seed[:, None] * A).reshape(i * j, -1)
    return {
        "Y": (partial * A).sum(axis=1),
        "T.grad": (rows @ B.T).reshape(T.shape),
        "A.grad": (partial * seed[:, None]).sum(axis=0),
        "B.grad": flat.T @ rows,
    }


def jax_value(jax: Any, T: Any, A: Any, B: Any) -> Any:
    return ((T @ B) * A).sum(axis=1)


def torch_value(torch: Any, T: Any, A: Any, B: Any) -> Any:
    return ((T @ B) * A).sum(dim=1)


def cost(sizes: Sizes) -> Cost:
    """Three large products: the value and the gradient by A share one."""
    n, r = sizes["edge"], sizes["rank"]
    return Cost(pairs=3 * n**3 * r, others=5 * n**2 * r)


WORKLOAD = Workload(
    name="mttkrp",
    title="MTTKRP, 128^3, rank 32",
    text="Y[i,r] += T[i,j,k] * A[j,r] * B[k,r]",
    einsum="ijk,jr,kr->ir",
    operands=("T", "A", "B"),
    output="Y",
    wrt=("T", "A", "B"),
    sizes={"edge": 128, "rank": 32},
    quick={"edge": 6, "rank": 3},
    make_arrays=make_arrays,
    numpy_twin=numpy_twin,
    jax_value=jax_value,
    torch_value=torch_value,
    cost=cost,
    terms=lambda sizes: sizes["edge"] ** 2,
)
