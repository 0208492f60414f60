"""Cores: how many threads share a kernel."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from ..errors import ArgumentError


def cores() -> int:
    """How many threads a team has: as many as Numba would take, but no more than the process may keep busy."""
    asked = os.environ.get("NUMBA_NUM_THREADS")
    if asked is None:
        usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return min(usable, quota())
    if not asked.isascii() or not asked.isdigit() or not int(asked):
        raise ArgumentError(
            f"NUMBA_NUM_THREADS is {asked[:80]!r}, which is no number of threads", hint="NUMBA_NUM_THREADS=2"
        )
    return int(asked)


@cache
def quota(groups: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> int:
    """The cores whose time a container has a share of. One that takes more is stopped until its next share comes."""
    shares = [time / period for time, period in _shares(groups, own) if time and period]
    return max(math.ceil(min(shares)), 1) if shares else os.cpu_count() or 1


def _shares(groups: Path, own: Path) -> Iterator[tuple[int, int]]:
    """Times that the groups around the process may take, each with the period in which."""
    for line in _lines(own):
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = groups / controllers if controllers else groups
        inside = top / path.lstrip("/")
        for folder in (inside, *inside.parents):
            if controllers:
                found = [*_lines(folder / "cpu.cfs_quota_us"), *_lines(folder / "cpu.cfs_period_us")]
            else:
                found = [word for line in _lines(folder / "cpu.max") for word in line.split()]
            if len(found) == 2 and all(word.isdigit() for word in found):
                yield int(found[0]), int(found[1])
            if folder == top:
                break


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return []  # another system than Linux, or none of our business
