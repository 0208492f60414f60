"""Layout: where the elements of each tensor lie, and which sizes a kernel has as constants.

Strides and the sizes that make them are constants of a kernel, because LLVM needs them to make good code; the size of a
leading axis is a variable, so that another batch size compiles nothing. Of a tensor that lives in one strip of a nest
only that strip is kept: its axis is cut.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ..language import ir
from ..language.bounds import folded
from ..language.ir import Expr, Number
from ..language.sizes import Sizes

COPIES = "(threads-1)"  # the index over the copies that threads have of a tensor


FEW = 8  # values of a leading index below which no tile of several rows fits


@dataclass(frozen=True)
class Word:
    """One number of a kernel's context: the kernel's own name for it, and what it is.

    "address" of a tensor; "local": where a tensor or panel of one thread starts in that thread's scratch memory;
    "private": where the copies of a tensor start that all parts but the first have; "own": the address of the tensor,
    which the first part adds to; "copies": how many copies there are; "size": a plain number.
    """

    local: str
    kind: str
    item: str | int


@dataclass(frozen=True)
class Cut:
    """An axis of which only `extent` elements are kept, from `low` on."""

    low: str
    extent: int


@dataclass
class Layout:
    """The names that one kernel uses: tensors a0, a1, ..., indices i0, ..., variable sizes n0, ...; and its context."""

    sizes: Sizes
    constant: frozenset[str]
    tensors: dict[str, str] = field(default_factory=dict)
    indices: dict[str, str] = field(default_factory=dict)
    variables: dict[object, str] = field(default_factory=dict)
    words: list[Word] = field(default_factory=list)
    kinds: dict[str, str] = field(default_factory=dict)  # how a tensor's address is told, if not "address"
    cuts: dict[str, dict[int, Cut]] = field(default_factory=dict)
    least: dict[str, int] = field(default_factory=dict)  # the fewest values that a strip of an index can have
    most: dict[str, int] = field(default_factory=dict)  # and the most, if strips are cut to size
    joined: set[str] = field(default_factory=set)  # indices that run over all of two axes at once

    def tensor(self, name: str) -> str:
        if name not in self.tensors:
            self.tensors[name] = f"a{len(self.tensors)}"
            self.words.append(Word(self.tensors[name], self.kinds.get(name, "address"), name))
        return self.tensors[name]

    def index(self, name: str) -> str:
        return self.indices.setdefault(name, f"i{len(self.indices)}")

    def size(self, index: str) -> str:
        """The number of values of an index: a constant, or a variable of the kernel."""
        if index in self.constant:
            return str(self.sizes.index[index])
        return self.number(("index", index), self.sizes.index[index])

    def weight(self, index: str) -> float:
        """How large an index is, for choices that another size of a leading axis must not change: that is large."""
        return self.sizes.index[index] if index in self.constant else math.inf

    def least_count(self, index: str) -> float:
        """The fewest values that a loop over an index runs over at a time: for few, the kernel is another one."""
        if index in self.least or index in self.constant:
            return self.least.get(index, self.weight(index))
        return FEW if self.sizes.index[index] >= FEW else 1

    def typical(self, index: str) -> float:
        """How many values a loop over an index usually runs over at a time."""
        return self.most[index] * 0.75 if index in self.most else self.weight(index)

    def extent(self, tensor: str, axis: int) -> str:
        """The size of an axis: the leading one is a variable."""
        if axis:
            return str(self.sizes.shapes[tensor][axis])
        return self.number(("axis", tensor), self.sizes.shapes[tensor][axis])

    def number(self, key: object, value: int) -> str:
        """A number that the kernel finds in its context: another one needs no other kernel."""
        if key not in self.variables:
            self.variables[key] = f"n{len(self.variables)}"
            kind = "copies" if key == ("index", COPIES) else "size"
            self.words.append(Word(self.variables[key], kind, value))
        return self.variables[key]

    def shape(self, tensor: str) -> tuple[int, ...]:
        """The extents that are kept in memory."""
        cut = self.cuts.get(tensor, {})
        return tuple(cut[k].extent if k in cut else n for k, n in enumerate(self.sizes.shapes[tensor]))

    def strides(self, tensor: str) -> list[int]:
        shape = self.shape(tensor)
        result = [1] * len(shape)
        for axis in range(len(shape) - 2, -1, -1):
            result[axis] = result[axis + 1] * shape[axis + 1]
        return result

    def known(self, node: Expr) -> Expr:
        """The expression with numbers for static integers and for the sizes that are constants of the kernel."""

        def change(n: Expr) -> Expr:
            match n:
                case ir.Static():
                    return Number(self.sizes.value(n))
                case ir.Size(index=index) if index in self.constant:
                    return Number(self.sizes.index[index])
                case ir.AxisSize(tensor=tensor, axis=axis) if axis:
                    return Number(self.sizes.shapes[tensor][axis])
            return folded(n)

        return ir.transform(node, change)


def constant_indices(loops: ir.Loops) -> frozenset[str]:
    """Indices that run over an axis which is not the leading one: their sizes are in the strides anyway."""
    places = [
        (axis, place.name)
        for statement in loops.statements
        for access in (statement.target, *statement.reads)
        for axis, place in enumerate(access.indices)
        if isinstance(place, ir.Index)
    ]
    inner = {name for axis, name in places if axis}
    leading = {name for axis, name in places if axis == 0}
    return frozenset(inner | (set(loops.indices) - leading))
