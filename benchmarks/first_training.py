"""A first training run: a two-layer classifier learns three spirals. Model, gradient and update are index-loop text.

Run it with `make train`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tensorswap as ts

Array = NDArray[Any]

MODEL = """
Z[n,h] += X[n,d] * W1[h,d]
Z[n,h] += b1[h]
H[n,h] = tanh(Z[n,h])
S[n,c] += H[n,h] * W2[c,h]
S[n,c] += b2[c]
L = log_softmax(S)
loss -= L[n,label[n]] / size(n)
guess[n] argmax= S[n,c]
hits += guess[n] == label[n]
"""

# Adam. `...` makes it one text for matrices and vectors; writing an input's own name is an update.
UPDATE = """
m[...] = 0.9 * m[...] + 0.1 * g[...]
v[...] = 0.99 * v[...] + 0.01 * g[...] ** 2
w[...] = w[...] - rate * (m[...] / (1 - 0.9 ** step)) / (sqrt(v[...] / (1 - 0.99 ** step)) + 1e-8)
"""

PARAMETERS = ("W1", "b1", "W2", "b2")
SHOWN = ("S[n,c] += H[n,h] * W2[c,h]", "H[n,h] = tanh(Z[n,h])")
CLASSES, HIDDEN, STEPS = 3, 24, 200
SECONDS_BETWEEN_LINES = 1.0


@dataclass(frozen=True)
class Result:
    """What a run gives: the loss at every step, the trained parameters, and how many fresh points are right."""

    losses: list[float]
    parameters: dict[str, Array]
    accuracy: float


def spirals(points: int, generator: np.random.Generator) -> dict[str, Array]:
    """Three arms around the origin, one for each class, with a little noise."""
    label = np.arange(points) % CLASSES
    radius = generator.uniform(0.1, 1.0, points)
    angle = 5.5 * radius + 2 * np.pi * label / CLASSES + generator.normal(0, 0.1, points)
    X = 2 * radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return {"X": X, "label": label}


def start(generator: np.random.Generator) -> dict[str, Array]:
    """Random weights of about unit output, zero biases."""
    return {
        "W1": generator.normal(0, 1, (HIDDEN, 2)),
        "b1": np.zeros(HIDDEN),
        "W2": generator.normal(0, HIDDEN**-0.5, (CLASSES, HIDDEN)),
        "b2": np.zeros(CLASSES),
    }


def adjoints(model: ts.Program, statements: tuple[str, ...]) -> str:
    """The given statements of a model, each followed by the adjoint statements that the swap rule made of it."""
    lines = model.explain().splitlines()
    found = []
    for statement in statements:
        first = lines.index(statement)
        last = first + 1
        while last < len(lines) and lines[last].startswith("    ->"):
            last += 1
        found += lines[first:last]
    return "\n".join(found)


def main(steps: int = STEPS, points: int = 240, rate: float = 0.03, report: Callable[[str], object] = print) -> Result:
    generator = np.random.default_rng(0)
    model = ts.program(MODEL, outputs=["loss", "hits"])
    gradient = model.grad(of="loss", wrt=PARAMETERS)
    update = ts.program(UPDATE)
    report(f"Two statements of the model, and what the swap rule makes of them:\n\n{adjoints(model, SHOWN)}\n")

    train, fresh = spirals(points, generator), spirals(points, generator)
    parameters = start(generator)
    moments = {name: (np.zeros_like(w), np.zeros_like(w)) for name, w in parameters.items()}
    losses: list[float] = []
    begin = told = time.monotonic()
    for step in range(1, steps + 1):
        result = gradient(**train, **parameters)
        losses.append(float(result["loss"]))
        for name in PARAMETERS:
            m, v = moments[name]
            new = update(w=parameters[name], m=m, v=v, g=result[f"{name}.grad"], rate=rate, step=step)
            parameters[name], moments[name] = new["w"], (new["m"], new["v"])
        if step in (1, steps) or time.monotonic() - told >= SECONDS_BETWEEN_LINES:
            told = time.monotonic()
            report(f"step {step:4d} of {steps}   loss {losses[-1]:.4f}   {told - begin:5.1f} s")
    accuracy = float(model(**fresh, **parameters)["hits"]) / points
    report(f"\n{points} fresh points: {accuracy:.1%} right")
    return Result(losses, parameters, accuracy)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=STEPS)
    main(parser.parse_args().steps, report=lambda line: print(line, flush=True))
