"""Graph: a program, its operands and the indices to cut along -> tasks, in the order in which one machine runs them.

Shards are joined two by two in a tree that depends on their number alone. What is cut along several indices is cut
along the first, and each program of a shard along the rest.
"""

from __future__ import annotations

import hashlib
import math
import pickle
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..language import ir
from ..language.bound import Bound
from ..run.arguments import Outline, as_array, bind, check_dtype
from .cutting import ARGUMENTS, divide, divide_if_used
from .shard_program import Shard, View, once, ranges, shard
from .states import Cut, Division, Partial, Stage
from .task_operands import Given, Joined, Made, Operand, Plain, filled, renamed, size, whole
from .tasks import Join, Leaf, Lift, Task

GRAPHS = 32  # kinds of calls that are remembered


@dataclass(frozen=True)
class Graph:
    """The tasks of a call, where its outputs are, and how each program was cut."""

    tasks: tuple[Task, ...]
    outputs: Mapping[str, Operand]
    division: Division
    shards: int

    def filled(self, given: Mapping[str, Operand]) -> Graph:
        """The same graph on the arguments of a call."""
        tasks = [
            replace(task, operands={name: filled(operand, given) for name, operand in task.operands.items()})
            for task in self.tasks
        ]
        outputs = {name: filled(operand, given) for name, operand in self.outputs.items()}
        return replace(self, tasks=tuple(tasks), outputs=outputs)

    def named(self, prefix: str) -> Graph:
        """The same graph with other names for its tasks, so that it can stand beside others."""
        keys = {task.key: prefix + task.key for task in self.tasks}
        tasks = [
            replace(task, key=keys[task.key], operands={n: renamed(o, keys) for n, o in task.operands.items()})
            for task in self.tasks
        ]
        return replace(self, tasks=tuple(tasks), outputs={n: renamed(o, keys) for n, o in self.outputs.items()})


class Graphs:
    """The graphs of one program, made once for each kind of call."""

    def __init__(self) -> None:
        self.made: OrderedDict[Any, Graph] = OrderedDict()

    def graph(
        self,
        loops: ir.Loops,
        operands: Mapping[str, Operand],
        sizes: Mapping[str, int],
        cuts: Sequence[tuple[str, int]],
    ) -> Graph:
        """The tasks of a call that is cut along some indices, each into a number of shards."""
        known = {name: _given(name, operand) for name, operand in operands.items()}
        key = (tuple(known.values()), tuple((name, repr(value)) for name, value in sizes.items()), tuple(cuts))
        made = self.made.pop(key, None)
        self.made[key] = made = graph(loops, known, sizes, cuts) if made is None else made
        while len(self.made) > GRAPHS:
            self.made.popitem(last=False)
        return made.filled(operands)


def _given(name: str, operand: Operand) -> Given:
    if isinstance(operand, Plain):
        return Given(name, (), np.dtype(type(operand.value)), type(operand.value))
    return Given(name, whole(operand.shape), operand.dtype)


def outlined(loops: ir.Loops, operands: Mapping[str, Operand], sizes: Mapping[str, int]) -> Bound:
    """A program bound to operands of which nothing but shapes and types is known."""

    def read(name: str, value: Any) -> Any:
        if isinstance(value, Outline):
            check_dtype(name, value.dtype)
            return value
        return as_array(name, value)

    return bind(loops, {**{name: outline(operand) for name, operand in operands.items()}, **sizes}, read)


def outline(operand: Operand) -> Any:
    if isinstance(operand, Plain):
        return operand.value
    if isinstance(operand, Given) and operand.plain is not None:
        return operand.plain(0)
    if isinstance(operand, Made) and operand.number:
        return operand.dtype.type(0).item()
    return Outline(operand.shape, operand.dtype)


def graph(
    loops: ir.Loops, operands: Mapping[str, Operand], sizes: Mapping[str, int], cuts: Sequence[tuple[str, int]]
) -> Graph:
    """The tasks of a call that is cut along some indices, each into a number of shards."""
    bound = outlined(loops, operands, sizes)
    dtypes = {name: _dtype(bound, name) for name in bound.loops.outputs}
    builder = _Builder()
    division = divide(bound, cuts[0][0])
    outputs = builder.divided(division, bound, operands, dtypes, cuts, "")
    return Graph(tuple(builder.tasks), outputs, division, builder.shards)


def _dtype(bound: Bound, name: str) -> np.dtype[Any]:
    kind = bound.types.tensors[name]
    return bound.dtype if kind.weak and kind.dtype.kind == "f" else kind.dtype


@dataclass
class _Builder:
    tasks: list[Task] = field(default_factory=list)
    shards: int = 0  # programs of shards so far

    def program(
        self, made: Shard, operands: Mapping[str, Operand], dtypes: Mapping[str, np.dtype[Any]],
        cuts: Sequence[tuple[str, int]], told: str,
    ) -> dict[str, Operand]:  # fmt: skip
        """The tasks of one program: of a shard, or what runs once."""
        left = [cut for cut in cuts if cut[0] in made.loops.indices and made.sizes[cut[0]] > 1]
        if left:
            numbers = {name: Plain(value) for name, value in made.numbers.items()}
            bound = outlined(made.loops, {**operands, **numbers}, made.sizes)
            for place, (index, _) in enumerate(left):
                division = divide_if_used(bound, index)
                if division is not None:
                    return self.divided(division, bound, {**operands, **numbers}, dtypes, left[place:], told)
        return self.leaf(made, operands, dtypes, told)

    def leaf(
        self, made: Shard, operands: Mapping[str, Operand], dtypes: Mapping[str, np.dtype[Any]], told: str
    ) -> dict[str, Operand]:
        key = f"t{len(self.tasks)}"
        loops = pickle.dumps(made.loops)
        digest = hashlib.sha256(loops).hexdigest()[:32]
        makes = sum(math.prod(shape) * 8 for shape in made.shapes.values())
        spent = sum(
            math.prod(made.sizes[i] for i in {*s.indices, *(b.index for b in blocks)}) * _nanoseconds(s)
            for s, blocks in made.loops.located
        )
        work = Leaf(loops, digest, {**made.numbers, **made.sizes}, dict(dtypes), told, makes, spent)
        gives = sum(math.prod(made.shapes[name]) * dtype.itemsize for name, dtype in dtypes.items())
        self.tasks.append(Task(key, work, operands, self.shards, gives))
        self.shards += bool(told)
        return {name: Made(key, name, whole(made.shapes[name]), dtype) for name, dtype in dtypes.items()}

    def divided(
        self, division: Division, bound: Bound, operands: Mapping[str, Operand],
        dtypes: Mapping[str, np.dtype[Any]], cuts: Sequence[tuple[str, int]], told: str,
    ) -> dict[str, Operand]:  # fmt: skip
        (_, count), *rest = cuts
        run = _Divided(self, division, bound, dict(operands), dtypes, rest, told, ranges(division.extent, count))
        for stage in division.stages:
            run.stage(stage)
        found = {name: run.known[tensor] for name, tensor in division.outputs.items()}
        return {name: replace(o, number=False) if isinstance(o, Made) else o for name, o in found.items()}


@dataclass
class _Divided:
    """A program on its way through its stages. `known` are operands for all of a tensor; `kept` those of each shard."""

    builder: _Builder
    division: Division
    bound: Bound
    known: dict[str, Operand]
    dtypes: Mapping[str, np.dtype[Any]]
    rest: Sequence[tuple[str, int]]
    told: str
    parts: Sequence[tuple[int, int]]
    kept: dict[str, list[Operand]] = field(default_factory=dict)

    def stage(self, stage: Stage) -> None:
        division = self.division
        alone: dict[str, Operand] = {}
        if stage.once:
            made = once(division, stage.once, stage.from_once)
            alone = self.builder.program(made, self.operands(made, 0), self.types(stage.from_once), self.rest, "")
            self.known |= {
                name: self.plain(name, value) for name, value in alone.items() if name not in division.also_once
            }
        if not stage.shard:
            return
        partial = {n: s for n in stage.from_shards if isinstance(s := division.states.get(n), Partial)}
        tree = _Tree(self, partial)
        for number, (start, stop) in enumerate(self.parts):
            made = shard(division, stage.shard, stage.from_shards, start, stop)
            operands = self.operands(made, number)
            told = f"the shard of {division.index} from {start} to {stop}"
            told = f"{self.told}, {told}" if self.told else told
            results = self.builder.program(made, operands, self.types(stage.from_shards), self.rest, told)
            for name in stage.from_shards:
                if isinstance(division.states.get(name), Cut):
                    self.kept.setdefault(name, []).append(results[name])
            tree.add(number, results)
            if not number:
                first = results
        for name, result in tree.result(alone).items():
            self.known[name] = self.plain(name, result)
        for name in stage.from_shards:
            state = division.states.get(name)
            if isinstance(state, Cut):
                found = self.kept[name]
                self.known[name] = found[0] if len(found) == 1 else Joined(tuple(found), state.axis)
            elif state is not None and name not in partial:
                self.known[name] = self.plain(name, first[name])

    def types(self, names: Sequence[str]) -> dict[str, np.dtype[Any]]:
        """The type of each tensor as the whole program has it."""
        asked = {tensor: self.dtypes[name] for name, tensor in self.division.outputs.items()}
        return {name: asked.get(name) or self.type(name) for name in names}

    def type(self, name: str) -> np.dtype[Any]:
        positions = next((tensor for tensor, best in self.division.best.items() if best == name), None)
        if positions is not None:
            kind = self.division.types.of(self.division.statements[positions][0].value)
            return np.dtype(np.int64) if kind.dtype.kind == "b" else kind.dtype
        kind = self.division.types.tensors[name]
        return self.bound.dtype if kind.weak and kind.dtype.kind == "f" else kind.dtype

    def plain(self, name: str, operand: Operand) -> Operand:
        """A number that widens nothing stays one."""
        kind = self.division.types.tensors[name]
        if kind.weak and isinstance(operand, Made) and not operand.cuts:
            return replace(operand, number=True)
        return operand

    def operands(self, made: Shard, number: int) -> dict[str, Operand]:
        return {name: self.operand(view, number) for name, view in made.views.items() if name not in made.numbers}

    def operand(self, view: View, number: int) -> Operand:
        if view.kept:
            return self.kept[view.tensor][number]
        operand = self.known[view.tensor]
        if view.axis is None:
            return operand
        assert not isinstance(operand, Plain), "a number has no axis"
        extent = operand.shape[view.axis]
        return operand if (view.start, view.stop) == (0, extent) else operand.part(view.axis, view.start, view.stop)


class _Tree:
    """Joins results two by two: the first two, the next two, then those two; as a binary number counts."""

    def __init__(self, run: _Divided, partial: Mapping[str, Partial]) -> None:
        self.run, self.partial = run, partial
        self.open: list[tuple[int, dict[str, Operand], dict[str, Lift]]] = []

    def add(self, number: int, results: Mapping[str, Operand]) -> None:
        if not self.partial:
            return
        division = self.run.division
        names = [*self.partial, *(division.best[n] for n in self.partial if n in division.best)]
        lifts = {n: self.lift(n, number) for n, state in self.partial.items() if state.operator in ARGUMENTS}
        self.open.append((0, {name: results[name] for name in names}, lifts))
        while len(self.open) > 1 and self.open[-1][0] == self.open[-2][0]:
            self.join()

    def join(self) -> None:
        level, right, lifts = self.open.pop()
        _, left, before = self.open.pop()
        operators = {name: state.operator for name, state in self.partial.items()}
        best = self.run.division.best
        operators |= {best[name]: ARGUMENTS[op] for name, op in operators.items() if op in ARGUMENTS}
        behind = {name: best[name] for name in self.partial if name in best}
        joined = self.task(Join(operators, behind, (before, lifts)), left, right)
        self.open.append((level + 1, joined, {}))

    def task(self, join: Join, left: Mapping[str, Operand], right: Mapping[str, Operand]) -> dict[str, Operand]:
        builder = self.run.builder
        key = f"t{len(builder.tasks)}"
        operands = {f"left {n}": left[n] for n in join.operators} | {f"right {n}": right[n] for n in join.operators}
        gives = sum(size(left[name]) for name in join.operators)
        builder.tasks.append(Task(key, join, operands, max(builder.shards - 1, 0), gives))
        return {name: Made(key, name, whole(_shape(left[name])), _array_type(left[name])) for name in join.operators}

    def lift(self, name: str, number: int) -> Lift:
        """How positions of a shard become positions of the whole."""
        division = self.run.division
        (statement,) = division.statements[name]
        names = ir.candidates(statement)
        start, stop = self.run.parts[number]
        extents = tuple(stop - start if n == division.index else division.sizes.index[n] for n in names)
        return Lift(extents, names.index(division.index), start, division.extent)

    def result(self, alone: Mapping[str, Operand]) -> dict[str, Operand]:
        """All shards joined, with what runs once at the end."""
        while len(self.open) > 1:
            self.join()
        if not self.open:
            return {}
        found = {name: self.open[0][1][name] for name in self.partial}
        also = [name for name in self.partial if name in self.run.division.also_once]
        if also:
            join = Join({name: self.partial[name].operator for name in also})
            found |= self.task(join, found, alone)
        return found


def _nanoseconds(statement: ir.Statement) -> float:
    """What a point of a statement takes on one core, about: a function is worth many operations."""
    calls = sum(isinstance(node, ir.Call) for node in statement.nodes)
    operations = sum(isinstance(node, ir.Binary | ir.Unary | ir.Compare) for node in statement.nodes)
    return 0.3 + 0.15 * operations + 8.0 * calls


def _shape(operand: Operand) -> tuple[int, ...]:
    return () if isinstance(operand, Plain) else operand.shape


def _array_type(operand: Operand) -> np.dtype[Any]:
    assert not isinstance(operand, Plain)
    return operand.dtype
