"""A determinant by expansion along the first row of every minor, down to minors of one element.

The minors of size m are numbered by the columns that were taken out, in the order in which they were: `left` has the
columns that are left. Nothing is taken twice, so there are about e l! products, as in the recursive algorithm.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.workload import Arrays, Sizes, Workload

from .problem import Function, rows

LETTERS = "abcdefghijk"


def text(edge: int) -> str:
    """For each row from the last but one: `M2[a,b] += (-1)^c A[2,left2[a,b,c]] M3[a,b,c]`."""
    last = edge - 1
    lines = [f"M{last}[{at(last)}] = A[{last},left{last}[{at(last)},0]]"]
    for row in range(last - 1, -1, -1):
        target = f"M{row}[{at(row)}]" if row else "loss"
        minor = f"left{row}[{at(row + 1)}]"
        sign = f"(1 - 2 * ({LETTERS[row]} % 2))"
        lines.append(f"{target} += {sign} * A[{row},{minor}] * M{row + 1}[{at(row + 1)}]")
    return "\n".join(lines)


def at(depth: int) -> str:
    return ",".join(LETTERS[:depth])


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    edge = sizes["l"]
    arrays: Arrays = {"A": generator.uniform(size=(edge, edge)).astype(dtype)}
    left = np.arange(edge)
    for row in range(edge):
        arrays[f"left{row}"] = np.ascontiguousarray(left)
        others = np.array([np.delete(np.arange(edge - row), taken) for taken in range(edge - row)], np.int64)
        left = left[..., others] if row < edge - 1 else left
    return arrays


def jax_value(jax: Any, A: Any, **left: Any) -> Any:
    last = len(A) - 1
    minors = A[last, left[f"left{last}"][..., 0]]
    for row in range(last - 1, -1, -1):
        signs = 1 - 2 * (jax.numpy.arange(len(A) - row) % 2)
        minors = (signs * A[row, left[f"left{row}"]] * minors).sum(axis=-1)
    return minors


def torch_value(torch: Any, A: Any, **left: Any) -> Any:
    last = len(A) - 1
    minors = A[last, left[f"left{last}"][..., 0]]
    for row in range(last - 1, -1, -1):
        signs = 1 - 2 * (torch.arange(len(A) - row) % 2)
        minors = (signs * A[row, left[f"left{row}"]] * minors).sum(dim=-1)
    return minors


def of_edge(edge: int) -> tuple[Workload, ...]:
    """The text depends on the size."""
    return rows(
        "det",
        [
            Function("primal", text(edge), lambda arrays: {"loss": ()}, jax_value, torch_value),
            Function(
                "gradient",
                text(edge),
                lambda arrays: {"loss": (), "A.grad": arrays["A"].shape},
                jax_value,
                torch_value,
                wrt=("A",),
            ),
        ],
        sizes=[{"l": edge}],
        quick={"l": edge},
        make_arrays=make_arrays,
        c_sizes=lambda arrays: (len(arrays["A"]),),
        terms=lambda sizes: 40_000,
        c_inputs=("A",),  # it is recursive, and needs no table
    )


WORKLOADS = of_edge(5) + of_edge(7) + of_edge(9)
