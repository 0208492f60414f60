"""Storage: outputs that are larger than memory, put into files part by part."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import ArgumentError
from .task_operands import Joined, Operand, Plain


class Storage:
    """Files of `.npy` for outputs: in a folder, or without a name, gone with the last array that shows them."""

    def __init__(self, outputs: Mapping[str, Operand], folder: Path | None) -> None:
        self.outputs = outputs
        self.arrays: dict[str, Any] = {}
        self.places: dict[str, list[tuple[slice, ...]]] = {}
        for name, operand in outputs.items():
            assert not isinstance(operand, Plain), "an output is an array"
            self.arrays[name] = _file(name, operand.shape, operand.dtype, folder)
            self.places[name] = _places(operand)

    def __call__(self, name: str, number: int, array: Array) -> None:
        self.arrays[name][self.places[name][number]] = array

    def results(self) -> dict[str, Array]:
        for array in self.arrays.values():
            if isinstance(array, np.memmap):
                array.flush()
        return self.arrays


def _file(name: str, shape: tuple[int, ...], dtype: np.dtype[Any], folder: Path | None) -> Any:
    if not shape or not np.prod(shape):
        return np.zeros(shape, dtype)
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return np.lib.format.open_memmap(folder / f"{name}.npy", "w+", dtype, shape)
        except OSError as error:
            raise ArgumentError(f"{folder} cannot hold {name}: {error}", hint="choose another folder") from error
    handle, path = tempfile.mkstemp(suffix=".npy")
    os.close(handle)
    try:
        return np.lib.format.open_memmap(path, "w+", dtype, shape)
    finally:
        os.unlink(path)


def _places(operand: Operand) -> list[tuple[slice, ...]]:
    if not isinstance(operand, Joined):
        return [(...,)]  # type: ignore[list-item]  # all of it
    found, at = [], 0
    for part in operand.parts:
        assert not isinstance(part, Plain)
        length = part.shape[operand.axis]
        found.append((*(slice(None),) * operand.axis, slice(at, at + length)))
        at += length
    return found
