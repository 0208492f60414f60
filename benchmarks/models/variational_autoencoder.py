"""A variational autoencoder: encode to a normal distribution, draw from it, decode, and the evidence bound."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.workload import Arrays, Sizes, Workload, normal

TEXT = """
A = linear(X, W1, b1)
H[n,h] = relu(A[n,h])
mean = linear(H, Wm, bm)
logvar = linear(H, Wv, bv)
Z[n,z] = mean[n,z] + exp(0.5 * logvar[n,z]) * noise[n,z]
B = linear(Z, W2, b2)
G[n,h] = relu(B[n,h])
Y = linear(G, W3, b3)
loss += softplus(Y[n,d]) - X[n,d] * Y[n,d]
loss += 0.5 * (exp(logvar[n,z]) + mean[n,z] ** 2 - 1 - logvar[n,z])
"""

WEIGHTS = ("W1", "b1", "Wm", "bm", "Wv", "bv", "W2", "b2", "W3", "b3")


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    n, d, h, z = (sizes[name] for name in ("batch", "pixels", "hidden", "latent"))
    shapes = {"W1": (h, d), "Wm": (z, h), "Wv": (z, h), "W2": (h, z), "W3": (d, h)}
    biases = {"b1": h, "bm": z, "bv": z, "b2": h, "b3": d}
    return {
        "X": generator.uniform(size=(n, d)).astype(dtype),
        "noise": normal(generator, dtype, n, z),
        **{name: normal(generator, dtype, *shape, scale=shape[1] ** -0.5) for name, shape in shapes.items()},
        **{name: normal(generator, dtype, size, scale=0.1) for name, size in biases.items()},
    }


def jax_value(jax: Any, X: Any, noise: Any, **w: Any) -> Any:
    jnp = jax.numpy
    H = jax.nn.relu(X @ w["W1"].T + w["b1"])
    mean, logvar = H @ w["Wm"].T + w["bm"], H @ w["Wv"].T + w["bv"]
    Z = mean + jnp.exp(0.5 * logvar) * noise
    Y = jax.nn.relu(Z @ w["W2"].T + w["b2"]) @ w["W3"].T + w["b3"]
    return (jax.nn.softplus(Y) - X * Y).sum() + 0.5 * (jnp.exp(logvar) + mean**2 - 1 - logvar).sum()


WORKLOAD = Workload(
    name="variational_autoencoder",
    title="variational autoencoder, 784 - 128 - 16, batch 64",
    kind="model",
    text=TEXT,
    wrt=WEIGHTS,
    sizes={"batch": 64, "pixels": 784, "hidden": 128, "latent": 16},
    quick={"batch": 3, "pixels": 7, "hidden": 5, "latent": 2},
    make_arrays=make_arrays,
    jax_value=jax_value,
    terms=lambda sizes: sizes["batch"] * sizes["pixels"],
)
