"""Sharded: a program that is cut along an index; called as the program is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..arrays import Array
from ..program import Program
from ..run.arguments import defaults
from .graph import Graph, graph
from .operands import Held, Operand, Plain, whole
from .serial import Serial
from .sources import source

SHARDS = 4


class Sharded:
    """A program whose calls run as shards of an index."""

    def __init__(self, program: Program, indices: Sequence[str], shards: Sequence[int], executor: Any) -> None:
        self.program, self.indices, self.shards, self.executor = program, tuple(indices), tuple(shards), executor

    def __call__(self, mapping: Mapping[str, Any] | None = None, /, **arrays: Any) -> Any:
        made = self.graph(self.program._arguments(mapping, arrays))
        results: dict[str, Array] = self.executor.run(made.tasks, made.outputs)
        single = self.program._single
        return results if single is None else results[single]

    def graph(self, arguments: Mapping[str, Any]) -> Graph:
        program = self.program._for_call(arguments)
        loops = program.loops
        given = {**defaults(loops), **arguments}
        operands: dict[str, Operand] = {}
        sizes: dict[str, int] = {}
        for name, value in given.items():
            if name not in loops.inputs:
                sizes[name] = value
            elif type(value) in (bool, int, float):
                operands[name] = Plain(value)
            else:
                found = source(loops, name, value)
                operands[name] = Held(found, whole(found.shape))
        return graph(loops, operands, sizes, tuple(zip(self.indices, self.shards, strict=True)))


def shard(program: Program, index: Any, shards: int = SHARDS) -> Sharded:
    names = [index] if isinstance(index, str) else list(index)
    return Sharded(program, names, [shards] * len(names), Serial())
