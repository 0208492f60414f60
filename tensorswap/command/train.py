"""`tensorswap train`: trains one of the models on data from a file, and leaves parameters, a plot and a summary."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from .. import datasets, models
from ..arrays import Array
from ..errors import ArgumentError
from ..training.fit import Result, fit
from . import text

TEXTS = ("gpt", "lstm")  # models of characters
ARRAYS = tuple(name for name in models.MODELS if name not in TEXTS)
TAKERS = {  # options that only some models read, and what the others have instead
    "text": (TEXTS, "its arrays come from --data FILE.npz"),
    "iterations": (TEXTS, "--epochs says how long it trains"),
    "sample": (TEXTS, "leave it out: only a character model writes"),
    "data": (ARRAYS, "its text comes from --text FILE"),
    "epochs": (ARRAYS, "--iterations says how long it trains"),
}
COUNTS = {"iterations": 1, "epochs": 1, "batch_size": 1, "sample": 0}
SHARE = 0.1  # of a text, or of data from a file, that is kept for validation


EXAMPLES = """\
examples:
  tensorswap train mlp                                     on handwritten digits, which come with the package
  tensorswap train cnn --epochs 10 --batch-size 128 --lr 0.002
  tensorswap train mlp --set width=256 --set layers=2 --out runs/wide
  tensorswap train gpt --text book.txt --iterations 500 --sample 200
  tensorswap train matrix_factorization --data ratings.npz
  tensorswap train mlp --epochs 60 --resume                go on from the checkpoint
"""


def describe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help=f"one of {', '.join(models.MODELS)}")
    parser.add_argument("--data", type=Path, help=".npz file with the model's arrays (default: handwritten digits)")
    parser.add_argument("--text", type=Path, help="text file, for the character models")
    parser.add_argument("--epochs", type=int, default=None, help="passes over the data (default: 30)")
    parser.add_argument("--iterations", type=int, default=None, help="steps, for the character models (default: 2000)")
    parser.add_argument("--batch-size", type=int, default=None)
    parser.add_argument("--lr", type=float, default=None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=NUMBER", help="a setting, e.g. width=64")
    parser.add_argument("--out", type=Path, default=None, help="folder for what is left (default: runs/MODEL)")
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint in that folder")
    parser.add_argument("--sample", type=int, help="characters that a character model writes at the end (default: 500)")


def run(chosen: argparse.Namespace) -> int:
    model = models.get(chosen.model)
    _check_options(chosen)
    settings = dict(_setting(pair) for pair in chosen.set)
    out: Path = chosen.out or Path("runs") / model.name
    options = {**model.training, **({} if chosen.lr is None else {"lr": chosen.lr})}
    if chosen.model in TEXTS:
        corpus = text.read(chosen.text, settings.get("length", model.settings["length"]), SHARE)
        data, held = corpus.training, corpus.validation
        epochs = 1
        size = 12 if chosen.batch_size is None else chosen.batch_size
        steps = 2000 if chosen.iterations is None else chosen.iterations
        data = corpus.windows(steps * size, chosen.seed)
    else:
        data, held = _arrays(chosen.data, chosen.model)
        epochs = 30 if chosen.epochs is None else chosen.epochs
        size = 64 if chosen.batch_size is None else chosen.batch_size
    start = time.monotonic()
    result = fit(
        model.program, model.params(data, **settings), data, sizes=model.sizes(data, **settings), batch_size=size,
        epochs=epochs, seed=chosen.seed, validation=held, checkpoint=out / "checkpoint.safetensors",
        resume=chosen.resume, **options,
    )  # fmt: skip
    summary = _summary(model.name, result, time.monotonic() - start)
    plotted = find_spec("matplotlib") is not None  # a training that is done is not lost for want of a picture
    if plotted:
        result.history.plot(out / "loss.png")
    (out / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
    for name, value in summary.items():
        print(f"{name}: {value}")
    print(f"parameters{', plot' if plotted else ''} and summary are in {out}")
    if not plotted:
        print("there is no plot: it needs matplotlib (pip install matplotlib)")
    count = 500 if chosen.sample is None else chosen.sample
    if chosen.model in TEXTS and count:
        print(text.sample(model, result.params, corpus, count, chosen.seed, settings))
    return 130 if result.interrupted else 0


def _check_options(chosen: argparse.Namespace) -> None:
    """Refuses what the model would not read, and counts that are none."""
    for name, (takers, instead) in TAKERS.items():
        if getattr(chosen, name) is not None and chosen.model not in takers:
            told = f"--{name} is for the models {', '.join(takers)}; {chosen.model} does not read it"
            raise ArgumentError(told, hint=instead)
    for name, least in COUNTS.items():
        count = getattr(chosen, name)
        if count is not None and count < least:
            option = f"--{name.replace('_', '-')}"
            raise ArgumentError(f"{option} is a whole number of {least} or more, not {count}", hint=f"{option} 10")


def _setting(pair: str) -> tuple[str, int]:
    name, equals, value = pair.partition("=")
    try:
        return name, int(value) if equals else 0 // 0
    except (ValueError, ZeroDivisionError):
        raise ArgumentError(f"--set takes NAME=NUMBER, not {pair[:80]!r}", hint="--set width=64") from None


def _arrays(path: Path | None, model: str) -> tuple[dict[str, Array], dict[str, Array]]:
    """The arrays to train on, and those to validate with."""
    if path is None:
        return _digits_for(model)
    try:
        with path.open("rb") as file:
            stored = np.load(file)
            arrays: dict[str, Array] = dict(stored) if isinstance(stored, Mapping) else {}  # np.save writes no names
    except (OSError, EOFError, ValueError, BadZipFile) as error:
        raise ArgumentError(f"{path} cannot be read: {error}", hint="give a file that np.savez wrote") from error
    if not arrays:
        raise ArgumentError(f"{path} holds no arrays with names", hint="give a file that np.savez wrote")
    count = min((len(array) for array in arrays.values() if array.ndim), default=0)
    kept = max(int(count * SHARE), 1)
    order = np.random.default_rng(0).permutation(count)
    one = {name: array[order[kept:]] if array.ndim else array for name, array in arrays.items()}
    other = {name: array[order[:kept]] if array.ndim else array for name, array in arrays.items()}
    return one, other


def _digits_for(model: str) -> tuple[dict[str, Array], dict[str, Array]]:
    """The digits in the form that a model reads."""
    parts = datasets.digits()
    if model == "cnn":
        return parts
    flat = [{"x": part["image"].reshape(len(part["label"]), -1), "label": part["label"]} for part in parts]
    if model in ("mlp", "logistic_regression"):
        return flat[0], flat[1]
    if model in ("autoencoder", "gaussian_mixture"):
        return {"x": flat[0]["x"]}, {"x": flat[1]["x"]}
    raise ArgumentError(f"{model} has no data of its own", hint="--data FILE.npz with its arrays")


def _summary(name: str, result: Result, seconds: float) -> dict[str, Any]:
    rows = result.history.epochs
    last = {key: round(value, 6) for key, value in rows[-1].items() if key not in ("epoch", "step")} if rows else {}
    count = int(sum(array.size for array in result.params.values()))
    return {"model": name, "parameters": count, "steps": result.step, "seconds": round(seconds, 2), **last}
