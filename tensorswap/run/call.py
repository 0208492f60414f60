"""Calls of one program: what was checked and compiled for inputs of the same types and shapes is not done again."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError
from ..interpret import reference
from ..language import ir
from ..language.bound import Bound, ranges_of
from ..language.word import WORD
from ..plan.table import PlanTable, row
from .again import Again, can_be_made
from .arguments import bind, defaults
from .execute import Executable
from .safe import needs_interpreter
from .source import source

Array = NDArray[Any]
Signature = tuple[Any, ...]


@dataclass
class Prepared:
    """An executable, or the reason why there is none, and what the check of the last call showed.

    Accesses that are in bounds for gathered indices between two numbers are so for all between them (`ranges`), unless
    it took the values themselves to show it (`exact`). Threads share it, so it never changes once others can see it,
    save `again`, which any of them may set to one as good as another's.
    """

    executable: Executable | None
    reason: str | None
    ranges: dict[str, tuple[int, int]]
    exact: bool = False
    convert: list[int] | None = None  # the inputs that are not arrays as kernels read them, for one signature
    again: Again | None = None

    def covers(self, arguments: Mapping[str, Any]) -> bool:
        """Whether a call with other values needs no other check."""
        if self.executable is None or self.exact:
            return False
        for name, (low, high) in self.ranges.items():
            array = arguments[name]
            if array.size and (array.min() < low or array.max() > high):
                return False
        return True


class Caller:
    """Runs a program, compiled where that is safe, interpreted where it is not."""

    def __init__(
        self,
        loops: ir.Loops,
        check: Callable[[Mapping[str, Any]], bool],
        in_steps: Callable[[Bound], Bound],
        certify: Callable[[Bound, ir.Loops | None], None],
    ) -> None:
        self.loops = loops
        self.certify = certify  # derivative and plan, when they are new
        self.check = check  # of the program that this one is a derivative of
        self.in_steps = in_steps
        self.prepared: dict[Signature, Prepared] = {}
        self.again: Again | None = None  # for a call like the last one
        self.last: dict[str, Any] | None = None  # arguments like those of the last call that was new
        self.standing = defaults(loops)
        self.sizing = {*loops.static_names, *loops.indices}  # names whose numbers are part of the program

    def __call__(self, arguments: Mapping[str, Any]) -> dict[str, Array]:
        again = self.again
        if again is not None:
            results = again(arguments)
            if results is not None:
                return results
        if self.standing:
            arguments = {**self.standing, **arguments}
        signature = self.signature(arguments)
        known = self.prepared.get(signature) if signature is not None else None
        if known is not None and known.executable is not None and known.covers(arguments):
            if can_be_made(known.executable, arguments, known.ranges):
                self.again = known.again = known.again or Again(known.executable, arguments, known.ranges)
            return known.executable.run(arguments, known.convert)
        exact = self.check(arguments)
        bound = bind(self.loops, arguments)
        self.last = {name: _like(value) for name, value in arguments.items()}
        if known is None or known.executable is None or needs_interpreter(bound):
            known = self.prepare(bound)
            self.certify(bound, None if known.executable is None else known.executable.loops)
        if known.executable is None:
            return reference.run(bound)
        exact = reference.check(bound) or exact
        executable = known.executable
        if signature is not None:
            convert = executable.conversions(arguments)
            self.prepared[signature] = Prepared(executable, None, ranges_of(arguments), exact, convert)
        return executable.run(bound.arrays)

    def signature(self, arguments: Mapping[str, Any]) -> Signature | None:
        """What checks and kernels depend on, save the values of inputs: None if an argument is no plain array."""
        parts: list[Any] = []
        for name, value in arguments.items():
            kind = type(value)
            if kind is np.ndarray:
                parts += (name, value.shape, value.strides, value.dtype)
            elif kind is int and name in self.sizing:
                parts += (name, value)
            elif kind in (float, bool) or (kind is int and -WORD <= value <= WORD):
                parts += (name, kind)
            else:
                return None
        return tuple(parts)

    def plan(self, arguments: Mapping[str, Any]) -> PlanTable:
        """The kernels that a call with these arguments runs."""
        bound = bind(self.loops, arguments)
        known = self.prepare(bound)
        if known.executable is None:
            return PlanTable((), reason=known.reason)
        made = known.executable
        rows = [
            row(k.nest, made.sizes, bound.dtype.itemsize) for k in made.kernels if k.nest.statements or k.nest.joins
        ]
        places, workspace = made.buffers
        return PlanTable(
            tuple(rows),
            sum(math.prod(made.sizes.shapes[t]) * made.stored(t).itemsize for t in made.loops.outputs),
            workspace,
            tuple(name for name in places if name in made.loops.written),
            "run by numpy's matrix product, which wins at these sizes" if made.products else "",
        )

    def source(self, arguments: Mapping[str, Any]) -> str:
        """The generated Numba source of a call with these arguments."""
        known = self.prepare(bind(self.loops, arguments))
        if known.executable is None:
            return f"# interpreted: {known.reason}\n"
        return source(known.executable)

    def for_export(self, arguments: Mapping[str, Any]) -> Executable:
        """The kernels of a call with these arguments, for as many threads as there will be."""
        bound = bind(self.loops, {**self.standing, **arguments})
        reason = needs_interpreter(bound)
        if reason:
            raise ArgumentError(f"this program cannot be written as kernels: {reason}")
        return Executable(self.in_steps(bound), 2)

    def prepare(self, bound: Bound) -> Prepared:
        reason = needs_interpreter(bound)
        return Prepared(None if reason else Executable(self.in_steps(bound), threads()), reason, {})


def _like(value: Any) -> Any:
    """An array of the same type and shape without its memory, or the number itself."""
    return np.broadcast_to(np.zeros((), value.dtype), value.shape) if isinstance(value, np.ndarray) else value


def threads() -> int:
    """How many threads share a kernel: as many as Numba's pool would have."""
    asked = os.environ.get("NUMBA_NUM_THREADS")
    if asked is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not asked.isascii() or not asked.isdigit() or not int(asked):
        raise ArgumentError(
            f"NUMBA_NUM_THREADS is {asked[:80]!r}, which is no number of threads", hint="NUMBA_NUM_THREADS=2"
        )
    return int(asked)
