"""Rows: what the runner reads of each kernel, and which kernels run again in every step of a block."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Entry(IntEnum):
    """The words of a row."""

    ADDRESS = 0
    PARTS = 1
    THREADS = 2
    CONTEXT = 3  # where it starts
    TIMES = 4  # steps of the block that it belongs to, or 1
    BEGIN = 5  # the first of them,
    WAY = 6  # and what leads to the next; 0 if the kernel does not ask
    BACK = 7  # of the last kernel of a step: rows to go back to the first one, and one more


COLUMNS = len(Entry)
ONCE = (1, 0, 0, 0)  # the last words of a kernel that belongs to no block
STEP = 2  # the word of a context that holds the step, if the kernel asks for it


@dataclass(frozen=True)
class Rounds:
    """Kernels, by their positions, that run one after the other as often as a block has steps."""

    first: int
    last: int
    count: int
    down: bool

    @property
    def begin(self) -> int:
        """The first step."""
        return self.count - 1 if self.down else 0

    @property
    def past(self) -> int:
        """What would follow the last."""
        return self.begin + self.way * self.count

    @property
    def way(self) -> int:
        return -1 if self.down else 1

    def __contains__(self, position: int) -> bool:
        return self.first <= position <= self.last
