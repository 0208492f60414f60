"""Tensor files: the safetensors format. A file is whole or not there, and no content of one does harm to its reader."""

from __future__ import annotations

import contextlib
import glob
import json
import math
import os
import stat
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..arrays import Array

TYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "F64": np.dtype("<f8")}
WORDS = {dtype: word for word, dtype in TYPES.items()}
HEADER = 64 << 20  # bytes that a header may have
PARTS = 1 << 20  # dicts and lists that it may hold
AXES = 32


def write(path: Path, arrays: Mapping[str, Array], metadata: Mapping[str, str]) -> None:
    """Writes beside the place, and moves the file there when the disk has it."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    place = 0
    for name, array in arrays.items():
        header[name] = {
            "dtype": WORDS[array.dtype.newbyteorder("<")],
            "shape": list(array.shape),
            "data_offsets": [place, place + array.nbytes],
        }
        place += array.nbytes
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    if len(head) > HEADER:
        raise ValueError(f"its header would have {len(head):,} bytes")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = _part(path)
    try:
        with _new(part) as file:
            file.write(len(head).to_bytes(8, "little") + head)
            for array in arrays.values():
                file.write(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(-1).view(np.uint8).data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        _sync_folder(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def try_place(path: Path) -> None:
    """Raises OSError if no file can be written there, and removes what runs that were killed have left."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = _part(path)
    _new(part).close()
    part.unlink()
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        number = left.name.removesuffix(".part").rpartition(".")[2]
        if number.isdecimal() and not _is_alive(int(number)):
            left.unlink(missing_ok=True)


def _part(path: Path) -> Path:
    """The file that is being written: one for each process and thread."""
    return path.with_name(f".{path.name}.{threading.get_ident()}.{os.getpid()}.part")


def _new(part: Path) -> BinaryIO:
    """A file that was not there before, so that no link leads elsewhere."""
    part.unlink(missing_ok=True)
    return os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666), "wb")


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def _sync_folder(folder: Path) -> None:
    """Makes the new name last. Where folders cannot be opened, the system does it in its own time."""
    if os.name != "posix":
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def read(path: Path) -> tuple[dict[str, Array], dict[str, str]]:
    """The tensors and the texts of a file. Raises ValueError if it is not just what the format says."""
    with os.fdopen(
        os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)), "rb"
    ) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("it is no regular file")
        length = int.from_bytes(file.read(8), "little")
        if length > min(status.st_size - 8, HEADER):
            raise ValueError("its header is cut or too long")
        header = parsed(file.read(length).decode(), "its header")
        metadata = header.pop("__metadata__", {})
        if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in metadata.values()):
            raise ValueError("its header has no texts")
        places = _places(header, status.st_size - 8 - length)
        return {name: _array(file, dtype, shape) for name, dtype, shape in places}, metadata


def parsed(text: str, what: str) -> dict[str, Any]:
    """A JSON object, each name in it once. What would take far more memory than its text is refused."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({name for name, _ in pairs}) < len(pairs):
            raise ValueError(f"{what} gives a name twice")
        return dict(pairs)

    if text.count("[") + text.count("{") > PARTS:
        raise ValueError(f"{what} has too many parts")
    try:
        found = json.loads(text, object_pairs_hook=once)
    except RecursionError:
        raise ValueError(f"{what} is nested too deep") from None
    if not isinstance(found, dict):
        raise ValueError(f"{what} is no object")
    return found


def _places(header: Mapping[str, Any], size: int) -> list[tuple[str, np.dtype[Any], tuple[int, ...]]]:
    """The tensors in the order of the file, which they fill without a gap."""
    found = []
    for name, entry in header.items():
        if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
            raise ValueError(f"its tensor {name[:80]!r} is not described")
        shape, offsets = entry["shape"], entry["data_offsets"]
        if not isinstance(entry["dtype"], str) or entry["dtype"] not in TYPES:
            raise ValueError(f"its tensor {name[:80]!r} has a type that no training has")
        if not _are_counts(shape, AXES) or not _are_counts(offsets, 2) or len(offsets) != 2:
            raise ValueError(f"its tensor {name[:80]!r} has no shape or place")
        dtype = TYPES[entry["dtype"]]
        if math.prod(shape) * dtype.itemsize != offsets[1] - offsets[0]:
            raise ValueError(f"its tensor {name[:80]!r} has another size than its shape")
        found.append((offsets, name, dtype, tuple(shape)))
    found.sort(key=lambda each: each[0])
    end = 0
    for (start, stop), name, _, _ in found:
        if start != end:
            raise ValueError(f"its tensor {name[:80]!r} does not follow the one before it")
        end = stop
    if end != size:
        raise ValueError("it is longer or shorter than its tensors")
    return [(name, dtype, shape) for _, name, dtype, shape in found]


def _are_counts(given: Any, most: int) -> bool:
    return isinstance(given, list) and len(given) <= most and all(type(n) is int and 0 <= n < 2**62 for n in given)


def _array(file: BinaryIO, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    array = np.empty(shape, dtype)
    flat = array.reshape(-1).view(np.uint8)
    if file.readinto(flat.data) != flat.nbytes:  # type: ignore[attr-defined]  # a buffered file has it
        raise ValueError("it was cut while it was read")
    return array.astype(dtype.newbyteorder("="), copy=False)
