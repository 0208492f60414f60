"""Ctrl-C during a run: it is noticed between steps, so that nothing is left half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def listening() -> Iterator[list[bool]]:
    """A list that is empty until Ctrl-C is pressed; pressed again, it stops at once, as everywhere else."""
    pressed: list[bool] = []
    if threading.current_thread() is not threading.main_thread():  # only that one hears signals
        yield pressed
        return

    def handler(number: int, frame: Any) -> None:
        if pressed:
            raise KeyboardInterrupt
        pressed.append(True)

    before = signal.signal(signal.SIGINT, handler)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)  # None: set outside of Python
