"""Daily: what takes long is shared out among days. Each day runs another share, the long run (TENSORSWAP_LONG) all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import date
from typing import TypeVar

Thing = TypeVar("Thing")

LONG = bool(os.environ.get("TENSORSWAP_LONG"))
DAY = int(os.environ.setdefault("TENSORSWAP_DAY", str(date.today().toordinal())))  # the workers of a run agree


def share(things: Iterable[Thing], days: int) -> list[Thing]:
    """Of things that are all seen within some days, those of today."""
    found = list(things)
    return found if LONG else found[DAY % days :: days]
