"""Chains: the derivative of a recurrence, stretch by stretch, with few of its states kept.

The way there computes what comes before the steps, one stretch after the other, and what comes after them. The way back
is the chain rule over the adjoint programs of these parts: each takes what the gradient of its results is, and gives
that of what it read.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..arrays import Array
from ..cluster.shard_program import Shard, View
from ..errors import Fault, SwapError
from ..language.bound import Bound
from ..language.types import identity
from ..lazy import cached_property
from ..program import Program
from ..rules.activity import active, default_wrt
from ..rules.derived_names import next_suffix
from .checkpoints import go_back
from .recurrence import Recurrence

Arrays = dict[str, Any]
State = Mapping[str, Array]


class Turns:
    """Runs programs in turn: what one keeps for its next run makes way when another one runs."""

    def __init__(self) -> None:
        self.last: Program | None = None

    def __call__(self, program: Program, arrays: Mapping[str, Any]) -> Arrays:
        last, self.last = self.last, program
        if last is not None and last is not program:
            last._release()
        found = program(arrays)
        return found if len(program.outputs) > 1 else {program.outputs[0]: found}


class Part:
    """A program of a part, forward and backward. Stretches of the same statements share one."""

    def __init__(self, program: Program, turns: Turns) -> None:
        self.program, self.turns = program, turns
        self.adjoints: dict[tuple[frozenset[str], frozenset[str]], Program | None] = {}

    def forward(self, arrays: Mapping[str, Any]) -> Arrays:
        return self.turns(self.program, arrays)

    def adjoint(self, wrt: Iterable[str], of: Iterable[str]) -> Program | None:
        """By those of `wrt` that matter to `of`; None if none does."""
        key = frozenset(wrt), frozenset(of)
        if key not in self.adjoints:
            seeded = tuple(name for name in self.program.outputs if name in key[1])
            known = default_wrt(self.program.loops, seeded) if seeded else ()
            names = tuple(name for name in known if name in key[0])
            self.adjoints[key] = self.program.adjoint(names, seeded) if names else None
        return self.adjoints[key]

    def backward(self, arrays: Mapping[str, Any], wrt: Iterable[str], seeds: Mapping[str, Array]) -> dict[str, Array]:
        """The gradients of what it reads, from those of what it gives."""
        program = self.adjoint(wrt, seeds)
        if program is None:
            return {}
        given = {**arrays, **{f"{name}.{self.suffix}": seed for name, seed in seeds.items()}}
        taken = {name: value for name, value in given.items() if name in program.loops.names or name in program.inputs}
        found = self.turns(program, taken)
        return {name.removesuffix(f".{self.suffix}"): array for name, array in found.items()}

    @cached_property
    def suffix(self) -> str:
        return next_suffix(self.program.loops, "grad")


@dataclass
class Chain:
    """A recurrence cut into stretches, for calls of one signature."""

    recurrence: Recurrence
    bound: Bound  # of a call, for shapes and types alone
    ranges: Sequence[tuple[int, int]]  # the steps of each stretch, in the order in which they run
    places: int  # for states
    parts: dict[bytes, Part] = field(default_factory=dict)
    turns: Turns = field(default_factory=Turns)
    shards: dict[int, tuple[Part, Shard]] = field(default_factory=dict)

    def part(self, made: Shard) -> Part:
        key = pickle.dumps(made.loops)
        if key not in self.parts:
            self.parts[key] = Part(Program(made.loops), self.turns)
        return self.parts[key]

    def stretch(self, number: int) -> tuple[Part, Shard]:
        """The program of a stretch. Most are those of their neighbours, moved on."""
        if number not in self.shards:
            before = [self.shards.get(number - k) for k in (2, 1)]
            moved = None
            if self.recurrence.linear and before[0] and before[1] and before[0][0] is before[1][0]:
                moved = self.moved_on(number, before[0][1], before[1][1])
            if moved is not None:
                self.shards[number] = self.shards[number - 1][0], moved
            else:
                made = self.recurrence.stretch(*self.ranges[number])
                self.shards[number] = self.part(made), made
        return self.shards[number]

    def moved_on(self, number: int, first: Shard, second: Shard) -> Shard | None:
        """What comes after two stretches of the same program, if it is that program again: all of it moves by the same
        steps, and no part of an input meets an end of its axis."""
        lengths = {stop - start for start, stop in self.ranges[number - 2 : number + 1]}
        if len(lengths) > 1:
            return None
        views = {}
        for name, view in second.views.items():
            step = view.start - first.views[name].start
            if view.axis is not None:
                extent = self.recurrence.division.sizes.shapes[view.tensor][view.axis]
                same = view.stop - first.views[name].stop == step
                if not same or not step or view.start + step < 0 or view.stop + step > extent:
                    return None
                view = replace(view, start=view.start + step, stop=view.stop + step)
            views[name] = view
        numbers = {name: 2 * value - first.numbers[name] for name, value in second.numbers.items()}
        return replace(second, views=views, numbers=numbers)

    def unwritten(self, name: str) -> Array:
        """A tensor, or a part of the state, that nothing has written yet."""
        operator, dtype = self.recurrence.along[self.recurrence.owners[name]].operator, self.dtype(name)
        start = 0 if operator == "=" else identity(operator, dtype)
        return np.full(self.recurrence.division.sizes.shapes[name], start, dtype)

    def typed(self, found: Mapping[str, Any]) -> Arrays:
        return {name: np.asarray(array, self.dtype(name)) for name, array in found.items()}

    def dtype(self, name: str) -> np.dtype[Any]:
        """The type that the whole program gives to a tensor, or to that of which it is a part. A program of a part does
        not know it: it has fewer inputs."""
        kind = self.bound.types.tensors[self.recurrence.owners.get(name, name)]
        return self.bound.dtype if kind.weak and kind.dtype.kind == "f" else kind.dtype


class Run:
    """One call of a chain: the outputs, and the gradients by `wrt` for seeds of the outputs."""

    def __init__(self, chain: Chain, values: Mapping[str, Any], wrt: Sequence[str]) -> None:
        self.chain, self.recurrence, self.wrt = chain, chain.recurrence, wrt
        self.values: Arrays = dict(values)
        self.sums: Arrays = {}
        self.reached = 0  # stretches that have been computed once
        self.outputs: Arrays = {}
        self.seeds: dict[str, Array] = {}  # of what stretches give
        self.nothing: dict[str, Array] = {}  # zeros for states whose gradient nothing gives
        self.leaving: dict[str, Array] = {}  # gradients of the state behind the stretch that is next on the way back
        self.gradients: dict[str, Array] = {}

    def __call__(self, seeds: Callable[[Mapping[str, Any]], Mapping[str, Array]]) -> None:
        """Fills `outputs` and `gradients`. `seeds` gives the gradients of outputs, once these are known."""
        before = self.first_part()
        count = len(self.chain.ranges)
        go_back(count, self.chain.places, before, self.forward, lambda n, state: self.backward(n, state, seeds))
        self.back_to_start()

    # -- the way there

    def first_part(self) -> State:
        names = self.recurrence.state
        if self.recurrence.before:
            self.values |= self.once(self.recurrence.first_part())
        return {n: self.values[n] if n in self.values else self.chain.unwritten(n) for n in names}

    def once(self, made: Shard) -> Arrays:
        return self.chain.typed(self.chain.part(made).forward(self.taken(made, {})))

    def taken(self, made: Shard, state: State) -> Arrays:
        """What a part reads."""
        known = {**self.values, **state}
        arrays = {name: viewed(known[view.tensor], view) for name, view in made.views.items()}
        return {**arrays, **made.numbers, **made.sizes}

    def forward(self, number: int, state: State) -> State:
        """The state behind a stretch. What it gives besides is taken the first time."""
        part, made = self.chain.stretch(number)
        with self.told(number):
            found = part.forward(self.taken(made, state))
        if number == self.reached:
            self.reached += 1
            self.collect(number, found)
        return self.chain.typed({name: found[other] for name, other in self.recurrence.state.items()})

    def collect(self, number: int, found: Arrays) -> None:
        for name in self.recurrence.sums.values():
            self.sums[name] = found[name] if name not in self.sums else self.sums[name] + found[name]
        for tensor, name in self.recurrence.whole.items():
            if tensor not in self.values:
                self.values[tensor] = self.started(tensor)
            place, own = self.places(tensor, number)
            self.values[tensor][place] = found[name][own]

    def places(self, tensor: str, number: int) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """Where a whole tensor has what a stretch writes, and where that is in what the stretch gives. Places that are
        out of bounds were left out by a guard."""
        along, (start, stop) = self.recurrence.along[tensor], self.chain.ranges[number]
        extent = self.recurrence.division.sizes.shapes[tensor][along.axis]
        low, high = (min(max(end + along.written, 0), extent) for end in (start, stop))
        before = (slice(None),) * along.axis
        moved = start + along.written
        return (*before, slice(low, high)), (*before, slice(low - moved, high - moved))

    def started(self, tensor: str) -> Array:
        """A whole tensor with what was written before the steps."""
        made = self.chain.unwritten(tensor)
        for name, place in self.first_places(tensor):
            if name in self.values:
                made[place] = self.values[name]
        return made

    def first_places(self, tensor: str) -> list[tuple[str, tuple[Any, ...]]]:
        along, count = self.recurrence.along[tensor], self.recurrence.division.extent
        start = count + along.written if self.recurrence.down else along.written - along.back
        extent = self.recurrence.division.sizes.shapes[tensor][along.axis]
        return [
            (name, ((slice(None),) * along.axis + (start + number,)))
            for number, name in enumerate(along.entering)
            if 0 <= start + number < extent
        ]

    # -- the way back

    def backward(self, number: int, state: State, seeds: Callable[[Mapping[str, Any]], Mapping[str, Array]]) -> None:
        if number == self.reached:  # the last one, for the first time
            self.end(self.forward(number, state), seeds)
        part, made = self.chain.stretch(number)
        given = {name: seed for name, seed in self.seeds.items() if name in self.recurrence.sums.values()}
        for tensor, name in self.recurrence.whole.items():
            if tensor in self.seeds:
                place, own = self.places(tensor, number)
                given[name] = np.zeros(made.shapes[name], self.seeds[tensor].dtype)
                given[name][own] = self.seeds[tensor][place]
        given |= {**self.nothing, **self.leaving}
        wanted = [name for name, view in made.views.items() if self.matters(view.tensor)]
        with self.told(number):
            found = part.backward(self.taken(made, state), wanted, given)
        self.leaving = {}
        for name, gradient in found.items():
            view = made.views[name]
            if view.tensor in self.recurrence.state:
                self.leaving[self.recurrence.state[view.tensor]] = gradient
            else:
                self.add(view, gradient)

    def end(self, state: State, seeds: Callable[[Mapping[str, Any]], Mapping[str, Array]]) -> None:
        """What comes after the steps, and the gradients of what they gave."""
        left = {self.recurrence.state[name]: array for name, array in state.items()}
        self.values |= {**left, **self.sums}
        made = self.recurrence.last_part() if self.recurrence.after else None
        if made is not None:
            self.values |= self.once(made)
        self.outputs = {name: self.values[name] for name in self.recurrence.outputs}
        given = dict(seeds(self.outputs))
        self.nothing = self.zeros(given)
        own = {name: seed for name, seed in given.items() if made is not None and name in made.loops.written}
        self.seeds = {name: seed for name, seed in given.items() if self.of_steps(name) and name not in own}
        for name, seed in given.items():
            if name in self.recurrence.made_before:
                self.add(View(name), np.array(seed))  # a copy: more is added to it
        if made is None:
            return
        wanted = [name for name, view in made.views.items() if self.matters(view.tensor) or self.of_steps(view.tensor)]
        for name, gradient in self.chain.part(made).backward(self.taken(made, {}), wanted, own).items():
            tensor = made.views[name].tensor
            if tensor in self.recurrence.state.values():
                self.leaving[tensor] = gradient
            elif self.of_steps(tensor):
                self.seeds[tensor] = gradient + self.seeds[tensor] if tensor in self.seeds else gradient
            else:
                self.add(made.views[name], gradient)

    def zeros(self, of: Iterable[str]) -> dict[str, Array]:
        """Gradients of states that nothing reads behind the last stretch. They take part as others do, since what they
        are multiplied by may be infinite."""
        passed = active(self.chain.bound.loops, self.wrt, tuple(of))
        shapes, owners = self.recurrence.division.sizes.shapes, self.recurrence.owners
        slots = [name for name in self.recurrence.state.values() if owners[name] in passed]
        return {name: np.zeros(shapes[name], self.chain.dtype(name)) for name in slots}

    def of_steps(self, tensor: str) -> bool:
        recurrence = self.recurrence
        return tensor in {*recurrence.sums.values(), *recurrence.whole, *recurrence.state.values()}

    def matters(self, tensor: str) -> bool:
        """Whether a gradient by a tensor is wanted, or leads to one that is."""
        recurrence = self.recurrence
        return tensor in self.wrt or tensor in recurrence.state or tensor in recurrence.made_before

    def add(self, view: View, gradient: Array) -> None:
        """A part of the gradient of an input, or of what was made before the steps."""
        if view.axis is None:
            old = self.gradients.get(view.tensor)
            self.gradients[view.tensor] = gradient if old is None else np.asarray(old + gradient)
            return
        if view.tensor not in self.gradients:
            shape = self.recurrence.division.sizes.shapes[view.tensor]
            self.gradients[view.tensor] = np.zeros(shape, gradient.dtype)
        self.gradients[view.tensor][(slice(None),) * view.axis + (slice(view.start, view.stop),)] += gradient

    def back_to_start(self) -> None:
        """From the gradients of what was made before the steps to those of the inputs."""
        names = {other: name for name, other in self.recurrence.state.items()}
        for name, gradient in self.leaving.items():
            self.add(View(names[name]), gradient)
        for tensor, seed in self.seeds.items():
            if tensor in self.recurrence.whole:
                for name, place in self.first_places(tensor):
                    self.add(View(name), seed[place])
        if self.recurrence.before:
            made = self.recurrence.first_part()
            part = self.chain.part(made)
            seeds = {name: self.gradients.pop(name) for name in part.program.outputs if name in self.gradients}
            for name, gradient in part.backward(self.taken(made, {}), self.wrt, seeds).items():
                self.add(made.views[name], gradient)

    def gradient(self, name: str) -> Array:
        found = self.gradients.get(name)
        return np.zeros(self.recurrence.division.sizes.shapes[name], self.chain.dtype(name)) if found is None else found

    def told(self, number: int) -> _Told:
        start, stop = self.chain.ranges[number]
        return _Told(f"in the steps {start} to {stop - 1} of {self.recurrence.index}")


class _Told:
    """Adds to an error where it happened."""

    def __init__(self, where: str) -> None:
        self.where = where

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, SwapError):
            raise type(error)([Fault(self.where), *error.faults]) from error


def viewed(value: Any, view: View) -> Any:
    if view.axis is None:
        return value
    return value[(slice(None),) * view.axis + (slice(view.start, view.stop),)]
