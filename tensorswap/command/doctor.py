"""`tensorswap doctor`: is everything there, what is this machine, and does it compute right here?"""

from __future__ import annotations

import argparse
import importlib
import math
import os
import platform
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from .. import __version__
from ..errors import ArgumentError, SwapError
from ..program import Program, load, program
from ..run.call import threads
from ..trust.inputs import Draw, random_inputs
from .with_gradient import seeds, with_gradient

EXAMPLES = """\
examples:
  tensorswap doctor                  this machine, packages, threads, cache, and a self-test of some seconds
  tensorswap doctor --seconds 30     a longer self-test
  tensorswap doctor --seconds 0      one program alone

The self-test compiles ops of the library with their gradients, and compares them with the plain interpreter. The exit
code is 1 if a package is missing or a result is wrong. Please send what it prints with a report of a fault.
"""
NEEDED = ("numpy", "numba", "llvmlite", "lark", "opt_einsum", "platformdirs")
WELCOME = ("matplotlib", "jax", "torch")
SIZE = 5  # of an index in the self-test
TESTED: dict[str, dict[str, int]] = {  # ops, with the sizes that they need
    "softmax": {}, "layer_norm": {}, "linear": {}, "mse_loss": {}, "cumsum": {}, "attention": {}, "embedding": {},
    "cross_entropy": {}, "max_pool1d": {"kernel_size": 2}, "conv1d": {"u": 3}, "batch_norm": {}, "huber_loss": {},
}  # fmt: skip


def describe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=5.0, help="of the self-test (default: 5)")


def run(chosen: argparse.Namespace) -> int:
    if not 0 <= chosen.seconds < math.inf:
        raise ArgumentError(f"--seconds is a number of seconds, not {chosen.seconds}", hint="--seconds 5")
    print(f"tensorswap {__version__}, python {platform.python_version()}, {platform.platform()}")
    missing = [name for name in NEEDED if not _told(name, "MISSING: pip install " + name)]
    for name in WELCOME:
        try:
            print(f"{name} {version(name)}")  # to import them takes seconds
        except PackageNotFoundError:
            print(f"{name}: not installed (only benchmarks and plots use it)")
    if missing:
        return 1
    for line in _machine():
        print(line)
    return 0 if _test(chosen.seconds) else 1


def _told(name: str, otherwise: str) -> bool:
    try:
        module = importlib.import_module(name)
    except ImportError:
        print(f"{name}: {otherwise}")
        return False
    print(f"{name} {getattr(module, '__version__', '(no version)')}")
    return True


def _machine() -> Iterator[str]:
    """CPU, vectors, threads and cache."""
    from llvmlite.binding import get_host_cpu_name

    from ..kernel.registers import registers
    from ..run.cache import folder

    width = registers().bytes
    yield f"CPU {get_host_cpu_name()} ({platform.machine()}), {os.cpu_count()} cores"
    yield f"vectors of {8 * width} bits: {width // 4} float32 or {width // 8} float64"
    try:
        yield f"threads {threads()} (NUMBA_NUM_THREADS sets another number)"
    except SwapError as error:
        yield f"threads: {error}"
    place = folder()
    kernels = [] if place is None else list(place.glob("*.kernel"))
    yield f"cache {place}: {len(kernels)} kernels" if place else "cache: NONE, each process compiles anew"


def _test(seconds: float) -> bool:
    """A gradient first, then ops of the library with theirs for as long as there is time."""
    model = program("Y[i,j] += A[i,k] * B[k,j]\nloss += exp(-Y[i,j] ** 2)").grad(wrt=["A", "B"])
    numbers = np.random.default_rng(0)
    arrays = {"A": numbers.standard_normal((40, 30)), "B": numbers.standard_normal((30, 50))}
    start = time.perf_counter()
    right = _agree(model, arrays)
    print(f"compiled a gradient in {time.perf_counter() - start:.2f} s; it is {_verdict(right)}", flush=True)
    wrong, tested = [], 0
    for name, sizes in TESTED.items():
        if time.perf_counter() - start > seconds:
            break
        tested += 1
        wrong += [] if _op_agrees(name, sizes) else [name]
    if tested:
        told = ", ".join(f"{name} is {_verdict(False)}" for name in wrong) or "all right"
        print(f"self-test: {tested} ops with their gradients in {time.perf_counter() - start:.1f} s; {told}")
    return right and not wrong


def _op_agrees(name: str, sizes: dict[str, int]) -> bool:
    op = load(name)
    made = random_inputs(op.loops, sizes, {}, np.dtype(np.float64), Draw(sizes=(SIZE,)))
    both, _ = with_gradient(op, made, None)
    return _agree(op, made.arguments) if both is None else _agree(both, made.arguments | seeds(both, made, "float64"))


def _agree(tested: Program, arguments: dict[str, Any]) -> bool:
    """Whether compiled and interpreted results are the same but for rounding."""
    compiled, interpreted = tested(arguments), tested.run_reference(arguments)
    if isinstance(compiled, dict):
        return all(np.allclose(compiled[name], interpreted[name]) for name in compiled)
    return bool(np.allclose(compiled, interpreted))


def _verdict(right: bool) -> str:
    return "right" if right else "WRONG: please report it"
