"""Progress: one line that moves in a terminal, a bar in a notebook, one line for each interval elsewhere."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from html import escape
from typing import Any, TextIO

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
    begun: tuple[int, float] | None = None  # the first steps and when they were done: they compile, the others do not
    width: int = 0
    place: Any = None  # of the bar in a notebook, which is replaced

    @property
    def live(self) -> bool:
        return self.stream.isatty() or self.in_notebook

    @property
    def in_notebook(self) -> bool:
        """Whether what is displayed goes to the page of a notebook: IPython then runs in a kernel."""
        shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
        return self.stream is sys.stderr and hasattr(shell, "kernel")

    def tell(self, done: int, parts: dict[str, float], last: bool = False) -> None:
        """Says how far a run is, if it is time to."""
        now = time.monotonic()
        self.begun = self.begun or (done, now)
        if not self.shown or (now - self.start < PATIENCE and not (last and self.told)):
            return
        if not last and now - self.told < (LIVE_SECONDS if self.live else LOG_SECONDS) and self.told:
            return
        self.told = now
        line = self.line(done, parts, now)
        if self.in_notebook:
            self.display(line, done / max(self.total, 1))
            return
        if self.live:
            self.stream.write("\r" + line.ljust(self.width) + ("\n" if last else ""))
            self.width = len(line)
        else:
            self.stream.write(line + "\n")
        self.stream.flush()

    def display(self, line: str, share: float) -> None:
        """A bar on the page, which a later one replaces; so a notebook that is saved holds the last one only."""
        bar = f'<progress value="{min(share, 1):.4f}" max="1" style="width: 14rem; vertical-align: middle"></progress>'
        words = f'<code style="background: none; padding: 0">{escape(line.partition("] ")[2] or line)}</code>'
        shown = {"text/plain": line, "text/html": f"{bar} {words}"}
        if self.place is None:
            self.place = sys.modules["IPython"].display.display(shown, raw=True, display_id=True)
        else:
            self.place.update(shown, raw=True)

    def line(self, done: int, parts: dict[str, float], now: float) -> str:
        first, start = self.begun or (self.first, self.start)
        if done <= first and done >= self.total:  # there were no others
            first, start = self.first, self.start
        speed = (done - first) / (now - start) if now > start else 0.0
        share = done / max(self.total, 1)
        full = round(BAR * share)
        bar = f"[{'=' * full}{' ' * (BAR - full)}] " if self.live else ""
        rate = f"{speed:,.0f}" if speed >= 10 else f"{speed:.2g}"
        told = "  ".join(f"{name} {value:.4g}" for name, value in parts.items())
        words = f"{rate} steps/s  {_clock((self.total - done) / speed)} left" if speed else "the first steps are made"
        return f"{bar}step {done}/{self.total}  {told}  {words}"


def _clock(seconds: float) -> str:
    whole = int(seconds + 0.5)
    if whole >= 3600:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    return f"{whole // 60}:{whole % 60:02d}"
