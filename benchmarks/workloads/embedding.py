"""Rows of a table gathered by token; the gradient by the table scatters them back."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.cost import Cost
from harness.workload import Array, Arrays, Results, Sizes, Workload, normal

TEXT = """
Y[b,d] = E[token[b],d]
loss += Y[b,d] * G[b,d]
"""


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    v, d, b = sizes["vocabulary"], sizes["width"], sizes["tokens"]
    return {
        "E": normal(generator, dtype, v, d),
        "token": generator.integers(v, size=b),
        "G": normal(generator, dtype, b, d),
    }


def numpy_twin(E: Array, token: Array, G: Array) -> Results:
    """Sorted by token, the rows of one token stand together and are added up in one pass."""
    order = np.argsort(token)
    present, starts = np.unique(token[order], return_index=True)
    E_grad = np.zeros_like(E)
    E_grad[present] = np.add.reduceat(G[order], starts, axis=0)
    return {"loss": np.asarray(np.vdot(E[token], G)), "E.grad": E_grad}


def jax_value(jax: Any, E: Any, token: Any, G: Any) -> Any:
    return (E[token] * G).sum()


def torch_value(torch: Any, E: Any, token: Any, G: Any) -> Any:
    return (torch.nn.functional.embedding(token, E) * G).sum()


WORKLOAD = Workload(
    name="embedding",
    title="embedding, 10,000 x 64, 4096 tokens",
    text=TEXT,
    wrt=("E",),
    sizes={"vocabulary": 10_000, "width": 64, "tokens": 4096},
    quick={"vocabulary": 7, "width": 3, "tokens": 11},
    make_arrays=make_arrays,
    numpy_twin=numpy_twin,
    jax_value=jax_value,
    torch_value=torch_value,
    cost=lambda sizes: Cost(others=3 * sizes["tokens"] * sizes["width"]),
    terms=lambda sizes: sizes["tokens"] * sizes["width"],
)
