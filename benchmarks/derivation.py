"""How long deriving takes: the adjoint of a transformer with its loss, about 60 statements, without running it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import tensorswap as ts

LAYERS = 3
ROUNDS = 7

EMBED = "X0[b,t,d] = E[tok[b,t],d] + R[t,d]\n"

BLOCK = """
mean{n}[b,t] += X{p}[b,t,d] / size(d)
var{n}[b,t] += (X{p}[b,t,d] - mean{n}[b,t]) ** 2 / size(d)
N{n}[b,t,d] = (X{p}[b,t,d] - mean{n}[b,t]) / sqrt(var{n}[b,t] + 1e-5) * g{n}[d] + h{n}[d]
Q{n}[b,n,t,e] += N{n}[b,t,d] * Wq{n}[n,e,d]
K{n}[b,n,t,e] += N{n}[b,t,d] * Wk{n}[n,e,d]
V{n}[b,n,t,e] += N{n}[b,t,d] * Wv{n}[n,e,d]
S{n}[b,n,t,u] += Q{n}[b,n,t,e] * K{n}[b,n,u,e] / sqrt(size(e)) if u <= t
M{n}[b,n,t] max= S{n}[b,n,t,u] if u <= t
P{n}[b,n,t,u] = exp(S{n}[b,n,t,u] - stop(M{n}[b,n,t])) if u <= t
Z{n}[b,n,t] += P{n}[b,n,t,u] if u <= t
O{n}[b,n,t,e] += P{n}[b,n,t,u] / Z{n}[b,n,t] * V{n}[b,n,u,e] if u <= t
A{n}[b,t,d] += X{p}[b,t,d]
A{n}[b,t,d] += O{n}[b,n,t,e] * Wo{n}[n,e,d]
mid{n}[b,t] += A{n}[b,t,d] / size(d)
dev{n}[b,t] += (A{n}[b,t,d] - mid{n}[b,t]) ** 2 / size(d)
L{n}[b,t,d] = (A{n}[b,t,d] - mid{n}[b,t]) / sqrt(dev{n}[b,t] + 1e-5) * u{n}[d] + v{n}[d]
F{n}[b,t,f] += L{n}[b,t,d] * U{n}[f,d]
G{n}[b,t,f] = gelu(F{n}[b,t,f] + c{n}[f])
X{n}[b,t,d] += A{n}[b,t,d]
X{n}[b,t,d] += G{n}[b,t,f] * D{n}[d,f]
"""

HEAD = """
Y[b,t,w] += X{n}[b,t,d] * E[w,d]
top[b,t] max= Y[b,t,w]
sum[b,t] += exp(Y[b,t,w] - stop(top[b,t]))
loss += (log(sum[b,t]) + top[b,t] - Y[b,t,next[b,t]]) / size(b) / size(t)
"""


def transformer(layers: int) -> str:
    """The text of a causal character model. The names n, u and v stand for indices and for weights with a number."""
    blocks = "".join(BLOCK.format(n=n, p=n - 1) for n in range(1, layers + 1))
    return EMBED + blocks + HEAD.format(n=layers)


def milliseconds(action: Callable[[], object]) -> float:
    """The median of several rounds."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        action()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def main() -> None:
    text = transformer(LAYERS)
    program = ts.program(text)
    gradient = program.grad(of="loss")
    rows = [
        ("parse and check", len(program.loops.statements), lambda: ts.program(text)),
        ("gradient by all inputs", len(gradient.loops.statements), lambda: program.grad(of="loss")),
        ("print the gradient", len(str(gradient).splitlines()), lambda: str(program.grad(of="loss"))),
        ("parse the gradient again", len(gradient.loops.statements), lambda: ts.program(str(gradient))),
    ]
    print(f"{'deriving a transformer':<28}{'statements':>11}{'ms, median of ' + str(ROUNDS):>20}")
    for name, statements, action in rows:
        print(f"{name:<28}{statements:>11}{milliseconds(action):>20.1f}")


if __name__ == "__main__":
    main()
