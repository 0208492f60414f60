"""A step of training: two layers, softmax cross-entropy on integer labels, and the update of all weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.cost import Cost
from harness.workload import Array, Arrays, Results, Sizes, Workload, normal

from .numpy_parts import cross_entropy

TEXT = """
Z[n,h] += X[n,d] * W1[h,d]
Z[n,h] += b1[h]
H[n,h] = relu(Z[n,h])
S[n,c] += H[n,h] * W2[c,h]
S[n,c] += b2[c]
L = log_softmax(S)
loss -= L[n,label[n]] / size(n)
"""

UPDATE = """
W1[h,d] = W1[h,d] - rate * W1.grad[h,d]
b1[h] = b1[h] - rate * b1.grad[h]
W2[c,h] = W2[c,h] - rate * W2.grad[c,h]
b2[c] = b2[c] - rate * b2.grad[c]
"""


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    n, d, h, c = sizes["batch"], sizes["input"], sizes["hidden"], sizes["classes"]
    return {
        "X": normal(generator, dtype, n, d),
        "label": generator.integers(c, size=n),
        "W1": normal(generator, dtype, h, d, scale=d**-0.5),
        "b1": normal(generator, dtype, h, scale=0.1),
        "W2": normal(generator, dtype, c, h, scale=h**-0.5),
        "b2": normal(generator, dtype, c, scale=0.1),
    }


def numpy_twin(X: Array, label: Array, W1: Array, b1: Array, W2: Array, b2: Array) -> Results:
    H = X @ W1.T
    H += b1
    np.maximum(H, 0, out=H)
    S = H @ W2.T
    S += b2
    loss, S_grad = cross_entropy(S, label)
    H_grad = S_grad @ W2
    H_grad *= H > 0
    return {
        "loss": loss,
        "W1.grad": H_grad.T @ X,
        "b1.grad": H_grad.sum(axis=0),
        "W2.grad": S_grad.T @ H,
        "b2.grad": S_grad.sum(axis=0),
    }


def jax_value(jax: Any, X: Any, label: Any, W1: Any, b1: Any, W2: Any, b2: Any) -> Any:
    H = jax.nn.relu(X @ W1.T + b1)
    L = jax.nn.log_softmax(H @ W2.T + b2)
    return -jax.numpy.take_along_axis(L, label[:, None], axis=1).mean()


def torch_value(torch: Any, X: Any, label: Any, W1: Any, b1: Any, W2: Any, b2: Any) -> Any:
    linear = torch.nn.functional.linear
    return torch.nn.functional.cross_entropy(linear(linear(X, W1, b1).relu(), W2, b2), label)


def cost(sizes: Sizes) -> Cost:
    """The first layer has two products, as no gradient by X is asked for; the second has three."""
    n, d, h, c = sizes["batch"], sizes["input"], sizes["hidden"], sizes["classes"]
    pairs = n * (2 * d * h + 3 * h * c) + h * (d + c)
    return Cost(pairs=pairs, others=4 * n * h + 6 * n * c, calls={"exp": n * c})


WORKLOAD = Workload(
    name="mlp_step",
    title="MLP step 64-128-10, batch 64, with SGD",
    text=TEXT,
    update=UPDATE,
    rate=0.5,  # large enough for a wrong gradient to show in the new weights
    wrt=("W1", "b1", "W2", "b2"),
    sizes={"batch": 64, "input": 64, "hidden": 128, "classes": 10},
    quick={"batch": 6, "input": 5, "hidden": 7, "classes": 4},
    make_arrays=make_arrays,
    numpy_twin=numpy_twin,
    jax_value=jax_value,
    torch_value=torch_value,
    cost=cost,
    terms=lambda sizes: sizes["input"] + sizes["hidden"] + sizes["batch"],
)
