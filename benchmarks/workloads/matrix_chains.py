"""Many products of four small matrices, one statement for all; gradients by every matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.cost import Cost
from harness.workload import Array, Arrays, Results, Sizes, Workload, normal


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    shape = sizes["batch"], sizes["edge"], sizes["edge"]
    return {name: normal(generator, dtype, *shape) for name in ("A", "B", "C", "D", "Y.grad")}


def numpy_twin(A: Array, B: Array, C: Array, D: Array, seed: Array) -> Results:
    left, right = A @ B, C @ D
    left_grad = seed @ right.transpose(0, 2, 1)
    right_grad = left.transpose(0, 2, 1) @ seed
    return {
        "Y": left @ right,
        "A.grad": left_grad @ B.transpose(0, 2, 1),
        "B.grad": A.transpose(0, 2, 1) @ left_grad,
        "C.grad": right_grad @ D.transpose(0, 2, 1),
        "D.grad": C.transpose(0, 2, 1) @ right_grad,
    }


def jax_value(jax: Any, A: Any, B: Any, C: Any, D: Any) -> Any:
    return (A @ B) @ (C @ D)


def torch_value(torch: Any, A: Any, B: Any, C: Any, D: Any) -> Any:
    return (A @ B) @ (C @ D)


WORKLOAD = Workload(
    name="matrix_chains",
    title="10,000 chains of four 4 x 4 matrices",
    text="Y[n,i,m] += A[n,i,j] * B[n,j,k] * C[n,k,l] * D[n,l,m]",
    einsum="nij,njk,nkl,nlm->nim",
    operands=("A", "B", "C", "D"),
    output="Y",
    wrt=("A", "B", "C", "D"),
    sizes={"batch": 10_000, "edge": 4},
    quick={"batch": 5, "edge": 4},
    make_arrays=make_arrays,
    numpy_twin=numpy_twin,
    jax_value=jax_value,
    torch_value=torch_value,
    cost=lambda sizes: Cost(pairs=9 * sizes["batch"] * sizes["edge"] ** 3),
    terms=lambda sizes: sizes["edge"] ** 3,
)
