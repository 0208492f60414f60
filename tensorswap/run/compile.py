"""Source -> machine code: one C function for each kernel, with one signature, from the cache where it holds it."""

from __future__ import annotations

import ctypes
import os
import threading
from functools import cache
from typing import Any

import numpy as np
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys

from ..emit.lower import Lowerer
from . import cache as disk
from .launch import launch, start_threads

Array = np.ndarray[Any, Any]

POINTER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


class Compiled:
    """Machine code in memory, which lives as long as this object."""

    def __init__(self, source: str) -> None:
        start_threads()
        kept = disk.load(source)
        self.fresh = kept is None
        if kept is None:
            kept, self.library = _compile(source)
            disk.save(source, kept)
        else:
            self.library = _codegen().unserialize_library((kept.symbol, "object", (kept.code, kept.bitcode)))
        self.address = int(self.library.get_pointer_to_function(kept.symbol))


@cache
def _codegen() -> Any:
    """Numba's linker, with the symbols of its runtime known: code from the cache may name them."""
    context = cpu_target.target_context
    rtsys.initialize(context)
    context.refresh()
    return context.codegen()


@global_compiler_lock  # type: ignore[untyped-decorator]  # Numba is untyped
def _compile(source: str) -> tuple[disk.ObjectCode, Any]:
    symbol = f"tensorswap_{disk.key(source)[:32]}"
    library = _codegen().create_library(symbol)
    library.enable_object_caching()
    Lowerer(symbol, library, {"launch": launch}).lower(source)  # the source is ours: no user's text is in it
    library.finalize()
    assert library.get_pointer_to_function(symbol), "the address is asked for first: only then is there object code"
    _, _, (code, bitcode) = library.serialize_using_object_code()
    return disk.ObjectCode(symbol, code, bitcode), library


@cache
def compiled(source: str) -> Compiled:
    """The machine code of a kernel; kernels of equal source are one."""
    return Compiled(source)


RUNNER = """def kernel(table, header, links, words):
    # writes the addresses of arrays into the words, then runs the kernels of the table on them: once for each step
    rows, count, objects, offset, copy = header[0], header[1], pointer_i8(header[2]), header[3], pointer_i8(header[4])
    for k in range(header[5]):
        copy[k] = words[k]
    for at in range(header[6]):
        for k in range(count):
            address = objects[links[4 * k + 1]]
            if offset >= 0:
                address = pointer_i8(address + offset)[0]
            copy[links[4 * k]] = address + links[4 * k + 2] + at * links[4 * k + 3]
        for row in range(rows):
            launch(table[4 * row], 0, table[4 * row + 1], header[4] + 8 * table[4 * row + 3], table[4 * row + 2])
"""


@cache
def runner() -> Any:
    """The compiled loop over a table of kernels."""
    return POINTER(compiled(RUNNER).address)


@cache
def data_offset() -> int:
    """Where numpy keeps the address of an array's data within the array object; -1 if that is not to be found."""
    samples: list[Array] = [np.empty(3), np.empty((2, 2), np.float32)[:, 1:], np.zeros(())]
    for offset in (16, 24, 32):
        found = [ctypes.c_size_t.from_address(id(a) + offset).value for a in samples]
        if found == [a.ctypes.data for a in samples]:
            return offset
    return -1


LOCK = threading.Lock()  # Numba's pool takes work from one thread at a time


def _after_fork() -> None:
    """A child has neither the threads of its parent's pool nor the thread that may hold the lock."""
    global LOCK
    LOCK = threading.Lock()
    _alone.append(True)


_alone: list[bool] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Frame:
    """What one call of the runner needs beside the arrays, made once: used under the lock.

    A link is a word, the array whose address it gets, bytes from the array's start, and bytes that each step adds.
    """

    def __init__(self, table: Array, words: Array, links: Array, arrays: int) -> None:
        self.keep = (table, words, links)
        self.serial = False
        self.offset = data_offset()
        self.space = (ctypes.c_int64 * (arrays + 7 + len(words)))()
        start = ctypes.addressof(self.space)
        header = (len(table), len(links), start, self.offset, start + 8 * (arrays + 7), len(words), 1)
        for k, number in enumerate(header):
            self.space[arrays + k] = number
        self.run = runner()
        self.arguments = (table.ctypes.data, start + 8 * arrays, links.ctypes.data, words.ctypes.data)

    def __call__(self, arrays: list[Array], steps: int | None = None) -> None:
        """Runs the kernels of the table on the arrays."""
        objects: Any = [id(a) for a in arrays] if self.offset >= 0 else [a.ctypes.data for a in arrays]
        if _alone and not self.serial:
            self.serial = True
            self.keep[0][:, 2] = 1  # one part after the other
        with LOCK:
            self.space[: len(arrays)] = objects
            if steps is not None:
                self.space[len(arrays) + 6] = steps
            self.run(*self.arguments)
