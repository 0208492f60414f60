"""Local steps: every shard trains by itself for a few steps, on its part of each batch; then all take the mean of what
they have learned. Weights travel once for all of these steps, which is for networks that are slow."""

from __future__ import annotations

import hashlib
import math
import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..program import Program
from ..training.shuffle import Rows
from .shard_program import ranges
from .task_graph import outlined
from .task_operands import Made, Operand, Plain, size, whole
from .tasks import Join, Step, Steps, Task


class LocalSteps:
    """Makes the tasks of some steps: one for each shard, and a tree that adds up their shares."""

    def __init__(self, program: Program, shards: int) -> None:
        self.program, self.shards = program, shards
        self.loops = pickle.dumps(program.loops)
        self.digest = hashlib.sha256(self.loops).hexdigest()[:32]

    def tasks(
        self, batches: Rows, numbers: Sequence[Mapping[str, float]], given: Mapping[str, Operand],
        examples: Callable[[Rows], Mapping[str, Operand]], axes: Mapping[str, int], told: Sequence[str],
    ) -> tuple[list[Task], dict[str, Operand]]:  # fmt: skip
        """The tasks of one step for each batch, and where the outputs are. `examples` gives the operands of rows."""
        parts = ranges(batches.shape[1], self.shards)
        tasks: list[Task] = []
        found: list[tuple[int, str]] = []  # the trees so far, with their heights
        kept = {name: given[name] for name in self.program.outputs if name not in told}
        types = {name: np.dtype(np.float64) for name in told} | {n: _array(o).dtype for n, o in kept.items()}
        shapes = {name: (len(batches),) for name in told} | {n: _array(o).shape for n, o in kept.items()}
        gives = sum(math.prod(shapes[name]) * dtype.itemsize for name, dtype in types.items())
        for number, (start, stop) in enumerate(parts):
            share = (stop - start) / batches.shape[1]
            steps = tuple(Step(stop - start, own, share) for own in numbers)
            operands = {**given, **examples(batches[:, start:stop].reshape(-1))}
            shard = f"the shard of examples from {start} to {stop} of each batch"
            work = Steps(
                self.loops, self.digest, {}, types, shard, self.makes(operands, axes, steps), 0.0, steps, axes, share
            )
            tasks.append(Task(f"t{len(tasks)}", work, operands, number, gives))
            found.append((0, tasks[-1].key))
            while len(found) > 1 and (found[-1][0] == found[-2][0] or number + 1 == len(parts)):
                (_, right), (level, left) = found.pop(), found.pop()
                sides = {"left": left, "right": right}
                joined = {
                    f"{side} {name}": Made(key, name, whole(shapes[name]), dtype)
                    for side, key in sides.items()
                    for name, dtype in types.items()
                }
                tasks.append(Task(f"t{len(tasks)}", Join(dict.fromkeys(types, "+=")), joined, number, gives))
                found.append((level + 1, tasks[-1].key))
        last = found[0][1]
        return tasks, {name: Made(last, name, whole(shapes[name]), dtype) for name, dtype in types.items()}

    def makes(self, operands: Mapping[str, Operand], axes: Mapping[str, int], steps: Sequence[Step]) -> int:
        """Bytes of all tensors that a step writes."""
        one = {n: _array(o).part(axes[n], 0, steps[0].examples) if n in axes else o for n, o in operands.items()}
        numbers = {name: Plain(value) for name, value in steps[0].numbers.items()}
        shapes = outlined(self.program.loops, {**one, **numbers}, {}).sizes.shapes
        return sum(math.prod(shapes[name]) * 8 for name in self.program.loops.written) + sum(map(size, one.values()))


def _array(operand: Operand) -> Any:
    assert not isinstance(operand, Plain), "parameters, state and examples are arrays"
    return operand
