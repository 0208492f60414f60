"""History: what a training run has seen, for people and for plots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import ArgumentError
from ..lazy import method


@dataclass
class History:
    """The loss and metrics of every step, and a row for each epoch with their means and what validation gave."""

    steps: dict[str, list[float]] = field(default_factory=dict)
    epochs: list[dict[str, float]] = field(default_factory=list)

    def add(self, name: str, values: Array) -> None:
        self.steps.setdefault(name, []).extend(float(v) for v in values)

    def __getitem__(self, name: str) -> list[float]:
        return self.steps[name]

    @property
    def loss(self) -> list[float]:
        """The loss of every step; it is the first that is written down."""
        return next(iter(self.steps.values()), [])

    def to_dict(self) -> dict[str, Any]:
        return {"steps": {name: list(values) for name, values in self.steps.items()}, "epochs": list(self.epochs)}

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> History:
        return cls({name: list(values) for name, values in told["steps"].items()}, list(told["epochs"]))

    def _repr_html_(self) -> str:
        """The loss over the steps, and a table of the epochs, for a notebook."""
        page: str = method("history_page")(self)
        return page

    def plot(self, path: str | Path | None = None) -> Any:
        """The loss over the steps, and validation over the epochs. Writes a file if a path is given."""
        try:
            from matplotlib.backends.backend_agg import FigureCanvasAgg
            from matplotlib.figure import Figure
        except ImportError as error:
            raise ArgumentError("a plot needs matplotlib", hint="pip install matplotlib") from error
        figure = Figure(figsize=(7, 4), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.subplots()
        losses = np.array(self.loss)
        steps = np.arange(1, len(losses) + 1)
        axes.plot(steps, losses, color="#9db7d5", linewidth=0.8, label="loss of a step")
        width = max(len(losses) // 50, 1)
        if width > 1:
            mean = np.convolve(losses, np.ones(width) / width, mode="valid")
            axes.plot(steps[width - 1 :], mean, color="#1f4e8c", linewidth=1.8, label=f"mean of {width} steps")
        shown = [(row["step"], row["validation loss"]) for row in self.epochs if "validation loss" in row]
        if shown:
            axes.plot(*zip(*shown, strict=True), color="#c0392b", marker="o", markersize=3, label="validation")
        positive = losses[np.isfinite(losses)]
        if positive.size and positive.min() > 0 and positive.max() > 20 * positive.min():
            axes.set_yscale("log")
        axes.set_xlabel("step")
        axes.set_ylabel("loss")
        axes.grid(alpha=0.3)
        axes.legend()
        if path is not None:
            figure.savefig(path, dpi=150)
        return figure
