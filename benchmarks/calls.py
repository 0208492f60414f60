"""What a later call costs with each kind of argument, beside a call with plain arrays.

    python benchmarks/calls.py            # --write keeps the table in results/calls.md

Kinds take turns, a few hundred calls of each at a time, and the least mean of some rounds counts: what the machine does
besides only adds to it. Results are compared with the interpreter's first.
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tensorswap as ts

TEXT = "shift: int = 0\nY[i] = a * X[i+shift] * W[k[i]] + b\nsize(i) = 8"
CALLS, ROUNDS = 300, 15
OUTPUT = Path(__file__).parent / "results" / "calls.md"

Arguments = dict[str, Any]


def plain() -> Arguments:
    random = np.random.default_rng(0)
    return {"X": random.standard_normal(12), "W": random.standard_normal(5), "k": np.arange(8) % 5, "a": 2.0, "b": 0.5}


def with_module(name: str, array: str) -> Arguments | None:
    """Arrays of another library, if it is there."""
    try:
        module = importlib.import_module(name)
    except ImportError:
        return None
    if name == "jax":
        module.config.update("jax_enable_x64", True)
        module = module.numpy
    given = plain()
    return {**given, **{key: getattr(module, array)(given[key]) for key in ("X", "W", "k")}}


def kinds() -> dict[str, Arguments]:
    given = plain()
    X, W = given["X"], given["W"]
    frozen = X.copy()
    frozen.flags.writeable = False
    found: dict[str, Arguments | None] = {
        "plain arrays and numbers": given,
        "numpy scalars": {**given, "a": np.float64(2), "b": np.float64(0.5)},
        "arrays without axes": {**given, "a": np.array(2.0), "b": np.array(0.5)},
        "whole numbers for floating-point ones": {**given, "a": 2, "b": 1},
        "a static number": {**given, "shift": 2},
        "a static number of numpy's": {**given, "shift": np.int64(2)},
        "a number that changes": {**given, "a": 3.25},
        "another order of names": dict(reversed(given.items())),
        "an array that cannot be written": {**given, "X": frozen},
        "every other element": {**given, "X": np.repeat(X, 2)[::2]},
        "backwards": {**given, "X": X[::-1]},
        "32-bit indices": {**given, "k": given["k"].astype(np.int32)},
        "of the other byte order": {**given, "X": X.astype(">f8")},
        "lists": {**given, "X": X.tolist(), "W": W.tolist()},
        "a memoryview": {**given, "X": memoryview(X)},
        "PyTorch's arrays": with_module("torch", "from_numpy"),
        "JAX's arrays": with_module("jax", "asarray"),
    }
    return {name: arguments for name, arguments in found.items() if arguments is not None}


def checked(program: ts.Program, arguments: Arguments) -> None:
    read = {name: np.asarray(value) if name in ("X", "W", "k") else value for name, value in arguments.items()}
    for _ in range(4):  # the first prepares, the second and third learn, later ones are what is timed
        np.testing.assert_allclose(program(arguments), program.run_reference(read), rtol=1e-12)


def seconds(call: Callable[[Arguments], Any], arguments: Arguments) -> float:
    start = time.perf_counter()
    for _ in range(CALLS):
        call(arguments)
    return (time.perf_counter() - start) / CALLS


def table() -> str:
    programs = {name: (ts.program(TEXT), arguments) for name, arguments in kinds().items()}
    for program, arguments in programs.values():
        checked(program, arguments)
    least = dict.fromkeys(programs, np.inf)
    for _ in range(ROUNDS):
        for name, (program, arguments) in programs.items():
            least[name] = min(least[name], seconds(program, arguments))
    base = least["plain arrays and numbers"]
    lines = [
        f"One program, `{TEXT.splitlines()[1]}`, of eight elements.",
        "",
        "| arguments | microseconds a call | more than plain |",
        "| --- | --- | --- |",
    ]
    lines += [f"| {name} | {1e6 * time:.1f} | {1e6 * (time - base):+.1f} |" for name, time in least.items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"keep the table in {OUTPUT.name}")
    asked = parser.parse_args()
    found = table()
    print(found, end="")
    if asked.write:
        OUTPUT.write_text(found, encoding="utf-8")


if __name__ == "__main__":
    main()
