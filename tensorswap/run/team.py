"""Team: the threads that help with kernels. They are started when a kernel is first to run on more than one."""

from __future__ import annotations

import _thread
import ctypes
from functools import cache
from typing import Any

from .cores import cores
from .known_code import functions


@cache
def assemble() -> None:
    """Starts the threads. They never come back from compiled code, and end with the process."""
    (found,) = functions([HELPS])
    serve = ctypes.CFUNCTYPE(None)(found.address)
    for _ in range(cores() - 1):
        _thread.start_new_thread(serve, ())


def _made() -> Any:
    from ..kernel.ir import Serve  # most processes find what it makes on disk

    return [], (Serve(),)


HELPS = "what a thread of the team does", _made
