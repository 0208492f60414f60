"""Register tiles: small blocks of a contraction that stay in vector registers, written with llvmlite.

Three forms. *Outer*: vectors along a contiguous index of the result; each step multiplies one vector of b with one
number of a for every row. *Lane*: the same, with the rows of a side by side: where a vector register multiplies by one
of its lanes, they are loaded as vectors too. *Dot*: vectors along a contiguous index that is summed over; each pair of
a row of a and a column of b has a vector of partial sums, added up at the end. Strides that are constants stay so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from llvmlite import ir as llvm
from numba.core import cgutils

NUMBER = llvm.IntType(64)
LANE = llvm.IntType(32)


@dataclass(frozen=True)
class Block:
    """Memory that a tile reads or writes: its start, the place of the tile, and how far apart rows and columns are."""

    start: Any
    at: Any
    row: Any
    column: Any


class Vectors:
    """LLVM code on vectors of one width, or on single numbers."""

    def __init__(self, builder: Any, size: int, width: int) -> None:
        self.builder = builder
        self.size = size  # of a number, in bytes
        self.element = llvm.FloatType() if size == 4 else llvm.DoubleType()
        self.vector = llvm.VectorType(self.element, width) if width > 1 else self.element
        self.width = width
        name = f"llvm.fma.{f'v{width}' if width > 1 else ''}f{8 * size}"
        kind = llvm.FunctionType(self.vector, [self.vector] * 3)
        self.fused = builder.module.globals.get(name) or llvm.Function(builder.module, kind, name)

    def at(self, base: Any, index: Any, stride: Any) -> Any:
        """base + index * stride"""
        index = NUMBER(index) if isinstance(index, int) else index
        return self.builder.add(base, self.builder.mul(index, stride))

    def address(self, memory: Any, offset: Any) -> Any:
        place = self.builder.gep(memory, [offset])
        return self.builder.bitcast(place, self.vector.as_pointer()) if self.width > 1 else place

    def load(self, memory: Any, offset: Any) -> Any:
        return self.builder.load(self.address(memory, offset), align=self.size)

    def store(self, value: Any, memory: Any, offset: Any) -> None:
        self.builder.store(value, self.address(memory, offset), align=self.size)

    def shuffled(self, vector: Any, lanes: list[int]) -> Any:
        unknown = llvm.Constant(vector.type, llvm.Undefined)
        return self.builder.shuffle_vector(vector, unknown, llvm.Constant(llvm.VectorType(LANE, len(lanes)), lanes))

    def splat(self, number: Any) -> Any:
        if self.width == 1:
            return number
        first = self.builder.insert_element(llvm.Constant(self.vector, llvm.Undefined), number, LANE(0))
        return self.shuffled(first, [0] * self.width)

    def sums(self, count: int) -> list[Any]:
        """Accumulators in memory, which LLVM keeps in registers."""
        found = [cgutils.alloca_once(self.builder, self.vector) for _ in range(count)]
        for place in found:
            self.builder.store(llvm.Constant(self.vector, [0.0] * self.width if self.width > 1 else 0.0), place)
        return found

    def multiply_add(self, a: Any, b: Any, place: Any) -> None:
        self.builder.store(self.builder.call(self.fused, [a, b, self.builder.load(place)]), place)

    def added_up(self, vector: Any) -> Any:
        """The sum of a vector's lanes."""
        if self.width == 1:
            return vector
        while vector.type.count > 1:
            half = vector.type.count // 2
            low, high = (self.shuffled(vector, list(range(k, k + half))) for k in (0, half))
            vector = self.builder.fadd(low, high)
        return self.builder.extract_element(vector, LANE(0))

    @contextmanager
    def nest(self, loops: Sequence[tuple[Any, Any, Any]], a: Any, b: Any) -> Iterator[tuple[Any, Any]]:
        """Loops inside each other; gives the places in a and b."""
        if not loops:
            yield a, b
            return
        (count, move_a, move_b), *inner = loops
        with cgutils.for_range(self.builder, count) as loop:
            moved = self.at(a, loop.index, move_a), self.at(b, loop.index, move_b)
            with self.nest(inner, *moved) as found:
                yield found


def outer(
    builder: Any, size: int, rows: int, across: int, width: int, by_lane: bool,
    a: Block, b: Block, y: Block, loops: Sequence[tuple[Any, Any, Any]], scale: Any, add: Any,
) -> None:  # fmt: skip
    """An outer tile, or a lane tile if the rows of a lie side by side and registers multiply by lane."""
    code = Vectors(builder, size, width)
    sums = code.sums(rows * across)
    with code.nest(loops, a.at, b.at) as (at_a, at_b):
        columns = [code.load(b.start, builder.add(at_b, NUMBER(width * v))) for v in range(across)]
        for row, factor in enumerate(_factors(code, a, at_a, rows, by_lane)):
            for v, column in enumerate(columns):
                code.multiply_add(factor, column, sums[row * across + v])
    places = [builder.add(code.at(y.at, row, y.row), NUMBER(width * v)) for row in range(rows) for v in range(across)]
    factor = code.splat(scale)
    with builder.if_else(add) as (adding, storing):
        with adding:
            for place, total in zip(places, sums, strict=True):
                value = builder.call(code.fused, [builder.load(total), factor, code.load(y.start, place)])
                code.store(value, y.start, place)
        with storing:
            for place, total in zip(places, sums, strict=True):
                code.store(builder.fmul(builder.load(total), factor), y.start, place)


def _factors(code: Vectors, a: Block, at: Any, rows: int, by_lane: bool) -> Iterator[Any]:
    """One number of a for each row, in every lane of a vector."""
    if by_lane and rows % code.width == 0 and code.width > 1:
        for first in range(0, rows, code.width):
            vector = code.load(a.start, code.builder.add(at, NUMBER(first)))
            for lane in range(code.width):
                yield code.shuffled(vector, [lane] * code.width)
    else:
        for row in range(rows):
            yield code.splat(code.builder.load(code.builder.gep(a.start, [code.at(at, row, a.row)])))


def dot(
    builder: Any, size: int, rows: int, across: int, width: int, by_lane: bool,
    a: Block, b: Block, y: Block, loops: Sequence[tuple[Any, Any, Any]], scale: Any, add: Any,
) -> None:  # fmt: skip
    """A dot tile: the innermost loop runs along memory, vectors first, then the numbers that are left."""
    code, single = Vectors(builder, size, width), Vectors(builder, size, 1)
    sums, rest = code.sums(rows * across), single.sums(rows * across)

    def products(code: Vectors, at_a: Any, at_b: Any, k: Any, sums: list[Any]) -> None:
        left = [code.load(a.start, builder.add(code.at(at_a, row, a.row), k)) for row in range(rows)]
        right = [code.load(b.start, builder.add(code.at(at_b, c, b.column), k)) for c in range(across)]
        for row, one in enumerate(left):
            for column, other in enumerate(right):
                code.multiply_add(one, other, sums[row * across + column])

    with code.nest(loops[:-1], a.at, b.at) as (at_a, at_b):
        count = loops[-1][0]
        whole = builder.sdiv(count, NUMBER(width))
        with cgutils.for_range(builder, whole) as loop:
            products(code, at_a, at_b, builder.mul(loop.index, NUMBER(width)), sums)
        start = builder.mul(whole, NUMBER(width))
        with cgutils.for_range(builder, builder.sub(count, start)) as loop:
            products(single, at_a, at_b, builder.add(start, loop.index), rest)
    for k in range(rows * across):
        row, column = divmod(k, across)
        value = builder.fadd(code.added_up(builder.load(sums[k])), builder.load(rest[k]))
        place = code.at(code.at(y.at, row, y.row), column, y.column)
        total = cgutils.alloca_once(builder, single.element)
        builder.store(builder.fmul(value, scale), total)
        with builder.if_then(add):
            builder.store(builder.fadd(builder.load(total), single.load(y.start, place)), total)
        single.store(builder.load(total), y.start, place)


FORMS = {"outer": outer, "lane": outer, "dot": dot}
