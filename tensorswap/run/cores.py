"""Cores: how many threads share a kernel."""

from __future__ import annotations

import math
import os
from functools import cache
from pathlib import Path

from ..errors import ArgumentError
from ..room import GROUP, text_in


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
def quota(groups: Path = GROUP) -> int:
    """The cores whose time a container has a share of. One that takes more is stopped until its next share comes."""
    old = groups / "cpu"
    texts = (text_in(groups / "cpu.max"), f"{text_in(old / 'cpu.cfs_quota_us')} {text_in(old / 'cpu.cfs_period_us')}")
    shares = []
    for words in map(str.split, texts):
        if len(words) == 2 and all(word.isdigit() and int(word) for word in words):
            shares.append(math.ceil(int(words[0]) / int(words[1])))
    return min([*shares, os.cpu_count() or 1])
