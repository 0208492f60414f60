"""Team: the threads that help with kernels. They are started when a kernel is first to run on more than one."""

from __future__ import annotations

import _thread
import ctypes
from functools import cache

from ..kernel import ir
from .compile import functions
from .cores import cores


@cache
def assemble() -> None:
    """Starts the threads. They never come back from compiled code, and end with the process."""
    (found,) = functions([("what a thread of the team does", lambda: ([], (ir.Serve(),)))])
    serve = ctypes.CFUNCTYPE(None)(found.address)
    for _ in range(cores() - 1):
        _thread.start_new_thread(serve, ())
