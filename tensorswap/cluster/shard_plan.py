"""Shard plan: what a sharded call cuts, what travels, what a worker needs, and how long it may take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..room import shown
from .states import Cut, Partial
from .task_graph import Graph
from .task_operands import Cuts, Held, Joined, Made, Operand, leaves, size
from .tasks import Join, Leaf, Task

TASK = 1.5e-3  # seconds that a scheduler spends on a task
BANDWIDTH = 1e9  # bytes a second that a worker sends or receives


@dataclass(frozen=True)
class Row:
    """A tensor of the call: an input or an output, and what becomes of it."""

    name: str
    what: str
    bytes: int


@dataclass(frozen=True)
class ShardPlan:
    """Prints as a table."""

    index: str
    shards: int
    stages: int
    inputs: tuple[Row, ...]
    outputs: tuple[Row, ...]
    broadcast: int  # bytes that every worker needs
    cut: int  # bytes that one shard or another needs
    joined: int  # bytes that travel up the tree
    messages: int  # tasks, and what is sent for them
    memory: int  # bytes of the largest task
    compute: float  # seconds on one core
    longest: float  # seconds of the largest task

    def seconds(self, workers: int = 1) -> float:
        """An estimate for a number of workers: the rounds that each needs, what it receives, and the scheduler."""
        compute = max(self.compute / max(workers, 1), self.longest)
        travel = (self.broadcast + (self.cut + self.joined) / max(workers, 1)) / BANDWIDTH
        return compute + travel + TASK * self.messages

    def __str__(self) -> str:
        width = max(len(row.name) for row in (*self.inputs, *self.outputs))
        lines = [f"cut along {self.index} into {self.shards} shards, in {self.stages} stage{'s' * (self.stages > 1)}"]
        lines += [f"  {row.name:<{width}}  {row.what}, {shown(row.bytes)}" for row in (*self.inputs, *self.outputs)]
        lines += [
            f"sent to every worker  {shown(self.broadcast)}",
            f"sent in parts         {shown(self.cut)}",
            f"joined                {shown(self.joined)}",
            f"messages              {self.messages}",
            f"memory of a worker    {shown(self.memory)}",
            "time, about           " + ", ".join(f"{self.seconds(n):.3g} s on {n}" for n in (1, 2, 4)),
        ]
        return "\n".join(lines)


def plan_of(graph: Graph, inputs: Mapping[str, Operand]) -> ShardPlan:
    """The plan of a graph."""
    shards = [task for task in graph.tasks if isinstance(task.work, Leaf) and task.work.told]
    uses = Counter(key for keys in _read_by(shards).values() for key in keys)
    sources = {id(h.source): name for name, operand in inputs.items() for h in _held([operand])}
    parts: dict[str, dict[tuple[tuple[int, int], ...], Held]] = {}
    for task in graph.tasks:
        for held in _held(task.operands.values()):
            parts.setdefault(sources[id(held.source)], {})[held.cuts] = held
    rows, broadcast, cut = [], 0, 0
    for name, operand in inputs.items():
        pieces = parts.get(name, {})
        several = [held for held in pieces.values() if uses[id(held.source), held.cuts] > 1]
        single = [held for held in pieces.values() if uses[id(held.source), held.cuts] <= 1]
        broadcast += sum(map(size, several))
        cut += sum(map(size, single))
        rows.append(Row(name, _told(operand, several, single), size(operand)))
    joins = [task for task in graph.tasks if isinstance(task.work, Join)]
    outputs = []
    for name, operand in graph.outputs.items():
        state = graph.division.states.get(graph.division.outputs[name])
        what = (
            f"put together along axis {state.axis}"
            if isinstance(state, Cut)
            else f"joined by {state.operator}"
            if isinstance(state, Partial)
            else "computed once"
        )
        outputs.append(Row(name, what, size(operand)))
    seconds = [task.work.nanoseconds / 1e9 for task in graph.tasks if isinstance(task.work, Leaf)]
    return ShardPlan(
        graph.division.index,
        len({task.work.told for task in shards if isinstance(task.work, Leaf)}),
        len(graph.division.stages),
        tuple(rows),
        tuple(outputs),
        broadcast,
        cut,
        sum(size(o) for task in joins for n, o in task.operands.items() if n.startswith("right ")),
        len(graph.tasks),
        max(map(needed, graph.tasks)),
        sum(seconds),
        max(seconds),
    )


def needed(task: Task) -> int:
    """Bytes that a task needs: what it reads, and what it makes on its way at most."""
    own = task.work.makes if isinstance(task.work, Leaf) else sum(map(size, task.operands.values())) // 2
    return own + sum(map(size, task.operands.values()))


def _read_by(shards: Iterable[Task]) -> dict[str, set[tuple[int, Cuts]]]:
    """The parts of arguments that each shard reads, in whatever stage."""
    found: dict[str, set[tuple[int, Cuts]]] = {}
    for task in shards:
        assert isinstance(task.work, Leaf)
        found.setdefault(task.work.told, set()).update((id(h.source), h.cuts) for h in _held(task.operands.values()))
    return found


def _held(operands: Iterable[Operand]) -> list[Held]:
    return [leaf for operand in operands for leaf in leaves(operand) if isinstance(leaf, Held)]


def _told(operand: Operand, several: list[Held], single: list[Held]) -> str:
    if not isinstance(operand, Held | Made | Joined):
        return "a number"
    axes = {k for held in (*single, *several) for k, cut in enumerate(held.cuts) if cut != (0, operand.shape[k])}
    total = sum(map(size, (*single, *several)))
    if not single and not several:
        return "not read"
    if not axes:
        return "whole, sent to every worker" if several else "whole"
    along = " and ".join(str(axis) for axis in sorted(axes))
    halo = " with a halo" if total > size(operand) and not several else ""
    return f"cut along axis {along}{halo}"
