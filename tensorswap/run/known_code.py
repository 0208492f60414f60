"""Known code: machine code by its key, in memory or on disk. What is neither is compiled."""

from __future__ import annotations

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

Make = Callable[[], "tuple[list[Memory], Body]"]  # a function of pointers to words
Named = tuple[str, Make]  # a text that tells a function apart from all others, and what makes it


class Compiled(NamedTuple):
    """Machine code: its key, where it lies in memory, and whether it was compiled now."""

    key: str
    address: int
    fresh: bool


COMPILING = threading.RLock()  # held while machine code is looked up, or made
kernels: dict[str, Compiled] = {}  # of this process, by the key of each


def functions(wanted: Sequence[Named]) -> list[Compiled]:
    """The machine code of functions, whichever thread asks first; those that are not there yet are made together."""
    named = [(_key(source), function) for source, function in wanted]
    if any(key not in kernels for key, _ in named):
        interruptibly(lambda: _find_or_make(dict(named)), kernels=False)  # LLVM hears no signal
    return [kernels[key] for key, _ in named]


def other_function(source: str, objects: Callable[[str], bytes]) -> int:
    """The address of a function that is no kernel, of which `objects` makes the object code under a name."""
    key = _key(source)
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


def _key(source: str) -> str:
    return disk.key(f"level {tuning.level}\n{source}")


def _find_or_make(wanted: dict[str, Make]) -> None:
    with NO_FORK, COMPILING:
        introduce()
        missing = {key: function for key, function in wanted.items() if key not in kernels}
        fresh = {key: function for key, function in missing.items() if not found(key)}
        if fresh:
            from .compile import make  # with all that writes LLVM's text: most processes find what it makes on disk

            make(fresh, _keep)


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
