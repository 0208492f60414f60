"""Frame: what one call of compiled kernels needs beside the arrays, made once."""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .header import Header
from .interrupt import LOCK, LONG, interruptibly
from .objects import for_ever, object_layout
from .rows import Entry
from .runner import runner, runner_address
from .team import assemble

Array = np.ndarray[Any, Any]

STEPS, WRONG = int(Header.STEPS), int(Header.WRONG)


def _after_fork() -> None:
    """A child does not have the threads of its parent's pool."""
    ALONE.value = 1


ALONE = for_ever(ctypes.c_int64(0))  # not zero in such a child
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Frame:
    """Runs the kernels of a table on arrays.

    A link is a word, the array whose address it gets, bytes from the array's start, and bytes that each step adds. The
    first arrays are checked as `checks` say, if it is given: nothing is run if one of them is something else.
    `nanoseconds` is a guess of the time that the kernels take.
    """

    def __init__(
        self,
        table: Array,
        words: Array,
        links: Array,
        arrays: int,
        nanoseconds: float,
        checks: Sequence[Check] = (),
    ) -> None:
        self.serial = False
        self.threads = bool((table[:, Entry.THREADS] > 1).any())
        self.nanoseconds = nanoseconds
        layout = object_layout()
        assert layout or not checks, "who asks for a check makes sure that it can be made"
        self.known = layout is not None
        expected = np.array([n for check in checks for n in check.numbers], np.int64)
        self.keep = (table, words, links, expected, checks)
        self.space = (ctypes.c_int64 * (len(Header) + len(words) + 1 + arrays))()
        start = ctypes.addressof(self.space)
        self.listed = len(Header) + len(words) + 1  # where addresses are written out if objects cannot be read
        self.space[self.listed - 1] = start + 8 * self.listed
        header = [len(table), len(links), words.ctypes.data, start + 8 * len(Header), len(words), 1]
        header += [len(Header) + len(words), -1]
        if layout:
            header[6:] = [layout.items // 8, layout.data, len(checks), expected.ctypes.data, layout.type]
            header += [id(np.ndarray), layout.axes, layout.shape, layout.strides, layout.dtype]
        for k, number in enumerate(header):
            self.space[k] = number
        self.run, self.runner = runner(), runner_address()
        if self.threads and not ALONE.value:
            assemble()
        self.table, self.header, self.links = table.ctypes.data, start, links.ctypes.data

    def __call__(self, arrays: list[Array], steps: int | None = None) -> bool:
        """Whether the kernels have run on the arrays: they do, unless those are not as expected."""
        if ALONE.value and not self.serial:
            self.serial = True
            self.keep[0][:, Entry.THREADS] = 1  # one part after the other
        if steps is None and self.known and self.nanoseconds < LONG:  # the usual case, where microseconds count
            with LOCK:
                self.run(self.table, self.header, self.links, id(arrays))
                return not self.space[WRONG]
        if self.nanoseconds * (steps or 1) < LONG:
            with LOCK:
                return self._run(arrays, steps)
        return interruptibly(lambda: self._run(arrays, steps))

    def _run(self, arrays: list[Array], steps: int | None) -> bool:
        if steps is not None:
            self.space[STEPS] = steps
        if self.known:
            self.run(self.table, self.header, self.links, id(arrays))
            return not self.space[WRONG]
        self.space[self.listed :] = [a.ctypes.data for a in arrays]
        self.run(self.table, self.header, self.links, self.header)
        return True


@dataclass(frozen=True)
class Check:
    """What an array must be: of the type, shape and strides of another, and with its values, if they are words, between
    two numbers."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    between: tuple[int, int] | None

    @property
    def numbers(self) -> list[int]:
        """What the runner reads of it."""
        count, low, high = (math.prod(self.shape), *self.between) if self.between else (0, 0, 0)
        places = [n for pair in zip(self.shape, self.strides, strict=True) for n in pair]
        return [len(self.shape), id(self.dtype), count, low, high, *places]
