"""The runner: a compiled loop over a table of kernels, which checks the arrays of a call before it starts."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from .known_code import functions

ADDRESSES = [ctypes.c_void_p] * 4
POINTER = ctypes.CFUNCTYPE(None, *ADDRESSES)


@cache
def runner() -> Any:
    """The compiled loop. Other threads of Python go on meanwhile."""
    return POINTER(runner_address())


@cache
def runner_address() -> int:
    """Where its machine code lies."""
    (found,) = functions([RUNNER])
    return found.address


def _made() -> Any:
    from .runner_code import function  # most processes find what it makes on disk

    return function()


RUNNER = "the runner", _made
