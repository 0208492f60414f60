"""A recurrent layer with gates, over all its steps, and back through them."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.cost import Cost
from harness.workload import Array, Arrays, Results, Sizes, Workload, normal

# the gates g are, in order: input, forget, candidate, output
TEXT = """
P[t,b,g,h] += X[t,b,d] * Wx[g,h,d]
P[t,b,g,h] += bias[g,h]
for t:
    P[t,b,g,h] += Wh[g,h,k] * (H[t-1,b,k] if t > 0 else 0)
    I[t,b,h] = sigmoid(P[t,b,0,h])
    F[t,b,h] = sigmoid(P[t,b,1,h])
    N[t,b,h] = tanh(P[t,b,2,h])
    O[t,b,h] = sigmoid(P[t,b,3,h])
    C[t,b,h] = F[t,b,h] * (C[t-1,b,h] if t > 0 else 0) + I[t,b,h] * N[t,b,h]
    D[t,b,h] = tanh(C[t,b,h])
    H[t,b,h] = O[t,b,h] * D[t,b,h]
loss += H[t,b,h] * G[t,b,h]
"""


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    t, b, h, d = sizes["steps"], sizes["batch"], sizes["hidden"], sizes["input"]
    return {
        "X": normal(generator, dtype, t, b, d),
        "Wx": normal(generator, dtype, 4, h, d, scale=d**-0.5),
        "Wh": normal(generator, dtype, 4, h, h, scale=h**-0.5),
        "bias": normal(generator, dtype, 4, h, scale=0.1),
        "G": normal(generator, dtype, t, b, h),
    }


def numpy_twin(X: Array, Wx: Array, Wh: Array, bias: Array, G: Array) -> Results:
    t, b, d = X.shape
    h = Wh.shape[1]
    flat_x, flat_h, rows = Wx.reshape(4 * h, d), Wh.reshape(4 * h, h), X.reshape(t * b, d)
    # a sigmoid is half of 1 + tanh of half its argument: so one tanh serves all gates
    half = np.full(4 * h, 0.5, X.dtype)
    half[2 * h : 3 * h] = 1
    gates = (rows @ flat_x.T + bias.reshape(4 * h)).reshape(t, b, 4 * h)
    H, C = np.zeros((t + 1, b, h), X.dtype), np.zeros((t + 1, b, h), X.dtype)
    D = np.empty((t, b, h), X.dtype)
    for step in range(t):
        gate = gates[step]
        gate += H[step] @ flat_h.T
        gate *= half
        np.tanh(gate, out=gate)
        gate *= half
        gate += 1 - half
        enter, forget, candidate, leave = (gate[:, k * h : (k + 1) * h] for k in range(4))
        np.multiply(forget, C[step], out=C[step + 1])
        C[step + 1] += enter * candidate
        np.tanh(C[step + 1], out=D[step])
        np.multiply(leave, D[step], out=H[step + 1])

    P_grad = np.empty_like(gates)
    H_grad, C_grad = np.zeros((b, h), X.dtype), np.zeros((b, h), X.dtype)
    for step in reversed(range(t)):
        H_grad += G[step]
        enter, forget, candidate, leave = (gates[step, :, k * h : (k + 1) * h] for k in range(4))
        C_grad += H_grad * leave * (1 - D[step] * D[step])
        P_grad[step, :, :h] = C_grad * candidate * enter * (1 - enter)
        P_grad[step, :, h : 2 * h] = C_grad * C[step] * forget * (1 - forget)
        P_grad[step, :, 2 * h : 3 * h] = C_grad * enter * (1 - candidate * candidate)
        P_grad[step, :, 3 * h :] = H_grad * D[step] * leave * (1 - leave)
        C_grad *= forget
        np.matmul(P_grad[step], flat_h, out=H_grad)
    changes = P_grad.reshape(t * b, 4 * h)
    return {
        "loss": np.vdot(H[1:], G),
        "X.grad": (changes @ flat_x).reshape(X.shape),
        "Wx.grad": (changes.T @ rows).reshape(Wx.shape),
        "Wh.grad": (changes.T @ H[:-1].reshape(t * b, h)).reshape(Wh.shape),
        "bias.grad": changes.sum(axis=0).reshape(bias.shape),
    }


def jax_value(jax: Any, X: Any, Wx: Any, Wh: Any, bias: Any, G: Any) -> Any:
    jnp = jax.numpy
    t, b, d = X.shape
    h = Wh.shape[1]
    flat_h = Wh.reshape(4 * h, h).T
    P = (X.reshape(t * b, d) @ Wx.reshape(4 * h, d).T + bias.reshape(4 * h)).reshape(t, b, 4 * h)

    def step(state: Any, x: Any) -> Any:
        H, C = state
        enter, forget, candidate, leave = jnp.split(x + H @ flat_h, 4, axis=1)
        C = jax.nn.sigmoid(forget) * C + jax.nn.sigmoid(enter) * jnp.tanh(candidate)
        H = jax.nn.sigmoid(leave) * jnp.tanh(C)
        return (H, C), H

    zeros = jnp.zeros((b, h), X.dtype)
    return (jax.lax.scan(step, (zeros, zeros), P)[1] * G).sum()


def torch_value(torch: Any, X: Any, Wx: Any, Wh: Any, bias: Any, G: Any) -> Any:
    """The function behind torch.nn.LSTM; of its two biases the second is zero."""
    h = Wh.shape[1]
    zeros = X.new_zeros(1, X.shape[1], h)
    weights = [Wx.reshape(4 * h, -1), Wh.reshape(4 * h, h), bias.reshape(4 * h), X.new_zeros(4 * h)]
    H = torch.lstm(X, (zeros, zeros), weights, True, 1, 0.0, True, False, False)[0]
    return (H * G).sum()


def cost(sizes: Sizes) -> Cost:
    """Two products forward and four backward; on each element of the state three gates, two values and about thirty
    operations."""
    points = sizes["steps"] * sizes["batch"] * sizes["hidden"]
    gates = {"exp": 3 * points, "divide": 3 * points, "tanh": 2 * points}
    return Cost(pairs=3 * points * 4 * (sizes["input"] + sizes["hidden"]), others=30 * points, calls=gates)


WORKLOAD = Workload(
    name="lstm",
    title="LSTM, 64 steps, batch 16, 64 wide",
    text=TEXT,
    wrt=("X", "Wx", "Wh", "bias"),
    sizes={"steps": 64, "batch": 16, "hidden": 64, "input": 64},
    quick={"steps": 4, "batch": 3, "hidden": 5, "input": 6},
    make_arrays=make_arrays,
    numpy_twin=numpy_twin,
    jax_value=jax_value,
    torch_value=torch_value,
    cost=cost,
    terms=lambda sizes: sizes["steps"] * (sizes["batch"] + sizes["hidden"]),
)
