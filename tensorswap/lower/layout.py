"""Layout: where the elements of each tensor lie, and which sizes a kernel has as constants.

Strides and the sizes that make them are constants of a kernel, because LLVM needs them to make good code; the size of a
leading axis is a variable, so that another batch size compiles nothing. Of a tensor that lives in one strip of a nest
only that strip is kept: its axis is cut.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..kernel.ir import WORD, Memory, Role, Type, Value, Variable, Word, type_in_memory, word
from ..language import ir
from ..language.bounds import folded
from ..language.ir import Expr, Number
from ..language.sizes import Sizes
from ..language.types import DOUBLE, Kind, Types

FEW = 8  # values of a leading index below which no tile of several rows fits


@dataclass(frozen=True)
class PanelsOf:
    """Memory for panels of one operand of a contraction: a statement of a kernel, both by number."""

    side: str
    kernel: int
    statement: int


@dataclass(frozen=True)
class BufferOf:
    """Memory for one tile of such numbers."""

    type: Type


@dataclass(frozen=True)
class BestOf:
    """The values of the winners that an argmax= or argmin= has found so far."""

    tensor: str


@dataclass(frozen=True)
class CopiesOf:
    """The copies of a tensor that all threads but the first have."""

    tensor: str


Tensor = str | PanelsOf | BufferOf | BestOf | CopiesOf


@dataclass(frozen=True)
class Cut:
    """An axis of which only `extent` elements are kept, from `low` on."""

    low: Variable
    extent: int


@dataclass
class Layout:
    """The names that one kernel uses: tensors a0, a1, ..., indices i0, ..., variable sizes n0, ...; and its context."""

    sizes: Sizes
    constant: frozenset[str]
    types: Types
    default: np.dtype[Any]
    results: frozenset[str] = frozenset()
    kernel: int = 0  # its number
    tensors: dict[Tensor, Memory] = field(default_factory=dict)
    indices: dict[str, Variable] = field(default_factory=dict)
    variables: dict[Hashable, Variable] = field(default_factory=dict)
    words: list[Word] = field(default_factory=list)
    roles: dict[Tensor, Role] = field(default_factory=dict)  # of a tensor's address, if it is not simply that
    cuts: dict[str, dict[int, Cut]] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)  # the axis along which a tensor's elements lie, if not the last
    least: dict[str, int] = field(default_factory=dict)  # the fewest values that a strip of an index can have
    most: dict[str, int] = field(default_factory=dict)  # and the most, if strips are cut to size
    joined: dict[str, int] = field(default_factory=dict)  # indices that run over all of two axes at once: their sizes
    joined_strips: dict[str, int] = field(default_factory=dict)  # the same, where one of the two runs over strips
    beside: dict[Tensor, tuple[int, np.dtype[Any]]] = field(default_factory=dict)  # memory for what is no tensor

    # -- types

    @staticmethod
    def settled(kind: Kind) -> np.dtype[Any]:
        """The type behind a kind: weak floats are double until they meet another type."""
        return DOUBLE if kind.weak and kind.dtype.kind == "f" else kind.dtype

    def stored(self, tensor: Tensor) -> np.dtype[Any]:
        """The type that a tensor's elements are stored in. A result of no type of its own has the program's."""
        if not isinstance(tensor, str):
            return self.beside[tensor][1]
        kind = self.types.tensors[tensor]
        return self.default if tensor in self.results and kind.weak and kind.dtype.kind == "f" else self.settled(kind)

    # -- names

    def tensor(self, name: Tensor) -> Memory:
        if name not in self.tensors:
            memory = Memory(f"a{len(self.tensors)}", type_in_memory(self.stored(name)))
            self.tensors[name] = memory
            self.words.append(Word(memory, self.roles.get(name, Role.TENSOR), name))
        return self.tensors[name]

    def keep(self, name: Tensor, elements: int, dtype: np.dtype[Any], role: Role) -> Memory:
        """Memory for something that is no tensor of the program."""
        self.beside[name] = (max(elements, self.beside.get(name, (0, dtype))[0]), dtype)
        self.roles[name] = role
        return self.tensor(name)

    def elements(self, name: Tensor) -> int:
        """How many numbers are kept of a tensor or of memory beside."""
        return math.prod(self.shape(name)) if isinstance(name, str) else self.beside[name][0]

    def index(self, name: str) -> Variable:
        return self.indices.setdefault(name, Variable(f"i{len(self.indices)}", WORD))

    # -- sizes

    def count(self, index: str) -> int:
        """How many values an index has in this call."""
        for joined in (self.joined, self.joined_strips, self.sizes.index):
            if index in joined:
                return joined[index]
        raise KeyError(index)

    def is_constant(self, index: str) -> bool:
        return index in self.constant or index in self.joined

    def size(self, index: str) -> Value:
        """The number of values of an index: a constant, or a variable of the kernel."""
        if self.is_constant(index):
            return word(self.count(index))
        return self.number(("index", index), self.count(index))

    def weight(self, index: str) -> float:
        """How large an index is, for choices that another size of a leading axis must not change: that is large."""
        return self.count(index) if self.is_constant(index) else math.inf

    def least_count(self, index: str) -> float:
        """The fewest values that a loop over an index runs over at a time: for few, the kernel is another one."""
        if index in self.least or self.is_constant(index):
            return self.least.get(index, self.weight(index))
        return FEW if self.count(index) >= FEW else 1

    def greatest_count(self, index: str) -> int:
        """The most values that a loop over an index runs over at a time."""
        return self.most.get(index, self.count(index))

    def typical(self, index: str) -> float:
        """How many values a loop over an index usually runs over at a time."""
        return self.most[index] * 0.75 if index in self.most else self.weight(index)

    def extent(self, tensor: str, axis: int) -> Value:
        """The size of an axis: the leading one is a variable."""
        size = self.sizes.shapes[tensor][axis]
        return word(size) if axis else self.number(("axis", tensor), size)

    def number(self, key: Hashable, value: int) -> Variable:
        """A number that the kernel finds in its context: another one needs no other kernel."""
        if key not in self.variables:
            self.variables[key] = Variable(f"n{len(self.variables)}", WORD)
            self.words.append(Word(self.variables[key], Role.SIZE, value))
        return self.variables[key]

    def shape(self, tensor: str) -> tuple[int, ...]:
        """The extents that are kept in memory."""
        cut = self.cuts.get(tensor, {})
        return tuple(cut[k].extent if k in cut else n for k, n in enumerate(self.sizes.shapes[tensor]))

    def strides(self, tensor: str) -> list[int]:
        shape = self.shape(tensor)
        result, stride = [1] * len(shape), 1
        for axis in sorted(range(len(shape)), key=lambda axis: (axis == self.lines.get(tensor), axis), reverse=True):
            result[axis] = stride
            stride *= shape[axis]
        return result

    def known(self, node: Expr) -> Expr:
        """The expression with numbers for static integers and for the sizes that are constants of the kernel."""

        def change(n: Expr) -> Expr:
            match n:
                case ir.Static():
                    return Number(self.sizes.value(n))
                case ir.Size(index=index) if self.is_constant(index):
                    return Number(self.count(index))
                case ir.AxisSize(tensor=tensor, axis=axis) if axis:
                    return Number(self.sizes.shapes[tensor][axis])
            return folded(n)

        return ir.transform(node, change)


def constant_indices(loops: ir.Loops, sizes: Sizes) -> frozenset[str]:
    """Indices that run over an axis which is not the leading one: their sizes are in the strides anyway. Those of one
    value too: that is a loop less."""
    places = [
        (axis, place.name)
        for statement in loops.statements
        for access in (statement.target, *statement.reads)
        for axis, place in enumerate(access.indices)
        if isinstance(place, ir.Index)
    ]
    inner = {name for axis, name in places if axis}
    leading = {name for axis, name in places if axis == 0}
    return frozenset(i for i in loops.indices if i in inner or i not in leading or sizes.index[i] == 1)
