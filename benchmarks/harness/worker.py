"""The process of one peer: it reads commands from a pipe, and answers each when its work is done.

Run as `python -m harness.worker PEER THREADS` in the folder above. What libraries print goes to standard error.
"""

from __future__ import annotations

import gc
import importlib
import os
import pickle
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np
import workloads

from . import memory, roofline, settings
from .peers import PEERS
from .runners.base import NotApplicable, Runner
from .workload import Arrays

IDLE_WINDOW = 0.005  # seconds over which a process must have used next to no time
IDLE_SHARE = 0.2
IDLE_LIMIT = 0.5

Answer = dict[str, Any]


class Session:
    """A runner, and the call that it has prepared. Each public method is a command."""

    def __init__(self, name: str, threads: int) -> None:
        self.threads = threads
        start = time.perf_counter()
        self.runner: Runner = importlib.import_module(f".runners.{PEERS[name].runner}", __package__).make(name, threads)
        self.import_seconds = time.perf_counter() - start
        self.call: Callable[[], Any] = nothing_prepared

    def hello(self) -> Answer:
        return {"versions": self.runner.versions, "import_seconds": self.import_seconds}

    def prepare(self, key: tuple[str, str, bool]) -> Answer:
        """Builds the call and makes it once. Both count as the first call: libraries share the work out differently."""
        row = workloads.row(*key)
        arrays = row.arrays()
        start = time.perf_counter()
        self.call = self.runner.prepare(row.workload, arrays, row.dtype)
        built = time.perf_counter()
        raw = self.call()
        end = time.perf_counter()
        wait_until_idle()
        return {
            "build_seconds": built - start,
            "first_call_seconds": end - start,
            "results": self.runner.results(raw),
        }

    def repetitions(self, target_seconds: float) -> Answer:
        """How many calls make a turn of about the given length."""
        count = 1
        self.call()
        while (seconds := self._run(count)) < target_seconds / 4:
            count *= 4
        return {"repetitions": max(1, round(target_seconds * count / seconds))}

    def turn(self, repetitions: int) -> Answer:
        """The seconds of one call, over some of them. One before them brings code and data back into the caches."""
        if repetitions > 1:
            self.call()
        seconds = self._run(repetitions) / repetitions
        wait_until_idle()
        return {"seconds": seconds}

    def _run(self, repetitions: int) -> float:
        call = self.call
        gc.disable()
        start = time.perf_counter()
        for _ in range(repetitions):
            call()
        seconds = time.perf_counter() - start
        gc.enable()
        return seconds

    def release(self) -> Answer:
        """Gives the memory of a row back."""
        self.call = nothing_prepared
        gc.collect()
        return {}

    def reference(self, key: tuple[str, str, bool]) -> Answer:
        """The results in float64, and the bytes that a call must at least read and write."""
        row = workloads.row(*key)
        arrays = row.arrays()
        results = self.runner.results(self.runner.prepare(row.workload, widened(arrays), "float64")())
        read = sum(array.nbytes for array in arrays.values() if isinstance(array, np.ndarray))
        written = sum(array.size for array in results.values()) * np.dtype(row.dtype).itemsize
        return {"results": results, "bytes": read + written}

    def footprint(self, key: tuple[str, str, bool]) -> Answer:
        """The memory that a call needs beside its inputs, in a process that has done nothing else."""
        # all code is loaded first; by a small call if it is the same code, because some libraries never give back what
        # a large one took
        first = self.prepare((*key[:2], True) if self.runner.eager else key)["first_call_seconds"]
        self.release()
        row = workloads.row(*key)
        self.call = self.runner.prepare(row.workload, row.arrays(), row.dtype)
        found = memory.footprint(self.call)
        return {
            "first_call_seconds": first,
            "kept_bytes": found and found.kept,
            "call_bytes": found and found.call,
        }

    def limits(self, quick: bool) -> Answer:
        """What the machine can do at most."""
        return roofline.measure(self.threads, quick)


def nothing_prepared() -> None:
    raise RuntimeError("the worker was started again and has nothing prepared")


def widened(arrays: Arrays) -> Arrays:
    """The same numbers in float64."""
    return {
        name: value.astype(np.float64) if isinstance(value, np.ndarray) and value.dtype.kind == "f" else value
        for name, value in arrays.items()
    }


def wait_until_idle() -> None:
    """Thread pools spin on for a while after their work; the next peer's turn starts when this one's are asleep."""
    end = time.perf_counter() + IDLE_LIMIT
    while time.perf_counter() < end:
        used = time.process_time()
        time.sleep(IDLE_WINDOW)
        if time.process_time() - used < IDLE_SHARE * IDLE_WINDOW:
            return


def answer(session: Any, command: str, arguments: tuple[Any, ...]) -> tuple[str, Any]:
    try:
        return "done", getattr(session, command)(*arguments)
    except NotApplicable as reason:
        return "not applicable", str(reason)
    except Exception as error:
        traceback.print_exc()
        return "failed", f"{type(error).__name__}: {error}"


def serve(make: Callable[[str, int], Any], name: str, threads: int, commands: BinaryIO, answers: BinaryIO) -> None:
    """Answers commands with the methods of a session, which is made for a peer and a number of threads."""

    def reply(message: tuple[str, Any]) -> None:
        pickle.dump(message, answers, protocol=pickle.HIGHEST_PROTOCOL)
        answers.flush()

    settings.keep_to_cores(threads)
    try:
        session = make(name, threads)
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


def main(make: Callable[[str, int], Any]) -> None:
    commands, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    serve(make, sys.argv[1], int(sys.argv[2]), commands, answers)


if __name__ == "__main__":
    main(Session)
