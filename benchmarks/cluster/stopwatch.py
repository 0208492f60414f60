"""How long a call takes, by the wall."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def least(call: Callable[[], Any], rounds: int) -> float:
    """The least of several rounds, in seconds, after one that does not count."""
    call()
    found = float("inf")
    for _ in range(rounds):
        before = time.perf_counter()
        call()
        found = min(found, time.perf_counter() - before)
    return found
