"""Daily: what takes long is shared out among days. Each day runs another share, the long run (TENSORSWAP_LONG) all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

Thing = TypeVar("Thing")

LONG = bool(os.environ.get("TENSORSWAP_LONG"))
DAY = int(os.environ["TENSORSWAP_DAY"])  # the same for all workers of a run; tests/conftest.py names it


def share(things: Iterable[Thing], days: int) -> list[Thing]:
    """Of things that are all seen within some days, those of today."""
    found = list(things)
    return found if LONG else found[DAY % days :: days]
