"""Sums over segments of rows that lie one after the other, and their gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.cost import Cost
from harness.workload import Array, Arrays, Results, Sizes, Workload, normal

TEXT = """
size(s) = size(start, 0) - 1
Y[s,c] += X[e,c] ** 2 if start[s+0] <= e and e < start[s+1]
loss += Y[s,c] * G[s,c]
"""


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    """Segments of at least one row, with lengths that differ."""
    count, rows, columns = sizes["segments"], sizes["rows"], sizes["columns"]
    inner = np.sort(generator.choice(np.arange(1, rows), size=count - 1, replace=False))
    return {
        "start": np.concatenate([[0], inner, [rows]]),
        "X": normal(generator, dtype, rows, columns),
        "G": normal(generator, dtype, count, columns),
    }


def numpy_twin(start: Array, X: Array, G: Array) -> Results:
    Y = np.add.reduceat(X * X, start[:-1], axis=0)
    return {"loss": np.asarray(np.vdot(Y, G)), "X.grad": 2 * X * np.repeat(G, np.diff(start), axis=0)}


def jax_value(jax: Any, start: Any, X: Any, G: Any) -> Any:
    jnp = jax.numpy
    of = jnp.repeat(jnp.arange(len(start) - 1), jnp.diff(start), total_repeat_length=len(X))
    Y = jax.ops.segment_sum(X * X, of, num_segments=len(start) - 1, indices_are_sorted=True)
    return (Y * G).sum()


def torch_value(torch: Any, start: Any, X: Any, G: Any) -> Any:
    return (torch.segment_reduce(X * X, "sum", offsets=start, axis=0, unsafe=True) * G).sum()


WORKLOAD = Workload(
    name="segment_sum",
    title="sums of squares in 5,000 segments of 100,000 x 16",
    text=TEXT,
    wrt=("X",),
    sizes={"segments": 5000, "rows": 100_000, "columns": 16},
    quick={"segments": 3, "rows": 8, "columns": 2},
    make_arrays=make_arrays,
    numpy_twin=numpy_twin,
    jax_value=jax_value,
    torch_value=torch_value,
    cost=lambda sizes: Cost(others=5 * sizes["rows"] * sizes["columns"]),
    terms=lambda sizes: sizes["rows"] * sizes["columns"],
)
