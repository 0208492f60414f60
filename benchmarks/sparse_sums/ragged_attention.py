"""Attention over sequences of different lengths: what lies beyond a sequence's end costs nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.workload import Array, Arrays, Results, Sizes, Workload, normal

TEXT = """
S[b,h,i,j] += scale * Q[b,h,i,d] * K[b,h,j,d] if i < length[b] and j < length[b]
top[b,h,i] max= S[b,h,i,j] if i < length[b] and j < length[b]
P[b,h,i,j] = exp(S[b,h,i,j] - stop(top[b,h,i])) if i < length[b] and j < length[b]
Z[b,h,i] += P[b,h,i,j] if i < length[b] and j < length[b]
Y[b,h,i,d] += P[b,h,i,j] / Z[b,h,i] * V[b,h,j,d] if i < length[b] and j < length[b]
loss += Y[b,h,i,d] * G[b,h,i,d] if i < length[b]
"""


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    b, h, n, d = (sizes[name] for name in ("batch", "heads", "longest", "width"))
    length = generator.integers(1, n + 1, size=b)
    length[0] = n
    return {
        **{name: normal(generator, dtype, b, h, n, d) for name in "QKVG"},
        "length": length,
        "scale": float(d**-0.5),
    }


def numpy_twin(Q: Array, K: Array, V: Array, G: Array, length: Array, scale: float) -> Results:
    """One sequence after the other, as long as it is."""
    loss = np.zeros((), Q.dtype)
    grads = {f"{name}.grad": np.zeros_like(Q) for name in "QKV"}
    for b, n in enumerate(length):
        q, k, v, g = (array[b, :, :n] for array in (Q, K, V, G))
        S = (q * Q.dtype.type(scale)) @ k.swapaxes(1, 2)
        P = np.exp(S - S.max(axis=2, keepdims=True))
        P /= P.sum(axis=2, keepdims=True)
        Y = P @ v
        loss += np.vdot(Y, g)
        dP = g @ v.swapaxes(1, 2)
        dS = P * (dP - (g * Y).sum(axis=2, keepdims=True)) * Q.dtype.type(scale)
        grads["Q.grad"][b, :, :n] = dS @ k
        grads["K.grad"][b, :, :n] = dS.swapaxes(1, 2) @ q
        grads["V.grad"][b, :, :n] = P.swapaxes(1, 2) @ g
    return {"loss": loss, **grads}


def jax_value(jax: Any, Q: Any, K: Any, V: Any, G: Any, length: Any, scale: float) -> Any:
    jnp = jax.numpy
    there = jnp.arange(Q.shape[2]) < length[:, None]
    S = jnp.where(there[:, None, None, :], scale * jnp.einsum("bhid,bhjd->bhij", Q, K), -jnp.inf)
    Y = jnp.einsum("bhij,bhjd->bhid", jax.nn.softmax(S), V)
    return jnp.where(there[:, None, :, None], Y * G, 0).sum()


def torch_value(torch: Any, Q: Any, K: Any, V: Any, G: Any, length: Any, scale: float) -> Any:
    there = torch.arange(Q.shape[2]) < length[:, None]
    Y = torch.nn.functional.scaled_dot_product_attention(Q, K, V, attn_mask=there[:, None, None, :], scale=scale)
    return torch.where(there[:, None, :, None], Y * G, 0).sum()


WORKLOAD = Workload(
    name="ragged_attention",
    title="attention, 16 sequences of 1 to 128 places, 4 heads of 32",
    text=TEXT,
    wrt=("Q", "K", "V"),
    sizes={"batch": 16, "heads": 4, "longest": 128, "width": 32},
    quick={"batch": 2, "heads": 2, "longest": 5, "width": 3},
    make_arrays=make_arrays,
    numpy_twin=numpy_twin,
    jax_value=jax_value,
    torch_value=torch_value,
    terms=lambda sizes: sizes["batch"] * sizes["heads"] * sizes["longest"] * sizes["width"],
)
