"""Direct: calls like one before them, from Python into machine code with nothing in between.

What such a call costs beside its kernels is a lookup for each argument, the checks of the runner, and an array for each
result. Kernels that take some microseconds on one thread run under Python's lock: no other thread can use the same
frame, or tell kernels to stop, meanwhile. For others the lock of all kernels is taken; if it is not free, the call goes
the longer way.
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

from . import machine_code
from .again import LARGEST, Again, Way
from .compile import other_function
from .direct_words import PYTHON, Kind, State
from .frame import ALONE
from .interrupt import LOCK
from .objects import ObjectLayout, object_layout

Function = Callable[..., Any]

EMPTY = ()
DOC = b"call(mapping=None, /, **arrays)\n--\n\nRuns the program. One output: that array; several: a dict by name."
KEYWORDS = 1 | 2  # METH_VARARGS and METH_KEYWORDS
FUNCTIONS = {np.zeros: 183, np.empty: 184}  # where numpy's table has those of its C interface
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
    for name in PYTHON:
        binding.add_symbol(name, ctypes.cast(getattr(api, name), ctypes.c_void_p).value)
    table = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", api))
    core = getattr(np, "_core", None) or np.core
    addresses = ctypes.cast(table(core._multiarray_umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    make = {function: int(addresses[place] or 0) for function, place in FUNCTIONS.items()}
    return Means(layout, Definition(b"call", other_function("a direct call", _module), KEYWORDS, DOC), make)


def _module(name: str) -> str:
    from .direct_code import module  # most processes find what it makes in the cache

    return module(name, machine_code.target())


def direct(again: Again, otherwise: Way, single: bool, watched: ctypes.c_int64) -> Way | None:
    """A function that takes and gives what `otherwise` does, and leaves calls of another kind to it, and all while
    `watched` is not zero. It gives the only output without its name if `single`. None if there can be none."""
    known = means()
    kinds = {k: KINDS.get((kind, dtype.name)) for k, dtype, kind in again.numbers}
    if known is None or again.made is None or again.converted or again.between or None in kinds.values():
        return None
    if any(abs(value) > LARGEST for value in again.fixed.values()):
        return None
    cells = {k: np.zeros((), dtype) for k, dtype, _ in again.numbers}
    types = {k: kind for k, _, kind in again.numbers}
    taken = [
        [id(name), kinds[k], id(types[k]), k, id(cells[k]), cells[k].ctypes.data]
        if k in cells
        else [id(name), Kind.ARRAY, 0, k, 0, 0]
        for k, name in enumerate(again.names)
    ]
    taken += [[id(name), Kind.FIXED, id(int), 0, value, 0] for name, value in again.fixed.items()]
    shapes = [np.array(shape, np.intp) for _, shape, _ in again.made]
    makes = [
        [known.make[make], len(shape), place.ctypes.data, id(dtype)]
        for (make, shape, dtype), place in zip(again.made, shapes, strict=True)
    ]
    gives = [[id(name), k] for name, k in again.outputs]
    rows = [np.array(row, np.int64) for row in (taken, makes, gives)]
    frame = again.new_frame()
    memory = again.memory if again.shared else again.known.context.memory()  # one call at a time uses it, or a thread
    acquire, release = partial(LOCK.acquire, False), LOCK.release
    state = np.zeros(len(State), np.int64)
    for word, number in {
        State.WATCHED: ctypes.addressof(watched),
        State.OTHERWISE: id(otherwise),
        State.TYPE: known.layout.type,
        State.DICT: id(dict),
        State.COUNT: len(taken),
        State.TAKEN: rows[0].ctypes.data,
        State.INPUTS: len(again.names),
        State.MADE: len(makes),
        State.MAKES: rows[1].ctypes.data,
        State.MEMORY: id(memory),
        State.GIVES: 0 if single else len(gives),
        State.NAMES: rows[2].ctypes.data,
        State.SLOTS: len(again.names) + len(makes) + 1,
        State.RUNNER: frame.runner,
        State.TABLE: frame.table,
        State.HEADER: frame.header,
        State.LINKS: frame.links,
        State.ITEMS: known.layout.items,
        State.SHARED: again.shared,
        State.ALONE: ctypes.addressof(ALONE),
        State.ACQUIRE: id(acquire),
        State.ACQUIRED: id(True),
        State.RELEASE: id(release),
        State.EMPTY: id(EMPTY),
    }.items():
        state[word] = number
    own = known, frame, memory, cells, shapes, rows, acquire, release, state
    others = otherwise, watched, again.names, again.fixed, again.made, again.outputs  # not `again`: it has the function
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    function: Way = new(("PyCFunction_NewEx", ctypes.pythonapi))(
        ctypes.addressof(known.definition), (state.ctypes.data, own, others), None
    )
    return function
