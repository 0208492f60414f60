"""Tasks: pure functions of operands. Whoever runs them, wherever and however often, gets the same bits."""

from __future__ import annotations

import math
import pickle
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import Fault, SwapError
from ..language import ir
from ..lazy import cached_property
from ..program import Program
from ..run.alone import alone
from .sources import InFile
from .task_operands import Held, Made, Operand, Room, Taken, fetched, leaves

KEPT = 256  # programs that a process has ready
JOIN: dict[str, Callable[[Array, Array], Array]] = {
    "+=": np.add, "*=": np.multiply, "max=": np.maximum, "min=": np.minimum,
}  # fmt: skip


@dataclass(frozen=True)
class Leaf:
    """A program to run: its pickled loops, the sizes and numbers that it is told, the types of what it gives."""

    loops: bytes
    digest: str  # of the loops
    numbers: Mapping[str, int]
    dtypes: Mapping[str, np.dtype[Any]]
    told: str = ""  # which shard it is, for messages
    makes: int = 0  # bytes of all tensors that it writes
    nanoseconds: float = 0.0  # that it takes on one core, about

    @property
    def names(self) -> tuple[str, ...]:
        """Of what it gives."""
        return tuple(self.dtypes)


@dataclass(frozen=True)
class Steps(Leaf):
    """Steps of a training, one after the other, each on the next examples; then a share of what they have made, so that
    the shares of all shards add up to a mean."""

    steps: tuple[Step, ...] = ()
    axes: Mapping[str, int] = field(default_factory=dict)  # of examples
    share: float = 1.0  # of parameters and state


@dataclass(frozen=True)
class Step:
    """How many examples a step has here, the numbers that it is told, and its share of what all shards tell of it."""

    examples: int
    numbers: Mapping[str, float]
    share: float


@dataclass(frozen=True)
class Lift:
    """Positions of an argmax= in a shard -> those in the whole: `axis` of the candidates starts later and is longer."""

    extents: tuple[int, ...]
    axis: int
    start: int
    extent: int

    def __call__(self, positions: Array) -> Array:
        if not math.prod(self.extents):
            return positions  # of no candidate at all
        places = list(np.unravel_index(np.maximum(positions, 0), self.extents))
        places[self.axis] = places[self.axis] + self.start
        whole = (*self.extents[: self.axis], self.extent, *self.extents[self.axis + 1 :])
        return np.where(positions < 0, positions, np.ravel_multi_index(tuple(places), whole))


@dataclass(frozen=True)
class Join:
    """Joins what two groups of shards have found: the operator of each tensor; for positions, the tensor of the values
    behind them, and how those of either side are lifted."""

    operators: Mapping[str, str]
    best: Mapping[str, str] = field(default_factory=dict)
    lifts: tuple[Mapping[str, Lift], Mapping[str, Lift]] = field(default_factory=lambda: ({}, {}))

    @property
    def names(self) -> tuple[str, ...]:
        """Of what it gives."""
        return tuple(self.operators)


Work = Leaf | Join


@dataclass(frozen=True)
class Task:
    """`operands` by name; a join has `left` and `right` before its names."""

    key: str
    work: Work
    operands: Mapping[str, Operand]
    shard: int  # where it stands among the shards, so that neighbours can be near each other
    gives: int = 0  # bytes

    @cached_property
    def needs(self) -> frozenset[str]:
        """The tasks whose results it reads."""
        found = [leaf for operand in self.operands.values() for leaf in leaves(operand)]
        return frozenset(leaf.task for leaf in found if isinstance(leaf, Made))


def execute(
    work: Work, operands: Mapping[str, Operand], results: Mapping[str, Any], room: Room | None = None
) -> dict[str, Array]:
    """What a task gives. If there is `room`, the rows that it takes are kept there until the next one."""
    arrays: dict[str, Any] = {}
    for name, operand in operands.items():
        if room is not None and isinstance(operand, Taken) and not _is_in_file(operand.table):
            arrays[name] = room.taken(name, operand, fetched(operand.table, results.__getitem__))
        else:
            arrays[name] = fetched(operand, results.__getitem__)
    match work:
        case Join():
            return joined(work, arrays)
        case Steps():
            return stepped(work, arrays)
    return run(work, arrays)


def _is_in_file(table: Held | Made) -> bool:
    return isinstance(table, Held) and isinstance(table.source, InFile)


# -- programs

_programs: OrderedDict[tuple[Any, ...], Program] = OrderedDict()
_lock = threading.Lock()


def _program(leaf: Leaf) -> Program:
    """The program of a leaf, as it was used here before. A shard that is told other numbers has one of its own: what is
    known of the numbers is part of how its kernels are checked."""
    key = (leaf.digest, *sorted(leaf.numbers.items()))
    with _lock:
        found = _programs.get(key)
        if found is not None:
            _programs.move_to_end(key)
            return found
    loops = pickle.loads(leaf.loops)
    assert isinstance(loops, ir.Loops)
    made = Program(loops)
    with _lock:
        _programs[key] = made
        while len(_programs) > KEPT:
            _programs.popitem(last=False)
    return made


def run(leaf: Leaf, arrays: Mapping[str, Any]) -> dict[str, Array]:
    program = _program(leaf)
    try:
        with alone():
            made = program({**arrays, **leaf.numbers})
    except SwapError as error:
        if leaf.told:
            raise type(error)([Fault(f"in {leaf.told}"), *error.faults]) from error
        raise
    results = made if len(program.outputs) > 1 else {program.outputs[0]: made}
    return {name: np.asarray(array, leaf.dtypes[name]) for name, array in results.items()}


def stepped(work: Steps, arrays: Mapping[str, Any]) -> dict[str, Array]:
    """Parameters and state after the steps, and what each step told, all times their shares."""
    examples = {name: arrays[name] for name in work.axes}
    now = {name: value for name, value in arrays.items() if name not in work.axes}
    told = {name: np.zeros(len(work.steps), dtype) for name, dtype in work.dtypes.items() if name not in now}
    at = 0
    for number, step in enumerate(work.steps):
        if step.examples:
            batch = {
                name: array[(*(slice(None),) * work.axes[name], slice(at, at + step.examples))]
                for name, array in examples.items()
            }
            at += step.examples
            made = run(work, {**now, **step.numbers, **batch})
            for name, values in told.items():
                values[number] = made[name] * values.dtype.type(step.share)
            now |= {name: made[name] for name in made.keys() - told.keys()}
    return told | {name: now[name] * dtype.type(work.share) for name, dtype in work.dtypes.items() if name not in told}


# -- joins


def joined(join: Join, arrays: Mapping[str, Array]) -> dict[str, Array]:
    made: dict[str, Array] = {}
    with np.errstate(all="ignore"):
        for name, operator in join.operators.items():
            left, right = arrays[f"left {name}"], arrays[f"right {name}"]
            if name not in join.best:
                made[name] = np.asarray(JOIN[operator](left, right), left.dtype)
                continue
            first, second = _lifted(join.lifts[0], name, left), _lifted(join.lifts[1], name, right)
            best = join.best[name]
            wins = _right_wins(operator, first, second, arrays[f"left {best}"], arrays[f"right {best}"])
            made[name] = np.where(wins, second, first)
    return made


def _lifted(lifts: Mapping[str, Lift], name: str, positions: Array) -> Array:
    return lifts[name](positions) if name in lifts else positions


def _right_wins(operator: str, left: Array, right: Array, first: Array, second: Array) -> Array:
    """Where the second value is the better one: a NaN is better than any number, and of equals the first in order."""
    better = second > first if operator == "argmax=" else second < first
    not_a_number = np.isnan(second) & ~np.isnan(first)
    equal = (first == second) | (np.isnan(first) & np.isnan(second))
    wins = (better & ~np.isnan(first)) | not_a_number | (equal & (right < left))
    return np.asarray((right >= 0) & ((left < 0) | wins))
