"""Launch: one kernel over a range, directly or in parts on Numba's own thread pool."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

from llvmlite import binding
from llvmlite import ir as llvm
from numba.core import cgutils
from numba.np.ufunc.parallel import _launch_threads, get_thread_count

from ..kernel.llvm import STOP_WORD
from .interrupt import STOP

BYTE, WORD = llvm.IntType(8).as_pointer(), llvm.IntType(64)


def launch(builder: Any, args: Sequence[Any]) -> None:
    """Writes launch(kernel, parts, context, threads): runs kernel(start, size, step, context) over all parts, on
    several threads if there are."""
    kernel, count, data, threads = args
    start, size, step = (cgutils.alloca_once(builder, t) for t in (BYTE, WORD, WORD))
    builder.store(builder.inttoptr(WORD(0), BYTE), start)  # advanced by `step` bytes an element: the first index
    builder.store(count, size)
    builder.store(llvm.Constant(WORD, 1), step)
    pool_type = llvm.FunctionType(
        llvm.VoidType(),
        [BYTE, BYTE.as_pointer(), WORD.as_pointer(), WORD.as_pointer(), BYTE, WORD, WORD, llvm.IntType(32)],
    )
    pool = cgutils.get_or_insert_function(builder.module, pool_type, "numba_parallel_for")
    kernel_type = llvm.FunctionType(llvm.VoidType(), [BYTE.as_pointer(), WORD.as_pointer(), WORD.as_pointer(), BYTE])
    several = builder.icmp_signed(">", threads, llvm.Constant(WORD, 1))
    with builder.if_else(several) as (parallel, serial):
        with parallel:
            builder.call(
                pool,
                [
                    builder.inttoptr(kernel, BYTE),
                    start,
                    size,
                    step,
                    builder.inttoptr(data, BYTE),
                    llvm.Constant(WORD, 0),
                    llvm.Constant(WORD, 1),
                    builder.trunc(threads, llvm.IntType(32)),
                ],
            )
        with serial:
            function = builder.inttoptr(kernel, kernel_type.as_pointer())
            builder.call(function, [start, size, step, builder.inttoptr(data, BYTE)])


@cache
def start_threads() -> None:
    """Starts Numba's pool, and makes its entry and the word that stops kernels known to LLVM."""
    _launch_threads()
    binding.add_symbol(STOP_WORD, ctypes.addressof(STOP))


def pool_size() -> int:
    """The threads of Numba's pool: it waits for ever for one that it does not have."""
    return int(get_thread_count())
