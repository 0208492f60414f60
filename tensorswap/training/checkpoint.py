"""Checkpoints: one safetensors file with parameters and optimiser state, and in its header, as JSON, all else that a
run needs to go on as if it had never stopped. A new file takes the place of the old one only when it is whole."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError

Array = NDArray[Any]
FORMAT = "tensorswap checkpoint 1"


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


def save(path: Path, checkpoint: Checkpoint) -> None:
    from safetensors.numpy import save_file  # only who saves needs it

    told = {
        "format": FORMAT,
        "program": checkpoint.program,
        "settings": dict(checkpoint.settings),
        "position": asdict(checkpoint.position),
        "history": dict(checkpoint.history),
    }
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        arrays = {name: np.ascontiguousarray(array) for name, array in checkpoint.arrays.items()}
        save_file(arrays, str(part), metadata={"tensorswap": json.dumps(told)})
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.replace(path)
    except Exception as error:  # a full disk shows as one of several kinds
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise ArgumentError(
            f"the checkpoint {path} cannot be written: {str(error)[:200]}",
            hint="make room or choose another place; the last good one is still there",
        ) from error


def load(path: Path) -> Checkpoint:
    from safetensors import safe_open

    try:
        with safe_open(str(path), framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no dict)
        told = json.loads(metadata.get("tensorswap", "null"))
    except FileNotFoundError as error:
        raise ArgumentError(f"there is no checkpoint {path}", hint="train with checkpoint=... first") from error
    except Exception as error:  # whatever a damaged file makes of itself
        raise ArgumentError(
            f"the checkpoint {path} is damaged: {str(error)[:200]}", hint="use an earlier one, or start anew"
        ) from error
    if not isinstance(told, dict) or told.get("format") != FORMAT:
        raise ArgumentError(
            f"{path} is no checkpoint of a training run", hint="pass a file that ts.fit(checkpoint=...) wrote"
        )
    return Checkpoint(told["program"], told["settings"], Position(**told["position"]), arrays, told["history"])


def refuse_foreign(
    found: Checkpoint, path: Path, program: str, settings: Mapping[str, Any], shapes: Mapping[str, Any]
) -> None:
    """Raises unless the checkpoint belongs to the same training."""
    problem = ""
    if found.program != program:
        problem = "its program is another one"
    for name, value in settings.items():
        if not problem and found.settings.get(name) != value:
            problem = f"its {name} is {found.settings.get(name)!r}, not {value!r}"
    for name, shape in shapes.items():
        if not problem and (name not in found.arrays or found.arrays[name].shape != shape):
            has = found.arrays[name].shape if name in found.arrays else "missing"
            problem = f"its {name} is {has}, not {shape}"
    if problem:
        raise ArgumentError(
            f"the checkpoint {path} is of another training: {problem}", hint="resume with what it was made with"
        )
