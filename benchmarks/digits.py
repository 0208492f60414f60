"""The main job, `make train`: a convolutional network learns handwritten digits, timed against its numpy twin."""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from training import BY_NAME, run_numpy
from training.problem import Problem

import tensorswap as ts
from tensorswap import datasets, models
from tensorswap.training.shuffle import shuffled

SHOWN = ("D", "scores")  # the tensors whose statements are shown
BATCH, LR, ROUNDS = 64, 3e-3, 5


@dataclass(frozen=True)
class Outcome:
    accuracy: float
    steps_per_second: float
    numpy_steps_per_second: float


def main(epochs: int = 30, out: Path | None = None, progress: bool = True) -> Outcome:
    training, test = datasets.digits()
    model = models.get("cnn")
    print("The model is kernels/models/cnn.loop. Two statements, with what is derived from them:\n")
    print(statements(model.program))
    print(f"\nTraining on {len(training['label'])} images of digits, {epochs} epochs:")
    result = ts.fit(
        model.program, model.params(training), training, sizes=model.sizes(training), batch_size=BATCH, lr=LR,
        epochs=epochs, schedule="cosine", validation=test, metrics=model.metrics, progress=progress,
        checkpoint=None if out is None else out / "checkpoint.safetensors",
    )  # fmt: skip
    accuracy = result.history.epochs[-1]["validation accuracy"]
    print(f"test accuracy: {100 * accuracy:.1f} % of {len(test['label'])} images that it has not seen")
    if out is not None:
        result.history.plot(out / "loss.png")
        print(f"the loss is drawn in {out / 'loss.png'}")
    ours, theirs = speeds(training)
    print(f"speed on the same batches: {ours:,.0f} steps/s, hand-written numpy {theirs:,.0f} ({ours / theirs:.1f} x)")
    return Outcome(accuracy, ours, theirs)


def statements(program: ts.Program) -> str:
    """The products that make some tensors, each with what is derived from it."""
    shown, keep = [], False
    for line in program.explain().splitlines():
        if not line.startswith(" "):
            keep = line.startswith(tuple(f"{name}[" for name in SHOWN)) and " * " in line
        shown += [line] * keep
    return "\n".join(shown)


def speeds(data: dict[str, np.ndarray]) -> tuple[float, float]:
    """Steps a second of ts.fit and of the numpy twin, in turns; the median of a few rounds. Their losses must agree."""
    model, count = models.get("cnn"), len(data["label"]) // BATCH * BATCH
    part = {name: array[:count] for name, array in data.items()}
    rows = np.stack([shuffled(np.arange(count), count, 0, epoch) for epoch in range(2)]).reshape(2, -1, BATCH)
    problem = Problem("cnn", model.settings, model.initial(part), part, rows)
    twin = BY_NAME["cnn"]
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(ROUNDS):
        begun: dict[int, float] = {}

        def clock(step: int, begun: dict[int, float] = begun) -> float:
            begun.setdefault(step, time.perf_counter())
            return 1.0

        found = ts.fit(
            model.program, problem.start, part, batch_size=BATCH, epochs=2, lr=twin.lr, schedule=clock,
            sizes=model.sizes(part), progress=False,
        ).history.loss  # fmt: skip
        ours.append(len(rows[1]) / (time.perf_counter() - begun[len(rows[0])]))
        hand = run_numpy.Training(problem)
        expected = hand.epoch(0)
        start = time.perf_counter()
        expected += hand.epoch(1)
        theirs.append(len(rows[1]) / (time.perf_counter() - start))
        np.testing.assert_allclose(found[:10], expected[:10], rtol=1e-3)
    return float(np.median(ours)), float(np.median(theirs))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--out", type=Path, default=Path("runs/digits"))
    chosen = parser.parse_args()
    main(chosen.epochs, chosen.out)
