"""Programs that are cut along an index in the tests of the cluster: a text, its arrays, and the indices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import tensorswap as ts
from tensorswap.models import get
from tensorswap.program import Program

random = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return random.standard_normal(shape).astype(np.float32)


@dataclass(frozen=True)
class Example:
    """A program, what it is called with, and along which indices it is cut."""

    name: str
    program: Callable[[], Program]
    arrays: dict[str, Any]
    cut: str
    shards: int = 3

    @property
    def indices(self) -> str | list[str]:
        names = self.cut.split()
        return names[0] if len(names) == 1 else names


def text(name: str, written: str, cut: str, shards: int = 3, **arrays: Any) -> Example:
    return Example(name, lambda: ts.program(written), arrays, cut, shards)


def adjoint(name: str, written: str, wrt: str, cut: str, **arrays: Any) -> Example:
    def made() -> Program:
        return ts.program(written).adjoint(wrt=wrt.split())

    return Example(name, made, arrays, cut)


def attention(cut: str, derived: bool) -> Example:
    heads = {"Q": floats(1, 4, 10, 8), "K": floats(1, 4, 12, 8), "V": floats(1, 4, 12, 6)}

    def made() -> Program:
        p = ts.load("attention")
        return p.adjoint(wrt=["Q", "K", "V"]) if derived else p

    more = {"O.grad": floats(1, 4, 10, 6)} if derived else {}
    what = {"h": "heads", "i": "queries", "j": "keys"}[cut]
    return Example(f"attention over {what}{', adjoint' * derived}", made, {**heads, **more}, cut)


NETWORK = """
H[b,h] += X[b,i] * W1[h,i]
A[b,h] = tanh(H[b,h])
Z[b,k] += A[b,h] * W2[k,h]
P = softmax(Z)
loss -= log(P[b,t[b]]) / size(b)
loss += 0.01 * W1[h,i]**2
"""
SAME = "size(i) = size(X, 0)\nY[i] += X[i+p-1] * W[p] if inside"
SOFTMAX = "m max= x[b]\ne[b] = exp(x[b] - m)\ns += e[b]\ny[b] = e[b] / s"
RNN = """
P[t,b,h] += W[h,d] * X[t,b,d]
for t:
    P[t,b,h] += V[h,g] * (H[t-1,b,g] if t > 0 else 0)
    H[t,b,h] = tanh(P[t,b,h])
q += H[t,b,h]
"""
NORM = """
mean[c] += X[b,c] / size(b)
var[c] += (X[b,c] - mean[c])**2 / size(b)
Y[b,c] = (X[b,c] - mean[c]) / sqrt(var[c] + 1e-5)
"""
DIFFERENCES = "D[i] = X[i+1] - X[i+0]\nE[i] = D[i] - (D[i-1] if i > 0 else 0)"


def gpt() -> Example:
    """The gradient of a step of a small GPT, cut along its windows."""
    model, sizes = get("gpt"), {"width": 8, "heads": 2, "layers": 2, "length": 6}
    data = {"tokens": random.integers(0, 11, 100)}
    params = model.initial(data, **sizes)
    arrays = {**data, **params, "start": random.integers(0, 90, 6)}
    return Example("step of a GPT", lambda: model.program.grad("loss", list(params)), arrays, "b")


EXAMPLES = [
    text("map", "Y[b,i] = tanh(X[b,i])", "b", X=floats(11, 6)),
    text("sum", "Y[i] += X[b,i]", "b", 5, X=floats(11, 6)),
    text("product", "Y[i] *= X[b,i]", "b", X=floats(11, 6)),
    text("max", "Y[i] max= X[b,i]", "b", X=floats(11, 6)),
    text("argmax", "k[i] argmax= X[b,i]", "b", X=np.round(floats(11, 6))),
    text("argmin of two", "k argmin= X[i,b]", "b", X=np.round(floats(6, 11))),
    text("contraction, rows", "Y[i,j] += A[i,k] * B[k,j]", "i", A=floats(20, 30), B=floats(30, 12)),
    text("contraction, summed", "Y[i,j] += A[i,k] * B[k,j]", "k", 7, A=floats(20, 30), B=floats(30, 12)),
    text("contraction, two indices", "Y[i,j] += A[i,k] * B[k,j]", "i j", 4, A=floats(20, 30), B=floats(30, 12)),
    text("network of tensors", "s += A[i,j] * B[j,k] * C[k,i]", "j", A=floats(6, 9), B=floats(9, 7), C=floats(7, 6)),
    text("convolution with halo", "Y[i] += X[i+p] * W[p]", "i", X=floats(40), W=floats(5)),
    text("convolution with border", SAME, "i", X=floats(40), W=floats(3)),
    adjoint("convolution, adjoint", SAME, "X W", "s", **{"X": floats(40), "W": floats(3), "Y.grad": floats(40)}),
    text("stride", "Y[i] += X[2*i+p] * W[p]", "i", X=floats(41), W=floats(3)),
    text("differences of differences", DIFFERENCES, "i", X=floats(20)),
    adjoint(
        "embedding gradient", "Y[b,d] = E[tok[b],d]", "E", "b",
        **{"E": floats(9, 4), "tok": random.integers(0, 9, 30), "Y.grad": floats(30, 4)},
    ),
    text("histogram", "size(H, 0) = 5\nH[bin[n]] += w[n]", "n", bin=random.integers(0, 5, 40), w=floats(40)),
    attention("h", False), attention("i", False), attention("j", False), attention("i", True),
    text("softmax", SOFTMAX, "b", 4, x=floats(50)),
    text("batch norm", NORM, "b", X=floats(20, 5)),
    text("recurrence, batch", RNN, "b", W=floats(5, 3), X=floats(4, 7, 3), V=floats(5, 5)),
    Example(
        "gradient of a network", lambda: ts.program(NETWORK).grad("loss", ["W1", "W2"]),
        {"X": floats(30, 8), "W1": floats(6, 8), "W2": floats(4, 6), "t": random.integers(0, 4, 30)}, "b", 4,
    ),
    gpt(),
    text("noise", "Y[b] = X[b] * uniform(3, b) + b", "b", X=floats(11)),
]  # fmt: skip
