"""The process of one peer: it reads commands from a pipe, and answers each when its work is done.

Run as `python -m training.worker PEER THREADS` in the folder above. What libraries print goes to standard error.
"""

from __future__ import annotations

import gc
import importlib
import time
from typing import Any

from harness.worker import main, wait_until_idle

from .problem import Problem
from .process import PEERS

Answer = dict[str, Any]


class Session:
    """A peer and the training that it has prepared. Each public method is a command."""

    def __init__(self, name: str, threads: int) -> None:
        start = time.perf_counter()
        self.runner = importlib.import_module(f".{PEERS[name].runner}", __package__)
        self.import_seconds = time.perf_counter() - start
        self.threads = threads

    def hello(self) -> Answer:
        return {"versions": self.runner.VERSIONS, "import_seconds": self.import_seconds}

    def prepare(self, problem: Problem) -> Answer:
        """Makes the first epoch, with all that is compiled in it."""
        self.problem = problem
        start = time.perf_counter()
        self.training = self.runner.prepare(problem, self.threads)
        losses = self.training.epoch(0)
        seconds = time.perf_counter() - start
        wait_until_idle()
        return {"losses": losses, "seconds": seconds}

    def turn(self, epochs: int) -> Answer:
        """The seconds of one step, over some epochs."""
        gc.collect()
        if hasattr(self.training, "seconds"):
            seconds = self.training.seconds(epochs)
        else:
            start = time.perf_counter()
            for number in range(epochs):
                self.training.epoch(number % len(self.problem.rows))
            seconds = (time.perf_counter() - start) / (epochs * self.problem.steps)
        wait_until_idle()
        return {"seconds": seconds}

    def release(self) -> Answer:
        """Gives the memory of a model back."""
        self.training = None
        gc.collect()
        return {}


if __name__ == "__main__":
    main(Session)
