"""Histories and results of a training -> a curve of the loss, the last epochs, and the parameters."""

from __future__ import annotations

from html import escape

import numpy as np

from ..pictures.curves import curves_svg, loss_curves
from ..training.fit import Result
from ..training.history import History
from .markup import code, folded, head, note, part, table

EPOCHS = 10  # rows of the table


def history_page(history: History) -> str:
    return part(head("History", f"{len(history.loss)} steps"), *_history(history))


def result_page(result: Result) -> str:
    ended = ", interrupted" if result.interrupted else ""
    rows = [
        [code(name), escape(str(tuple(value.shape))), str(value.dtype), f"{np.linalg.norm(value.astype(float)):.4g}"]
        for name, value in result.params.items()
    ]
    parameters = table(["parameter", "shape", "type", "norm"], rows, numbers=(3,))
    return part(head("Trained", f"{result.step} steps{ended}"), parameters, *_history(result.history))


def _history(history: History) -> list[str]:
    if not history.loss:
        return [note("no step has been made")]
    validated = [(row["step"], row["validation loss"]) for row in history.epochs if "validation loss" in row]
    parts = [curves_svg(loss_curves(history.loss, validated), "step", "loss")]
    if history.epochs:
        columns = list(dict.fromkeys(name for row in history.epochs for name in row))
        shown = history.epochs[-EPOCHS:]
        rows = [[_number(row.get(name)) for name in columns] for row in shown]
        count = len(history.epochs)
        title = f"Epochs: the last {EPOCHS} of {count}" if count > EPOCHS else f"Epochs: {count}"
        parts.append(folded(title, table([escape(name) for name in columns], rows, range(len(columns)))))
    return parts


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value == round(value, 0) else f"{value:.4g}"
