"""Source -> machine code: one C function for each kernel, with one signature, kept by the content of its source."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir as llvm
from numba import cfunc, types
from numba.extending import intrinsic

from ..emit import mathematics, tile
from ..emit.expression import TYPES

WORDS = types.CPointer(types.intp)
SIGNATURE = types.void(WORDS, WORDS, WORDS, WORDS)

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
    return {**casts, **pointers, **mathematics.NAMES, **tile.names(), "to_b1": bool, "inf": float("inf")}


class Compiled:
    """A kernel in memory; it lives as long as this object."""

    def __init__(self, source: str) -> None:
        names = dict(_namespace())
        exec(compile(source, "<tensorswap kernel>", "exec"), names)  # the source is ours: no user's text is in it
        self.function = cfunc(SIGNATURE, **mathematics.OPTIONS)(names["kernel"])
        self.address = int(self.function.address or 0)


@cache
def compiled(source: str) -> Compiled:
    """The machine code of a kernel; kernels of equal source are one."""
    return Compiled(source)
