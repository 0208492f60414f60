"""Within: a program whose calls keep to a limit of memory. It is called as the program is.

What fits as it is runs as it is. A derivative of a recurrence keeps some of its states and computes the others again.
Any other program runs in shards of an index, one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..arrays import Array
from ..cluster.cutting import NotCut, other_indices
from ..cluster.serial import Serial
from ..cluster.shard_program import Shard
from ..cluster.sharded import OfProgram, Sharded
from ..errors import LimitError
from ..interpret import reference
from ..language import ir
from ..language.bound import Bound
from ..lazy import cached_property
from ..plan.table import PlanTable
from ..program import Program, shapes_as_arrays
from ..room import bytes_of, shown
from ..rules.activity import check_of
from ..rules.derivation import Adjoint, Gradient
from ..rules.derived_names import next_suffix
from ..run.arguments import as_array, bind, defaults, outlines
from .chain import Chain, Part, Run, Turns, viewed
from .checkpoints import computed
from .recurrence import divide_steps, recurrences

PROBED = 64  # steps of the stretch from which the memory of others follows
WORTH = 1.05  # a stretch may be this much dearer if it is longer: each costs a call


@dataclass(frozen=True)
class BudgetPlan:
    """How a call keeps to its limit. Prints as some lines."""

    limit: int
    needed: int  # bytes
    as_it_is: int  # bytes that the call would need without a limit
    how: str
    forward: float  # how often each step is computed, besides its adjoint

    def __str__(self) -> str:
        lines = [f"memory: {shown(self.needed)} of the {shown(self.limit)} allowed; {shown(self.as_it_is)} as it is"]
        return "\n".join((*lines, self.how))

    __repr__ = __str__


@dataclass(frozen=True)
class Way:
    """How calls of one signature run: as they are, as a chain, or in shards."""

    plan: BudgetPlan
    types: Mapping[str, np.dtype[Any]] = field(default_factory=dict)  # of the results of a chain
    chain: Chain | None = None
    shards: Sharded | None = None


class Within(OfProgram):
    """A program with a limit of memory: `p.within("64 MB")` gives one, and so does `p.grad(memory="64 MB")`."""

    def __init__(self, program: Program, limit: int) -> None:
        self.program, self.limit = program, limit
        self.ways: dict[tuple[Any, ...], Way] = {}

    def __repr__(self) -> str:
        return f"<within {shown(self.limit)}: {self.program!r}>"

    def plan(self, mapping: Mapping[str, Any] | None = None, /, **arrays: Any) -> BudgetPlan:
        """How a call with these arrays (or shapes) keeps to the limit, and what that costs."""
        return self._way(shapes_as_arrays(self.program._arguments(mapping, arrays))).plan

    def __call__(self, mapping: Mapping[str, Any] | None = None, /, **arrays: Any) -> Any:
        """Runs the program. One output: that array; several: a dict by name."""
        arguments = self.program._arguments(mapping, arrays)
        way = self._way(arguments)
        if way.shards is not None:
            return way.shards(arguments)
        if way.chain is None:
            return self.program(arguments)
        found = self._chained(way.chain, arguments)
        results = {name: np.asarray(array, way.types[name]) for name, array in found.items()}
        return results if self.program._single is None else results[self.program._single]

    def _way(self, arguments: Mapping[str, Any]) -> Way:
        arrays = {*self.program.loops.inputs, *self.program.loops.known}
        key = tuple((name, _signature(name, v) if name in arrays else repr(v)) for name, v in arguments.items())
        if key not in self.ways:
            self.ways[key] = self._chosen(arguments)
        return self.ways[key]

    def _chosen(self, arguments: Mapping[str, Any]) -> Way:
        program = self.program._for_call(arguments)
        whole = memory_of(program, arguments)
        if whole <= self.limit:
            return Way(BudgetPlan(self.limit, whole, whole, "it runs as it is", 1.0))
        reasons: list[str] = []
        origin, derivation = _origin(program, arguments), self.program._derivation
        if origin is not None and isinstance(derivation, Adjoint | Gradient):
            needed = {*origin.inputs, *derivation.wrt} - {*arguments, *defaults(origin.loops)}
            if needed:
                reasons.append(f"not in stretches without {', '.join(sorted(needed))}")
                return self._in_shards(program, arguments, whole, reasons)
            bound = bind(origin.loops, _own(origin, arguments))
            for index in recurrences(bound):
                try:
                    recurrence = divide_steps(bound, index, _wanted(derivation, bound))
                except NotCut as error:
                    reasons.append(f"not in stretches of {index}: {error.reason}")
                    continue
                chain = Chain(recurrence, bound, (), 1)
                found = _Budget(self.limit, whole, bound, derivation.wrt, chain).way()
                if isinstance(found, Way):
                    types = {name: result.dtype for name, result in outlines(program.loops, arguments).items()}
                    return replace(found, types=types)
                reasons.append(found)
        return self._in_shards(program, arguments, whole, reasons)

    def _in_shards(self, program: Program, arguments: Mapping[str, Any], whole: int, reasons: list[str]) -> Way:
        bound = bind(program.loops, arguments)
        for index in other_indices(bound, ""):
            sharded = Sharded(program, [index], None, Serial(), self.limit, None)
            try:
                plan = sharded.plan(arguments)
            except LimitError:
                reasons.append(f"not in shards of {index}: one alone needs more")
                continue
            how = f"in {plan.shards} shards of {index}, one after the other"
            if sum(row.bytes for row in plan.outputs) > self.limit // 2:
                how += "; the results lie in files"
            return Way(BudgetPlan(self.limit, plan.memory, whole, how, 1.0), shards=sharded)
        raise LimitError(
            f"this run needs {shown(whole)} of memory, more than the {shown(self.limit)} allowed"
            + "".join(f"; {reason}" for reason in reasons),
            hint="allow more, or run it on smaller arrays",
        )

    def _chained(self, chain: Chain, arguments: Mapping[str, Any]) -> dict[str, Any]:
        program = self.program._for_call(arguments)
        origin, derivation = _origin(program, arguments), self.program._derivation
        assert origin is not None, "others have no chain"
        assert isinstance(derivation, Adjoint | Gradient)
        bound = bind(origin.loops, _own(origin, arguments))
        reference.check(bound, values=False)
        values = {name: arguments[name] if _is_number(arguments.get(name)) else a for name, a in bound.arrays.items()}
        suffix = next_suffix(origin.loops, "grad")
        run = Run(chain, values, derivation.wrt)
        run(lambda outputs: _seeds(derivation, arguments, suffix, outputs))
        found = {f"{name}.{suffix}": run.gradient(name) for name in derivation.wrt}
        return {name: found[name] if name in found else run.outputs[name] for name in program.outputs}


def within(program: Program, memory: str | int) -> Within:
    """`p.within("64 MB")`."""
    return Within(program, bytes_of("memory", memory))


def memory_of(program: Program, arguments: Mapping[str, Any]) -> int:
    """Bytes that a call takes for its results and what is kept in between."""
    table: PlanTable = program.plan(arguments)
    if table.reason is None:
        return table.results + table.workspace
    bound = bind(program.loops, shapes_as_arrays(arguments))
    return sum(math.prod(bound.sizes.shapes[name]) * bound.dtype.itemsize for name in bound.loops.written)


@dataclass
class _Budget:
    """Finds how long stretches are, and how many states are kept."""

    limit: int
    whole: int
    bound: Bound
    wrt: Sequence[str]
    chain: Chain

    def way(self) -> Way | str:
        """The cheapest way that fits, or why there is none."""
        self.count = self.chain.recurrence.division.extent
        small = max(min(PROBED, self.count) // 2, 1)
        first, second = self.stretch(small), self.stretch(2 * small if 2 * small <= self.count else small)
        slope = max(second - first, 0) / small
        best: tuple[float, int, int] | None = None
        length = self.count
        while length > 1:
            length = max(int(length * 0.8), 1)
            places = self.places(length, first + slope * (length - small))
            if places >= 1:
                cost = computed(-(-self.count // length), places) * length / self.count
                if best is None or cost * WORTH < best[0]:
                    best = cost, length, places
        if best is None:
            least = self.fixed + max(self.stretch(1), self.ends) + 2 * self.state
            return f"in stretches of {self.chain.recurrence.index} it needs {shown(least)} at least"
        return self.checked(best[1])

    def checked(self, length: int) -> Way | str:
        """The guess, with the memory that its own plan tells."""
        while True:
            needed = self.stretch(length)
            places = self.places(length, needed)
            if places >= 1:
                break
            if length == 1:
                least = self.fixed + max(needed, self.ends) + 2 * self.state
                return f"in stretches of {self.chain.recurrence.index} it needs {shown(least)}"
            length = max(int(length * 0.8), 1)
        recurrence, count = self.chain.recurrence, self.count
        ends = [(start, min(start + length, count)) for start in range(0, count, length)]
        ranges = [(count - stop, count - start) for start, stop in ends] if recurrence.down else ends
        forward = computed(len(ranges), places) * length / count
        total = int(self.fixed + max(needed, self.ends) + (places + 1) * self.state)
        how = (
            f"{recurrence.index} in {len(ranges)} stretches of {length} steps; {places} states of {shown(self.state)} "
            f"are kept; steps are computed {forward:.1f} times besides their adjoints"
        )
        plan = BudgetPlan(self.limit, total, self.whole, how, forward)
        return Way(plan, chain=Chain(recurrence, _outlined(self.bound), ranges, places))

    def places(self, length: int, needed: float) -> int:
        left = self.limit - self.fixed - max(needed, self.ends)
        stretches = -(-self.count // length)
        return stretches if not self.state and left >= 0 else min(int(left // max(self.state, 1)) - 1, stretches)

    @cached_property
    def state(self) -> int:
        return sum(self.bytes(name) for name in self.chain.recurrence.state)

    @cached_property
    def fixed(self) -> int:
        """What is there all the time: gradients, both as they are and as a stretch gives them, and whole tensors; and
        the gradients of what is put together of stretches and read behind them."""
        recurrence = self.chain.recurrence
        made = [name for name in recurrence.made_before if name not in recurrence.state]
        read = {access.tensor for s in ir.Loops(recurrence.after).statements for access in s.reads}
        seeds = [name for name in (*recurrence.whole, *recurrence.sums.values()) if name in read]
        results = [name for name in recurrence.outputs if name not in recurrence.whole and name not in made]
        once = (*made, *recurrence.whole, *recurrence.sums, *seeds, *results)
        return 2 * sum(map(self.bytes, (*self.wrt, *made))) + sum(map(self.bytes, once))

    @cached_property
    def ends(self) -> int:
        """Bytes of what comes before the steps, or after them, and its adjoint, whichever are more."""
        recurrence = self.chain.recurrence
        parts = [recurrence.first_part()] if recurrence.before else []
        parts += [recurrence.last_part()] if recurrence.after else []
        return max((self.part(made) for made in parts), default=0)

    def bytes(self, name: str) -> int:
        return int(math.prod(self.shape(name)) * self.chain.dtype(name).itemsize)

    def shape(self, name: str) -> tuple[int, ...]:
        return self.chain.recurrence.division.sizes.shapes[name]

    def stretch(self, length: int) -> int:
        """Bytes of the adjoint of a stretch, of what it reads as copies, and of the seeds that it is given."""
        start = min(length, self.count - length)
        made = self.chain.recurrence.stretch(start, start + length)
        arrays = [self.outline(made, name) for name in made.views]
        seeds = sum(math.prod(made.shapes[name]) * self.chain.dtype(name).itemsize for name in made.loops.outputs)
        return self.part(made) + sum(a.nbytes for a in arrays if isinstance(a, np.ndarray) and a.ndim) + seeds

    def part(self, made: Shard) -> int:
        """Bytes of the adjoint of a part, or of the part if it has none."""
        part = Part(Program(made.loops), Turns())
        given = {**{name: self.outline(made, name) for name in made.views}, **made.numbers, **made.sizes}
        recurrence = self.chain.recurrence
        seeds = [name for name in part.program.outputs if self.chain.dtype(name).kind == "f"]
        inner = {*recurrence.state, *recurrence.made_before, *recurrence.owners}
        wanted = [name for name, view in made.views.items() if view.tensor in {*self.wrt, *inner}]
        adjoint = part.adjoint(wanted, seeds)
        if adjoint is None:
            return memory_of(part.program, given)
        ones = {f"{n}.{part.suffix}": np.broadcast_to(self.chain.dtype(n).type(1), made.shapes[n]) for n in seeds}
        known = {n: value for n, value in {**given, **ones}.items() if n in adjoint.loops.names or n in adjoint.inputs}
        return memory_of(adjoint, known)

    def outline(self, made: Shard, name: str) -> Any:
        view = made.views[name]
        array: Array | None = self.bound.arrays.get(view.tensor)
        if array is None:
            array = np.broadcast_to(self.chain.dtype(view.tensor).type(0), self.shape(view.tensor))
        return viewed(array, view)


def _outlined(bound: Bound) -> Bound:
    """The same without the elements of its arrays: a way is kept for longer than they are."""
    return replace(bound, arrays={n: np.broadcast_to(a.dtype.type(0), a.shape) for n, a in bound.arrays.items()})


def _origin(program: Program, arguments: Mapping[str, Any]) -> Program | None:
    """The program behind a derivative, without what a call leaves out."""
    origin = program._origin
    return None if origin is None else origin._for_call(_own(origin, arguments))


def _own(origin: Program, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of the program behind a derivative."""
    loops = origin.loops
    known = {*loops.inputs, *loops.static_names, *loops.indices, *loops.options}
    return {name: value for name, value in arguments.items() if name in known}


def _wanted(derivation: Adjoint | Gradient, bound: Bound) -> tuple[str, ...]:
    """The tensors that a derivative starts from."""
    return (derivation.of,) if isinstance(derivation, Gradient) else check_of(bound.loops, derivation.of)


def _seeds(
    derivation: Adjoint | Gradient, arguments: Mapping[str, Any], suffix: str, outputs: Mapping[str, Any]
) -> dict[str, Array]:
    if isinstance(derivation, Gradient):
        value = np.asarray(outputs[derivation.of])
        return {derivation.of: np.ones(value.shape, value.dtype)}
    return {name: np.asarray(arguments[f"{name}.{suffix}"]) for name in outputs if f"{name}.{suffix}" in arguments}


def _is_number(value: Any) -> bool:
    return type(value) in (bool, int, float)


def _signature(name: str, value: Any) -> Any:
    """What the way of a call depends on. Plain numbers are of a type of their own, whatever they are."""
    if _is_number(value):
        return type(value).__name__
    known = value if hasattr(value, "dtype") and hasattr(value, "shape") else as_array(name, value)
    return tuple(known.shape), str(known.dtype)
