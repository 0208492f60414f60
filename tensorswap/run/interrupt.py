"""Interrupt: long work runs beside the main thread, which goes on hearing Ctrl-C and can tell kernels to stop.

Python acts on a signal between two of its own instructions, and a kernel is one instruction. So work that may take
long is done by a thread of its own while the main thread waits. If a signal ends the wait, a word is set that the outer
loops of all kernels look at; what does not look at it in time is left to finish alone. Either way its results are lost:
nobody has seen them.
"""

from __future__ import annotations

import ctypes
import os
import queue
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import TypeVar

from ..forks import NO_FORK
from .objects import for_ever

LONG = 20e6  # nanoseconds of work, by a guess that may be 50 times too low, from which on a signal must be heard
PATIENCE = 0.6  # seconds that kernels have to stop

LOCK = threading.Lock()  # the team takes work from one thread at a time
STOP = for_ever(ctypes.c_int64(0))  # not zero: the work that holds the lock is not wanted any more


Result = TypeVar("Result")


class _Work:
    """Something to do, and how far it is. What runs `kernels` runs alone, and can be told to stop."""

    def __init__(self, do: Callable[[], None], kernels: bool) -> None:
        self.do = do
        self.kernels = kernels
        self.error: BaseException | None = None
        self.state = "waiting"
        self.change = threading.Lock()  # of the state
        self.done = threading.Event()

    def run(self) -> None:
        with LOCK if self.kernels else nullcontext():
            with self.change:
                wanted = self.state == "waiting"
                self.state = "running"
            try:
                if wanted:
                    self.do()
            except BaseException as error:  # raised again in the thread that waits
                self.error = error
            with self.change:
                self.state = "over"
                if self.kernels:
                    STOP.value = 0
        self.done.set()

    def stop(self) -> None:
        """Ends the work, if it can be ended soon."""
        with self.change:
            if self.state == "waiting":
                self.state = "unwanted"
            elif self.state == "running" and self.kernels:
                STOP.value = 1
        end = time.monotonic() + PATIENCE
        while not self.done.is_set() and time.monotonic() < end:
            try:
                self.done.wait(end - time.monotonic())
            except KeyboardInterrupt:  # again: it is on its way
                continue
        if not self.done.is_set():
            _waiting.clear()  # what comes next has a thread of its own


_waiting: list[queue.SimpleQueue[_Work]] = []  # of the thread that does long work, once there is one


def _serve(waiting: queue.SimpleQueue[_Work]) -> None:
    while True:
        waiting.get().run()


def interruptibly(do: Callable[[], Result], kernels: bool = True) -> Result:
    """Does work that may take long, so that the main thread hears signals; while no other kernel runs, if it runs
    some."""
    if threading.current_thread() is not threading.main_thread() or NO_FORK.forking == threading.get_ident():
        with LOCK if kernels else nullcontext():
            return do()
    if not _waiting:
        _waiting.append(queue.SimpleQueue())
        threading.Thread(target=_serve, args=tuple(_waiting), name="tensorswap", daemon=True).start()
    results: list[Result] = []
    work = _Work(lambda: results.append(do()), kernels)
    _waiting[0].put(work)
    try:
        work.done.wait()
    except BaseException:
        work.stop()
        raise
    if work.error is not None:
        raise work.error
    return results[0]


def _after_fork() -> None:
    """A child has none of its parent's threads, neither the one that does the work nor one that may hold the lock."""
    LOCK._at_fork_reinit()  # type: ignore[attr-defined]  # as Python's own modules do: others hold the same object
    STOP.value = 0
    _waiting.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
