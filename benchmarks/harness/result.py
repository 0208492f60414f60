"""What a run finds: plain data, which becomes results.json and from which table and plot are made."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from .peers import OURS

SUCCEEDED = "ok"


@dataclass
class Measurement:
    """One peer on one row. Its status is "ok", "wrong", "failed", "absent" or "not applicable"."""

    status: str = SUCCEEDED
    reason: str = ""
    error: float | None = None
    tolerance: float | None = None
    build_seconds: float | None = None
    first_call_seconds: float | None = None  # with all caches empty; includes the building
    cached_first_call_seconds: float | None = None  # in a new process, which finds what an earlier one compiled
    repetitions: int = 0
    rounds: list[float] = field(default_factory=list)  # seconds of one call, by round
    kept_bytes: int | None = None  # beside the inputs, from one call to the next
    call_bytes: int | None = None  # at most during a call, on top of that

    @property
    def peak_bytes(self) -> int | None:
        return None if self.kept_bytes is None or self.call_bytes is None else self.kept_bytes + self.call_bytes

    @property
    def seconds(self) -> float | None:
        return statistics.median(self.rounds) if self.rounds else None


@dataclass
class RowResult:
    """One workload at one type: its cost, the time that the machine allows, and all peers."""

    name: str
    title: str
    dtype: str
    sizes: dict[str, int]
    kind: str
    instructions: float | None
    bytes: int = 0
    limit_seconds: float | None = None
    peers: dict[str, Measurement] = field(default_factory=dict)

    def seconds(self, peer: str) -> float | None:
        found = self.peers.get(peer)
        return found.seconds if found else None

    def peak_bytes(self, peer: str) -> int | None:
        found = self.peers.get(peer)
        return found.peak_bytes if found else None

    @property
    def best_peer(self) -> str | None:
        """The fastest one beside tensorswap."""
        return least({name: found.seconds for name, found in self.others.items()})

    @property
    def leanest_peer(self) -> str | None:
        """The one beside tensorswap that needs the least memory."""
        return least({name: found.peak_bytes for name, found in self.others.items()})

    @property
    def others(self) -> dict[str, Measurement]:
        return {name: found for name, found in self.peers.items() if name not in (OURS, "interpreter")}

    def speed_against(self, peer: str | None) -> float | None:
        """How many times faster tensorswap is."""
        theirs, ours = self.seconds(peer) if peer else None, self.seconds(OURS)
        return theirs / ours if theirs and ours else None

    @property
    def share_of_limit(self) -> float | None:
        """The time that the machine allows over the time that tensorswap takes."""
        ours = self.seconds(OURS)
        return self.limit_seconds / ours if self.limit_seconds and ours else None


@dataclass
class Run:
    """Everything."""

    machine: dict[str, Any]
    settings: dict[str, Any]
    started: str
    roofline: dict[str, float] = field(default_factory=dict)
    peers: dict[str, dict[str, Any]] = field(default_factory=dict)  # label, versions, or why it is absent
    rows: list[RowResult] = field(default_factory=list)
    finished: bool = False


def least(values: dict[str, Any]) -> str | None:
    known = {name: value for name, value in values.items() if value is not None}
    return min(known, key=lambda name: known[name]) if known else None


def geometric_mean(ratios: Iterable[float | None]) -> tuple[float | None, int]:
    """The mean of those that are known, and their number."""
    known = [ratio for ratio in ratios if ratio]
    return (math.exp(statistics.fmean(map(math.log, known))) if known else None), len(known)
