"""Training steps within a limit of memory: into how many parts a batch is cut."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..cluster.shard_plan import needed
from ..cluster.task_graph import graph
from ..cluster.task_operands import Given, whole
from ..errors import LimitError
from ..program import Program
from ..room import shown
from .within import memory_of


def shards_of_step(program: Program, index: str, arguments: Mapping[str, Any], memory: int) -> int:
    """The least power of two, or as many as there are examples; 1 if a step fits as it is."""
    if memory_of(program, arguments) <= memory:
        return 1
    given = {name: _given(name, value) for name, value in arguments.items() if name in program.inputs}
    shards = 1
    while True:
        shards *= 2
        made = graph(program.loops, given, {}, [(index, shards)])
        most = max(map(needed, made.tasks))
        if most <= memory:
            return shards
        if shards >= made.division.extent:
            raise LimitError(
                f"a step needs {shown(most)} of memory for one example alone, more than the {shown(memory)} allowed",
                hint="allow more; parameters, their gradients and the state of the optimiser are there all the time",
            )


def _given(name: str, value: Any) -> Given:
    if type(value) in (bool, int, float):
        return Given(name, (), np.dtype(type(value)), type(value))
    array = np.asarray(value)
    return Given(name, whole(array.shape), array.dtype)
