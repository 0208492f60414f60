"""`tensorswap cluster-demo`: programs cut along an index, on the cores of this machine, from start to finish."""

from __future__ import annotations

import argparse
import os
import signal
import threading
import time
from typing import Any

import numpy as np

from ..cluster.local_cluster import distributed, start
from ..cluster.sharded import Executor, executor_of
from ..errors import ArgumentError
from ..program import Program, program
from ..training.fit import fit

EXAMPLES = """\
examples:
  tensorswap cluster-demo                                  a product, a softmax, a worker that is killed, a training
  tensorswap cluster-demo --workers 4 --shards 16
  tensorswap cluster-demo --address tcp://10.0.0.7:8786    on a cluster of your own
"""
PRODUCT = "Y[i,j] += A[i,k] * B[k,j]"
SOFTMAX = "m max= x[b]\ne[b] = exp(x[b] - m)\ns += e[b]\ny[b] = e[b] / s"
SLOW = "Y[i] += sin(X[i,k] * W[j] + k)"
MODEL = """
H[b,h] += X[b,i] * V[h,i]
A[b,h] = tanh(H[b,h])
Z[b,k] += A[b,h] * W[k,h]
P = softmax(Z)
loss -= log(P[b,t[b]]) / size(b)
"""


def describe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workers", type=int, default=2, help="processes on this machine (default: 2)")
    parser.add_argument("--shards", type=int, default=4, help="parts of each program (default: 4)")
    parser.add_argument("--address", help="of the scheduler of a cluster, instead of this machine")


def run(chosen: argparse.Namespace) -> int:
    if chosen.workers < 1 or chosen.shards < 1:
        raise ArgumentError("workers and shards are 1 or more", hint="--workers 2 --shards 4")
    package = distributed()
    before = time.monotonic()
    client = start(chosen.workers) if chosen.address is None else package.Client(chosen.address, timeout=20)
    try:
        print(f"{len(client.scheduler_info()['workers'])} workers after {time.monotonic() - before:.1f} s")
        print(f"dashboard: {client.dashboard_link}\n")
        same = _shown(client, chosen.shards, own=chosen.address is None)
    finally:
        cluster = client.cluster
        client.close(timeout=5)
        if chosen.address is None and cluster is not None:
            cluster.close(timeout=10)
    return 0 if same else 1


def _shown(client: Any, shards: int, own: bool) -> bool:
    random = np.random.default_rng(0)
    executor = executor_of(client)
    A, B = random.standard_normal((2, 512, 512)).astype(np.float32)
    X, W = random.standard_normal((160, 200)), random.standard_normal(200)
    same = _compared("a product, cut along the index that is summed", program(PRODUCT), "k", executor, shards, A=A, B=B)
    x = random.standard_normal(100_000)
    same &= _compared("a softmax, in three stages", program(SOFTMAX), "b", executor, shards, x=x)
    if own:
        _compared("a slower one", program(SLOW), "i", executor, shards, X=X, W=W)
        nanny = next(iter(client.cluster.workers.values()))
        killer = threading.Timer(0.1, lambda: os.kill(nanny.pid, signal.SIGKILL))
        killer.start()
        same &= _compared("the same, and a worker is killed meanwhile", program(SLOW), "i", executor, shards, X=X, W=W)
        killer.join()
    return same & _trained(executor, shards, random)


def _compared(told: str, made: Program, index: str, executor: Executor, shards: int, **arrays: Any) -> bool:
    print(f"{told}\n" + "".join(f"    {line}\n" for line in str(made).splitlines()), end="")
    sharded = made.shard(index, client=executor, shards=shards)
    print("".join(f"  {line}\n" for line in str(sharded.plan(**arrays)).splitlines()), end="")
    want = made.shard(index, client="serial", shards=shards)(**arrays)
    before = time.monotonic()
    got = sharded(**arrays)
    spent = time.monotonic() - before
    same = bool(got.tobytes() == want.tobytes())
    print(f"  {spent:.2f} s; {'bit for bit' if same else 'NOT'} what one process gives\n", flush=True)
    return same


def _trained(executor: Executor, shards: int, random: np.random.Generator) -> bool:
    X = random.standard_normal((512, 16)).astype(np.float32)
    data = {"X": X, "t": X[:, :4].argmax(axis=1)}
    options: dict[str, Any] = {"sizes": {"h": 16, "k": 4}, "epochs": 2, "lr": 0.02, "progress": False, "shards": shards}
    params = {"V": "xavier", "W": "xavier"}
    print(f"a training, each batch in {shards} shards")
    alone = fit(program(MODEL), params, data, **options)
    together = fit(program(MODEL), params, data, cluster=executor, **options)
    same = all(alone.params[name].tobytes() == together.params[name].tobytes() for name in params)
    losses = f"loss {together.history.loss[0]:.3f} -> {together.history.loss[-1]:.3f}"
    print(f"  {losses}; weights {'bit for bit' if same else 'NOT'} those of one process")
    return same
