"""The energy of a parametrised circuit: in each layer a turn of every qubit, phases, and controlled signs in a ring."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.workload import Arrays, Sizes, Workload, normal

# bit q of the state's number k is k//s[q]%2, with s[q] = 2**q; U and V are real and imaginary part
TEXT = """
F[l,k] += b[l,q] * (0.5 if k // s[q] % 2 == 1 else -0.5)
F[l,k] += 3.141592653589793 if k // s[q] % 2 == 1 and k // s[(q+1)%size(q)] % 2 == 1
U[0,0,0] = 1
for l:
    for q:
        c[l,q,k] = sin(a[l,q] / 2) if k // s[q] % 2 == 1 else -sin(a[l,q] / 2)
        U[l,q+1,k] = cos(a[l,q] / 2) * U[l,q,k] + c[l,q,k] * U[l,q,k+s[q]*(1-2*(k//s[q]%2))]
        V[l,q+1,k] = cos(a[l,q] / 2) * V[l,q,k] + c[l,q,k] * V[l,q,k+s[q]*(1-2*(k//s[q]%2))]
    U[l+1,0,k] = cos(F[l,k]) * U[l,size(q),k] - sin(F[l,k]) * V[l,size(q),k]
    V[l+1,0,k] = cos(F[l,k]) * V[l,size(q),k] + sin(F[l,k]) * U[l,size(q),k]
loss += energy[k] * (U[size(l),0,k] ** 2 + V[size(l),0,k] ** 2)
"""


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    n, layers = sizes["qubits"], sizes["layers"]
    return {
        "a": normal(generator, dtype, layers, n),
        "b": normal(generator, dtype, layers, n),
        "s": 2 ** np.arange(n),
        "energy": normal(generator, dtype, 2**n),
    }


def jax_value(jax: Any, a: Any, b: Any, s: Any, energy: Any) -> Any:
    jnp = jax.numpy
    n = a.shape[1]
    bits = jnp.arange(2**n) // s[:, None] % 2
    signs = 1 - 2 * ((bits * jnp.roll(bits, -1, axis=0)).sum(axis=0) % 2)

    def layer(state: Any, angles: Any) -> Any:
        turns, phases = angles
        for q in range(n):
            c, s = jnp.cos(turns[q] / 2), jnp.sin(turns[q] / 2)
            pair = state.reshape(-1, 2, 2**q)
            low, high = pair[:, 0], pair[:, 1]
            state = jnp.stack([c * low - s * high, s * low + c * high], axis=1).reshape(-1)
        return state * jnp.exp(1j * (phases @ (bits - 0.5))) * signs, None

    start = jnp.zeros(2**n, jnp.result_type(a.dtype, jnp.complex64)).at[0].set(1)
    state, _ = jax.lax.scan(layer, start, (a, b))
    return (energy * jnp.abs(state) ** 2).sum()


WORKLOAD = Workload(
    name="quantum_circuit",
    title="quantum circuit, 10 qubits, 6 layers",
    kind="model",
    text=TEXT,
    wrt=("a", "b"),
    sizes={"qubits": 10, "layers": 6},
    quick={"qubits": 3, "layers": 2},
    make_arrays=make_arrays,
    jax_value=jax_value,
    terms=lambda sizes: 2 ** sizes["qubits"] * sizes["layers"] * sizes["qubits"],
)
