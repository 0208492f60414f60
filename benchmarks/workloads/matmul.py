"""The plain matrix product, forward only at three sizes, and with its gradients."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from harness.cost import Cost
from harness.workload import Array, Arrays, Results, Sizes, Workload, normal


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    edge = sizes["edge"]
    return {"A": normal(generator, dtype, edge, edge), "B": normal(generator, dtype, edge, edge)}


def make_arrays_with_seed(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    arrays = make_arrays(sizes, dtype, generator)
    return {**arrays, "Y.grad": normal(generator, dtype, sizes["edge"], sizes["edge"])}


def numpy_twin(A: Array, B: Array) -> Results:
    return {"Y": A @ B}


def numpy_twin_with_gradients(A: Array, B: Array, seed: Array) -> Results:
    return {"Y": A @ B, "A.grad": seed @ B.T, "B.grad": A.T @ seed}


def jax_value(jax: Any, A: Any, B: Any) -> Any:
    return A @ B


def torch_value(torch: Any, A: Any, B: Any) -> Any:
    return A @ B


def forward(edge: int, dtypes: tuple[str, ...]) -> Workload:
    return Workload(
        name=f"matmul_{edge}",
        title=f"matmul {edge}, forward only",
        text="Y[i,j] += A[i,k] * B[k,j]",
        einsum="ik,kj->ij",
        operands=("A", "B"),
        output="Y",
        sizes={"edge": edge},
        quick={"edge": 8},
        dtypes=dtypes,
        make_arrays=make_arrays,
        numpy_twin=numpy_twin,
        jax_value=jax_value,
        torch_value=torch_value,
        cost=lambda sizes: Cost(pairs=sizes["edge"] ** 3),
        terms=lambda sizes: sizes["edge"],
    )


def few_rows(rows: int, edge: int, dtypes: tuple[str, ...]) -> Workload:
    """A product with a large square matrix, as a layer has for a small batch."""

    def arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
        rows, edge = sizes["rows"], sizes["edge"]
        return {"A": normal(generator, dtype, rows, edge), "B": normal(generator, dtype, edge, edge)}

    return replace(
        forward(edge, dtypes),
        name=f"matmul_rows_{rows}",
        title=f"matmul {rows} x {edge} x {edge}",
        sizes={"rows": rows, "edge": edge},
        quick={"rows": 2, "edge": 8},
        make_arrays=arrays,
        cost=lambda sizes: Cost(pairs=sizes["rows"] * sizes["edge"] ** 2),
    )


WITH_GRADIENTS = replace(
    forward(256, ("float32",)),
    name="matmul_256_gradients",
    title="matmul 256",
    wrt=("A", "B"),
    make_arrays=make_arrays_with_seed,
    numpy_twin=numpy_twin_with_gradients,
    cost=lambda sizes: Cost(pairs=3 * sizes["edge"] ** 3),
)

WORKLOADS = (
    forward(64, ("float32",)),
    forward(256, ("float32", "float64")),
    forward(1024, ("float32",)),
    WITH_GRADIENTS,
)
