"""Kernel IR -> machine code: one C function for each kernel, with one signature, from the cache where it holds it."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any

from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys

from ..kernel import llvm, python
from ..kernel.ir import Body, Kernel, Memory
from . import cache as disk
from .interrupt import interruptibly
from .launch import launch, start_threads

Function = tuple[list[Memory], Body]  # of pointers to words


class Compiled:
    """Machine code in memory, which lives as long as this object."""

    def __init__(self, source: str, function: Callable[[], Function]) -> None:
        start_threads()
        kept = disk.load(source)
        self.library = None if kept is None else _linked(kept)
        self.fresh = self.library is None
        if self.library is None:
            made, self.library = _compile(source, *function())
            disk.save(source, made)
        self.address = int(self.library.get_pointer_to_function(disk.symbol(source)))


@cache
def _codegen() -> Any:
    """Numba's linker."""
    return cpu_target.target_context.codegen()


def _linked(kept: disk.ObjectCode) -> Any | None:
    """The library of kept code, or None if it does not hold the function."""
    try:
        library = _codegen().unserialize_library((kept.symbol, "object", (kept.code, kept.bitcode)))
        return library if library.get_pointer_to_function(kept.symbol) else None
    except Exception:  # whatever the linker says of code that is not ours: it is compiled again
        return None


@cache
def _start_compiler() -> None:
    """Numba's own functions and its runtime: code from the cache needs neither, and they take long to load."""
    context = cpu_target.target_context
    rtsys.initialize(context)
    context.refresh()


def _compile(source: str, parameters: list[Memory], body: Body) -> tuple[disk.ObjectCode, Any]:
    _start_compiler()
    symbol = disk.symbol(source)
    library = _codegen().create_library(symbol)
    library.enable_object_caching()
    module = library.create_ir_module(symbol)
    llvm.write(module, symbol, parameters, body, launch)
    library.add_ir_module(module)
    library.finalize()
    assert library.get_pointer_to_function(symbol), "the address is asked for first: only then is there object code"
    _, _, (code, bitcode) = library.serialize_using_object_code()
    return disk.ObjectCode(symbol, code, bitcode), library


kernels: dict[str, Compiled] = {}  # of this process, by the text of each


def compiled(kernel: Kernel) -> Compiled:
    """The machine code of a kernel."""
    return function(python.kernel(kernel), lambda: llvm.entry(kernel))


def function(source: str, made: Callable[[], Function]) -> Compiled:
    """The machine code of a function that a text tells apart from all others, whichever thread asks first."""
    found = kernels.get(source)
    return interruptibly(lambda: _one(source, made), kernels=False) if found is None else found  # LLVM hears no signal


@global_compiler_lock  # type: ignore[untyped-decorator]  # Numba is untyped
def _one(source: str, made: Callable[[], Function]) -> Compiled:
    if source not in kernels:  # while this thread waited
        kernels[source] = Compiled(source, made)
    return kernels[source]


if hasattr(os, "register_at_fork"):  # a fork waits for the kernel at hand: its child could not open the lock
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )
