"""Scaled dot-product attention over several heads."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.cost import Cost
from harness.workload import Array, Arrays, Results, Sizes, Workload, normal

from . import numpy_parts

TEXT = """
S[h,i,j] += Q[h,i,d] * K[h,j,d] / sqrt(size(d))
P = softmax(S)
O[h,i,e] += P[h,i,j] * V[h,j,e]
"""


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    shape = sizes["heads"], sizes["length"], sizes["width"]
    return {name: normal(generator, dtype, *shape) for name in ("Q", "K", "V", "O.grad")}


def numpy_twin(Q: Array, K: Array, V: Array, seed: Array) -> Results:
    mixed, P = numpy_parts.attention(Q, K, V, causal=False)
    gradients = numpy_parts.attention_backward(Q, K, V, mixed, P, seed)
    return {"O": mixed, **dict(zip(("Q.grad", "K.grad", "V.grad"), gradients, strict=True))}


def jax_value(jax: Any, Q: Any, K: Any, V: Any) -> Any:
    S = (Q * Q.shape[-1] ** -0.5) @ K.transpose(0, 2, 1)
    return jax.nn.softmax(S) @ V


def torch_value(torch: Any, Q: Any, K: Any, V: Any) -> Any:
    return torch.nn.functional.scaled_dot_product_attention(Q[None], K[None], V[None])[0]


def cost_of(scores: float, width: int) -> Cost:
    """Two products forward, four backward, and on each score four operations forward and three backward."""
    return Cost(pairs=6 * scores * width, others=7 * scores, calls={"exp": scores})


def cost(sizes: Sizes) -> Cost:
    return cost_of(sizes["heads"] * sizes["length"] ** 2, sizes["width"])


def workload(name: str, length: int, dtypes: tuple[str, ...]) -> Workload:
    return Workload(
        name=name,
        title=f"attention, 8 heads, {length} x 64",
        text=TEXT,
        output="O",
        wrt=("Q", "K", "V"),
        sizes={"heads": 8, "length": length, "width": 64},
        quick={"heads": 2, "length": 9, "width": 4},
        dtypes=dtypes,
        make_arrays=make_arrays,
        numpy_twin=numpy_twin,
        jax_value=jax_value,
        torch_value=torch_value,
        cost=cost,
        terms=lambda sizes: sizes["length"] + sizes["width"],
    )


WORKLOADS = (
    workload("attention_256", 256, ("float32", "float64")),
    workload("attention_1024", 1024, ("float32",)),
)
