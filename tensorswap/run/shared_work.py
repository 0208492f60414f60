"""Shared work: jobs that other threads help with; what they do not do, the thread that waits for it does itself.

Python's own pools take no work once the main thread has ended; here whoever asks for a result goes on alone then.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType


class Job:
    """A text to work on, and what came of it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.done = threading.Event()
        self.made = b""
        self.error: BaseException | None = None

    def run(self, do: Callable[[str], bytes]) -> None:
        try:
            self.made = do(self.text)
        except BaseException as error:  # raised again where the result is asked for
            self.error = error
        self.done.set()


class SharedWork:
    """Does jobs in the order in which they are added, with so many helpers. First all are added, then all results are
    asked for."""

    def __init__(self, do: Callable[[str], bytes], helpers: int) -> None:
        self.do = do
        self.waiting: deque[Job] = deque()
        self.some = threading.Semaphore(0)  # jobs that wait, or the end
        self.helpers = helpers
        self.threads: list[threading.Thread] = []

    def __enter__(self) -> SharedWork:
        for _ in range(self.helpers):
            self.begin_helper()
        return self

    def begin_helper(self) -> None:
        thread = threading.Thread(target=self._help, name="tensorswap", daemon=True)
        self.threads.append(thread)  # before it starts, which Ctrl-C may interrupt: all must be told of the end
        try:
            thread.start()
        except RuntimeError:  # no new threads at the end of a process
            self.threads.remove(thread)

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.waiting.clear()
        for _thread in self.threads:
            self.some.release()
        for thread in self.threads:
            if thread.ident is not None:  # it has started
                thread.join()

    def add(self, text: str) -> Job:
        job = Job(text)
        self.waiting.append(job)
        self.some.release()
        return job

    def result(self, job: Job, helping: bool = True) -> bytes:
        """What came of a job; while it is not there, the thread that asks does others, if it is `helping` or alone."""
        while not job.done.is_set() and (helping or not self.threads) and self._one():
            pass
        job.done.wait()
        if job.error is not None:
            raise job.error
        return job.made

    def _one(self) -> bool:
        """Does the next job, if there is one."""
        try:
            job = self.waiting.popleft()
        except IndexError:
            return False
        job.run(self.do)
        return True

    def _help(self) -> None:
        while self.some.acquire() and self._one():
            pass
