"""Eager values against autograd, PyTorch and a plain Python engine: a network of scalars, and one of arrays.

    python benchmarks/eager.py

A step is forward, backward and update. Every engine starts from the same parameters, and after one step must hold the
same ones; then rounds are timed and their median is shown. Each engine runs in a process of its own.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

POINTS, LAYERS, RATE, DECAY = 50, (2, 16, 16, 1), 0.1, 1e-4
BATCH, SIZES = 64, (64, 128, 10)
ENGINES = ("tensorswap", "plain", "autograd", "torch")
SECONDS = 6.0  # of rounds for one engine and network
MOST = 200

Step = Callable[[], list[float]]


class Value:
    """The plain Python peer: a small engine of the teaching kind, with slots and local slopes for speed."""

    __slots__ = ("children", "data", "grad", "slopes")

    def __init__(self, data: float, children: tuple[Value, ...] = (), slopes: tuple[float, ...] = ()) -> None:
        self.data, self.grad, self.children, self.slopes = data, 0.0, children, slopes

    def __add__(self, other: Value | float) -> Value:
        if isinstance(other, Value):
            return Value(self.data + other.data, (self, other), (1.0, 1.0))
        return Value(self.data + other, (self,), (1.0,))

    def __mul__(self, other: Value | float) -> Value:
        if isinstance(other, Value):
            return Value(self.data * other.data, (self, other), (other.data, self.data))
        return Value(self.data * other, (self,), (other,))

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Value:
        return Value(-self.data, (self,), (-1.0,))

    def relu(self) -> Value:
        return Value(max(self.data, 0.0), (self,), (float(self.data > 0),))

    def backward(self) -> None:
        order: list[Value] = []
        seen = {self}
        stack: list[tuple[Value, Iterator[Value]]] = [(self, iter(self.children))]
        while stack:
            node, rest = stack[-1]
            for child in rest:
                if child not in seen:
                    seen.add(child)
                    stack.append((child, iter(child.children)))
                    break
            else:
                order.append(node)
                stack.pop()
        self.grad = 1.0
        for node in reversed(order):
            for child, slope in zip(node.children, node.slopes, strict=True):
                child.grad += slope * node.grad


# -- the network of scalars: written once, for anything with + * and a relu


def moons() -> tuple[list[list[float]], list[float]]:
    """Two half circles that reach into each other, with labels 1 and -1."""
    random = np.random.default_rng(0)
    angle = math.pi * random.uniform(0, 1, POINTS)
    upper = np.arange(POINTS) % 2 == 0
    x = np.where(upper, np.cos(angle), 1 - np.cos(angle)) + random.normal(0, 0.1, POINTS)
    y = np.where(upper, np.sin(angle), 0.5 - np.sin(angle)) + random.normal(0, 0.1, POINTS)
    return np.stack([x, y], 1).tolist(), np.where(upper, 1.0, -1.0).tolist()


def first_parameters() -> list[float]:
    random = np.random.default_rng(1)
    return random.uniform(-1, 1, sum((i + 1) * o for i, o in itertools.pairwise(LAYERS))).tolist()


def hinge_loss(parameters: list[Any], relu: Callable[[Any], Any]) -> Any:
    points, labels = moons()
    total: Any = 0.0
    for point, label in zip(points, labels, strict=True):
        total = total + relu(score(parameters, point, relu) * -label + 1.0)
    decay: Any = 0.0
    for parameter in parameters:
        decay = decay + parameter * parameter
    return total * (1 / POINTS) + decay * DECAY


def score(parameters: list[Any], values: list[Any], relu: Callable[[Any], Any]) -> Any:
    rest = iter(parameters)
    for layer, width in enumerate(LAYERS[1:]):
        results = []
        for _ in range(width):
            total = next(rest)
            for value in values:
                total = total + next(rest) * value
            results.append(total if layer == len(LAYERS) - 2 else relu(total))
        values = results
    return values[0]


def scalars_of_tensorswap() -> Step:
    import tensorswap as ts

    parameters = [ts.tensor(p) for p in first_parameters()]

    def step() -> list[float]:
        hinge_loss(parameters, lambda v: v.relu()).backward()
        for p in parameters:
            p.value -= RATE * p.grad
            p.grad = None
        return [p.value for p in parameters]

    return step


def scalars_of_plain() -> Step:
    parameters = [Value(p) for p in first_parameters()]

    def step() -> list[float]:
        hinge_loss(parameters, lambda v: v.relu()).backward()
        for p in parameters:
            p.data -= RATE * p.grad
            p.grad = 0.0
        return [p.data for p in parameters]

    return step


def scalars_of_autograd() -> Step:
    import autograd.numpy as anp
    from autograd import grad

    parameters = first_parameters()
    places = range(len(parameters))

    def loss(values: list[Any]) -> Any:
        each = [values[k] for k in places]  # taken once: every take of a list's element has a gradient of its own
        return hinge_loss(each, lambda v: anp.maximum(v, 0.0))

    gradient = grad(loss)

    def step() -> list[float]:
        parameters[:] = [p - RATE * g for p, g in zip(parameters, gradient(parameters), strict=True)]
        return [float(p) for p in parameters]

    return step


def scalars_of_torch() -> Step:
    import torch

    parameters = [torch.tensor(p, dtype=torch.float64, requires_grad=True) for p in first_parameters()]

    def step() -> list[float]:
        hinge_loss(parameters, torch.relu).backward()
        with torch.no_grad():
            for p in parameters:
                p -= RATE * p.grad
                p.grad = None
        return [p.item() for p in parameters]

    return step


# -- the network of arrays: 64-128-10, a batch of 64, float32


def arrays() -> tuple[dict[str, Any], Any, Any]:
    random = np.random.default_rng(2)
    i, h, o = SIZES
    weights = {
        "W1": random.normal(0, i**-0.5, (i, h)), "b1": np.zeros(h), "W2": random.normal(0, h**-0.5, (h, o)),
        "b2": np.zeros(o),
    }  # fmt: skip
    parameters = {name: value.astype(np.float32) for name, value in weights.items()}
    return parameters, random.normal(0, 1, (BATCH, i)).astype(np.float32), random.integers(0, o, BATCH)


def arrays_of_tensorswap() -> Step:
    import tensorswap as ts

    start, X, label = arrays()
    W1, b1, W2, b2 = parameters = [ts.tensor(value) for value in start.values()]
    rows = np.arange(BATCH)

    def step() -> list[float]:
        S = np.tanh(X @ W1 + b1) @ W2 + b2
        S = S - S.value.max(axis=1, keepdims=True)
        loss = np.mean(np.log(np.sum(np.exp(S), axis=1)) - S[rows, label])
        loss.backward()
        for p in parameters:
            p.value -= RATE * p.grad
            p.grad = None
        return [float(p.value.sum()) for p in parameters]

    return step


def arrays_of_autograd() -> Step:
    import autograd.numpy as anp
    from autograd import grad

    start, X, label = arrays()
    parameters = list(start.values())
    rows = np.arange(BATCH)

    def loss(values: list[Any]) -> Any:
        W1, b1, W2, b2 = values
        S = anp.dot(anp.tanh(anp.dot(X, W1) + b1), W2) + b2
        S = S - anp.max(S, axis=1, keepdims=True)
        return anp.mean(anp.log(anp.sum(anp.exp(S), axis=1)) - S[rows, label])

    gradient = grad(loss)

    def step() -> list[float]:
        parameters[:] = [p - np.float32(RATE) * g for p, g in zip(parameters, gradient(parameters), strict=True)]
        return [float(p.sum()) for p in parameters]

    return step


def arrays_of_torch() -> Step:
    import torch

    start, X, label = arrays()
    W1, b1, W2, b2 = parameters = [torch.tensor(value, requires_grad=True) for value in start.values()]
    inputs, targets = torch.tensor(X), torch.tensor(label)

    def step() -> list[float]:
        S = torch.tanh(inputs @ W1 + b1) @ W2 + b2
        torch.nn.functional.cross_entropy(S, targets).backward()
        with torch.no_grad():
            for p in parameters:
                p -= RATE * p.grad
                p.grad = None
        return [float(p.detach().sum()) for p in parameters]

    return step


NETWORKS: dict[str, dict[str, Callable[[], Step]]] = {
    "scalars 2-16-16-1, 50 points": {
        "tensorswap": scalars_of_tensorswap, "plain": scalars_of_plain, "autograd": scalars_of_autograd,
        "torch": scalars_of_torch,
    },
    "arrays 64-128-10, batch 64": {
        "tensorswap": arrays_of_tensorswap, "autograd": arrays_of_autograd, "torch": arrays_of_torch,
    },
}  # fmt: skip


def work(engine: str) -> None:
    """One engine in this process: what it holds after a step, and the median time of further ones, as JSON."""
    found: dict[str, Any] = {}
    for network, makers in NETWORKS.items():
        if engine not in makers:
            continue
        try:
            step = makers[engine]()
        except ImportError:
            continue
        held = step()
        times: list[float] = []
        begin = time.perf_counter()
        while len(times) < 3 or (time.perf_counter() - begin < SECONDS and len(times) < MOST):
            before = time.perf_counter()
            step()
            times.append(time.perf_counter() - before)
        found[network] = {"held": held, "seconds": statistics.median(times), "rounds": len(times)}
    print(json.dumps(found))


def check_equal(network: str, found: dict[str, dict[str, Any]]) -> None:
    """Every engine must hold what the first one does."""
    tolerance = 1e-9 if network.startswith("scalars") else 2e-4
    for engine, result in found.items():
        if not np.allclose(result["held"], found["tensorswap"]["held"], rtol=tolerance, atol=tolerance):
            raise SystemExit(f"{network}: {engine} holds other parameters after one step than tensorswap")


def main() -> None:
    results: dict[str, dict[str, Any]] = {}
    for engine in ENGINES:
        run = subprocess.run(
            [sys.executable, __file__, "--engine", engine], capture_output=True, text=True, check=False
        )
        if run.returncode:
            raise SystemExit(f"{engine} failed:\n{run.stderr}")
        results[engine] = json.loads(run.stdout)
    for network, makers in NETWORKS.items():
        found = {engine: results[engine][network] for engine in makers if network in results[engine]}
        check_equal(network, found)
        print(f"\n{network}: same parameters after a step; median of rounds")
        own = found["tensorswap"]["seconds"]
        for engine in makers:
            if engine not in found:
                print(f"  {engine:12} not installed")
                continue
            result = found[engine]
            ratio = result["seconds"] / own
            print(f"  {engine:12} {result['seconds'] * 1e3:10.3f} ms  {ratio:7.2f} x  ({result['rounds']} rounds)")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=ENGINES)
    chosen = parser.parse_args().engine
    work(chosen) if chosen else main()
