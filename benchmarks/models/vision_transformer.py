"""A vision transformer of one block: patches, attention among them, a network, and the loss of a class."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.workload import Arrays, Sizes, Workload, normal

TEXT = """
size(y) = size(image, 2) // size(Wp, 2)
size(x) = size(image, 3) // size(Wp, 3)
E[b,y*size(x)+x,d] += image[b,c,y*size(u)+u,x*size(v)+v] * Wp[d,c,u,v]
X[b,i,d] = E[b,i,d] + place[i,d]
N = layer_norm(X, gain1, bias1)
Q[b,h,i,e] += N[b,i,d] * Wq[h,e,d]
K[b,h,i,e] += N[b,i,d] * Wk[h,e,d]
V[b,h,i,e] += N[b,i,d] * Wv[h,e,d]
O = attention(Q, K, V)
A[b,i,d] += X[b,i,d]
A[b,i,d] += O[b,h,i,e] * Wo[d,h,e]
M = layer_norm(A, gain2, bias2)
F[b,i,f] += M[b,i,d] * Wu[f,d]
A2[b,i,d] += A[b,i,d]
A2[b,i,d] += Wd[d,f] * gelu(F[b,i,f])
T[b,k] += A2[b,i,d] * Wc[k,d] / size(i)
L = log_softmax(T)
loss -= L[b,label[b]]
"""

WEIGHTS = ("Wp", "place", "gain1", "bias1", "Wq", "Wk", "Wv", "Wo", "gain2", "bias2", "Wu", "Wd", "Wc")


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    b, n, p, d, h, k = (sizes[name] for name in ("batch", "pixels", "patch", "width", "heads", "classes"))
    shapes = {"Wq": (h, d // h, d), "Wk": (h, d // h, d), "Wv": (h, d // h, d), "Wo": (d, h, d // h)}
    shapes |= {"Wu": (4 * d, d), "Wd": (d, 4 * d), "Wc": (k, d)}
    return {
        "image": normal(generator, dtype, b, 3, n, n),
        "Wp": normal(generator, dtype, d, 3, p, p, scale=(3 * p * p) ** -0.5),
        "place": normal(generator, dtype, (n // p) ** 2, d, scale=0.1),
        **{name: normal(generator, dtype, d, scale=0.1) for name in ("bias1", "bias2")},
        **{name: 1 + normal(generator, dtype, d, scale=0.1) for name in ("gain1", "gain2")},
        **{name: normal(generator, dtype, *shape, scale=d**-0.5) for name, shape in shapes.items()},
        "label": generator.integers(k, size=b),
    }


def jax_value(jax: Any, image: Any, label: Any, **w: Any) -> Any:
    jnp = jax.numpy

    def layer_norm(x: Any, gain: Any, bias: Any) -> Any:
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = (centred * centred).mean(axis=-1, keepdims=True)
        return centred * jax.lax.rsqrt(variance + 1e-5) * gain + bias

    d, _, p, _ = w["Wp"].shape
    E = jax.lax.conv_general_dilated(image, w["Wp"], (p, p), "VALID")
    X = E.reshape(len(E), d, -1).swapaxes(1, 2) + w["place"]
    N = layer_norm(X, w["gain1"], w["bias1"])
    Q, K, V = (jnp.einsum("bid,hed->bhie", N, w[name]) for name in ("Wq", "Wk", "Wv"))
    P = jax.nn.softmax(jnp.einsum("bhie,bhje->bhij", Q * Q.shape[3] ** -0.5, K))
    A = X + jnp.einsum("bhie,dhe->bid", P @ V, w["Wo"])
    U = jax.nn.gelu(layer_norm(A, w["gain2"], w["bias2"]) @ w["Wu"].T, approximate=False)
    T = (A + U @ w["Wd"].T).mean(axis=1) @ w["Wc"].T
    return -jnp.take_along_axis(jax.nn.log_softmax(T), label[:, None], axis=1).sum()


WORKLOAD = Workload(
    name="vision_transformer",
    title="vision transformer, one block, 64 patches, 64 wide, batch 4",
    kind="model",
    text=TEXT,
    wrt=WEIGHTS,
    sizes={"batch": 4, "pixels": 32, "patch": 4, "width": 64, "heads": 4, "classes": 10},
    quick={"batch": 2, "pixels": 4, "patch": 2, "width": 4, "heads": 2, "classes": 3},
    make_arrays=make_arrays,
    jax_value=jax_value,
    terms=lambda sizes: sizes["batch"] * sizes["pixels"] ** 2 * sizes["width"],
)
