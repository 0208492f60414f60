"""Storage: outputs that are larger than memory, put into files part by part."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from ..arrays import Array
from ..errors import ArgumentError
from .task_operands import Joined, Operand, Plain


class Storage:
    """Files of `.npy` for outputs: in a folder, or without a name, gone with the last array that shows them. One in a
    folder has its name when it is whole, so that an argument that is read from the file before stays what it is."""

    def __init__(self, outputs: Mapping[str, Operand], folder: Path | None) -> None:
        self.outputs, self.folder = outputs, folder
        self.arrays: dict[str, Any] = {}
        self.places: dict[str, list[tuple[slice, ...]]] = {}
        self.unnamed: dict[str, Path] = {}  # files that are not whole
        for name, operand in outputs.items():
            assert not isinstance(operand, Plain), "an output is an array"
            self.arrays[name] = self.file(name, operand.shape, operand.dtype)
            self.places[name] = _places(operand)

    def __call__(self, name: str, number: int, array: Array) -> None:
        self.arrays[name][self.places[name][number]] = array

    def results(self) -> dict[str, Array]:
        for array in self.arrays.values():
            if isinstance(array, np.memmap):
                array.flush()
        for name in list(self.unnamed):
            assert self.folder is not None
            path = self.unnamed.pop(name).replace(self.folder / f"{name}.npy")
            if isinstance(self.arrays[name], np.memmap):  # an array that knows the name of its file
                self.arrays[name] = np.lib.format.open_memmap(path, "r+")
        return self.arrays

    def discard(self) -> None:
        """Removes what is not whole."""
        while self.unnamed:
            with suppress(OSError):  # it may not even have been made
                self.unnamed.popitem()[1].unlink()

    def file(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        if self.folder is None:
            handle, unseen = tempfile.mkstemp(suffix=".npy")
            os.close(handle)
            try:
                return _mapped(Path(unseen), shape, dtype)
            finally:
                os.unlink(unseen)
        path = self.unnamed[name] = self.folder / f".{name}-{uuid4().hex}.npy"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            return _mapped(path, shape, dtype)
        except OSError as error:
            self.discard()
            raise ArgumentError(f"{self.folder} cannot hold {name}: {error}", hint="choose another folder") from error


def _mapped(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """A new file of zeros. One without elements cannot be mapped."""
    if math.prod(shape):
        return np.lib.format.open_memmap(path, "w+", dtype, shape)
    made = np.zeros(shape, dtype)
    np.save(path, made)
    return made


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
