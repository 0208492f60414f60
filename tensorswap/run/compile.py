"""Kernel IR -> object code: one C function for each kernel, with one signature. Numba is imported here."""

from __future__ import annotations

import secrets
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType

from ..kernel import llvm
from ..kernel.effort import Effort, effort_of
from ..kernel.ir import Body, Memory
from ..kernel.modules import Modules
from . import machine_code
from .cache import ObjectCode, symbol
from .cores import cores
from .launch import launch
from .shared_work import Job, SharedWork

Make = Callable[[], tuple[list[Memory], Body]]  # a function of pointers to words
SWITCH = 0.0002  # seconds
common: dict[str, tuple[str, str]] = {}  # functions that kernels share, by what they do: symbol and object


class Batch:
    """Functions that are compiled together, by their keys: while LLVM works on some modules, others are written."""

    def __init__(self) -> None:
        # No other batch has its names, even if it is of the same functions: both may come into memory.
        name = symbol(secrets.token_hex(16))
        self.symbols: dict[str, str] = {}
        self.jobs: dict[str, Job] = {}
        self.work = SharedWork(machine_code.object_code, cores() - 1)
        self.modules = Modules(name, machine_code.target(), self._take, dict(common))

    def __enter__(self) -> Batch:
        with ExitStack() as stack:
            stack.enter_context(EAGER)
            stack.enter_context(self.work)
            self.end = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end.__exit__(kind, error, trace)

    def add(self, key: str, function: Make) -> None:
        """One more function: LLVM works from when there is enough for a module."""
        self.symbols[key] = llvm.write(*function(), launch, self.modules)

    def _take(self, name: str, text: str) -> None:
        self.jobs[name] = self.work.add(text)

    def finish(self, helping: bool = True) -> dict[str, ObjectCode]:
        """All functions, by their keys. If this thread is not `helping`, a further one does its share."""
        self.modules.finish()
        if not helping:
            self.work.begin_helper()
        objects = {}
        told = time.monotonic()
        for position, (name, job) in enumerate(self.jobs.items()):
            if time.monotonic() - told > 1:
                told = time.monotonic()
                print(f"compiling part {position + 1} of {len(self.jobs)}", file=sys.stderr, flush=True)
            objects[name] = self.work.result(job, helping)
        # Linked after what it calls, code finds it without a detour. A function ends after those that it calls.
        order = list(Effort)
        objects = {
            name: objects[name]
            for name in sorted(objects, key=lambda name: order.index(effort_of(self.jobs[name].text)))
        }
        needed = tuple(self.modules.needed)
        return {key: ObjectCode(found, objects, needed) for key, found in self.symbols.items()}

    def is_in_memory(self) -> None:
        """Others may call what its kernels have in common."""
        common.update(self.modules.common)


class _Eager:
    """While something is compiled, threads that come back from LLVM do not wait long for the one that writes: each
    comes back ten times a module."""

    def __init__(self) -> None:
        self.change = threading.Lock()
        self.count = 0
        self.before = 0.0

    def __enter__(self) -> None:
        with self.change:
            if not self.count:
                self.before = sys.getswitchinterval()
                sys.setswitchinterval(min(self.before, SWITCH))
            self.count += 1

    def __exit__(self, *_: object) -> None:
        with self.change:
            self.count -= 1
            if not self.count:
                sys.setswitchinterval(self.before)


EAGER = _Eager()
