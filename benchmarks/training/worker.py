"""The process of one peer: it reads commands from a pipe, and answers each when its work is done.

Run as `python -m training.worker RUNNER THREADS` in the folder above. What libraries print goes to standard error.
"""

from __future__ import annotations

import gc
import importlib
import os
import pickle
import sys
import time
import traceback
from typing import Any, BinaryIO

import numpy as np
from harness import settings
from harness.worker import wait_until_idle

from .problem import Problem

Answer = dict[str, Any]


class Session:
    """A peer and the training that it has prepared. Each public method is a command."""

    def __init__(self, runner: str, threads: int) -> None:
        start = time.perf_counter()
        self.runner = importlib.import_module(f".{runner}", __package__)
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


def answer(session: Session, command: str, arguments: tuple[Any, ...]) -> tuple[str, Any]:
    try:
        with np.errstate(all="ignore"):
            return "done", getattr(session, command)(*arguments)
    except Exception as error:
        traceback.print_exc()
        return "failed", f"{type(error).__name__}: {error}"


def serve(runner: str, threads: int, commands: BinaryIO, answers: BinaryIO) -> None:
    def reply(message: tuple[str, Any]) -> None:
        pickle.dump(message, answers, protocol=pickle.HIGHEST_PROTOCOL)
        answers.flush()

    settings.keep_to_cores(threads)
    try:
        session = Session(runner, threads)
    except ImportError as error:
        reply(("absent", str(error)))
        return
    reply(("done", session.hello()))
    while True:
        try:
            command, arguments = pickle.load(commands)
        except EOFError:  # the parent is gone, or has closed the pipe
            return
        reply(answer(session, command, arguments))


def main() -> None:
    commands, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    serve(sys.argv[1], int(sys.argv[2]), commands, answers)


if __name__ == "__main__":
    main()
