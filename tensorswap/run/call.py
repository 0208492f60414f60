"""Calls of one program: what was checked and compiled for inputs of the same types and shapes is not done again."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..interpret import reference
from ..language import ir
from ..plan.table import PlanTable, row
from .arguments import Bound, bind
from .execute import Executable
from .safe import gathers, needs_interpreter

Array = NDArray[Any]
Signature = tuple[Any, ...]


@dataclass(frozen=True)
class Prepared:
    """An executable, or the reason why there is none; `values` says that other values need another check."""

    executable: Executable | None
    reason: str | None
    values: bool


class Caller:
    """Runs a program, compiled where that is safe, interpreted where it is not."""

    def __init__(self, loops: ir.Loops, check: Callable[[Mapping[str, Any]], None]) -> None:
        self.loops = loops
        self.check = check  # of the program that this one is a derivative of
        self.prepared: dict[Signature, Prepared] = {}

    def __call__(self, arguments: Mapping[str, Any]) -> dict[str, Array]:
        signature = _signature(arguments)
        known = self.prepared.get(signature) if signature is not None else None
        if known is not None and known.executable is not None and not known.values:
            return known.executable.run({name: arguments[name] for name in self.loops.inputs})
        self.check(arguments)
        bound = bind(self.loops, arguments)
        if known is None:
            known = self.prepare(bound)
            if signature is not None:
                self.prepared[signature] = known
        if known.executable is None:
            return reference.run(bound.loops, bound.arrays, bound.sizes, bound.kinds, bound.dtype)
        reference.check(bound.loops, bound.arrays, bound.sizes, bound.kinds)
        return known.executable.run(bound.arrays)

    def plan(self, arguments: Mapping[str, Any]) -> PlanTable:
        """The kernels that a call with these arguments runs."""
        bound = bind(self.loops, arguments)
        known = self.prepare(bound)
        if known.executable is None:
            return PlanTable((), 0, known.reason)
        made = known.executable
        rows = [
            row(k.statements, k.parallel, k.why, made.sizes, bound.dtype.itemsize) for k in known.executable.kernels
        ]
        memory = sum(math.prod(made.sizes.shapes[t]) for t in made.loops.written) * bound.dtype.itemsize
        return PlanTable(tuple(rows), memory)

    def source(self, arguments: Mapping[str, Any]) -> str:
        """The generated Numba source of a call with these arguments."""
        known = self.prepare(bind(self.loops, arguments))
        if known.executable is None:
            return f"# interpreted: {known.reason}\n"
        return "\n\n".join(kernel.source for kernel in known.executable.kernels)

    def prepare(self, bound: Bound) -> Prepared:
        reason = needs_interpreter(bound)
        values = gathers(bound.loops)
        return Prepared(None if reason else Executable(bound, threads()), reason, values)


def threads() -> int:
    return int(os.environ.get("NUMBA_NUM_THREADS", 0)) or os.cpu_count() or 1


def _signature(arguments: Mapping[str, Any]) -> Signature | None:
    """What the checks of a call and its kernels depend on, save values: None if an argument is no plain array."""
    parts = []
    for name, value in arguments.items():
        if type(value) is np.ndarray and value.dtype.isnative:
            parts.append((name, value.shape, value.dtype))
        elif type(value) in (int, float, bool):
            parts.append((name, value if type(value) is int else None, type(value)))
        else:
            return None
    return tuple(parts)
