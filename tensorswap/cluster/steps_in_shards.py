"""Steps in shards: the steps of a training, each cut along the index of examples. Weights go to workers once a step,
examples are read where they lie, gradients meet in the same tree as the sums of any other program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import ArgumentError
from ..lazy import cached_property
from ..program import Program
from ..training.mapped import Mapped
from ..training.shuffle import Rows
from ..training.training_loop import Loop
from .local_steps import LocalSteps
from .serial import Serial
from .sharded import HERE, SHARDS, Executor, RunsTogether, executor_of
from .sources import InFile, InMemory, Source
from .task_graph import Graph, Graphs
from .task_operands import Held, Operand, Plain, Taken, whole
from .tasks import Task

CHAIN = 256  # steps that are handed out at a time, at most
HELD = 2**28  # bytes that their results may take


class StepsInShards:
    """Makes the steps of a training: on a cluster, or here, with the same bits."""

    def __init__(
        self, program: Program, index: str, executor: Executor, shards: int, average_every: int | None = None
    ) -> None:
        self.program, self.index, self.executor, self.shards = program, index, executor, shards
        self.average_every = average_every  # steps that shards make by themselves
        self.left = HELD  # bytes that a step leaves on the workers until its results are fetched
        self.graphs = Graphs()
        self.sources: dict[str, tuple[Any, Source]] = {}  # of examples, each for the array that it stands for

    def together(
        self, loop: Loop, batches: Rows, numbers: Sequence[Mapping[str, float]], given: Mapping[str, Any]
    ) -> Mapping[str, Array]:
        """A step of all shards for each batch: new parameters and state, and of what steps tell, a number for each.
        What one step learns goes to the next where it lies: weights come back after the last."""
        operands, told = self.given(loop, given), loop.update.results
        tasks: list[Task] = []
        outputs: dict[str, Operand] = {}
        for number, (rows, own) in enumerate(zip(batches, numbers, strict=True)):
            operands |= {name: Plain(value) for name, value in own.items()}
            operands |= {name: self.examples(loop, name, rows) for name in loop.data.examples}
            made = self.graph(operands).named(f"step {number} ")
            tasks += made.tasks
            self.left = sum(task.gives for task in made.tasks)
            outputs |= {f"{number} {name}": made.outputs[name] for name in told}
            operands |= {name: operand for name, operand in made.outputs.items() if name not in told}
        kept = [name for name in self.program.outputs if name not in told]
        outputs |= {name: operands[name] for name in kept}
        executor = self.executor
        if isinstance(executor, RunsTogether):
            results = executor.together(tasks, outputs, self.shards)
        else:
            results = executor.run(tasks, outputs)
        values = {name: np.array([results[f"{k} {name}"] for k in range(len(batches))]) for name in told}
        return values | {name: results[name] for name in kept}

    @property
    def steps_at_a_time(self) -> int:
        """One, until it is known what a step leaves on the workers."""
        return self.average_every or max(min(CHAIN, HELD // max(self.left, 1)), 1)

    def apart(
        self, loop: Loop, batches: Rows, numbers: Sequence[Mapping[str, float]], given: Mapping[str, Any]
    ) -> Mapping[str, Array]:
        """A step of each shard by itself for each batch, and the mean of what they have learned; of what steps tell,
        a number for each."""
        own = {name: operand for name, operand in self.given(loop, given).items() if name in self.program.inputs}
        names = [name for name in loop.data.examples if name in self.program.inputs]

        def examples(rows: Rows) -> dict[str, Operand]:
            return {name: self.examples(loop, name, rows) for name in names}

        axes = {name: loop.data.axes[name] for name in names}
        tasks, outputs = self.alone.tasks(batches, numbers, own, examples, axes, loop.update.results)
        return self.executor.run(tasks, outputs)

    @cached_property
    def alone(self) -> LocalSteps:
        return LocalSteps(self.program, self.shards)

    def given(self, loop: Loop, given: Mapping[str, Any]) -> dict[str, Operand]:
        operands: dict[str, Operand] = {}
        for name, value in given.items():
            if type(value) in (bool, int, float):
                operands[name] = Plain(value)
            else:
                array = np.asarray(value)
                operands[name] = Held(InMemory(array, kept=name in loop.data.fixed), whole(array.shape))
        return operands

    def examples(self, loop: Loop, name: str, rows: Rows) -> Operand:
        data = loop.data
        origin = data.sources.get(name)
        if isinstance(origin, Mapped):
            if origin.dtype == data.examples[name].dtype:  # each worker reads its own
                file = InFile(name, str(origin.path), origin.offset, tuple(origin.shape), origin.dtype.str)
                return Taken(Held(file, whole(file.shape)), np.asarray(loop.filled)[rows], data.axes[name])
            part = np.take(data.examples[name], rows, axis=data.axes[name])
            return Held(InMemory(part, kept=False), whole(part.shape))
        if data.sources:  # a window that is filled anew
            part = np.take(data.examples[name], rows, axis=data.axes[name])
            return Held(InMemory(part, kept=False), whole(part.shape))
        array = data.examples[name]
        if name not in self.sources or self.sources[name][0] is not array:
            self.sources[name] = array, InMemory(array)
        return Taken(Held(self.sources[name][1], whole(array.shape)), np.asarray(rows), data.axes[name])

    def graph(self, operands: Mapping[str, Operand]) -> Graph:
        own = {name: operand for name, operand in operands.items() if name in self.program.inputs}
        return self.graphs.graph(self.program.loops, own, {}, [(self.index, self.shards)])


def train(program: Program, index: str, cluster: Any, shards: Any, average_every: int | None = None) -> StepsInShards:
    """`ts.fit(..., cluster=client, shards=n)`."""
    count = SHARDS if shards is None else shards
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ArgumentError(f"shards is a whole number above 0, not {str(shards)[:80]}", hint="shards=8")
    executor = Serial() if cluster is None or cluster == HERE else executor_of(cluster)
    return StepsInShards(program, index, executor, count, average_every)
