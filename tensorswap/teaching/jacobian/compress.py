"""Compressed Jacobians: columns that never meet in a row share one tangent, so that few of them give all entries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...arrays import Array, Integers
from ...errors import ArgumentError
from ...language import ir
from ...language.bound import Bound
from ...program import Program
from ...rules.activity import integer_uses
from ...rules.derived_names import next_suffix
from ...rules.tangent import tangent
from ...run.arguments import merged
from .entries import MODES
from .pattern import Pattern, check_size
from .sparsity import Sparsity, sparsity


@dataclass(frozen=True, eq=False)
class SparseJacobian:
    """The entries of a Jacobian at its nonzeros. Rows and columns count the elements of `of` and `wrt` in row-major
    order; `evaluations` is how many tangents or adjoints it took."""

    pattern: Pattern
    values: Array
    axes: tuple[int, ...]  # the shape of the Jacobian as an array: the axes of `of`, then those of `wrt`
    evaluations: int
    mode: str

    @property
    def rows(self) -> Integers:
        return self.pattern.rows

    @property
    def columns(self) -> Integers:
        return self.pattern.columns

    @property
    def shape(self) -> tuple[int, int]:
        return self.pattern.shape

    def dense(self) -> Array:
        """As the array that the Jacobian program gives."""
        check_size(self.axes)
        result = np.zeros(self.shape, self.values.dtype)
        result[self.rows, self.columns] = self.values
        return result.reshape(self.axes)

    def __matmul__(self, vector: Any) -> Array:
        """The product with a vector, or with each column of a matrix."""
        right = np.asarray(vector)
        if right.ndim not in (1, 2) or right.shape[0] != self.shape[1]:
            raise ArgumentError(
                f"a Jacobian of the shape {self.shape} does not multiply an array of the shape {right.shape}",
                hint=f"pass {self.shape[1]} rows",
            )
        values = self.values if right.ndim == 1 else self.values[:, None]
        result = np.zeros((self.shape[0], *right.shape[1:]), np.result_type(self.values, right))
        np.add.at(result, self.rows, values * right[self.columns])
        return result


@dataclass(eq=False)
class Compressed:
    """Calls like a program, gives a SparseJacobian. The colouring is kept for calls of the same sizes."""

    program: Program
    of: str
    wrt: str
    mode: str | None
    sparsity: Sparsity
    _colourings: dict[tuple[Any, ...], tuple[Pattern, str, Integers]] = field(default_factory=dict)
    _derivatives: dict[str, Program] = field(default_factory=dict)

    def __call__(self, mapping: Mapping[str, Any] | None = None, /, **arrays: Any) -> SparseJacobian:
        arguments = merged(mapping, arrays)
        bound = self.sparsity.bind(arguments)
        pattern, mode, colours = self._colouring(bound)
        axes = bound.sizes.shapes[self.sparsity.linear.name]
        count = int(colours.max()) + 1 if len(colours) else 0
        if not count:
            return SparseJacobian(pattern, np.zeros(0, bound.dtype), axes, 0, mode)
        shape = self._seed_shape(axes, mode)
        seeds = np.zeros((count, math.prod(shape)), bound.dtype)
        members = np.flatnonzero(colours >= 0)
        seeds[colours[members], members] = 1
        pushed = self._derivative(mode)({**arguments, self._seed(mode): seeds.reshape(count, *shape)})
        flat = pushed.reshape(count, -1)
        if mode == "tangent":
            values = flat[colours[pattern.columns], pattern.rows]
        else:
            values = flat[colours[pattern.rows], pattern.columns]
        return SparseJacobian(pattern, values, axes, count, mode)

    def _colouring(self, bound: Bound) -> tuple[Pattern, str, Integers]:
        """The pattern, and the colours of its columns, or of its rows where those are fewer."""
        needed = integer_uses(self.sparsity.loops)
        integers = tuple((n, bound.arrays[n].tobytes()) for n in sorted(needed) if n in bound.arrays)
        key = (tuple(sorted(bound.sizes.shapes.items())), tuple(sorted(bound.sizes.index.items())), integers)
        if key not in self._colourings:
            pattern = self.sparsity.pattern_of(bound)
            found = {}
            for mode in MODES if self.mode is None else (self.mode,):
                found[mode] = pattern.colours if mode == "tangent" else pattern.transposed.colours
            best = min(found, key=lambda mode: int(found[mode].max(initial=-1)))
            self._colourings[key] = (pattern, best, found[best])
        return self._colourings[key]

    def _seed(self, mode: str) -> str:
        name, kind = (self.wrt, "dot") if mode == "tangent" else (self.of, "grad")
        return f"{name}.{next_suffix(self.program.loops, kind)}"

    def _seed_shape(self, axes: tuple[int, ...], mode: str) -> tuple[int, ...]:
        rank = self.program.loops.ranks.get(self.of, 0)
        return axes[rank:] if mode == "tangent" else axes[:rank]

    def _derivative(self, mode: str) -> Program:
        """The tangent or the adjoint, at as many seeds as there are colours."""
        if mode not in self._derivatives:
            of, wrt = self.of, self.wrt
            if mode == "tangent":
                derivative = self.program._derived(lambda loops: tangent(loops, [wrt], only=[of]))
            else:
                derivative = self.program.adjoint(wrt=[wrt], of=[of])
            index = ir.fresh("colour", derivative.loops.names)
            self._derivatives[mode] = derivative.batch(index, over=[self._seed(mode)])
        return self._derivatives[mode]


def compressed(program: Program, of: str, wrt: str, mode: str | None = None) -> Compressed:
    """The Jacobian of `of` by `wrt` from as few tangents, or adjoints, as its sparsity allows."""
    return Compressed(program, of, wrt, mode, sparsity(program, of, wrt))
