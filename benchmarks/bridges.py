"""What a call costs inside PyTorch and JAX: a program so small that nothing but the way to it counts.

    python benchmarks/bridges.py

Microseconds of CPU time for a call, the least of many rounds that take turns. Beside each way stands what the framework
takes for an operator of its own kind that does nothing.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tensorswap as ts

CALLS, ROUNDS = 200, 40
TEXT = "Y[b,o] += X[b,i] * W[o,i]"

Call = Callable[[], Any]


def least(calls: dict[str, Call]) -> dict[str, float]:
    """Microseconds of one call, by name."""
    for call in calls.values():
        for _ in range(5):
            call()
    found = dict.fromkeys(calls, float("inf"))
    for _ in range(ROUNDS):
        for name, call in calls.items():
            start = time.process_time_ns()
            for _ in range(CALLS):
                call()
            found[name] = min(found[name], (time.process_time_ns() - start) / CALLS / 1e3)
    return found


def in_torch(x: np.ndarray, w: np.ndarray) -> dict[str, Call]:
    import torch

    torch.set_num_threads(1)
    own = ts.torch(TEXT)
    a, b = torch.from_numpy(x), torch.from_numpy(w)
    c, seed = b.clone().requires_grad_(), torch.ones(len(x), len(w))
    graph = torch.compile(lambda x, w: own(X=x, W=w), fullgraph=True, backend="eager")
    empty = torch.compile(lambda x, w: x.sin(), fullgraph=True, backend="eager")

    nothing = torch.library.custom_op(
        "tensorswap_bench::nothing",
        lambda x, w: torch.empty(2, 3),
        mutates_args=(),
        schema="(Tensor x, Tensor w) -> Tensor",
    )
    nothing.register_autograd(lambda ctx, g: (None, None), setup_context=lambda ctx, inputs, output: None)
    return {
        "torch: ts.torch(p)": lambda: own(X=a, W=b),
        "torch: with autograd": lambda: own(X=a, W=c),
        "torch: forward and backward": lambda: torch.autograd.grad(own(X=a, W=c), c, seed),
        "torch: its matmul, forward and backward": lambda: torch.autograd.grad(a @ c.T, c, seed),
        "torch: the operator": lambda: own.op(a, b),
        "torch: an operator that does nothing": lambda: nothing(a, b),
        "torch: the same with autograd": lambda: nothing(a, c),
        "torch: in a compiled graph": lambda: graph(a, b),
        "torch: a compiled graph of its own sin": lambda: empty(a, b),
    }


def in_jax(x: np.ndarray, w: np.ndarray) -> dict[str, Call]:
    import jax

    from tensorswap.bridges.jax_arrays.lowering import callback
    from tensorswap.bridges.jax_arrays.primitive import Call as Called

    own = ts.jax(TEXT)
    a, b = jax.numpy.asarray(x), jax.numpy.asarray(w)
    compiled = jax.jit(lambda x, w: own(X=x, W=w))
    product = jax.jit(lambda x, w: x @ w.T)
    result = jax.ShapeDtypeStruct((len(x), len(w)), x.dtype)
    back = jax.jit(callback(Called(ts.program(TEXT), ("X", "W"), ()).run, [result]))
    return {
        "jax: ts.jax(p)": lambda: own(X=a, W=b).block_until_ready(),
        "jax: under jit": lambda: compiled(a, b).block_until_ready(),
        "jax: under jit, by a callback": lambda: back(a, b)[0].block_until_ready(),
        "jax: its matmul under jit": lambda: product(a, b).block_until_ready(),
    }


def main() -> None:
    """Each framework in a process of its own: the threads of one slow the other down."""
    ways = {"torch": in_torch, "jax": in_jax}
    if not sys.argv[1:]:
        for name in ways:
            subprocess.run([sys.executable, __file__, name], check=True)
        return
    x, w = np.ones((4, 8), np.float32), np.ones((3, 8), np.float32)
    p = ts.program(TEXT)
    found = least({"the program with numpy arrays": lambda: p(X=x, W=w), **ways[sys.argv[1]](x, w)})
    base = found["the program with numpy arrays"]
    for name, microseconds in found.items():
        print(f"{name:42}{microseconds:8.1f}{microseconds - base:+8.1f}")


if __name__ == "__main__":
    main()
