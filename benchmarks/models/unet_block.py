"""One level of a U-Net: convolve, pool, convolve, enlarge, join with what was before the pool, convolve."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.workload import Arrays, Sizes, Workload, normal

TEXT = """
A[b,o,i,j] += X[b,c,i+u-1,j+v-1] * W1[o,c,u,v] if inside
E[b,o,i,j] = relu(A[b,o,i,j] + b1[o])
P[b,o,k,l] max= E[b,o,2*k+y,2*l+x]
B[b,m,k,l] += P[b,o,k+u-1,l+v-1] * W2[m,o,u,v] if inside
D[b,m,k,l] = relu(B[b,m,k,l] + b2[m])
F[b,n,i,j] += E[b,o,i+u-1,j+v-1] * W3[n,o,u,v] if inside
U[b,m,i,j] = D[b,m,i//2,j//2]
F[b,n,i,j] += U[b,m,i+u-1,j+v-1] * W4[n,m,u,v] if inside
F[b,n,i,j] += b3[n]
Y[b,z,i,j] += W5[z,n] * relu(F[b,n,i,j])
loss += (Y[b,z,i,j] - target[b,z,i,j]) ** 2
size(y) = 2
size(x) = 2
"""


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    b, n, c, o, m = (sizes[name] for name in ("batch", "pixels", "channels", "wide", "deep"))
    return {
        "X": normal(generator, dtype, b, c, n, n),
        "W1": normal(generator, dtype, o, c, 3, 3, scale=(9 * c) ** -0.5),
        "b1": normal(generator, dtype, o, scale=0.1),
        "W2": normal(generator, dtype, m, o, 3, 3, scale=(9 * o) ** -0.5),
        "b2": normal(generator, dtype, m, scale=0.1),
        "W3": normal(generator, dtype, o, o, 3, 3, scale=(9 * o) ** -0.5),
        "W4": normal(generator, dtype, o, m, 3, 3, scale=(9 * m) ** -0.5),
        "b3": normal(generator, dtype, o, scale=0.1),
        "W5": normal(generator, dtype, 2, o, scale=o**-0.5),
        "target": normal(generator, dtype, b, 2, n, n),
    }


def jax_value(
    jax: Any, X: Any, W1: Any, b1: Any, W2: Any, b2: Any, W3: Any, W4: Any, b3: Any, W5: Any, target: Any
) -> Any:
    jnp = jax.numpy

    def layer(x: Any, W: Any, bias: Any) -> Any:
        return jax.nn.relu(jax.lax.conv_general_dilated(x, W, (1, 1), "SAME") + bias[:, None, None])

    E = layer(X, W1, b1)
    P = jax.lax.reduce_window(E, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    D = layer(P, W2, b2).repeat(2, axis=2).repeat(2, axis=3)
    F = layer(jnp.concatenate([E, D], axis=1), jnp.concatenate([W3, W4], axis=1), b3)
    return ((jnp.einsum("zn,bnij->bzij", W5, F) - target) ** 2).sum()


WORKLOAD = Workload(
    name="unet_block",
    title="U-Net block, 32 x 32 pixels, 16 and 32 channels, batch 4",
    kind="model",
    text=TEXT,
    wrt=("W1", "b1", "W2", "b2", "W3", "W4", "b3", "W5"),
    sizes={"batch": 4, "pixels": 32, "channels": 3, "wide": 16, "deep": 32},
    quick={"batch": 2, "pixels": 6, "channels": 2, "wide": 3, "deep": 4},
    make_arrays=make_arrays,
    jax_value=jax_value,
    terms=lambda sizes: sizes["batch"] * sizes["pixels"] ** 2,
)
