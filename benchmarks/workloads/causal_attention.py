"""Attention in which each position sees itself and those before it: the guards make it half the work."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from harness.cost import Cost
from harness.workload import Array, Results, Sizes

from . import attention, numpy_parts

TEXT = """
S[h,i,j] += Q[h,i,d] * K[h,j,d] / sqrt(size(d)) if j <= i
M[h,i] max= S[h,i,j] if j <= i
E[h,i,j] = exp(S[h,i,j] - stop(M[h,i])) if j <= i
Z[h,i] += E[h,i,j] if j <= i
O[h,i,e] += E[h,i,j] / Z[h,i] * V[h,j,e] if j <= i
"""


def numpy_twin(Q: Array, K: Array, V: Array, seed: Array) -> Results:
    mixed, P = numpy_parts.attention(Q, K, V, causal=True)
    gradients = numpy_parts.attention_backward(Q, K, V, mixed, P, seed)
    return {"O": mixed, **dict(zip(("Q.grad", "K.grad", "V.grad"), gradients, strict=True))}


def jax_value(jax: Any, Q: Any, K: Any, V: Any) -> Any:
    S = (Q * Q.shape[-1] ** -0.5) @ K.transpose(0, 2, 1)
    seen = jax.numpy.tri(S.shape[1], dtype=bool)
    return jax.nn.softmax(jax.numpy.where(seen, S, -jax.numpy.inf)) @ V


def torch_value(torch: Any, Q: Any, K: Any, V: Any) -> Any:
    return torch.nn.functional.scaled_dot_product_attention(Q[None], K[None], V[None], is_causal=True)[0]


def cost(sizes: Sizes) -> Cost:
    scores = sizes["heads"] * sizes["length"] * (sizes["length"] + 1) / 2
    return attention.cost_of(scores, sizes["width"])


WORKLOAD = replace(
    attention.WORKLOADS[0],
    name="causal_attention_256",
    title="causal attention, 8 heads, 256 x 64",
    text=TEXT,
    dtypes=("float32",),
    numpy_twin=numpy_twin,
    jax_value=jax_value,
    torch_value=torch_value,
    cost=cost,
)
