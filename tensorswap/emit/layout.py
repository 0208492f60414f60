"""Layout: where the elements of each tensor lie, and which sizes a kernel has as constants.

Strides and the sizes that make them are constants of a kernel, because LLVM needs them to make good code; the size of a
leading axis is a variable, so that another batch size compiles nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ..language import ir
from ..language.sizes import Sizes


@dataclass(frozen=True)
class Word:
    """One number of a kernel's context: the kernel's own name for it, and the tensor or the size behind it."""

    local: str
    item: str | int


@dataclass
class Layout:
    """The names that one kernel uses: tensors a0, a1, ..., indices i0, ..., variable sizes n0, ...; and its context."""

    sizes: Sizes
    constant: frozenset[str]
    tensors: dict[str, str] = field(default_factory=dict)
    indices: dict[str, str] = field(default_factory=dict)
    variables: dict[object, str] = field(default_factory=dict)
    words: list[Word] = field(default_factory=list)

    def tensor(self, name: str) -> str:
        if name not in self.tensors:
            self.tensors[name] = f"a{len(self.tensors)}"
            self.words.append(Word(self.tensors[name], name))
        return self.tensors[name]

    def index(self, name: str) -> str:
        return self.indices.setdefault(name, f"i{len(self.indices)}")

    def size(self, index: str) -> str:
        """The number of values of an index: a constant, or a variable of the kernel."""
        if index in self.constant:
            return str(self.sizes.index[index])
        return self._variable(("index", index), self.sizes.index[index])

    def weight(self, index: str) -> float:
        """How large an index is, for choices that another size of a leading axis must not change: that is large."""
        return self.sizes.index[index] if index in self.constant else math.inf

    def extent(self, tensor: str, axis: int) -> str:
        """The size of an axis: the leading one is a variable."""
        if axis:
            return str(self.sizes.shapes[tensor][axis])
        return self._variable(("axis", tensor), self.sizes.shapes[tensor][axis])

    def _variable(self, key: object, value: int) -> str:
        if key not in self.variables:
            self.variables[key] = f"n{len(self.variables)}"
            self.words.append(Word(self.variables[key], value))
        return self.variables[key]

    def strides(self, tensor: str) -> list[int]:
        shape = self.sizes.shapes[tensor]
        result = [1] * len(shape)
        for axis in range(len(shape) - 2, -1, -1):
            result[axis] = result[axis + 1] * shape[axis + 1]
        return result


def constant_indices(loops: ir.Loops) -> frozenset[str]:
    """Indices that run over an axis which is not the leading one: their sizes are in the strides anyway."""
    found: set[str] = set()
    for statement in loops.statements:
        for access in (statement.target, *statement.reads):
            for axis, place in enumerate(access.indices):
                if axis and isinstance(place, ir.Index):
                    found.add(place.name)
    leading = {
        place.name
        for statement in loops.statements
        for access in (statement.target, *statement.reads)
        for axis, place in enumerate(access.indices)
        if axis == 0 and isinstance(place, ir.Index)
    }
    everything = set(loops.indices)
    return frozenset(found | (everything - leading))
