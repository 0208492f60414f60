"""What compiled code calls: on the CPU a foreign function on the memory of its arguments, elsewhere a callback."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import jax
import numpy as np
from jax.interpreters import mlir

from ...arrays import Array
from ...errors import ArgumentError
from .foreign_call import TARGETS, Place, Target, handler

NAME = "tensorswap_call"

Run = Callable[[list[Array]], Sequence[Array]]


@cache
def registered() -> bool:
    """Whether XLA takes the handler: it asks for its version, and refuses one that is too old."""
    try:
        jax.ffi.register_ffi_target(NAME, jax.ffi.pycapsule(handler), platform="cpu")
    except Exception:  # an XLA that this handler was not made for: a callback serves as well, if slower
        return False
    return True


def through_foreign_call(context: Any, run: Run, identity: str, *operands: Any) -> Any:
    """The lowering on the CPU. The identity tells the call apart from all others, in any process: JAX keeps compiled
    code on disk, and what it compiled asks for its target by that name."""
    if not all(isinstance(size, int) for aval in (*context.avals_in, *context.avals_out) for size in aval.shape):
        raise ArgumentError(
            "a program is compiled for sizes that are numbers", hint="export it without symbolic shapes"
        )
    if not registered():
        return through_callback(context, run, *operands)
    places = [tuple(Place(aval.shape, aval.dtype) for aval in avals) for avals in (context.avals_in, context.avals_out)]
    told = f"{identity} {[(place.shape, place.dtype.str) for several in places for place in several]}"
    key = hashlib.sha256(told.encode()).hexdigest()
    TARGETS[key.encode()] = Target(run, *places)
    return jax.ffi.ffi_lowering(NAME)(context, *operands, call=key)


def through_callback(context: Any, run: Run, *operands: Any) -> Any:
    """The lowering for every platform: XLA brings the arguments to the host."""
    return mlir.lower_fun(callback(run, context.avals_out), multiple_results=True)(context, *operands)


def callback(run: Run, avals: Sequence[Any]) -> Callable[..., Any]:
    """The call as a callback of JAX's."""
    results = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals]

    def called(*arrays: Any) -> list[Array]:
        made = run([np.asarray(array) for array in arrays])
        return [np.asarray(array, result.dtype) for array, result in zip(made, results, strict=True)]

    return lambda *arrays: jax.pure_callback(called, results, *arrays)
