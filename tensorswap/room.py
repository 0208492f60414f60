"""Room: the memory that a run may take. What needs more is refused before anything is allocated."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .errors import ArgumentError, LimitError

SETTING = "TENSORSWAP_MEMORY"  # such as "8 GB": without it, what is free counts
SMALL = 2**26  # bytes that are never too many
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
NAMED = 3  # of the largest, in a message
GROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Needed:
    """Memory for a tensor (or for something else, which has no shape)."""

    name: str
    bytes: int
    shape: tuple[int, ...] | None = None

    def __str__(self) -> str:
        shape = "" if self.shape is None else f" of shape {self.shape}"
        return f"{self.name}{shape} takes {shown(self.bytes)}"


def of_tensor(name: str, shape: tuple[int, ...], itemsize: int) -> Needed:
    return Needed(name, math.prod(shape) * itemsize, shape)


def shown(count: int) -> str:
    """Bytes as people read them."""
    for power, unit in ((4, "TiB"), (3, "GiB"), (2, "MiB")):
        if count >= 1024**power:
            return f"{count / 1024**power:,.1f} {unit}"
    return f"{count:,} bytes"


def check_room(needed: Iterable[Needed]) -> None:
    """Refuses what does not fit into memory, or is more than the setting allows."""
    parts = sorted(needed, key=lambda part: -part.bytes)
    total = sum(part.bytes for part in parts)
    if total < SMALL and SETTING not in os.environ:
        return
    limit, why = _limit()
    if limit is not None and total > limit:
        raise too_large(parts, why)


def too_large(parts: list[Needed], why: str) -> LimitError:
    """The error that names the largest parts."""
    largest = "; ".join(str(part) for part in parts[:NAMED])
    return LimitError(
        f"this run needs {shown(sum(part.bytes for part in parts))} of memory, {why}: {largest}",
        hint=f"run it on smaller arrays, or in parts; {SETTING}='64 GB' sets another limit",
    )


def _limit() -> tuple[int | None, str]:
    text = os.environ.get(SETTING)
    if text:
        limit = bytes_of(SETTING, text)
        return limit, f"more than the {shown(limit)} that {SETTING} allows"
    free = available()
    return free, "" if free is None else f"and {shown(free)} are free"


def bytes_of(name: str, value: object) -> int:
    """A number of bytes, as people write it: 2 GB."""
    text = str(value)
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?I?B?)\s*", text.upper())
    if found is None or found[2] not in UNITS:
        raise ArgumentError(f"{name} is {text[:80]!r}", hint=f"write a number of bytes: {name}='8 GB'")
    return int(min(float(found[1]), 1e30) * UNITS[found[2]])  # a float may be infinite, which is no number of bytes


def available() -> int | None:
    """Bytes that can still be had: of the machine, and of the group of processes that this one is in."""
    known = [n for n in (_machine(), *_groups()) if n is not None]
    return min(known) if known else None


def _machine() -> int | None:
    found = re.search(r"^MemAvailable:\s*(\d+) kB", text_in(Path("/proc/meminfo")), re.MULTILINE)
    return int(found[1]) * 1024 if found else physical()  # all there is, where nobody says what is free


def physical() -> int | None:
    """Bytes of this machine, if it tells."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _groups() -> list[int | None]:
    return [
        _left(GROUP / "memory.max", GROUP / "memory.current", GROUP / "memory.stat", "inactive_file"),
        _left(
            GROUP / "memory" / "memory.limit_in_bytes",
            GROUP / "memory" / "memory.usage_in_bytes",
            GROUP / "memory" / "memory.stat",
            "total_inactive_file",
        ),
    ]


def _left(most: Path, used: Path, details: Path, files: str) -> int | None:
    """What a limit leaves; copies of files that nobody reads at the moment make way."""
    limit, current = text_in(most).strip(), text_in(used).strip()
    if not limit.isdigit() or not current.isdigit():
        return None
    found = re.search(rf"^{files} (\d+)", text_in(details), re.MULTILINE)
    return max(int(limit) - int(current) + (int(found[1]) if found else 0), 0)


def text_in(path: Path) -> str:
    """What a file of the system's says, or nothing."""
    try:
        return path.read_text()
    except OSError:  # no such thing on this machine
        return ""
