"""Equal conditions for every peer: the same cores, the same number of threads, caches of this run's own."""

from __future__ import annotations

import os
from pathlib import Path

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
    "TORCHINDUCTOR_COMPILE_THREADS",
    "NPROC",  # the size of XLA's thread pool
)


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def environment(threads: int, caches: Path) -> dict[str, str]:
    """The environment of a worker. Compiled code is kept apart from the user's, so that first calls are cold."""
    changed = dict.fromkeys(THREAD_VARIABLES, str(threads))
    changed["XLA_FLAGS"] = f"--xla_cpu_multi_thread_eigen={str(threads > 1).lower()}"
    changed["JAX_PLATFORMS"] = "cpu"
    changed["CUDA_VISIBLE_DEVICES"] = ""
    changed["TENSORSWAP_CACHE"] = str(caches / "tensorswap")
    changed["TORCHINDUCTOR_CACHE_DIR"] = str(caches / "torch")
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, **changed}  # all libraries have their bytecode, as installed ones do


def keep_to_cores(threads: int) -> None:
    """Holds this process to as many cores as it has threads, where the system can: some pools count cores only."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
