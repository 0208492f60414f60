"""Memory of numpy's arrays between pages that nobody may touch: who reads or writes beyond an array ends the process.

Each array ends where such a page begins. What stands before it, up to the page before, is looked at when it dies.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

PAGE = mmap.PAGESIZE
SET_HANDLER = 304  # PyDataMem_SetHandler's place in the table of numpy's C functions
NONE, ALL = 0, mmap.PROT_READ | mmap.PROT_WRITE
APART = 4  # bytes that places of numbers are multiples of
NEW = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
ZEROED = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
FREED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


class _Handler(ctypes.Structure):
    """numpy's PyDataMem_Handler."""

    _fields_ = [
        ("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("context", ctypes.c_void_p), ("new", NEW),
        ("zeroed", ZEROED), ("grown", ZEROED), ("freed", FREED),
    ]  # fmt: skip


class Guarded:
    """Takes and gives back memory; `touched` tells of what stood before arrays and was changed."""

    def __init__(self) -> None:
        self.touched: list[str] = []
        self.starts: dict[int, tuple[int, int]] = {}  # by where arrays begin: where their pages do, and all their bytes
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.mmap.restype = ctypes.c_void_p
        self.libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        self.libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        self.libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        new, zeroed, freed = NEW(self.new), ZEROED(lambda _, n, size: self.new(_, n * size)), FREED(self.freed)
        self.handler = _Handler(b"guarded", 1, None, new, zeroed, ZEROED(self.grown), freed)

    def new(self, _: int | None, size: int) -> int:
        pages = -(-max(size, 1) // PAGE) * PAGE
        begin = self.libc.mmap(None, pages + 2 * PAGE, ALL, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        for at in (begin, begin + PAGE + pages):
            self.libc.mprotect(at, PAGE, NONE)
        place = begin + PAGE + (pages - size) // APART * APART
        self.starts[place] = begin, pages + 2 * PAGE
        return int(place)

    def grown(self, _: int | None, place: int, size: int) -> int:
        begin, pages = self.starts[place]
        made = self.new(None, size)
        ctypes.memmove(made, place, min(size, begin + pages - PAGE - place))
        self.freed(None, place, size)
        return made

    def freed(
        self, _: int | None, place: int | None, size: int, page: int = PAGE, read: Any = ctypes.string_at
    ) -> None:
        """Modules may be gone already: arrays live to the end of a process."""
        if place is None:
            return
        begin, pages = self.starts.pop(place)
        before = read(begin + page, place - begin - page)
        if any(before):
            self.touched.append(f"{len(before) - before.count(0)} bytes before {size}")
        self.libc.munmap(begin, pages)


@contextmanager
def guarded() -> Iterator[None]:
    """Arrays that are made meanwhile stand between such pages."""
    table = ctypes.pythonapi.PyCapsule_GetPointer
    table.restype, table.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    functions = ctypes.cast(table(np._core._multiarray_umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    change = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(functions[SET_HANDLER])
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    made = Guarded()
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))  # arrays may outlive all else that knows of it
    before = change(capsule(ctypes.addressof(made.handler), b"mem_handler", None))
    try:
        yield
    finally:
        change(before)
        assert not made.touched, f"memory before arrays was changed: {made.touched}"
