"""GPT character model with Adam."""

from __future__ import annotations

from typing import Any

import numpy as np
from workloads.numpy_parts import attention, attention_backward, gelu, gelu_backward, layer_norm, layer_norm_backward

from . import data
from .numpy_parts import cross_entropy, linear, linear_backward, one_hot, windows
from .twin import Array, Arrays, Case, Twin

STACKED = ("gain1", "bias1", "Wq", "Wk", "Wv", "Wo", "gain2", "bias2", "Wu", "bu", "Wd", "bd")
Kept = tuple[Array, ...]  # of a layer, for its backward pass


def to_heads(rows: Array, b: int, h: int) -> Array:
    return np.ascontiguousarray(rows.reshape(b, -1, h, rows.shape[1] // h).transpose(0, 2, 1, 3))


def from_heads(heads: Array) -> Array:
    b, h, t, e = heads.shape
    return heads.transpose(0, 2, 1, 3).reshape(b * t, h * e)


def block(X: Array, w: Arrays, b: int) -> tuple[Array, Kept]:
    """One layer on rows of all windows, and what its backward pass needs."""
    h, e, d = w["Wq"].shape
    N1, normalised1, scale1 = layer_norm(X, w["gain1"], w["bias1"])
    Q, K, V = (to_heads(N1 @ w[name].reshape(h * e, d).T, b, h) for name in ("Wq", "Wk", "Wv"))
    heads, P = attention(Q, K, V, causal=True)
    joined = from_heads(heads)
    A = X + joined @ w["Wo"].reshape(d, h * e).T
    N2, normalised2, scale2 = layer_norm(A, w["gain2"], w["bias2"])
    F = linear(N2, w["Wu"], w["bu"])
    U, share = gelu(F)
    kept = (N1, normalised1, scale1, Q, K, V, heads, P, joined, N2, normalised2, scale2, F, U, share)
    return A + linear(U, w["Wd"], w["bd"]), kept


def block_backward(seed: Array, w: Arrays, kept: Kept, b: int) -> tuple[Array, Arrays]:
    N1, normalised1, scale1, Q, K, V, heads, P, joined, N2, normalised2, scale2, F, U, share = kept
    h, e, d = w["Wq"].shape
    Wd, bd, U_grad = linear_backward(seed, U, w["Wd"])
    Wu, bu, N2_grad = linear_backward(gelu_backward(U_grad, F, share), N2, w["Wu"])
    A_grad, gain2, bias2 = layer_norm_backward(N2_grad, normalised2, scale2, w["gain2"])
    A_grad += seed
    heads_grad = to_heads(A_grad @ w["Wo"].reshape(d, h * e), b, h)
    parts = attention_backward(Q, K, V, heads, P, heads_grad)
    rows = [from_heads(part) for part in parts]
    names = ("Wq", "Wk", "Wv")
    N1_grad = sum(part @ w[name].reshape(h * e, d) for name, part in zip(names, rows, strict=True))
    X_grad, gain1, bias1 = layer_norm_backward(N1_grad, normalised1, scale1, w["gain1"])
    X_grad += A_grad
    small = {"gain1": gain1, "bias1": bias1, "gain2": gain2, "bias2": bias2}
    inner = {"Wo": (A_grad.T @ joined).reshape(d, h, e), "Wu": Wu, "bu": bu, "Wd": Wd, "bd": bd}
    outer = {name: (part.T @ N1).reshape(h, e, d) for name, part in zip(names, rows, strict=True)}
    return X_grad, small | inner | outer


def numpy_gradient(p: Arrays, batch: Arrays) -> tuple[Any, Arrays]:
    t, d = p["position"].shape
    tokens, target = windows(batch["tokens"], batch["start"], t)
    b, layers = len(tokens), len(p["Wq"])
    weights = [{name: p[name][layer] for name in STACKED} for layer in range(layers)]
    X = (p["table"][tokens] + p["position"]).reshape(b * t, d)
    kept = []
    for w in weights:
        X, made = block(X, w, b)
        kept.append(made)
    Y, normalised, scale = layer_norm(X, p["gain"], p["bias"])
    loss, seed = cross_entropy(Y @ p["W"].T, target.reshape(-1))

    W, _, Y_grad = linear_backward(seed, Y, p["W"])
    X_grad, gain, bias = layer_norm_backward(Y_grad, normalised, scale, p["gain"])
    grads = []
    for w, made in zip(reversed(weights), reversed(kept), strict=True):
        X_grad, found = block_backward(X_grad, w, made, b)
        grads.insert(0, found)
    return loss, {
        "table": one_hot(tokens.reshape(-1), len(p["table"]), X.dtype).T @ X_grad,
        "position": X_grad.reshape(b, t, d).sum(axis=0),
        **{name: np.stack([found[name] for found in grads]) for name in STACKED},
        "gain": gain,
        "bias": bias,
        "W": W,
    }


def jax_loss(jax: Any, p: Arrays, batch: Arrays) -> Any:
    jnp = jax.numpy

    def norm(x: Any, gain: Any, bias: Any) -> Any:
        centred = x - x.mean(axis=-1, keepdims=True)
        return centred * jax.lax.rsqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5) * gain + bias

    t = len(p["position"])
    places = batch["start"][:, None] + jnp.arange(t)
    X = p["table"][batch["tokens"][places]] + p["position"]
    for layer in range(len(p["Wq"])):
        w = {name: p[name][layer] for name in STACKED}
        N = norm(X, w["gain1"], w["bias1"])
        Q, K, V = (jnp.einsum("bid,hed->bhie", N, w[name]) for name in ("Wq", "Wk", "Wv"))
        S = jnp.einsum("bhie,bhje->bhij", Q * Q.shape[-1] ** -0.5, K)
        P = jax.nn.softmax(jnp.where(jnp.tri(t, dtype=bool), S, -jnp.inf))
        X = X + jnp.einsum("bhie,dhe->bid", P @ V, w["Wo"])
        U = jax.nn.gelu(norm(X, w["gain2"], w["bias2"]) @ w["Wu"].T + w["bu"], approximate=False)
        X = X + U @ w["Wd"].T + w["bd"]
    logs = jax.nn.log_softmax(norm(X, p["gain"], p["bias"]) @ p["W"].T)
    return -jnp.take_along_axis(logs, batch["tokens"][places + 1][..., None], axis=2).mean()


def torch_loss(torch: Any, p: Arrays, batch: Arrays) -> Any:
    functional = torch.nn.functional
    t, d = p["position"].shape
    _, h, e, _ = p["Wq"].shape
    places = batch["start"][:, None] + torch.arange(t)
    X = functional.embedding(batch["tokens"][places], p["table"]) + p["position"]
    b = len(X)
    for layer in range(len(p["Wq"])):
        w = {name: p[name][layer] for name in STACKED}
        N = functional.layer_norm(X, (d,), w["gain1"], w["bias1"], 1e-5)
        Q, K, V = (
            functional.linear(N, w[name].reshape(h * e, d)).view(b, t, h, e).transpose(1, 2)
            for name in ("Wq", "Wk", "Wv")
        )
        heads = functional.scaled_dot_product_attention(Q, K, V, is_causal=True)
        X = X + functional.linear(heads.transpose(1, 2).reshape(b, t, h * e), w["Wo"].reshape(d, h * e))
        N = functional.layer_norm(X, (d,), w["gain2"], w["bias2"], 1e-5)
        X = X + functional.linear(functional.gelu(functional.linear(N, w["Wu"], w["bu"])), w["Wd"], w["bd"])
    scores = functional.linear(functional.layer_norm(X, (d,), p["gain"], p["bias"], 1e-5), p["W"])
    return functional.cross_entropy(scores.flatten(0, 1), batch["tokens"][places + 1].reshape(-1))


TWIN = Twin(
    name="gpt",
    title="GPT of 64 characters, 4 layers, 4 heads, 128 wide, batch 4",
    case=Case(
        {"width": 128, "layers": 4, "heads": 4, "length": 64},
        {"examples": 128, "characters": 20000, "kinds": 65, "length": 64},
        batch=4,
    ),
    small=Case(
        {"width": 8, "layers": 2, "heads": 2, "length": 6},
        {"examples": 40, "characters": 300, "kinds": 9, "length": 6},
        batch=4,
    ),
    examples=("start",),
    make_data=data.text,
    numpy_gradient=numpy_gradient,
    jax_loss=jax_loss,
    torch_loss=torch_loss,
)
