"""Machine code and plans on disk, by the content of their source: a bad file costs time, never correctness.

A file of a kernel has its key, its symbol and the names of its objects, which are files of their own: kernels that were
compiled together share them. The first line of each is a checksum of all that follows. Files are written beside their
place and moved there at once, so that many processes may compile the same kernel at the same time; whatever is damaged,
foreign or unreadable is compiled again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import stat
import tempfile
import warnings
from collections.abc import Callable, Container
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import llvmlite
import numpy as np
from llvmlite.binding import get_host_cpu_features, get_host_cpu_name

from ..errors import SwapWarning
from ..kernel.registers import registers

LARGEST = 1 << 30  # bytes of a file that is read at all
WRITES_CODE = (
    "run.compile",
    "run.direct_code",
    "run.direct_words",
    "run.header",
    "run.launch",
    "run.machine_code",
    "run.rows",
    "run.runner_code",
    "run.team",
    "run.team_words",
)  # with all of assembly/ and kernel/
ROOMS = (
    "assembly",
    "interpret",
    "kernel",
    "language",
    "lower",
    "plan",
    "rules",
    "run",
    "trust",
)  # that make and judge programs
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True)
class ObjectCode:
    """What the compiler made of a source: the name of its function, objects, by their names, of which other sources
    have functions too, and the names of objects that are in memory already."""

    symbol: str
    objects: dict[str, bytes]
    others: tuple[str, ...] = ()


@cache
def stamp() -> str:
    """All that machine code depends on beside its source."""
    settings = sorted((k, v) for k, v in os.environ.items() if k.startswith("NUMBA_"))
    versions = (_numba(), llvmlite.__version__, np.__version__, platform.python_version())
    return repr((versions, _helpers(), get_host_cpu_name(), get_host_cpu_features().flatten(), settings))


def _numba() -> bytes:
    """Its version, without an import of it, or of all that reads what was installed."""
    found = find_spec("numba")
    place = None if found is None else found.origin
    assert place is not None, "numba is installed with this package"
    told = Path(place).with_name("_version.py")
    return told.read_bytes() if told.is_file() else place.encode()


def _helpers() -> list[str]:
    """The modules that define what kernels call."""
    texts = _texts()
    return [texts[name] for name in sorted(texts) if name.startswith(("assembly", "kernel.")) or name in WRITES_CODE]


@cache
def planners() -> str:
    """All that a plan, and what was found of it, depend on beside its program: the modules that make and judge it, the
    code that kernels become, and the caches that they are made for."""
    return hashlib.sha256(repr((sorted(_texts().items()), stamp(), registers())).encode()).hexdigest()


@cache
def _texts() -> dict[str, str]:
    """What is written in each module of those rooms, as a checksum."""
    exported = getattr(globals()["__loader__"], "modules", None)  # an exported file has the kernels of the library
    if exported is not None:
        texts = {name: text.encode() for name, text in exported.items()}
    else:
        package = Path(__file__).parent.parent
        files = [*package.glob("*.py"), *(path for room in ROOMS for path in (package / room).rglob("*.py"))]
        names = [".".join(path.relative_to(package).with_suffix("").parts).removesuffix(".__init__") for path in files]
        texts = {name: path.read_bytes() for name, path in zip(names, files, strict=True)}
    return {name: hashlib.sha256(text).hexdigest() for name, text in texts.items()}


def key(source: str) -> str:
    return hashlib.sha256(f"{stamp()}\n{source}".encode()).hexdigest()


def symbol(key: str) -> str:
    """The name of the function of a key."""
    return f"tensorswap_{key[:32]}"


def _users_own() -> Path:
    try:
        from platformdirs import user_cache_path  # an exported file does without
    except ImportError:
        return Path.home() / ".cache" / "tensorswap"
    return user_cache_path("tensorswap")


@cache
def folder() -> Path | None:
    """Where kernels are kept: a folder of this user's own, or None (with a warning) if there can be none."""
    place = Path(os.environ.get("TENSORSWAP_CACHE") or _users_own() / "kernels").absolute()
    try:
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        problem = _distrusted(place.lstat(), stat.S_ISDIR)
        if not problem and not os.access(place, os.R_OK | os.X_OK):
            problem = "cannot be read"
    except (OSError, ValueError) as error:  # a home that cannot be written, a name that is none
        problem = f"cannot be used: {str(error)[:200]}"
    if problem:
        _warn(f"the folder {place} {problem}")
        return None
    return place


@cache  # one warning for each process
def _warn(problem: str) -> None:
    advice = "TENSORSWAP_CACHE names another folder"
    warnings.warn(f"compiled kernels are not kept, so that each process compiles: {problem}; {advice}", SwapWarning, 3)


def _distrusted(status: os.stat_result, is_kind: Callable[[int], bool]) -> str:
    """Why what lies there may not be ours: code from it will run."""
    if stat.S_ISLNK(status.st_mode):
        return "is a symbolic link"
    if not is_kind(status.st_mode):
        return "is something else"
    if hasattr(os, "getuid") and status.st_uid != os.getuid():
        return "belongs to another user"
    if status.st_mode & WRITABLE_BY_OTHERS and os.name == "posix":
        return "can be written by other users (chmod go-w)"
    return ""


def read(name: str) -> bytes | None:
    """The content of a file of the cache, if it is ours and whole."""
    place = folder()
    if place is None:
        return None
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        with open(place / name, "rb", opener=lambda path, _: os.open(path, flags)) as file:
            status = os.fstat(file.fileno())
            if _distrusted(status, stat.S_ISREG) or status.st_size > LARGEST:
                return None
            head, newline, content = file.read(LARGEST).partition(b"\n")
    except OSError:  # absent, or unreadable
        return None
    return content if newline and head == _checksum(name, content) else None


def write(name: str, content: bytes) -> None:
    """Keeps a file for the next process; a full or locked disk is no reason to fail."""
    place = folder()
    if place is None:
        return
    part = None
    try:
        with tempfile.NamedTemporaryFile(dir=place, delete=False) as file:
            part = file.name
            file.write(_checksum(name, content) + b"\n" + content)
        os.replace(part, place / name)
    except OSError as error:
        _warn(f"nothing can be written in {place}: {os.strerror(error.errno or 0)}")
        if part is not None:
            with contextlib.suppress(OSError):
                os.unlink(part)


def _checksum(name: str, content: bytes) -> bytes:
    """Of a content in its place: the file of another name is as wrong as a damaged one."""
    return hashlib.sha256(name.encode() + b"\n" + content).hexdigest().encode()


def load(key: str, linked: Container[str]) -> ObjectCode | None:
    """The kept code of a key, if all of it is there and whole. What is linked is not read."""
    content = read(f"{key}.kernel")
    if content is None:
        return None
    try:
        entry = json.loads(content)
        if entry["key"] != key:
            return None
        symbol, names = str(entry["symbol"]), [str(name) for name in entry["objects"]]
    except (ValueError, KeyError, TypeError, RecursionError):  # whole, but of another making
        return None
    objects = {name: read(f"{name}.object") for name in names if name not in linked}
    found = {name: code for name, code in objects.items() if code}
    others = tuple(name for name in names if name in linked)
    return ObjectCode(symbol, found, others) if len(found) == len(objects) else None


_written: set[Path] = set()  # objects that this process keeps there


def save(key: str, made: ObjectCode) -> None:
    """Keeps code for the next process."""
    place = folder()
    if place is None:
        return
    for name, code in made.objects.items():
        if place / name not in _written:
            write(f"{name}.object", code)
            _written.add(place / name)
    entry = {"key": key, "symbol": made.symbol, "objects": [*made.objects, *made.others]}
    write(f"{key}.kernel", json.dumps(entry).encode())
