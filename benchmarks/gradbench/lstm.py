"""A network with gates whose matrices are diagonal, over the bits of a text; it is to guess the next character."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.workload import Arrays, Sizes

from .problem import Function, rows

# the parameters of a layer are weights and biases of its gates, in order: forget, enter, leave, change
TEXT = """
size(t) = size(sequence, 0) - 1
for t:
    X[t,0,i] = sequence[t+0,i] * extra[0,i]
    for l:
        F[t,l,i] = sigmoid(X[t,l,i] * main[l,0,0,i] + main[l,1,0,i])
        I[t,l,i] = sigmoid((X[t-1,l+1,i] if t > 0 else state[l,0,i]) * main[l,0,1,i] + main[l,1,1,i])
        O[t,l,i] = sigmoid(X[t,l,i] * main[l,0,2,i] + main[l,1,2,i])
        N[t,l,i] = tanh((X[t-1,l+1,i] if t > 0 else state[l,0,i]) * main[l,0,3,i] + main[l,1,3,i])
        C[t,l,i] = (C[t-1,l,i] if t > 0 else state[l,1,i]) * F[t,l,i] + I[t,l,i] * N[t,l,i]
        D[t,l,i] = tanh(C[t,l,i])
        X[t,l+1,i] = O[t,l,i] * D[t,l,i]
guess[t,i] = X[t,size(l),i] * extra[1,i] + extra[2,i]
Z[t] += exp(guess[t,i])
loss -= sequence[t+1,i] * (guess[t,i] - log(Z[t] + 2)) / (size(t) * size(i))
"""


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    layers, characters = sizes["l"], sizes["c"]
    bits = 14 if characters > 100 else 3
    return {
        "main": generator.uniform(size=(layers, 2, 4, bits)).astype(dtype),
        "extra": generator.uniform(size=(3, bits)).astype(dtype),
        "state": generator.uniform(size=(layers, 2, bits)).astype(dtype),
        "sequence": generator.integers(0, 2, (characters, bits)).astype(dtype),
    }


def jax_value(jax: Any, main: Any, extra: Any, state: Any, sequence: Any) -> Any:
    jnp, sigmoid = jax.numpy, jax.nn.sigmoid

    def step(state: Any, seen: Any) -> Any:
        given, new = seen * extra[0], []
        for layer in range(len(main)):
            weight, bias = main[layer]
            hidden, cell = state[layer]
            forget = sigmoid(given * weight[0] + bias[0])
            enter = sigmoid(hidden * weight[1] + bias[1])
            leave = sigmoid(given * weight[2] + bias[2])
            change = jnp.tanh(hidden * weight[3] + bias[3])
            cell = cell * forget + enter * change
            given = leave * jnp.tanh(cell)
            new.append(jnp.stack([given, cell]))
        return jnp.stack(new), given

    guess = jax.lax.scan(step, state, sequence[:-1])[1] * extra[1] + extra[2]
    total = jnp.log(jnp.exp(guess).sum(axis=1) + 2)
    return -(sequence[1:] * (guess - total[:, None])).mean()


def torch_value(torch: Any, main: Any, extra: Any, state: Any, sequence: Any) -> Any:
    layers = len(main)
    hidden, cell = [state[n, 0] for n in range(layers)], [state[n, 1] for n in range(layers)]
    weights = [[main[n, 0, g] for g in range(4)] for n in range(layers)]
    biases = [[main[n, 1, g] for g in range(4)] for n in range(layers)]
    left = []
    for given in sequence[:-1] * extra[0]:
        for n in range(layers):
            forget = torch.sigmoid(torch.addcmul(biases[n][0], given, weights[n][0]))
            enter = torch.sigmoid(torch.addcmul(biases[n][1], hidden[n], weights[n][1]))
            leave = torch.sigmoid(torch.addcmul(biases[n][2], given, weights[n][2]))
            change = torch.tanh(torch.addcmul(biases[n][3], hidden[n], weights[n][3]))
            cell[n] = cell[n] * forget + enter * change
            given = hidden[n] = leave * torch.tanh(cell[n])
        left.append(given)
    guess = torch.stack(left) * extra[1] + extra[2]
    total = (guess.exp().sum(dim=1) + 2).log()
    return -(sequence[1:] * (guess - total[:, None])).mean()


WORKLOADS = rows(
    "lstm",
    [
        Function("objective", TEXT, lambda arrays: {"loss": ()}, jax_value, torch_value),
        Function(
            "jacobian",
            TEXT,
            lambda arrays: {"loss": (), **{f"{name}.grad": arrays[name].shape for name in ("main", "extra")}},
            jax_value,
            torch_value,
            wrt=("main", "extra"),
        ),
    ],
    sizes=[{"l": 2, "c": 1024}, {"l": 4, "c": 4096}],
    quick={"l": 2, "c": 4},
    make_arrays=make_arrays,
    c_sizes=lambda arrays: (len(arrays["main"]), *arrays["sequence"].shape),
    terms=lambda sizes: sizes["c"] * sizes["l"] * 100,
)
