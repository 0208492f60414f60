"""Known code: machine code by its key, in memory or on disk. What is neither is compiled."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..forks import NO_FORK
from . import cache as disk
from . import tuning
from .interrupt import interruptibly
from .linking import link, linked
from .team_words import introduce

if TYPE_CHECKING:
    from ..kernel.ir import Body, Memory
    from .compile import Batch

Make = Callable[[], "tuple[list[Memory], Body]"]  # a function of pointers to words
Named = tuple[str, Make]  # a text that tells a function apart from all others, and what makes it


class Compiled(NamedTuple):
    """Machine code: its key, where it lies in memory, and whether it was compiled now."""

    key: str
    address: int
    fresh: bool


class Making(NamedTuple):
    """What a thread compiles while it does other things."""

    thread: int
    over: threading.Event


COMPILING = threading.RLock()  # held while machine code is looked up, or made
kernels: dict[str, Compiled] = {}  # of this process, by the key of each
making: dict[str, Making] = {}  # by the key of each function


def functions(wanted: Sequence[Named]) -> list[Compiled]:
    """The machine code of functions, whichever thread asks first; those that are not there yet are made together."""
    named = [(key_of(source), function) for source, function in wanted]
    for key, _ in named:
        other = making.get(key)
        if other is not None and other.thread != threading.get_ident():  # or a handler of signals waits for itself
            other.over.wait()
    if any(key not in kernels for key, _ in named):
        interruptibly(lambda: _find_or_make(dict(named)), kernels=False)  # LLVM hears no signal
    return [kernels[key] for key, _ in named]


def other_function(source: str, objects: Callable[[str], bytes]) -> int:
    """The address of a function that is no kernel, of which `objects` makes the object code under a name."""
    key = key_of(source)
    with NO_FORK, COMPILING:
        introduce()
        if key not in kernels and not found(key):
            name = disk.symbol(key)
            _keep(key, disk.ObjectCode(name, {name: objects(name)}))
        return kernels[key].address


def kept(keys: Collection[str]) -> bool:
    """Whether the machine code of all these keys is in memory, or was on disk and now is."""
    if all(key in kernels for key in keys):
        return True
    with NO_FORK, COMPILING:
        introduce()
        return all(key in kernels or found(key) for key in keys)


def key_of(source: str) -> str:
    return disk.key(f"level {tuning.level}\n{source}")


def _find_or_make(wanted: dict[str, Make]) -> None:
    with NO_FORK, COMPILING:
        introduce()
        missing = {key: function for key, function in wanted.items() if key not in kernels}
        fresh = {key: function for key, function in missing.items() if not found(key)}
        if fresh:
            from .compile import Batch  # with all that writes LLVM's text: most processes find what it makes on disk

            with Batch() as batch:
                for key, function in fresh.items():
                    batch.add(key, function)
                keep_all(batch)


def keep_all(batch: Batch, helping: bool = True) -> None:
    """Takes all that a batch has compiled; what another thread was first with stays. If this one is not `helping`, it
    only waits."""
    made = batch.finish(helping)
    with COMPILING:
        fresh = [key for key in made if key not in kernels]
        for key in fresh:
            _keep(key, made[key])
        if fresh:
            batch.is_in_memory()


def begins(key: str, making_it: Making) -> bool:
    """Whether a thread is to make the function of a key: it is not there, and no other thread makes it."""
    if key in kernels:
        return False
    with COMPILING:
        introduce()
        return not found(key) and making.setdefault(key, making_it) is making_it


def ends(made: Making) -> None:
    """What a thread has made is there, or will never be. Nobody is waited for here, and Ctrl-C comes later: others wait
    for this."""
    interrupted: KeyboardInterrupt | None = None
    while not made.over.is_set():
        try:
            for key in [key for key, other in list(making.items()) if other is made]:
                making.pop(key, None)
            made.over.set()
        except KeyboardInterrupt as error:
            interrupted = error
    if interrupted is not None:
        raise interrupted


def _keep(key: str, code: disk.ObjectCode) -> None:
    """Takes new code into memory, and writes it to the disk."""
    disk.save(key, code)
    kernels[key] = Compiled(key, link(code), fresh=True)


def found(key: str) -> bool:
    """Takes a function from the disk, if it is kept there."""
    code = disk.load(key, linked)
    if code is None:
        return False
    try:
        kernels[key] = Compiled(key, link(code), fresh=False)
    except Exception:  # whatever the linker says of code that is not ours: it is compiled again
        return False
    return True


if hasattr(os, "register_at_fork"):  # a child has none of the threads that make something
    os.register_at_fork(after_in_child=making.clear)
