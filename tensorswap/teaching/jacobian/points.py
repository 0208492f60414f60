"""Points: the index expressions of a statement at every point of some of its indices, without any values of tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...arrays import Array, Integers, Mask
from ...language import ir
from ...language.affine import is_constant
from ...language.formula import OPERATIONS, of_arrays
from ...language.functions import INDEX_FUNCTIONS
from ...language.ir import Expr
from ...language.sizes import Sizes

ARITHMETIC = frozenset({"+", "-", "*", "//", "%"})


def decidable(node: Expr, integers: Mapping[str, Any]) -> bool:
    """Whether an expression holds only indices, sizes and integer arrays that are known."""
    if isinstance(node, ir.Access):
        return node.tensor in integers and all(decidable(e, integers) for e in node.indices)
    if isinstance(node, ir.Call) and node.function not in INDEX_FUNCTIONS:
        return False
    if isinstance(node, ir.Conditional | ir.Inside):
        return False
    if isinstance(node, ir.Number) and not isinstance(node.value, int):
        return False
    if isinstance(node, ir.Binary) and node.operator not in ARITHMETIC:
        return False
    return all(decidable(part, integers) for part in ir.children(node))


class Points:
    """Every point of the indices named, in row-major order; each index is a flat array of positions."""

    def __init__(self, names: list[str], sizes: Sizes, integers: Mapping[str, Array]) -> None:
        self.sizes, self.integers = sizes, integers
        extents = [sizes.index[name] for name in names]
        self.count = int(np.prod(extents, dtype=np.int64)) if extents else 1
        grid = np.unravel_index(np.arange(self.count), extents) if extents else ()
        self.at = {name: np.asarray(place, np.int64) for name, place in zip(names, grid, strict=True)}

    def keep(self, mask: Mask) -> None:
        """Drops the points where the mask does not hold."""
        self.at = {name: place[mask] for name, place in self.at.items()}
        self.count = int(np.count_nonzero(mask))

    def value(self, node: Expr) -> Integers:
        """A whole number at every point. A position out of bounds reads anything: such points are dropped."""
        match node:
            case ir.Index(name=name):
                return self.at[name]
            case ir.Unary(operator="-", operand=operand):
                return -self.value(operand)
            case ir.Binary(operator=operator, left=left, right=right):
                below = self.value(right)
                if operator in ("//", "%"):
                    below = np.where(below == 0, 1, below)  # at points that are not evaluated
                return np.asarray(OPERATIONS[operator](self.value(left), below))
            case ir.Call(function=function, arguments=arguments):
                return np.asarray(of_arrays(function)(*map(self.value, arguments)))
            case ir.Access(tensor=tensor, indices=indices):
                array = self.integers[tensor]
                if not array.size:
                    return np.zeros(self.count, np.int64)
                places = tuple(np.clip(self.value(e), 0, n - 1) for e, n in zip(indices, array.shape, strict=True))
                return np.broadcast_to(array[places], (self.count,)).astype(np.int64)
        assert is_constant(node), f"no whole number for {type(node).__name__}"
        return np.full(self.count, self.sizes.value(node), np.int64)

    def truth(self, node: Expr) -> tuple[Mask, Mask]:
        """Where a condition may hold, and where it must: they differ where it depends on values."""
        match node:
            case ir.Logic(operator=operator, left=left, right=right):
                (may, must), (also_may, also_must) = self.truth(left), self.truth(right)
                if operator == "and":
                    return may & also_may, must & also_must
                return may | also_may, must | also_must
            case ir.Unary(operator="not", operand=operand):
                may, must = self.truth(operand)
                return ~must, ~may
            case ir.Compare(operator=operator, left=left, right=right) if decidable(node, self.integers):
                holds = OPERATIONS[operator](self.value(left), self.value(right))
                return holds, holds
        if decidable(node, self.integers):
            holds = self.value(node) != 0
            return holds, holds
        return np.ones(self.count, bool), np.zeros(self.count, bool)

    def within(self, access: ir.Access, shape: tuple[int, ...]) -> Mask:
        """Where every place of an access that can be told is in bounds."""
        mask = np.ones(self.count, bool)
        for place, extent in zip(access.indices, shape, strict=True):
            if decidable(place, self.integers):
                value = self.value(place)
                mask &= (value >= 0) & (value < extent)
        return mask
