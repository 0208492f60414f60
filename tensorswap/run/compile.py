"""Source -> machine code: one C function for each kernel, with one signature, from the cache where it holds it."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir as llvm
from numba import cfunc, types
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys
from numba.extending import intrinsic

from ..emit import mathematics, tile
from ..emit.expression import TYPES
from . import cache as disk
from .launch import launch, start_threads

WORDS = types.CPointer(types.intp)
SIGNATURE = types.void(WORDS, WORDS, WORDS, WORDS)
POINTER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)

_LLVM = {
    "f4": (llvm.FloatType(), types.float32), "f8": (llvm.DoubleType(), types.float64),
    **{f"{kind}{size}": (llvm.IntType(8 * size), getattr(types, f"{word}{8 * size}"))
       for kind, word in (("i", "int"), ("u", "uint")) for size in (1, 2, 4, 8)},
    "b1": (llvm.IntType(8), types.uint8),
}  # fmt: skip


def _pointer(name: str) -> Any:
    element, numba_type = _LLVM[name]

    @intrinsic
    def pointer(typing_context: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], element.as_pointer())

        return types.CPointer(numba_type)(types.intp), codegen

    return pointer


@cache
def _namespace() -> dict[str, Any]:
    """The names that generated source may use."""
    casts = {f"to_{name}": np.dtype(name).type for name in TYPES if name != "b1"}
    pointers = {f"pointer_{name}": _pointer(name) for name in TYPES}
    more = {"to_b1": bool, "inf": float("inf"), "launch": launch}
    return {**casts, **pointers, **mathematics.NAMES, **tile.names(), **more}


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


def _compile(source: str) -> tuple[disk.ObjectCode, Any]:
    names = dict(_namespace())
    exec(compile(source, "<tensorswap kernel>", "exec"), names)  # the source is ours: no user's text is in it
    function: Any = cfunc(SIGNATURE, **mathematics.OPTIONS)(names["kernel"])
    library = function._library
    assert function.address, "the address is asked for first: only then is there object code"
    _, _, (code, bitcode) = library.serialize_using_object_code()
    return disk.ObjectCode(function._wrapper_name, code, bitcode), library


@cache
def compiled(source: str) -> Compiled:
    """The machine code of a kernel; kernels of equal source are one."""
    return Compiled(source)


RUNNER = """def kernel(table, size, step, context):
    # runs size[0] kernels: each row of the table has an address, a count, threads, and where its context starts
    for row in range(size[0]):
        launch(table[4 * row], 0, table[4 * row + 1], size[1] + 8 * table[4 * row + 3], table[4 * row + 2])
"""


@cache
def runner() -> Any:
    """The compiled loop over a table of kernels."""
    return POINTER(compiled(RUNNER).address)


def run(table: np.ndarray[Any, Any], words: np.ndarray[Any, Any]) -> None:
    """Runs the kernels of a table on their contexts, in one call."""
    size = np.array([len(table), words.__array_interface__["data"][0]], np.int64)
    runner()(table.__array_interface__["data"][0], size.__array_interface__["data"][0], None, None)
