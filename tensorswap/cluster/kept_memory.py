"""Kept memory: arrays that die leave their memory to the next ones.

Dask tells the workers that it starts to give memory back to the system at once. Then every array of a step is memory
that the system must clear and hand out page by page, which can take as long as the step. During a run of many steps
that is switched off; afterwards what is free goes back.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

ASKED = "MALLOC_TRIM_THRESHOLD_"  # what Dask sets; without it the C library finds such limits by itself
TRIM, MMAP = -1, -3  # the names of limits in the C library
USUAL = 128 * 1024  # from how many bytes on an array is memory of its own, if nobody says otherwise
KEPT = 2**28  # bytes that may be free

_lock = threading.Lock()
_runs = [0]


@contextmanager
def kept_memory() -> Iterator[None]:
    """Within it, up to 256 MB of what is free stays with this process, where that would not be so."""
    limit = os.environ.get(ASKED, "")
    system = ctypes.CDLL(None)
    if not limit.isascii() or not limit.isdecimal() or not hasattr(system, "mallopt"):
        yield
        return
    with _lock:
        _runs[0] += 1
        if _runs[0] == 1:
            system.mallopt(MMAP, KEPT // 8)
            system.mallopt(TRIM, KEPT)
    try:
        yield
    finally:
        with _lock:
            _runs[0] -= 1
            if not _runs[0]:
                system.mallopt(MMAP, USUAL)
                system.mallopt(TRIM, min(int(limit), 2**31 - 1))
                system.malloc_trim(0)
