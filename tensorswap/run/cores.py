"""Cores: how many threads share a kernel."""

from __future__ import annotations

import os

from ..errors import ArgumentError


def cores() -> int:
    """How many threads a team has: as many as Numba would take."""
    asked = os.environ.get("NUMBA_NUM_THREADS")
    if asked is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not asked.isascii() or not asked.isdigit() or not int(asked):
        raise ArgumentError(
            f"NUMBA_NUM_THREADS is {asked[:80]!r}, which is no number of threads", hint="NUMBA_NUM_THREADS=2"
        )
    return int(asked)
