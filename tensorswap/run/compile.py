"""Kernel IR -> machine code: one C function for each kernel, with one signature, from the cache where it holds it."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from ..kernel import llvm, python
from ..kernel.effort import Effort, effort_of
from ..kernel.ir import Body, Kernel, Memory
from ..kernel.modules import Modules
from . import cache as disk
from . import machine_code
from .cores import cores
from .interrupt import interruptibly
from .launch import introduce, launch
from .linking import link, linked
from .shared_work import Job, SharedWork

Function = tuple[list[Memory], Body]  # of pointers to words
Named = tuple[str, Callable[[], Function]]  # a text that tells a function apart from all others, and what makes it


@dataclass(frozen=True)
class Compiled:
    """Machine code: its key, where it lies in memory, and whether it was compiled now."""

    key: str
    address: int
    fresh: bool


SWITCH = 0.0002  # seconds
kernels: dict[str, Compiled] = {}  # of this process, by the key of each
common: dict[str, tuple[str, str]] = {}  # functions that kernels share, by what they do: symbol and object
_one_at_a_time = threading.RLock()


def compiled(wanted: Sequence[Kernel]) -> list[Compiled]:
    """The machine code of kernels."""
    return functions([(python.kernel(kernel), partial(llvm.entry, kernel)) for kernel in wanted])


def functions(wanted: Sequence[Named]) -> list[Compiled]:
    """The machine code of functions, whichever thread asks first; those that are not there yet are made together."""
    named = [(_key(source), function) for source, function in wanted]
    if any(key not in kernels for key, _ in named):
        interruptibly(lambda: _make(dict(named)), kernels=False)  # LLVM hears no signal
    return [kernels[key] for key, _ in named]


def _key(source: str) -> str:
    return disk.key(f"level {machine_code.level}\n{source}")


def kept(keys: Collection[str]) -> bool:
    """Whether the machine code of all these keys is in memory, or was on disk and now is."""
    if all(key in kernels for key in keys):
        return True
    with _one_at_a_time:
        introduce()
        return all(key in kernels or _found(key) for key in keys)


def other_function(source: str, module: Callable[[str], str]) -> int:
    """The address of a function that is no kernel, of which `module` makes the text of a module under a name."""
    key = _key(source)
    with _one_at_a_time:
        introduce()
        if key not in kernels and not _found(key):
            name = disk.symbol(key)
            code = disk.ObjectCode(name, {name: machine_code.object_code(module(name))})
            disk.save(key, code)
            kernels[key] = Compiled(key, link(code), fresh=True)
        return kernels[key].address


def _make(wanted: dict[str, Callable[[], Function]]) -> None:
    with _one_at_a_time:
        introduce()
        missing = {key: function for key, function in wanted.items() if key not in kernels}
        fresh = {key: function for key, function in missing.items() if not _found(key)}
        if fresh:
            with _eager_threads():
                _compile(fresh)


@contextmanager
def _eager_threads() -> Iterator[None]:
    """Threads that come back from LLVM do not wait long for the one that writes: each comes back ten times a module."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, SWITCH))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def _found(key: str) -> bool:
    """Takes a function from the disk, if it is kept there."""
    code = disk.load(key, linked)
    if code is None:
        return False
    try:
        kernels[key] = Compiled(key, link(code), fresh=False)
    except Exception:  # whatever the linker says of code that is not ours: it is compiled again
        return False
    return True


def _compile(wanted: dict[str, Callable[[], Function]]) -> None:
    """All at once: while LLVM works on some modules, others are written."""
    batch = disk.symbol(disk.key("\n".join((*wanted, *(symbol for symbol, _ in common.values())))))
    symbols: dict[str, str] = {}
    jobs: dict[str, Job] = {}

    def take(name: str, text: str) -> None:
        jobs[name] = work.add(text)

    with SharedWork(machine_code.object_code, cores() - 1) as work:
        modules = Modules(batch, machine_code.target(), take, common)
        for key, function in wanted.items():
            symbols[key] = llvm.write(*function(), launch, modules)
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
    for key, symbol in symbols.items():
        code = disk.ObjectCode(symbol, objects, tuple(modules.needed))
        disk.save(key, code)
        kernels[key] = Compiled(key, link(code), fresh=True)
    common.update(modules.common)


if hasattr(os, "register_at_fork"):  # a fork waits for the kernels at hand: its child could not open the lock
    os.register_at_fork(
        before=_one_at_a_time.acquire,
        after_in_parent=_one_at_a_time.release,
        after_in_child=_one_at_a_time.release,
    )
