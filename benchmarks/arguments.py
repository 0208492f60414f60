"""What each kind of argument costs in a later call: `python benchmarks/arguments.py`.

A small program is called again and again with the same values, given as plain arrays, numbers, lists, and arrays of
other libraries. Times are microseconds, the least of several rounds; PyTorch and JAX take part if they are installed.
"""

from __future__ import annotations

import importlib.util
import sys
import timeit
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tensorswap as ts

TEXT = "loss += (w * X[n,d] - Y[n,d]) ** 2"
ROUNDS, SECONDS = 15, 0.02


def given() -> dict[str, dict[str, Any]]:
    """The calls by the kind of their arguments."""
    X, Y = np.random.default_rng(0).standard_normal((2, 8, 4))
    kinds: dict[str, dict[str, Any]] = {
        "arrays and an array of no axes": {"X": X, "Y": Y, "w": np.array(0.5)},
        "a number of Python's": {"X": X, "Y": Y, "w": 0.5},
        "a whole number of Python's": {"X": X, "Y": Y, "w": 2},
        "np.float64": {"X": X, "Y": Y, "w": np.float64(0.5)},
        "np.int64": {"X": X, "Y": Y, "w": np.int64(2)},
        "np.float32 beside float64": {"X": X, "Y": Y, "w": np.float32(0.5)},
        "a list": {"X": X.tolist(), "Y": Y, "w": np.array(0.5)},
        "another byte order": {"X": X.astype(">f8"), "Y": Y, "w": np.array(0.5)},
        "every other row": {"X": np.repeat(X, 2, axis=0)[::2], "Y": Y, "w": np.array(0.5)},
        "by columns": {"X": np.asfortranarray(X), "Y": Y, "w": np.array(0.5)},
    }
    if importlib.util.find_spec("torch"):
        import torch

        w = torch.tensor(0.5, dtype=torch.float64)
        kinds["tensors of PyTorch"] = {"X": torch.from_numpy(X), "Y": torch.from_numpy(Y), "w": w}
    if importlib.util.find_spec("jax"):
        import jax

        jax.config.update("jax_enable_x64", True)
        kinds["arrays of JAX"] = {"X": jax.numpy.array(X), "Y": jax.numpy.array(Y), "w": jax.numpy.array(0.5)}
    return kinds


def microseconds(program: Any, arguments: dict[str, Any]) -> float:
    for _ in range(4):
        program(**arguments)
    timer = timeit.Timer(lambda: program(**arguments))
    count = max(1, int(SECONDS / (timer.timeit(10) / 10)))
    return min(timer.repeat(ROUNDS, count)) / count * 1e6


def main() -> None:
    print(f"{'arguments':34}{'loss':>8}{'more':>8}{'gradient':>12}{'more':>8}")
    value = ts.program(TEXT)
    first: list[float] = []
    for kind, arguments in given().items():
        gradient = value.grad(of="loss", wrt=["w", "X"])
        times = [microseconds(ts.program(TEXT), arguments), microseconds(gradient, arguments)]
        first = first or times
        cells = [cell for time, base in zip(times, first, strict=True) for cell in (time, time - base)]
        print(f"{kind:34}{cells[0]:8.1f}{cells[1]:8.1f}{cells[2]:12.1f}{cells[3]:8.1f}")


if __name__ == "__main__":
    main()
