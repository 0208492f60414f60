"""Kernel IR -> object code: one C function for each kernel, with one signature. Numba is imported here."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from ..kernel import llvm
from ..kernel.effort import Effort, effort_of
from ..kernel.ir import Body, Memory
from ..kernel.modules import Modules
from . import machine_code
from .cache import ObjectCode, key, symbol
from .cores import cores
from .launch import launch
from .shared_work import Job, SharedWork

Make = Callable[[], tuple[list[Memory], Body]]  # a function of pointers to words
SWITCH = 0.0002  # seconds
common: dict[str, tuple[str, str]] = {}  # functions that kernels share, by what they do: symbol and object


def make(wanted: Mapping[str, Make], keep: Callable[[str, ObjectCode], None]) -> None:
    """Compiles functions, by their keys, all at once: while LLVM works on some modules, others are written."""
    batch = symbol(key("\n".join((*wanted, *(symbol for symbol, _ in common.values())))))
    symbols: dict[str, str] = {}
    jobs: dict[str, Job] = {}

    def take(name: str, text: str) -> None:
        jobs[name] = work.add(text)

    with _eager_threads(), SharedWork(machine_code.object_code, cores() - 1) as work:
        modules = Modules(batch, machine_code.target(), take, common)
        for name, function in wanted.items():
            symbols[name] = llvm.write(*function(), launch, modules)
        modules.finish()
        objects = {}
        told = time.monotonic()
        for position, (name, job) in enumerate(jobs.items()):
            if time.monotonic() - told > 1:
                told = time.monotonic()
                print(f"compiling part {position + 1} of {len(jobs)}", file=sys.stderr, flush=True)
            objects[name] = work.result(job)
    # Linked after what it calls, code finds it without a detour. A function ends after those that it calls.
    order = list(Effort)
    objects = {
        name: objects[name] for name in sorted(objects, key=lambda name: order.index(effort_of(jobs[name].text)))
    }
    for name, found in symbols.items():
        keep(name, ObjectCode(found, objects, tuple(modules.needed)))
    common.update(modules.common)


@contextmanager
def _eager_threads() -> Iterator[None]:
    """Threads that come back from LLVM do not wait long for the one that writes: each comes back ten times a module."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, SWITCH))
    try:
        yield
    finally:
        sys.setswitchinterval(before)
