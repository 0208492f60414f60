"""Machine code on disk, by the content of its source: a bad file costs time, never correctness.

One file holds one kernel: a line with its key, its symbol and a checksum, then the object code. Files are written
beside their place and moved there at once, so that many processes may compile the same kernel at the same time;
whatever is damaged, foreign or unreadable is compiled again.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import llvmlite
import numba
import numpy as np
from llvmlite.binding import get_host_cpu_features, get_host_cpu_name
from platformdirs import user_cache_path


@dataclass(frozen=True)
class ObjectCode:
    """What the compiler made of a source: the name of its function, its code, and the module's bitcode."""

    symbol: str
    code: bytes
    bitcode: bytes


@cache
def stamp() -> str:
    """All that machine code depends on beside its source."""
    settings = sorted((k, v) for k, v in os.environ.items() if k.startswith("NUMBA_"))
    versions = (numba.__version__, llvmlite.__version__, np.__version__, platform.python_version())
    package = Path(__file__).parent.parent
    ours = sorted((package / "emit").glob("*.py")) + [package / "run" / "launch.py"]
    helpers = [hashlib.sha256(path.read_bytes()).hexdigest() for path in ours]  # kernels call what these define
    return repr((versions, helpers, get_host_cpu_name(), get_host_cpu_features().flatten(), settings))


def key(source: str) -> str:
    return hashlib.sha256(f"{stamp()}\n{source}".encode()).hexdigest()


@cache
def folder() -> Path | None:
    """Where kernels are kept: a folder of this user's own, or None if there can be none."""
    place = Path(os.environ.get("TENSORSWAP_CACHE") or user_cache_path("tensorswap") / "kernels")
    try:
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        if place.is_symlink() or (hasattr(os, "getuid") and place.stat().st_uid != os.getuid()):
            return None
    except OSError:  # a home that cannot be written: kernels live as long as the process
        return None
    return place


def load(source: str) -> ObjectCode | None:
    """The kept code of a source, if it is whole."""
    place = folder()
    if place is None:
        return None
    try:
        head, _, rest = (place / f"{key(source)}.kernel").read_bytes().partition(b"\n")
        entry = json.loads(head)
        code, bitcode = rest[: entry["code"]], rest[entry["code"] :]
        if hashlib.sha256(rest).hexdigest() != entry["checksum"] or entry["key"] != key(source):
            return None  # damaged, or the file of another kernel
        return ObjectCode(entry["symbol"], code, bitcode)
    except (OSError, ValueError, KeyError, TypeError):  # absent, or damaged in any way: compiled again
        return None


def save(source: str, made: ObjectCode) -> None:
    """Keeps code for the next process; a full or locked disk is no reason to fail."""
    place = folder()
    if place is None:
        return
    rest = made.code + made.bitcode
    entry = {
        "key": key(source),
        "symbol": made.symbol,
        "code": len(made.code),
        "checksum": hashlib.sha256(rest).hexdigest(),
    }
    name = None
    try:
        with tempfile.NamedTemporaryFile(dir=place, delete=False) as file:
            name = file.name
            file.write(json.dumps(entry).encode() + b"\n" + rest)
        os.replace(name, place / f"{key(source)}.kernel")
    except OSError:
        if name is not None:
            Path(name).unlink(missing_ok=True)
