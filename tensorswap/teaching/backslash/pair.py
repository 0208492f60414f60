"""Pair: statements' own tangent and adjoint programs as an operator, for whatever has no name of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...arrays import Array
from ...language import ir
from ...language.sizes import Sizes
from ...lazy import cached_property
from ...program import Program
from ...rules.activity import depends_smoothly
from ...rules.derived_names import next_suffix
from .operators import Operator
from .spaces import Plain


class Pair(Operator):
    """d(of) / d(wrt) of a program at given values of its inputs."""

    def __init__(self, program: Program, of: str, wrt: str, values: Mapping[str, Array], sizes: Sizes) -> None:
        self.program, self.of, self.wrt, self.sizes = program, of, wrt, sizes
        self.values = {name: values[name] for name in program.inputs}
        self.domain, self.range = Plain(values[wrt].shape), Plain(values[of].shape)
        self.label = f"d{of}/d{wrt}"
        self._dot = f"{wrt}.{next_suffix(program.loops, 'dot')}"
        self._grad = f"{of}.{next_suffix(program.loops, 'grad')}"

    @cached_property
    def tangent(self) -> Program:
        return self.program.tangent(wrt=[self.wrt])

    @cached_property
    def backward(self) -> Program:
        return self.program.adjoint(wrt=[self.wrt], of=[self.of])

    def apply(self, x: Any) -> Array:
        return np.asarray(self.tangent({**self.values, self._dot: np.asarray(x)}))

    def adjoint(self, y: Any) -> Array:
        return np.asarray(self.backward({**self.values, self._grad: np.asarray(y)}))

    @cached_property
    def cost(self) -> int:
        """Operations of the tangent's statements at all of their points, those without the direction aside."""
        loops = self.tangent.loops
        moving = depends_smoothly(loops, [self._dot])
        total = 0
        for statement, blocks in loops.located:
            if statement.target.tensor in moving:
                indices = {*statement.indices, *(block.index for block in blocks)}
                points = math.prod(self.sizes.index.get(i, 1) for i in indices)
                total += points * _operations(statement)
        return total


def _operations(statement: ir.Statement) -> int:
    """Arithmetic and function calls at one point, the accumulation included."""
    return (statement.operator != "=") + sum(isinstance(n, ir.Binary | ir.Call) for n in ir.walk(statement.value))
