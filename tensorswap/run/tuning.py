"""Tuning: numbers on which plans and machine code depend, and which a user or a test may change."""

from __future__ import annotations

import os

from ..errors import ArgumentError

PARALLEL = 20_000  # nanoseconds of work below which the other threads would come too late
FULL = 3


def _asked() -> int:
    """How much LLVM optimises. 0 compiles at once, and what it makes runs many times slower."""
    asked = os.environ.get("TENSORSWAP_LEVEL") or str(FULL)
    if asked not in ("0", "1", "2", "3"):
        raise ArgumentError(
            f"TENSORSWAP_LEVEL is {asked[:80]!r}, which is no level", hint="TENSORSWAP_LEVEL=0, 1, 2 or 3"
        )
    return int(asked)


level = _asked()
