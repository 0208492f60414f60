"""Checkpoints: one safetensors file with parameters, optimiser state and losses, and in its header, as JSON, all else
that a run needs to go on as if it had never stopped. A checksum covers all of it, and every field is checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import ArgumentError
from . import tensorfile

FORMAT = "tensorswap checkpoint 2"
EARLIER = "tensorswap checkpoint 1"  # without a checksum: refused, its parameters can be read as any tensors
HISTORY = "history "  # before the names of losses and metrics: no tensor has a space in its name
COUNT = 2**53  # no step, epoch or example has a number beyond


@dataclass(frozen=True)
class Position:
    """Where a run stands: steps done, and the next batch as an epoch, a chunk of the data and an example in it."""

    step: int = 0
    epoch: int = 0
    chunk: int = 0
    example: int = 0


@dataclass(frozen=True)
class Checkpoint:
    program: str  # the text of the training step: another one cannot go on from here
    settings: Mapping[str, Any]  # seed, batch size and what else decides the numbers
    position: Position
    arrays: Mapping[str, Array]
    history: Mapping[str, Any]


def refuse_place(path: Path) -> None:
    """Raises unless a file can be written there."""
    try:
        if path.is_dir():
            raise OSError("it is a folder")
        tensorfile.try_place(path)
    except OSError as error:
        raise ArgumentError(
            f"the checkpoint {path} cannot be written: {str(error)[:200]}", hint="choose another place"
        ) from error


def save(path: Path, checkpoint: Checkpoint) -> None:
    steps = {f"{HISTORY}{name}": np.array(v, np.float64) for name, v in checkpoint.history["steps"].items()}
    arrays = {**checkpoint.arrays, **steps}
    told = {
        "format": FORMAT,
        "program": checkpoint.program,
        "settings": json.dumps(dict(checkpoint.settings)),
        "position": json.dumps(asdict(checkpoint.position)),
        "history": json.dumps({"epochs": checkpoint.history["epochs"]}),
    }
    try:
        tensorfile.write(path, arrays, {**told, "checksum": checksum(arrays, told)})
    except Exception as error:  # a full disk, a place that is none, a header beyond all bounds
        raise ArgumentError(
            f"the checkpoint {path} cannot be written: {str(error)[:200]}",
            hint="make room or choose another place; the last good one is still there",
        ) from error


def checksum(arrays: Mapping[str, Array], told: Mapping[str, str]) -> str:
    """Of all that a file says, in whatever order it says it."""
    found = hashlib.sha256()
    for name, text in sorted(told.items()):
        if name != "checksum":
            found.update(json.dumps([name, text]).encode())
    for name, array in sorted(arrays.items()):
        found.update(json.dumps([name, array.dtype.name, array.shape]).encode())
        found.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return found.hexdigest()


def load(path: Path) -> Checkpoint:
    try:
        arrays, told = tensorfile.read(path)
        if EARLIER in told.get("tensorswap", ""):
            raise ArgumentError(
                f"the checkpoint {path} was written by an earlier version and has no checksum, so it cannot be trusted",
                hint="its parameters can be read with safetensors.numpy.load_file: pass them as params",
            )
        if told.get("format") != FORMAT:
            raise ArgumentError(
                f"{path} is no checkpoint of a training run", hint="pass a file that ts.fit(checkpoint=...) wrote"
            )
        if told.get("checksum") != checksum(arrays, told):
            raise ValueError("its content does not agree with its checksum")
        return _understood(arrays, told)
    except FileNotFoundError as error:
        raise ArgumentError(f"there is no checkpoint {path}", hint="train with checkpoint=... first") from error
    except (OSError, ValueError, MemoryError) as error:
        if isinstance(error, ArgumentError):
            raise
        raise ArgumentError(
            f"the checkpoint {path} is damaged: {str(error)[:200]}", hint="use an earlier one, or start anew"
        ) from error


def _understood(arrays: Mapping[str, Array], told: Mapping[str, str]) -> Checkpoint:
    """The checkpoint, if every field is of its kind and they agree with each other."""
    parts = {name: tensorfile.parsed(told.get(name, ""), f"its {name}") for name in ("settings", "position", "history")}
    names = [field.name for field in fields(Position)]
    numbers = parts["position"]
    if sorted(numbers) != sorted(names) or not all(type(n) is int and 0 <= n < COUNT for n in numbers.values()):
        raise ValueError("its position is no position")
    position = Position(**numbers)
    steps = {name.removeprefix(HISTORY): array for name, array in arrays.items() if name.startswith(HISTORY)}
    if any(array.shape != (position.step,) for array in steps.values()):
        raise ValueError("its history has another number of steps than its position")
    epochs = parts["history"].get("epochs")
    if not isinstance(epochs, list) or len(epochs) != position.epoch or not all(_is_row(row) for row in epochs):
        raise ValueError("its history has other epochs than its position")
    if not isinstance(told.get("program"), str):
        raise ValueError("it has no program")
    history = {"steps": {name: array.tolist() for name, array in steps.items()}, "epochs": epochs}
    kept = {name: array for name, array in arrays.items() if not name.startswith(HISTORY)}
    return Checkpoint(told["program"], parts["settings"], position, kept, history)


def _is_row(row: Any) -> bool:
    return isinstance(row, dict) and all(type(value) is float for value in row.values())


def refuse_foreign(
    found: Checkpoint,
    path: Path,
    program: str,
    settings: Mapping[str, Any],
    arrays: Mapping[str, Array],
    results: Sequence[str],
) -> None:
    """Raises unless the checkpoint belongs to the same training."""

    def problems() -> Iterator[str]:
        if found.program != program:
            yield "its program is another one"
        for name, value in settings.items():
            if found.settings.get(name) != value:
                yield f"its {name} is {str(found.settings.get(name))[:80]}, not {value!r}"
        for name, array in arrays.items():
            has = found.arrays.get(name)
            if has is None or has.shape != array.shape or has.dtype != array.dtype:
                shown = "missing" if has is None else f"{has.dtype}{list(has.shape)}"
                yield f"its {name} is {shown}, not {array.dtype}{list(array.shape)}"
        yield from (f"it has a tensor {name[:80]}" for name in found.arrays if name not in arrays)
        if found.position.step and set(found.history["steps"]) != set(results):
            yield "its history is of other losses and metrics"

    problem = next(problems(), None)
    if problem:
        raise ArgumentError(
            f"the checkpoint {path} is of another training: {problem}", hint="resume with what it was made with"
        )
