"""Progress: one line that moves in a terminal or a notebook, one line for each interval elsewhere."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from typing import TextIO

BAR = 24
LOG_SECONDS = 10.0  # between the lines of a log file
LIVE_SECONDS = 0.2
PATIENCE = 2.0  # a run that is over by then says nothing


@dataclass
class Progress:
    total: int
    shown: bool = True
    stream: TextIO = field(default_factory=lambda: sys.stderr)
    start: float = field(default_factory=time.monotonic)
    first: int = 0
    told: float = 0.0
    width: int = 0

    @property
    def live(self) -> bool:
        return self.stream.isatty() or "ipykernel" in sys.modules

    def tell(self, done: int, parts: dict[str, float], last: bool = False) -> None:
        """Says how far a run is, if it is time to."""
        now = time.monotonic()
        if not self.shown or (now - self.start < PATIENCE and not (last and self.told)):
            return
        if not last and now - self.told < (LIVE_SECONDS if self.live else LOG_SECONDS) and self.told:
            return
        self.told = now
        line = self.line(done, parts, now - self.start)
        if self.live:
            self.stream.write("\r" + line.ljust(self.width) + ("\n" if last else ""))
            self.width = len(line)
        else:
            self.stream.write(line + "\n")
        self.stream.flush()

    def line(self, done: int, parts: dict[str, float], seconds: float) -> str:
        speed = (done - self.first) / seconds if seconds > 0 else 0.0
        left = (self.total - done) / speed if speed else 0.0
        share = done / max(self.total, 1)
        full = round(BAR * share)
        bar = f"[{'=' * full}{' ' * (BAR - full)}] " if self.live else ""
        rate = f"{speed:,.0f}" if speed >= 10 else f"{speed:.2g}"
        told = "  ".join(f"{name} {value:.4g}" for name, value in parts.items())
        return f"{bar}step {done}/{self.total}  {told}  {rate} steps/s  {_clock(left)} left"


def _clock(seconds: float) -> str:
    whole = int(seconds + 0.5)
    if whole >= 3600:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 60}:{whole % 60:02d}"
