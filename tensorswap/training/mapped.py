"""Mapped files: their content is read with system calls into memory of our own, never through the map.

Another process may change or cut a file at any moment. A page of a map that is no longer there ends the process, and a
number that was checked may be another one when it is used; a read gives a copy, or says how much there is.
"""

from __future__ import annotations

import math
import mmap
import os
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..arrays import Array, Integers
from ..errors import ArgumentError, SwapWarning, TrainingError
from ..language.given_numbers import shown

GAP = 1 << 15  # bytes between two examples that are read along rather than jumped over
BLOCK = 1 << 23  # bytes that are read in one go
SAMPLE = 1 << 12  # bytes by which a file is told from another one of its name


class Mapped:
    """An array in a file."""

    def __init__(self, name: str, path: Any, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.name = name
        self.path = path
        self.offset = offset
        self.shape = shape
        self.dtype = dtype
        self.file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        self.close = weakref.finalize(self, os.close, self.file)
        self.status = self._status()
        self.warned = False

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def read(self, start: int, size: int) -> bytearray:
        """Bytes of the array, or an error if the file has become too short for them."""
        found = bytearray()
        while len(found) < size:
            part = _read_at(self.file, min(size - len(found), BLOCK), self.offset + start + len(found))
            if not part:
                raise TrainingError(
                    f"the file of {self.name} has become shorter: {self.offset + start + size} bytes are needed, "
                    f"{os.fstat(self.file).st_size} are there",
                    hint=f"{shown(self.path)} must not change while it is trained on",
                )
            found += part
        return found

    def take(self, rows: Integers, axis: int) -> Array:
        """Some of the examples along an axis, in the order asked for."""
        self._tell_of_change()
        outer, count = math.prod(self.shape[:axis]), self.shape[axis]
        width = math.prod(self.shape[axis + 1 :]) * self.dtype.itemsize
        order = np.argsort(rows, kind="stable")
        wanted = rows[order]
        found = np.empty((outer, len(rows), width), np.uint8)
        apart = np.flatnonzero((wanted[1:] - wanted[:-1] - 1) * width > GAP) + 1
        for run in np.split(np.arange(len(wanted)), apart):
            for part in _limited(run, wanted, width):
                low, high = int(wanted[part[0]]), int(wanted[part[-1]]) + 1
                for k in range(outer):
                    piece = self.read((k * count + low) * width, (high - low) * width)
                    block = np.frombuffer(piece, np.uint8).reshape(high - low, width)
                    found[k, order[part]] = block[wanted[part] - low]
        made = found.reshape(-1).view(self.dtype)
        return made.reshape(*self.shape[:axis], len(rows), *self.shape[axis + 1 :])

    def _status(self) -> tuple[int, int]:
        status = os.fstat(self.file)
        return status.st_size, status.st_mtime_ns

    def _tell_of_change(self) -> None:
        if not self.warned and self._status() != self.status:
            self.warned = True
            warnings.warn(
                f"the file of {self.name} changes while it is trained on: each example counts as it is when it is read",
                SwapWarning,
                stacklevel=2,
            )


def _limited(run: Integers, wanted: Integers, width: int) -> Iterator[Integers]:
    """A run of near examples, in parts that are read in one go each."""
    blocks = (wanted[run] - wanted[run[0]]) * width // BLOCK
    yield from np.split(run, np.flatnonzero(np.diff(blocks)) + 1)


def _read_at(file: int, size: int, offset: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(file, size, offset)
    os.lseek(file, offset, os.SEEK_SET)
    return os.read(file, size)


def mapped(name: str, value: Any) -> Mapped | None:
    """The file behind an array whose elements lie there one after the other as they do in it; None for all others."""
    root = _root(value)
    if not isinstance(root, np.memmap) or not _is_in_file(root) or not value.flags.c_contiguous or not value.size:
        return None
    return _opened(name, value, root, value.shape, value.dtype)


def private(name: str, value: Any) -> Any:
    """An array in memory of our own, if it lies in a mapped file; anything else as it is."""
    root = _root(value)
    if root is None or not value.size:
        return value
    if isinstance(root, np.memmap) and _is_in_file(root):
        low, high = np.lib.array_utils.byte_bounds(value)
        file = _opened(name, value, root, (high - low,), np.dtype(np.uint8), low)
        if file is not None:
            content = file.read(0, high - low)
            return np.ndarray(value.shape, value.dtype, content, _address(value) - low, value.strides)
    pages: mmap.mmap = getattr(root, "_mmap", root)
    try:
        size = pages.size()
    except OSError:  # memory without a file
        size = len(pages)
    if size < len(pages):
        raise ArgumentError(f"the file of {name} has become shorter than its map", hint="map it anew")
    return np.array(value)  # changes that only the map has, or a file without a name


def _opened(
    name: str, value: Array, root: Any, shape: tuple[int, ...], dtype: np.dtype[Any], low: int | None = None
) -> Mapped | None:
    """The file at the place where a view of its map starts; None if its name is gone, or that of another file now."""
    low = _address(value) if low is None else low
    pages: mmap.mmap = root._mmap
    start = np.frombuffer(pages, np.uint8)
    offset = root.offset - root.offset % mmap.ALLOCATIONGRANULARITY + low - _address(start)
    end, at = offset + math.prod(shape) * dtype.itemsize, low - _address(start)
    if pages.size() < end:
        raise ArgumentError(f"the file of {name} has become shorter than its map", hint="map it anew")
    try:
        file = Mapped(name, root.filename, offset, shape, dtype)
    except OSError:
        return None
    size = min(file.nbytes, SAMPLE)
    same = file.status[0] >= end and start[at : at + size].tobytes() == bytes(file.read(0, size))
    return file if same else None


def _root(value: Any) -> Any:
    """The map that an array lies in, if it does."""
    found: Any = None
    while isinstance(value, np.ndarray | memoryview | mmap.mmap):
        if isinstance(value, np.memmap) and getattr(value, "_mmap", None) is not None:
            found = value
        elif isinstance(value, mmap.mmap):
            return found if found is not None else value
        value = value.obj if isinstance(value, memoryview) else getattr(value, "base", None)
    return found


def _is_in_file(root: Any) -> bool:
    """Whether a file holds what the map shows: changes to a copy-on-write map are in memory alone."""
    return root.mode != "c" and isinstance(root.filename, str | os.PathLike)


def _address(array: Array) -> int:
    return int(array.ctypes.data)
