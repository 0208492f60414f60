"""A model of what a step in shards costs, held against a simulation, and what both say of many workers.

    python -m benchmarks.cluster.model              the figures of `MEASURED`
    python -m benchmarks.cluster.model --measure    measures them on this machine first, at 1 and 2 workers

A step sends weights to every worker, runs one shard on each, joins what they found in a tree, and updates once.

    compute     the work of one shard, times the slowest of n workers
    scheduler   one process that hands out tasks one after the other
    bytes       weights reach n workers in log2(n) rounds; joins climb log2(n) levels; each round at the bandwidth
    latency     of each round and level

Assumptions, all of which a real cluster bends: one shard for each worker; workers alike, with times that vary by a
lognormal factor; links of their own that do not disturb each other; no failures; data where it is read.
"""

from __future__ import annotations

import argparse
import heapq
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .stopwatch import least

WORKERS = (1, 2, 4, 16, 64, 256, 1000, 4000, 10_000)
TOLD = (64, 1000, 10_000)


@dataclass(frozen=True)
class Machine:
    """Of a cluster: seconds for a task in the scheduler, for a message, for a byte; how much times vary."""

    task: float
    latency: float
    byte: float
    spread: float = 0.05


@dataclass(frozen=True)
class Workload:
    """Of a step: seconds of compute on one core, bytes of weights, bytes of a partial result."""

    name: str
    seconds: float
    weights: float
    partial: float


# Two workers, scheduler and client on two cores that other work shared: machines of their own are quicker.
MEASURED = Machine(task=0.007, latency=0.0063, byte=1 / 0.21e9)
WORKLOADS = (
    Workload("contraction of 64 GB", 400.0, 0.0, 4e6),
    Workload("GPT, 124 M weights, 0.5 M tokens", 15_000.0, 5e8, 5e8),
    Workload("digits, a batch of 512", 0.02, 2e5, 2e5),
)


def model(machine: Machine, load: Workload, workers: int) -> float:
    """Seconds of a step, by formula."""
    levels = math.ceil(math.log2(workers)) if workers > 1 else 0
    slowest = math.exp(machine.spread * math.sqrt(2 * math.log(workers))) if workers > 1 else 1.0
    compute = load.seconds / workers * slowest
    send = levels * (machine.latency + load.weights * machine.byte)
    join = levels * (machine.latency + load.partial * machine.byte)
    scheduler = machine.task * 2 * workers  # as many shards, one join less, and the update
    return send + scheduler + compute + join + 2 * machine.latency


def simulate(machine: Machine, load: Workload, workers: int, seed: int = 0) -> float:
    """Seconds of a step, event by event: a scheduler that does one thing after the other, links, a tree of joins."""
    random = np.random.default_rng(seed)
    factors = np.exp(machine.spread * random.standard_normal(workers))
    has = [0.0] * workers  # when each has the weights: it passes them on to one after the other
    at = 1
    while at < workers:
        for k in range(min(at, workers - at)):
            has[at + k] = has[k] = has[k] + machine.latency + load.weights * machine.byte
        at *= 2
    events: list[tuple[float, int, int, int]] = []  # when, what (0: a shard ends, 1: a join ends), level, place
    free = 0.0
    for k in range(workers):
        free += machine.task
        end = max(free, has[k]) + machine.latency + load.seconds / workers * factors[k]
        heapq.heappush(events, (end, 0, 0, k))
    counts = [workers]
    while counts[-1] > 1:
        counts.append((counts[-1] + 1) // 2)
    waiting: dict[tuple[int, int], float] = {}
    while events:
        now, _, level, place = heapq.heappop(events)
        if level == len(counts) - 1:
            return now + machine.task + machine.latency
        other = (level, place ^ 1)
        if place ^ 1 >= counts[level]:  # nobody beside it: it goes up as it is
            heapq.heappush(events, (now, 1, level + 1, place // 2))
        elif other in waiting:
            free = max(free, now) + machine.task
            end = free + machine.latency + load.partial * machine.byte
            heapq.heappush(events, (end, 1, level + 1, place // 2))
        else:
            waiting[level, place] = now
    raise AssertionError("the root of the tree ends it")


def measured() -> Machine:
    """Task, latency and byte on this machine: calls of many and few tiny shards, and an array that is sent."""
    from tensorswap.cluster.local_cluster import start

    for workers in (1, 2):
        client = start(workers)
        try:
            few, many, sent = shards(client, 2), shards(client, 32), scattered(client)
        finally:
            cluster = client.cluster
            client.close()
            cluster.close()
        told = f"2 shards {few * 1e3:.1f} ms, 32 shards {many * 1e3:.1f} ms, 32 MiB sent in {sent * 1e3:.0f} ms"
        print(f"{workers} workers: {told}")
    task = max((many - few) / 30, 1e-5)
    return Machine(task, max(few - 2 * task, 1e-4) / 3, sent / 2**25)


def shards(client: Any, count: int) -> float:
    """Seconds of a call of tiny shards, the least of several."""
    import tensorswap as ts

    q, x = ts.program("Y[i] = X[i] + 1").shard("i", client=client, shards=count), np.ones(64)
    return least(lambda: q(X=x), 15)


def scattered(client: Any) -> float:
    big = np.ones(2**22)
    return least(lambda: client.scatter([big], hash=False), 5)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--plot", default=str(Path(__file__).parent.parent / "results" / "cluster.png"))
    chosen = parser.parse_args()
    machine = measured() if chosen.measure else MEASURED
    print(f"a task {machine.task * 1e3:.2f} ms, a message {machine.latency * 1e3:.2f} ms, "
          f"{1 / machine.byte / 1e9:.2f} GB/s, times vary by {machine.spread:.0%}\n")  # fmt: skip
    print(f"{'':34} {'workers':>8} {'model s':>10} {'simulated s':>12} {'speed-up':>9} {'efficiency':>11}")
    for load in WORKLOADS:
        for workers in TOLD:
            told, made = model(machine, load, workers), simulate(machine, load, workers)
            gain = load.seconds / made
            print(f"{load.name:34} {workers:8,} {told:10.3f} {made:12.3f} {gain:9.1f} {gain / workers:11.1%}")
    plot(machine, chosen.plot)


def plot(machine: Machine, path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for load in WORKLOADS:
        (line,) = axes.plot(WORKERS, [load.seconds / model(machine, load, n) for n in WORKERS], label=load.name)
        axes.plot(WORKERS, [load.seconds / simulate(machine, load, n) for n in WORKERS], "o", color=line.get_color())
    axes.plot(WORKERS, WORKERS, ":", color="grey", label="as many times as workers")
    axes.set(xscale="log", yscale="log", xlabel="workers", ylabel="speed-up", title="model (lines), simulation (dots)")
    axes.set_ylim(0.05, 2e4)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
