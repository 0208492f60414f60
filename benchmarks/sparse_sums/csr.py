"""A sparse matrix in compressed rows times a dense one, and the gradients by its numbers and by the factor."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from harness.cost import Cost
from harness.workload import Array, Arrays, Results, Sizes, Workload, normal

TEXT = """
size(i) = size(row, 0) - 1
Y[i,c] += v[e] * B[col[e],c] if row[i+0] <= e and e < row[i+1]
"""


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    """As many numbers as rows times columns times the density, spread evenly; `of` is the row of each."""
    n, count, columns = sizes["rows"], sizes["numbers"], sizes["columns"]
    place = np.sort(generator.choice(n * n, size=count, replace=False))
    of = place // n
    return {
        "row": np.searchsorted(of, np.arange(n + 1)),
        "col": place % n,
        "v": normal(generator, dtype, count),
        "B": normal(generator, dtype, n, columns),
    }


def with_seed(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    arrays = make_arrays(sizes, dtype, generator)
    return {**arrays, "Y.grad": normal(generator, dtype, sizes["rows"], sizes["columns"])}


def numpy_value(row: Array, col: Array, v: Array, B: Array) -> Results:
    from scipy import sparse

    n = len(B)
    return {"Y": sparse.csr_array((v, col, row), shape=(n, n)) @ B}


def numpy_gradients(row: Array, col: Array, v: Array, B: Array, seed: Array) -> Results:
    """scipy has no product that is wanted at a few places alone: rows are taken and multiplied."""
    from scipy import sparse

    n = len(B)
    A = sparse.csr_array((v, col, row), shape=(n, n))
    of = np.repeat(np.arange(n), np.diff(row))
    return {"Y": A @ B, "v.grad": np.einsum("ec,ec->e", seed[of], B[col]), "B.grad": A.T @ seed}


def jax_value(jax: Any, row: Any, col: Any, v: Any, B: Any) -> Any:
    jnp = jax.numpy
    of = jnp.repeat(jnp.arange(len(row) - 1), jnp.diff(row), total_repeat_length=len(col))
    return jax.ops.segment_sum(v[:, None] * B[col], of, num_segments=len(row) - 1, indices_are_sorted=True)


def torch_value(torch: Any, row: Any, col: Any, v: Any, B: Any) -> Any:
    return torch.sparse_csr_tensor(row, col, v, (len(B), len(B)), check_invariants=False) @ B


def torch_gradients(torch: Any, row: Any, col: Any, v: Any, B: Any) -> Any:
    """The derivative by the numbers of a compressed tensor is another sparse tensor; by coordinates they are a leaf."""
    of = torch.repeat_interleave(torch.arange(len(row) - 1), torch.diff(row), output_size=len(col))
    A = torch.sparse_coo_tensor(torch.stack((of, col)), v, (len(B), len(B)), is_coalesced=True, check_invariants=False)
    return torch.sparse.mm(A, B)


VALUE = Workload(
    name="csr_product",
    title="CSR 2,000 x 2,000, 1 %, times 32 columns",
    text=TEXT,
    output="Y",
    sizes={"rows": 2000, "numbers": 40_000, "columns": 32},
    quick={"rows": 5, "numbers": 9, "columns": 3},
    make_arrays=make_arrays,
    numpy_twin=numpy_value,
    jax_value=jax_value,
    torch_value=torch_value,
    cost=lambda sizes: Cost(pairs=sizes["numbers"] * sizes["columns"]),
    terms=lambda sizes: sizes["rows"],
)
WORKLOADS = (
    VALUE,
    replace(
        VALUE,
        name="csr_gradients",
        title="the same with gradients by its numbers and by the factor",
        wrt=("v", "B"),
        make_arrays=with_seed,
        numpy_twin=numpy_gradients,
        torch_value=torch_gradients,
        cost=lambda sizes: Cost(pairs=3 * sizes["numbers"] * sizes["columns"]),
    ),
)
