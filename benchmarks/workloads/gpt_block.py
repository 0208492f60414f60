"""One block of a GPT: layer norms, causal attention, a network with gelu, residuals; gradients by all weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.cost import Cost
from harness.workload import Array, Arrays, Results, Sizes, Workload, normal

from . import numpy_parts

TEXT = """
N1 = layer_norm(X, gain1, bias1)
Q[b,h,i,e] += N1[b,i,d] * Wq[h,e,d]
K[b,h,i,e] += N1[b,i,d] * Wk[h,e,d]
V[b,h,i,e] += N1[b,i,d] * Wv[h,e,d]
O = causal_attention(Q, K, V)
A[b,i,d] += X[b,i,d]
A[b,i,d] += O[b,h,i,e] * Wo[d,h,e]
N2 = layer_norm(A, gain2, bias2)
F[b,i,f] += N2[b,i,d] * Wu[f,d]
F[b,i,f] += bu[f]
U[b,i,f] = gelu(F[b,i,f])
Y[b,i,d] += A[b,i,d]
Y[b,i,d] += U[b,i,f] * Wd[d,f]
Y[b,i,d] += bd[d]
"""

WEIGHTS = ("gain1", "bias1", "Wq", "Wk", "Wv", "Wo", "gain2", "bias2", "Wu", "bu", "Wd", "bd")


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    b, t, d, h, f = (sizes[name] for name in ("batch", "tokens", "width", "heads", "hidden"))
    e = d // h
    shapes = {"Wq": (h, e, d), "Wk": (h, e, d), "Wv": (h, e, d), "Wo": (d, h, e), "Wu": (f, d)}
    small = {"gain1": d, "bias1": d, "gain2": d, "bias2": d, "bu": f, "bd": d}
    return {
        "X": normal(generator, dtype, b, t, d),
        **{name: normal(generator, dtype, *shape, scale=d**-0.5) for name, shape in shapes.items()},
        "Wd": normal(generator, dtype, d, f, scale=f**-0.5),
        **{
            name: normal(generator, dtype, size, scale=0.1) + dtype.type(name.startswith("gain"))
            for name, size in small.items()
        },
        "Y.grad": normal(generator, dtype, b, t, d),
    }


def numpy_twin(X: Array, seed: Array, **w: Array) -> Results:
    b, t, d = X.shape
    h, e, _ = w["Wq"].shape
    f = len(w["Wu"])
    flat = {name: w[name].reshape(h * e, d) for name in ("Wq", "Wk", "Wv")}
    Wo = w["Wo"].reshape(d, h * e)

    def to_heads(rows: Array) -> Array:
        return np.ascontiguousarray(rows.reshape(b, t, h, e).transpose(0, 2, 1, 3))

    def from_heads(heads: Array) -> Array:
        return heads.transpose(0, 2, 1, 3).reshape(b * t, h * e)

    N1, normalised1, _ = numpy_parts.layer_norm(X.reshape(b * t, d), w["gain1"], w["bias1"])
    Q, K, V = (to_heads(N1 @ flat[name].T) for name in ("Wq", "Wk", "Wv"))
    heads, P = numpy_parts.attention(Q, K, V, causal=True)
    joined = from_heads(heads)
    A = X.reshape(b * t, d) + joined @ Wo.T
    N2, normalised2, scale2 = numpy_parts.layer_norm(A, w["gain2"], w["bias2"])
    F = N2 @ w["Wu"].T
    F += w["bu"]
    U, share = numpy_parts.gelu(F)
    Y = U @ w["Wd"].T
    Y += A
    Y += w["bd"]

    Y_grad = seed.reshape(b * t, d)
    F_grad = numpy_parts.gelu_backward(Y_grad @ w["Wd"], F, share)
    A_grad, gain2_grad, bias2_grad = numpy_parts.layer_norm_backward(F_grad @ w["Wu"], normalised2, scale2, w["gain2"])
    A_grad += Y_grad
    heads_grad = to_heads(A_grad @ Wo)
    parts = numpy_parts.attention_backward(Q, K, V, heads, P, heads_grad)
    Q_grad, K_grad, V_grad = (from_heads(part) for part in parts)
    N1_grad = Q_grad @ flat["Wq"]
    N1_grad += K_grad @ flat["Wk"]
    N1_grad += V_grad @ flat["Wv"]
    return {
        "Y": Y.reshape(b, t, d),
        "gain1.grad": (N1_grad * normalised1).sum(axis=0),
        "bias1.grad": N1_grad.sum(axis=0),
        "Wq.grad": (Q_grad.T @ N1).reshape(h, e, d),
        "Wk.grad": (K_grad.T @ N1).reshape(h, e, d),
        "Wv.grad": (V_grad.T @ N1).reshape(h, e, d),
        "Wo.grad": (A_grad.T @ joined).reshape(d, h, e),
        "gain2.grad": gain2_grad,
        "bias2.grad": bias2_grad,
        "Wu.grad": (F_grad.T @ N2).reshape(f, d),
        "bu.grad": F_grad.sum(axis=0),
        "Wd.grad": Y_grad.T @ U,
        "bd.grad": Y_grad.sum(axis=0),
    }


def jax_value(jax: Any, X: Any, **w: Any) -> Any:
    jnp = jax.numpy

    def layer_norm(x: Any, gain: Any, bias: Any) -> Any:
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = (centred * centred).mean(axis=-1, keepdims=True)
        return centred * jax.lax.rsqrt(variance + 1e-5) * gain + bias

    t, e = X.shape[1], w["Wq"].shape[1]
    N1 = layer_norm(X, w["gain1"], w["bias1"])
    Q, K, V = (jnp.einsum("bid,hed->bhie", N1, w[name]) for name in ("Wq", "Wk", "Wv"))
    S = jnp.einsum("bhie,bhje->bhij", Q * e**-0.5, K)
    P = jax.nn.softmax(jnp.where(jnp.tri(t, dtype=bool), S, -jnp.inf))
    A = X + jnp.einsum("bhie,dhe->bid", P @ V, w["Wo"])
    N2 = layer_norm(A, w["gain2"], w["bias2"])
    U = jax.nn.gelu(N2 @ w["Wu"].T + w["bu"], approximate=False)
    return A + U @ w["Wd"].T + w["bd"]


def torch_value(torch: Any, X: Any, **w: Any) -> Any:
    functional = torch.nn.functional
    b, t, d = X.shape
    h, e, _ = w["Wq"].shape
    N1 = functional.layer_norm(X, (d,), w["gain1"], w["bias1"], 1e-5)
    Q, K, V = (
        functional.linear(N1, w[name].reshape(h * e, d)).view(b, t, h, e).transpose(1, 2) for name in ("Wq", "Wk", "Wv")
    )
    heads = functional.scaled_dot_product_attention(Q, K, V, is_causal=True)
    A = X + functional.linear(heads.transpose(1, 2).reshape(b, t, h * e), w["Wo"].reshape(d, h * e))
    N2 = functional.layer_norm(A, (d,), w["gain2"], w["bias2"], 1e-5)
    U = functional.gelu(functional.linear(N2, w["Wu"], w["bu"]))
    return A + functional.linear(U, w["Wd"], w["bd"])


def cost(sizes: Sizes) -> Cost:
    """Each weight matrix takes part in three products; of the scores, half are computed."""
    b, t, d, f = (sizes[name] for name in ("batch", "tokens", "width", "hidden"))
    matrices = 3 * b * t * (4 * d * d + 2 * d * f)
    scores = b * sizes["heads"] * t * (t + 1) / 2
    others = b * t * (28 * d + 10 * f) + 7 * scores
    calls = {"exp": scores + b * t * f, "erf": b * t * f}
    return Cost(pairs=matrices + 6 * b * t * (t + 1) / 2 * d, others=others, calls=calls)


WORKLOAD = Workload(
    name="gpt_block",
    title="GPT block, 128 wide, 4 heads, 64 tokens, batch 4",
    text=TEXT,
    output="Y",
    wrt=WEIGHTS,
    sizes={"batch": 4, "tokens": 64, "width": 128, "heads": 4, "hidden": 512},
    quick={"batch": 2, "tokens": 5, "width": 8, "heads": 2, "hidden": 12},
    make_arrays=make_arrays,
    numpy_twin=numpy_twin,
    jax_value=jax_value,
    torch_value=torch_value,
    cost=cost,
    terms=lambda sizes: sizes["batch"] * sizes["tokens"] + sizes["hidden"],
)
