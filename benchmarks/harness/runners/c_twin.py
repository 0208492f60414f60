"""Plain C with OpenMP, compiled for this machine: one call through ctypes, with all arrays made beforehand."""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..workload import Arrays, CTwin, Results, Workload
from .base import NotApplicable

SPEED = ("-O3", "-march=native")
FLAGS = ("-fopenmp", "-std=c11", "-shared", "-fPIC", "-Wall", "-Werror")


class CFunction:
    def __init__(self, name: str, threads: int, speed: tuple[str, ...] = SPEED) -> None:
        self.compiler = shutil.which(os.environ.get("CC", "cc"))
        if self.compiler is None:
            raise ImportError("no C compiler was found")
        told = subprocess.run([self.compiler, "--version"], capture_output=True, text=True, check=True).stdout
        self.versions = {"C": told.splitlines()[0]}
        self.eager = True
        self.flags = (*speed, *FLAGS)
        self.folder = Path(tempfile.mkdtemp(prefix="tensorswap-bench-c-"))
        atexit.register(shutil.rmtree, self.folder, ignore_errors=True)

    def prepare(self, workload: Workload, arrays: Arrays, dtype: str) -> Callable[[], Results]:
        twin = workload.c
        if twin is None or dtype != "float64":
            raise NotApplicable("it is not written for this peer")
        function = getattr(ctypes.CDLL(str(self.library(twin))), twin.function)
        function.restype = None
        results = {name: np.zeros(twin.shapes(arrays)[name]) for name in workload.results}
        taken = {name: arrays[name] for name in twin.inputs or arrays}
        inputs = [np.ascontiguousarray(v) if isinstance(v, np.ndarray) else float(v) for v in taken.values()]
        given = [argument(value) for value in (*inputs, *results.values())]
        given += [ctypes.c_int64(size) for size in twin.sizes(arrays)]

        def call() -> Results:
            function(*given)
            return results

        call.inputs = inputs  # type: ignore[attr-defined]  # a pointer keeps no array alive
        return call

    def library(self, twin: CTwin) -> Path:
        """The shared library of a source, compiled once."""
        key = hashlib.sha256(twin.source.read_bytes()).hexdigest()[:16]
        library = self.folder / f"{twin.source.stem}-{key}.so"
        if not library.exists():
            command = [str(self.compiler), *self.flags, "-o", str(library), str(twin.source), "-lm"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"{twin.source.name}: {done.stderr}")
        return library

    def results(self, raw: Results) -> Results:
        return {name: value.copy() for name, value in raw.items()}


def argument(value: Any) -> Any:
    if not isinstance(value, np.ndarray):
        return ctypes.c_double(value)
    if value.dtype not in (np.float64, np.int64):
        raise TypeError(f"an array of {value.dtype} is neither of doubles nor of integers of 64 bits")
    return ctypes.c_void_p(value.ctypes.data)


make = CFunction
