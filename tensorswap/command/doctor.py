"""`tensorswap doctor`: is everything there, and does it compute right on this machine?"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
import time
from typing import Any

import numpy as np

from ..program import program

NEEDED = ("numpy", "numba", "llvmlite", "lark", "opt_einsum", "platformdirs", "safetensors")
WELCOME = ("matplotlib", "jax", "torch")


def add(words: Any) -> None:
    parser = words.add_parser("doctor", help="check this installation: packages, compiler, threads, results")
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    print(f"python {platform.python_version()} on {platform.machine()}, {os.cpu_count()} cores")
    missing = [name for name in NEEDED if not _told(name, "MISSING: pip install " + name)]
    for name in WELCOME:
        _told(name, "not installed (only benchmarks and plots use it)")
    if missing:
        return 1
    model = program("Y[i,j] += A[i,k] * B[k,j]\nloss += exp(-Y[i,j] ** 2)").grad(wrt=["A", "B"])
    numbers = np.random.default_rng(0)
    arrays = {"A": numbers.standard_normal((40, 30)), "B": numbers.standard_normal((30, 50))}
    start = time.perf_counter()
    compiled = model(arrays)
    seconds = time.perf_counter() - start
    interpreted = model.run_reference(arrays)
    right = all(np.allclose(compiled[name], interpreted[name]) for name in compiled)
    print(f"compiled a gradient in {seconds:.2f} s; it is {'right' if right else 'WRONG: please report it'}")
    return 0 if right else 1


def _told(name: str, otherwise: str) -> bool:
    try:
        module = importlib.import_module(name)
    except ImportError:
        print(f"{name}: {otherwise}", file=sys.stdout)
        return False
    print(f"{name} {getattr(module, '__version__', '(no version)')}")
    return True
