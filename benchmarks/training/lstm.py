"""LSTM character model with Adam."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import data
from .numpy_parts import cross_entropy, linear, linear_backward, one_hot, windows
from .twin import Arrays, Case, Twin


def numpy_gradient(p: Arrays, batch: Arrays) -> tuple[Any, Arrays]:
    tokens, target = (part.T for part in windows(batch["tokens"], batch["start"], batch["length"]))
    t, b = tokens.shape
    _, h, d = p["Wx"].shape
    dtype = p["Wx"].dtype
    flat_x, flat_h = p["Wx"].reshape(4 * h, d), p["Wh"].reshape(4 * h, h)
    X = p["table"][tokens].reshape(t * b, d)
    # a sigmoid is half of 1 + tanh of half its argument: so one tanh serves all gates
    half = np.full(4 * h, 0.5, dtype)
    half[2 * h : 3 * h] = 1
    gates = linear(X, flat_x, p["gates"].reshape(4 * h)).reshape(t, b, 4 * h)
    H, C, D = (np.zeros((t + 1, b, h), dtype) for _ in range(3))
    for step in range(t):
        gate = gates[step]
        gate += H[step] @ flat_h.T
        gate *= half
        np.tanh(gate, out=gate)
        gate *= half
        gate += 1 - half
        enter, forget, candidate, leave = (gate[:, k * h : (k + 1) * h] for k in range(4))
        C[step + 1] = forget * C[step] + enter * candidate
        np.tanh(C[step + 1], out=D[step])
        np.multiply(leave, D[step], out=H[step + 1])
    states = H[1:].reshape(t * b, h)
    loss, seed = cross_entropy(linear(states, p["W"], p["bias"]), target.reshape(-1))

    W, bias, H_seed = linear_backward(seed, states, p["W"])
    H_seed = H_seed.reshape(t, b, h)
    P_grad = np.empty_like(gates)
    H_grad, C_grad = np.zeros((b, h), dtype), np.zeros((b, h), dtype)
    for step in reversed(range(t)):
        H_grad += H_seed[step]
        enter, forget, candidate, leave = (gates[step, :, k * h : (k + 1) * h] for k in range(4))
        C_grad += H_grad * leave * (1 - D[step] * D[step])
        P_grad[step, :, :h] = C_grad * candidate * enter * (1 - enter)
        P_grad[step, :, h : 2 * h] = C_grad * C[step] * forget * (1 - forget)
        P_grad[step, :, 2 * h : 3 * h] = C_grad * enter * (1 - candidate * candidate)
        P_grad[step, :, 3 * h :] = H_grad * D[step] * leave * (1 - leave)
        C_grad *= forget
        np.matmul(P_grad[step], flat_h, out=H_grad)
    changes = P_grad.reshape(t * b, 4 * h)
    Wx, gates_grad, X_grad = linear_backward(changes, X, flat_x)
    return loss, {
        "table": one_hot(tokens.reshape(-1), len(p["table"]), dtype).T @ X_grad,
        "Wx": Wx.reshape(p["Wx"].shape),
        "Wh": (changes.T @ H[:-1].reshape(t * b, h)).reshape(p["Wh"].shape),
        "gates": gates_grad.reshape(4, h),
        "W": W,
        "bias": bias,
    }


def jax_loss(jax: Any, p: Arrays, batch: Arrays) -> Any:
    jnp = jax.numpy
    _, h, d = p["Wx"].shape
    places = batch["start"] + jnp.arange(batch["length"])[:, None]
    tokens, target = batch["tokens"][places], batch["tokens"][places + 1]
    flat_h = p["Wh"].reshape(4 * h, h).T
    P = p["table"][tokens] @ p["Wx"].reshape(4 * h, d).T + p["gates"].reshape(4 * h)

    def step(state: Any, x: Any) -> Any:
        H, C = state
        enter, forget, candidate, leave = jnp.split(x + H @ flat_h, 4, axis=1)
        C = jax.nn.sigmoid(forget) * C + jax.nn.sigmoid(enter) * jnp.tanh(candidate)
        H = jax.nn.sigmoid(leave) * jnp.tanh(C)
        return (H, C), H

    zeros = jnp.zeros((P.shape[1], h), P.dtype)
    H = jax.lax.scan(step, (zeros, zeros), P)[1]
    logs = jax.nn.log_softmax(H @ p["W"].T + p["bias"])
    return -jnp.take_along_axis(logs, target[..., None], axis=2).mean()


def torch_loss(torch: Any, p: Arrays, batch: Arrays) -> Any:
    """The function behind torch.nn.LSTM; of its two biases the second is zero."""
    functional = torch.nn.functional
    _, h, d = p["Wx"].shape
    places = batch["start"] + torch.arange(batch["length"])[:, None]
    tokens, target = batch["tokens"][places], batch["tokens"][places + 1]
    X = functional.embedding(tokens, p["table"])
    zeros = X.new_zeros(1, X.shape[1], h)
    weights = [p["Wx"].reshape(4 * h, d), p["Wh"].reshape(4 * h, h), p["gates"].reshape(4 * h), X.new_zeros(4 * h)]
    H = torch.lstm(X, (zeros, zeros), weights, True, 1, 0.0, True, False, False)[0]
    scores = functional.linear(H.flatten(0, 1), p["W"], p["bias"])
    return functional.cross_entropy(scores, target.reshape(-1))


TWIN = Twin(
    name="lstm",
    title="LSTM of 64 characters, 64 wide, batch 16",
    case=Case(
        {"width": 64, "length": 64}, {"examples": 1024, "characters": 20000, "kinds": 65, "length": 64}, batch=16
    ),
    small=Case({"width": 6, "length": 7}, {"examples": 40, "characters": 300, "kinds": 9, "length": 7}, batch=8),
    examples=("start",),
    make_data=data.text,
    numpy_gradient=numpy_gradient,
    jax_loss=jax_loss,
    torch_loss=torch_loss,
)
