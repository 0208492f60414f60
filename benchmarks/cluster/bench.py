"""Steps on two workers: ours against dask.array.einsum and torch.distributed with gloo.

    python -m benchmarks.cluster.bench

Seconds of wall time, the least of several rounds. "alone" is the same work of one worker by the same library on one
thread, without a cluster; "overhead" is what a step takes beyond it. PyTorch is left out where it is not installed.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")

import numpy as np  # the number of threads is read when it is imported

import tensorswap as ts
from tensorswap.cluster.local_cluster import start

from .stopwatch import least

ROUNDS = 6
ROWS, COLUMNS = 16_000, 768
BATCHES = 8
BATCH, WIDE, INNER, CLASSES = 4096, 512, 768, 10
MODEL = """
H[b,h] += X[b,i] * V[h,i]
A[b,h] = tanh(H[b,h])
Z[b,k] += A[b,h] * W[k,h]
loss += (Z[b,k] - T[b,k])**2 / size(b)
"""


def contraction(client: Any, folder: Path) -> dict[str, tuple[float, float]]:
    import dask.array

    random = np.random.default_rng(0)
    A, B = random.standard_normal((2, ROWS, COLUMNS)).astype(np.float32)
    np.save(folder / "a.npy", A)
    np.save(folder / "b.npy", B)
    mapped = {name.upper(): np.load(folder / f"{name}.npy", mmap_mode="r") for name in "ab"}
    program = ts.program("Y[i,j] += A[k,i] * B[k,j]")
    q = program.shard("k", client=client, shards=2)
    half = {name: array[: ROWS // 2] for name, array in {"A": A, "B": B}.items()}
    alone = program.shard("k", client="serial", shards=1)
    chunks = (ROWS // 2, COLUMNS)
    a, b = (dask.array.from_array(x, chunks=chunks).persist() for x in (A, B))
    return {
        "ours": (least(lambda: q(mapped), ROUNDS), least(lambda: alone(half), ROUNDS)),
        "dask.array.einsum": (
            least(lambda: dask.array.einsum("ki,kj->ij", a, b).compute(), ROUNDS),
            least(lambda: np.einsum("ki,kj->ij", half["A"], half["B"], optimize=True), ROUNDS),
        ),
    }


def step(client: Any) -> dict[str, tuple[float, float]]:
    """A step of data-parallel training by ts.fit: gradients of two shards, and the update."""
    random = np.random.default_rng(0)
    data = {
        "X": random.standard_normal((BATCHES * BATCH, WIDE)),
        "T": random.standard_normal((BATCHES * BATCH, CLASSES)),
    }
    params = {"V": random.standard_normal((INNER, WIDE)) / 30, "W": random.standard_normal((CLASSES, INNER)) / 30}
    arrays = {name: value.astype(np.float32) for name, value in {**data, **params}.items()}

    def seconds(cluster: Any, shards: int, batch: int) -> float:
        """Of a step, the least of several epochs."""
        begun: dict[int, float] = {}

        def clock(number: int) -> float:
            begun.setdefault(number, time.perf_counter())
            return 1.0

        ts.fit(
            ts.program(MODEL), {name: arrays[name] for name in params},
            {name: arrays[name][: BATCHES * batch] for name in data}, batch_size=batch, epochs=ROUNDS + 2, lr=0.01,
            optimizer="sgd", schedule=clock, shards=shards, cluster=cluster, progress=False,
        )  # fmt: skip
        epochs = [begun[k * BATCHES] for k in range(1, ROUNDS + 2)]
        return min(after - before for before, after in itertools.pairwise(epochs)) / BATCHES

    found = {"ours": (seconds(client, 2, BATCH), seconds("serial", 1, BATCH // 2))}
    if importlib.util.find_spec("torch") is not None:
        shapes = [str(n) for n in (BATCH, WIDE, INNER, CLASSES, ROUNDS, BATCHES)]
        command = [sys.executable, "-m", "benchmarks.cluster.gloo", *shapes]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        together, alone = json.loads(told.splitlines()[-1])
        found["torch.distributed, gloo"] = together, alone
    return found


def main() -> None:
    client = start(2)
    try:
        with tempfile.TemporaryDirectory() as folder:
            rows = {"contraction": contraction(client, Path(folder)), "training step": step(client)}
    finally:
        cluster = client.cluster
        client.close()
        cluster.close()
    print(f"{'':15} {'':24} {'step ms':>9} {'alone ms':>9} {'overhead ms':>12}")
    for name, found in rows.items():
        for who, (together, alone) in found.items():
            print(f"{name:15} {who:24} {together * 1e3:9.0f} {alone * 1e3:9.0f} {(together - alone) * 1e3:12.0f}")


if __name__ == "__main__":
    main()
