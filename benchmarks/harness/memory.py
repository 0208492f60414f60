"""Peak memory of one call, from the counters that Linux keeps. Elsewhere there is none."""

from __future__ import annotations

import contextlib
import ctypes
import gc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STATUS = Path("/proc/self/status")
RESET = Path("/proc/self/clear_refs")

# Blocks of more than this many bytes go back to the system when they are freed, so that a second call shows what it
# needs. By default the C library moves this border up as a program goes on.
ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}


@dataclass(frozen=True)
class Footprint:
    """Bytes beside the inputs: what stays from one call to the next, and what a call needs on top of it."""

    kept: int
    call: int


def footprint(call: Callable[[], Any]) -> Footprint | None:
    """Of a call that is prepared, but has not been made. An equal one has run before, so that all code is loaded."""
    try:
        prepared = resident()
        call()
        before = resident()
        RESET.write_text("5")
        results = call()
        peak = _counter("VmHWM")
        del results
    except OSError:
        return None
    return Footprint(kept=max(0, before - prepared), call=max(0, peak - before))


def resident() -> int:
    """The memory of this process, after all that is free has gone back to the system."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    return _counter("VmRSS")


def _counter(name: str) -> int:
    """A line such as `VmRSS:  1700 kB`, in bytes."""
    for line in STATUS.read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"{STATUS} has no {name}")
