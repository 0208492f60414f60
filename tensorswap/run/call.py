"""Calls of one program: what was checked and compiled for inputs of the same types and shapes is not done again."""

from __future__ import annotations

import ctypes
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import Array
from ..errors import ArgumentError, BoundsError, SwapWarning
from ..forks import NO_FORK
from ..interpret import reference
from ..language import ir
from ..language.bound import Bound, ranges_of
from ..language.word import WORD
from ..rules.written_once import shown_by_text
from .again import Again, Way, can_be_made
from .alone import is_alone
from .arguments import as_array, bind, defaults
from .cores import cores
from .kept import Plans
from .products import Products, by_library
from .ready import Ready, Runs, Undecided
from .safe import deciding, joined, ranges_of_types, secured

if TYPE_CHECKING:
    from ..plan.table import PlanTable
    from .execute import Executable
    from .kernel_times import KernelTime

Signature = tuple[Any, ...]
PLAIN = (np.ndarray, float, int, bool)


@dataclass
class Prepared:
    """What runs calls, or the reason why there is nothing, and the whole numbers that it is for.

    Threads share it, so it never changes once others can see it, save `again`, which any of them may set to one as good
    as another's.
    """

    runs: Runs | None
    reason: str | None
    plans: Plans | None  # what it was made of
    ranges: dict[str, tuple[int, int]]
    exact: bool = False  # the program that this is a derivative of must look at the values of each call
    convert: list[int] | None = None  # the inputs that are not arrays as kernels read them, for one signature
    again: Again | None = None

    def covers(self, arguments: Mapping[str, Any]) -> bool:
        """Whether a call with other values needs no other check."""
        if self.runs is None or self.exact:
            return False
        for name, (low, high) in self.ranges.items():
            value = arguments[name]
            if type(value) is int:
                if not low <= value <= high:
                    return False
            elif value.size and (value.min() < low or value.max() > high):
                return False
        return True


class Caller:
    """Runs a program, compiled where that is safe, interpreted where it is not."""

    def __init__(
        self,
        loops: ir.Loops,
        origin: Callable[[Mapping[str, Any]], Bound | None],
        in_steps: Callable[[Bound], Bound],
        certify: Callable[[Bound, ir.Loops | None], None],
        certifies: Callable[[], bool],
    ) -> None:
        self.loops = loops
        self.certifies = certifies
        self.certify = certify  # derivative and plan, when they are new
        self.origin = origin  # the program that this one is a derivative of, bound to the same call
        self.in_steps = in_steps
        self.prepared: dict[Signature, Prepared] = {}
        self.again: Again | None = None  # for a call like the last one
        self.by_library: Callable[[Way, bool, ctypes.c_int64], Way] | None = None  # the same, for large products
        self.last: dict[str, Any] | None = None  # arguments like those of the last call that was new
        self.standing = defaults(loops)
        self.sizing = {*loops.static_names, *loops.indices}  # names whose numbers are part of the program
        self.told = False  # that calls are interpreted
        self.foreign = False  # whether the last call had something else than arrays and numbers of Python's

    def __call__(self, arguments: Mapping[str, Any]) -> dict[str, Array]:
        try:
            again = self.again
            if self.foreign:
                arguments = self.plain(arguments)
            results = None if again is None else again(arguments)
            return self.compiled(arguments) if results is None else results
        except Undecided:
            return self.interpreted(arguments, "kernels met something that they cannot decide")

    def compiled(self, arguments: Mapping[str, Any]) -> dict[str, Array]:
        plain = self.plain(arguments)
        if plain is not arguments and self.again is not None:
            results = self.again(plain)
            if results is not None:
                return results
        arguments = plain
        signature = self.signature(arguments)
        known = self.prepared.get(signature) if signature is not None else None
        if known is not None and known.runs is not None and known.covers(arguments):
            runs = known.runs
            if isinstance(runs, Ready) and can_be_made(runs, arguments, known.ranges):
                self.again = known.again = known.again or Again(runs, arguments, known.ranges)
            elif isinstance(runs, Products) and not known.convert and not known.ranges:
                self.by_library = runs.way(arguments)
            return runs.run(arguments, known.convert)
        bound = bind(self.loops, arguments)
        self.last = {name: _like(value) for name, value in arguments.items()}
        try:
            known = self.prepare(bound, self.origin(arguments), known)
        except BoundsError:
            return self.interpreted(arguments, "an access is out of bounds")  # of several, it tells the first
        if known.runs is None:
            return self.interpreted(arguments, known.reason or "")
        if signature is not None:
            self.prepared[signature] = replace(known, convert=known.runs.conversions(arguments))
        return known.runs.run(bound.arrays)

    def way(self, otherwise: Way, single: bool, watched: ctypes.c_int64) -> Way:
        """What takes the next calls: a direct call for those like the last, if there can be one, or what takes any."""
        again = self.again
        if again is None:
            return otherwise if self.by_library is None else self.by_library(otherwise, single, watched)
        if again.direct is None:
            with NO_FORK:
                from .direct import direct  # it asks for LLVM

                again.direct = direct(again, otherwise, single, watched) or otherwise
        return again.direct

    @NO_FORK
    def direct_or_nothing(self, single: bool, watched: ctypes.c_int64) -> Way | None:
        """A direct call for those like the last, which gives None for others; None if there can be none."""
        from .direct import direct  # as above

        return None if self.again is None else direct(self.again, _nothing, single, watched)

    def release(self) -> None:
        """Gives up the memory that waits for the next calls."""
        self.again = None
        for known in list(self.prepared.values()):
            known.again = None
            if known.runs is not None:
                known.runs.release()

    def interpreted(self, arguments: Mapping[str, Any], reason: str) -> dict[str, Array]:
        """Runs the call point by point, and says once that it does."""
        arguments = {**self.standing, **arguments}
        origin = self.origin(arguments)
        if origin is not None:
            check_origin(origin)
        bound = bind(self.loops, arguments)
        results = reference.run(bound)
        if not self.told and all(bound.sizes.index.values()):  # an empty index leaves nothing to be slow
            self.told = True
            warnings.warn(f"a call is interpreted, which is slow: {reason}", SwapWarning, stacklevel=5)
        return results

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

    def plain(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """All arguments, as arrays and numbers of Python's if they can be such."""
        found = {**self.standing, **arguments} if self.standing else arguments
        other = [name for name, value in found.items() if type(value) not in PLAIN]
        self.foreign = bool(other) or found is not arguments
        return {**found, **{name: self.as_plain(name, found[name]) for name in other}} if other else found

    def as_plain(self, name: str, value: Any) -> Any:
        if type(value) is np.int64 and name in self.sizing:
            return int(value)
        if name in self.loops.inputs:
            return as_array(name, value)
        whole = isinstance(value, np.integer) or (isinstance(value, np.ndarray) and not value.ndim)
        return int(value) if name in self.sizing and whole and value.dtype.kind in "iu" else value

    def plan(self, arguments: Mapping[str, Any]) -> PlanTable:
        """The kernels that a call with these arguments runs."""
        return plan_of(self.prepare(bind(self.loops, arguments), looking=True))

    def executable(self, arguments: Mapping[str, Any]) -> Executable:
        """The kernels of a call with these arguments."""
        known = self.prepare(bind(self.loops, {**self.standing, **arguments}), looking=True)
        if known.plans is None:
            raise ArgumentError(f"this call has no kernels, it is interpreted: {known.reason}")
        return known.plans.executable

    def kernel_times(self, arguments: Mapping[str, Any], seconds: float) -> list[KernelTime]:
        """How long each kernel of a call with these arguments takes."""
        with NO_FORK:
            from .kernel_times import kernel_times  # it asks for Numba

        bound = bind(self.loops, {**self.standing, **arguments})
        return kernel_times(self.executable(arguments), bound.arrays, seconds)

    def source(self, arguments: Mapping[str, Any]) -> str:
        """The generated Numba source of a call with these arguments."""
        return source_of(self.prepare(bind(self.loops, arguments), looking=True))

    @NO_FORK
    def for_export(self, arguments: Mapping[str, Any]) -> Executable:
        """The kernels of a call with arrays like these arguments, whatever their values, for as many threads as there
        will be."""
        from .execute import Executable  # as above

        arguments = {**self.standing, **arguments}
        bound, origin = bind(self.loops, arguments), self.origin(arguments)
        reference.check(bound, values=False)
        ranges = ranges_of_types(bound)
        made = secured(self.in_steps(bound), ranges)
        if isinstance(made, str):
            raise ArgumentError(f"this program cannot be written as kernels: {made}")
        if origin is not None:
            made = joined(made, origin, ranges) or made
        return Executable(made.bound, 2, made.scalars, bound.loops.inputs, deciding(made.bound.loops))

    @NO_FORK
    def prepare(
        self, bound: Bound, origin: Bound | None = None, known: Prepared | None = None, *, looking: bool = False
    ) -> Prepared:
        """Kernels for a call. `known` are those for a call of the same signature, which serve if they are the same.
        Who is only `looking` runs none."""
        ranges = ranges_of(bound.arrays, deciding(bound.loops))
        if origin is not None:
            ranges |= ranges_of(origin.arrays, deciding(origin.loops))
        if known is not None:
            ranges = {n: (min(a, known.ranges[n][0]), max(b, known.ranges[n][1])) for n, (a, b) in ranges.items()}
        reference.check(bound, values=False)
        stepped = self.in_steps(bound)
        made = secured(stepped, ranges)
        if isinstance(made, str):
            return Prepared(None, made, None, ranges)
        exact = False
        if origin is not None:
            reference.check(origin, values=False)
            with_origin = joined(made, origin, ranges)
            exact = with_origin is None
            made = with_origin or made
            if exact:
                check_origin(origin)
        if known is not None and known.plans is not None and known.plans.bound.loops == made.bound.loops:
            return replace(known, ranges=ranges, exact=exact, again=None)
        kept = replace(made.bound, arrays={name: _like(array) for name, array in made.bound.arrays.items()})
        plans = Plans(kept, threads(), made.scalars, bound.loops.inputs, self.certifies())
        certify = partial(self.certify, bound)
        if looking:
            certify(plans.executable.loops)
            return Prepared(None, None, plans, ranges, exact)
        runs: Runs | None = by_library(kept)
        if runs is None:
            runs = plans.ready(certify)
        else:
            certify(None)
        return Prepared(runs, None, plans, ranges, exact)


def _nothing(*_: Any, **__: Any) -> None:
    """The answer to calls of another kind."""


@NO_FORK
def plan_of(known: Prepared) -> PlanTable:
    """What runs a call, as a table."""
    from ..plan.table import PlanTable, row  # what plans, and shows plans, is not needed to run one that is kept

    if known.plans is None:
        return PlanTable((), reason=known.reason)
    made = known.plans.executable
    rows = [row(k.nest, made.sizes, made.default.itemsize) for k in made.kernels if k.nest.statements or k.nest.joins]
    places, workspace = made.buffers
    return PlanTable(
        tuple(rows),
        sum(math.prod(made.sizes.shapes[t]) * made.stored(t).itemsize for t in made.loops.outputs),
        workspace,
        tuple(name for name in places if name in made.loops.written),
        "run by numpy's matrix product, which wins at these sizes" if made.products else "",
    )


@NO_FORK
def source_of(known: Prepared) -> str:
    """What runs a call, as a Python file."""
    from .source import source  # as above

    return f"# interpreted: {known.reason}\n" if known.plans is None else source(known.plans.executable)


def check_origin(origin: Bound) -> None:
    """Refuses a derivative where its program would be."""
    if shown_by_text(origin.loops):
        reference.check(origin)
    else:
        reference.run(origin)


def _like(value: Any) -> Any:
    """An array of the same type and shape without its memory, or the number itself."""
    return np.broadcast_to(np.zeros((), value.dtype), value.shape) if isinstance(value, np.ndarray) else value


def threads() -> int:
    """How many threads share a kernel."""
    return 1 if is_alone() else cores()
