"""Direct: calls like one before them, from Python into machine code with nothing in between.

What such a call costs beside its kernels is a lookup for each argument, the checks of the runner, and an array for each
result. Kernels that take some microseconds on one thread run under Python's lock: no other thread can use the same
frame, or tell kernels to stop, meanwhile. For others the lock of all kernels is taken; if it is not free, the call goes
the longer way. Nothing that may run code of a user's happens while that lock is held.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from llvmlite import binding

from .again import Again, Way
from .direct_words import CALLED, LARGEST, Kind, State
from .frame import ALONE
from .interrupt import LOCK, LONG
from .known_code import other_function
from .lent import is_lent
from .objects import ObjectLayout, object_layout
from .ready import Ready, Result

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]

EMPTY = ()
LIGHT = 100e3  # nanoseconds of work, by a guess, for which other threads of Python can wait
COPIED = 2**20  # bytes of first values that are kept to be copied, at most
DOC = b"__call__(mapping=None, /, **arrays)\n--\n\nRuns the program. One output: that array; several: a dict by name."
KEYWORDS = 1 | 2  # METH_VARARGS and METH_KEYWORDS
FUNCTIONS: dict[Function, int] = {
    np.copy: 85,
    np.zeros: 183,
    np.empty: 184,
}  # where numpy's table has the like for programs in C
KINDS = {
    (float, "float64"): Kind.DOUBLE,
    (float, "float32"): Kind.SINGLE,
    (int, "int64"): Kind.WORD,
    (int, "float64"): Kind.WHOLE_DOUBLE,
    (int, "float32"): Kind.WHOLE_SINGLE,
}  # of a number in Python, and the type that kernels read


class Definition(ctypes.Structure):
    """Python's PyMethodDef."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


@dataclass(frozen=True)
class Means:
    """What direct calls need of Python and numpy."""

    layout: ObjectLayout
    definition: Definition
    make: dict[Function, int]  # addresses


@cache
def means() -> Means | None:
    """None where this Python runs threads side by side, or keeps objects otherwise."""
    layout = object_layout()
    asked: Callable[[], bool] | None = getattr(sys, "_is_gil_enabled", None)
    if layout is None or (asked is not None and not asked()):
        return None
    api = ctypes.pythonapi
    for name in CALLED:  # a process has the system's library by way of Python's
        binding.add_symbol(name, ctypes.cast(getattr(api, name), ctypes.c_void_p).value)
    table = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", api))
    core = getattr(np, "_core", None) or np.core
    addresses = ctypes.cast(table(core._multiarray_umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    make = {function: int(addresses[place] or 0) for function, place in FUNCTIONS.items()}
    return Means(layout, Definition(b"__call__", other_function("a direct call", _made), KEYWORDS, DOC), make)


def _made(name: str) -> bytes:
    from .direct_code import module  # most processes find what it makes on disk
    from .machine_code import object_code, target

    return object_code(module(name, target()))


class Kept(tuple[Any, ...]):
    """What a direct call is bound to: its words, what takes other calls, and all that the words have the addresses of.
    A pickled call is that of the program."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self[1], "__self__")


class Words:
    """The rows that a direct call reads, and all that they have the addresses of."""

    def __init__(self, known: Means, again: Again) -> None:
        self.known = known
        self.keep: list[Any] = []
        self.taken = [self.argument(again, k, name) for k, name in enumerate(again.names)]
        self.taken += [[self.id(name), Kind.FIXED, id(int), 0, value, 0] for name, value in again.fixed.items()]
        ready = again.known
        self.made = [self.result(made) for made in ready.made]
        self.memory = ready.memory()
        self.starts = self.first_values(ready)
        self.deciding = [[k, ready.dtypes[name].itemsize] for name, k in ready.places if name in ready.scalars]
        self.gives = [[self.id(name), k] for name, k in ready.places if name not in ready.scalars]

    def id(self, thing: Any) -> int:
        """Of something that stays."""
        self.keep.append(thing)
        return id(thing)

    def data(self, array: Array) -> int:
        """The address of an array's elements, which stays."""
        self.keep.append(array)
        return int(array.ctypes.data)

    def rows(self, rows: list[list[int]]) -> int:
        return self.data(np.array(rows, np.int64))

    def argument(self, again: Again, k: int, name: str) -> list[int]:
        kind = next(((dtype, kind) for place, dtype, kind in again.numbers if place == k), None)
        if kind is None:
            return [self.id(name), Kind.ARRAY, 0, k, 0, 0]
        cell = np.zeros((), kind[0])
        return [self.id(name), KINDS[kind[1], kind[0].name], id(kind[1]), k, self.id(cell), self.data(cell)]

    def result(self, result: Result) -> list[int]:
        """A copy of an input; or made by numpy's function for zeros, or by one that leaves memory as it is, with a copy
        of what the result begins with if that is something else."""
        made = [len(result.shape), self.data(np.array(result.shape, np.intp)), self.id(result.dtype)]
        if result.old is not None:
            return [self.known.make[np.copy], *made, 0, 0, result.old]
        if not result.start:
            return [self.known.make[np.empty if result.start is None else np.zeros], *made, 0, 0, -1]
        like = np.full(result.shape, result.start, result.dtype)
        return [self.known.make[np.empty], *made, self.data(like), like.nbytes, -1]

    def first_values(self, ready: Ready) -> list[list[int]]:
        memory = self.data(self.memory)
        likes = [(fill.place, np.full(fill.shape, fill.value, fill.dtype)) for fill in ready.fills]
        return [
            *([memory + first, 0, past - first] for first, past in ready.zeros),
            *([memory + place, self.data(like), like.nbytes] for place, like in likes),
        ]


def direct(again: Again, otherwise: Way, single: bool, watched: ctypes.c_int64) -> Way | None:
    """A function that takes and gives what `otherwise` does, and leaves calls of another kind to it, and all while
    `watched` is not zero. It gives the only output without its name if `single`. None if there can be none."""
    known = means()
    if known is None or not _can_be(again):
        return None
    words, frame = Words(known, again), again.new_frame()
    acquire, release = partial(LOCK.acquire, False), LOCK.release
    state = np.zeros(len(State), np.int64)
    for word, number in {
        State.WATCHED: ctypes.addressof(watched),
        State.OTHERWISE: id(otherwise),
        State.TYPE: known.layout.type,
        State.DICT: id(dict),
        State.COUNT: len(words.taken),
        State.TAKEN: words.rows(words.taken),
        State.INPUTS: len(again.names),
        State.MADE: len(words.made),
        State.MAKES: words.rows(words.made),
        State.MEMORY: id(words.memory),
        State.GIVES: 0 if single else len(words.gives),
        State.NAMES: words.rows(words.gives),
        State.SLOTS: len(again.names) + len(words.made) + 1,
        State.RUNNER: frame.runner,
        State.TABLE: frame.table,
        State.HEADER: frame.header,
        State.LINKS: frame.links,
        State.ITEMS: known.layout.items,
        State.DATA: known.layout.data,
        State.BEGUN: len(words.starts),
        State.STARTS: words.rows(words.starts),
        State.DECIDING: len(words.deciding),
        State.BYTES: words.rows(words.deciding),
        State.SHARED: frame.threads or again.known.work > LIGHT,
        State.ALONE: ctypes.addressof(ALONE),
        State.ACQUIRE: id(acquire),
        State.ACQUIRED: id(True),
        State.RELEASE: id(release),
        State.EMPTY: id(EMPTY),
        State.ARRAY: id(np.ndarray),
        State.DTYPE: known.layout.dtype,
    }.items():
        state[word] = number
    keep = known, words, frame, otherwise, watched, acquire, release, state  # not `again`, which has the function
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    function: Way = new(("PyCFunction_NewEx", ctypes.pythonapi))(
        ctypes.addressof(known.definition), Kept((state.ctypes.data, otherwise, keep)), None
    )
    return function


def _can_be(again: Again) -> bool:
    """Whether calls need nothing but a lookup, memory and kernels, and are done before anybody waits."""
    known = again.known
    if again.converted or again.between or known.limited or known.work >= LONG:
        return False
    if any(is_lent(made.size) for made in known.made):
        return False
    first = sum(made.size for made in known.made if made.start and made.old is None)
    first += sum(fill.size for fill in known.fills)
    numbers = all((kind, dtype.name) in KINDS for _, dtype, kind in again.numbers)
    return first < COPIED and numbers and all(abs(value) <= LARGEST for value in again.fixed.values())
