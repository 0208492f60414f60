"""Register tiles: small blocks of a contraction that stay in vector registers, written with llvmlite.

Two forms. *Outer*: vectors along a contiguous index of the result; each step multiplies one vector of B with one
number of A for every row. *Dot*: vectors along a contiguous index that is summed over; each pair of a row of A and a
column of B has a vector of partial sums, added up at the end. Strides come as literals, so that LLVM has constants.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from llvmlite import ir as llvm
from numba.core import cgutils

from .registers import multiplies_by_lane

WORD = llvm.IntType(64)
ELEMENT = {"f4": (llvm.FloatType(), 4), "f8": (llvm.DoubleType(), 8)}
LOOPS = 3  # indices that a tile sums over, one inside the other


Emitter = Callable[[Any, Sequence[Any]], None]  # writes a tile with a builder, from the values of its arguments


class _Builder:
    """LLVM code for one tile."""

    def __init__(self, builder: Any, name: str, width: int) -> None:
        self.builder = builder
        self.element, self.size = ELEMENT[name]
        self.vector = llvm.VectorType(self.element, width) if width > 1 else self.element
        self.width = width
        suffix = f"v{width}" if width > 1 else ""
        function = f"llvm.fma.{suffix}f{8 * self.size}"
        kind = llvm.FunctionType(self.vector, [self.vector] * 3)
        self.fused = builder.module.globals.get(function) or llvm.Function(builder.module, kind, function)

    def constant(self, value: int) -> Any:
        return llvm.Constant(WORD, value)

    def at(self, base: Any, index: Any, stride: Any) -> Any:
        """base + index * stride"""
        return self.builder.add(base, self.builder.mul(index, stride))

    def load(self, pointer: Any, offset: Any) -> Any:
        address = self.builder.gep(pointer, [offset])
        if self.width > 1:
            address = self.builder.bitcast(address, self.vector.as_pointer())
        return self.builder.load(address, align=self.size)

    def store(self, value: Any, pointer: Any, offset: Any) -> None:
        address = self.builder.gep(pointer, [offset])
        if self.width > 1:
            address = self.builder.bitcast(address, self.vector.as_pointer())
        self.builder.store(value, address, align=self.size)

    def splat(self, number: Any) -> Any:
        if self.width == 1:
            return number
        start = llvm.Constant(self.vector, llvm.Undefined)
        first = self.builder.insert_element(start, number, llvm.Constant(llvm.IntType(32), 0))
        mask = llvm.Constant(llvm.VectorType(llvm.IntType(32), self.width), [0] * self.width)
        return self.builder.shuffle_vector(first, start, mask)

    def zero(self) -> Any:
        return llvm.Constant(self.vector, [0.0] * self.width if self.width > 1 else 0.0)

    def sums(self, count: int) -> list[Any]:
        """Accumulators in memory, which LLVM keeps in registers."""
        found = [cgutils.alloca_once(self.builder, self.vector) for _ in range(count)]
        for place in found:
            self.builder.store(self.zero(), place)
        return found

    def multiply_add(self, a: Any, b: Any, place: Any) -> None:
        self.builder.store(self.builder.call(self.fused, [a, b, self.builder.load(place)]), place)

    @contextmanager
    def nest(self, counts: list[Any], strides: list[tuple[Any, Any]], a: Any, b: Any) -> Iterator[tuple[Any, Any]]:
        """Loops inside each other; gives the offsets into A and B."""
        if not counts:
            yield a, b
            return
        with cgutils.for_range(self.builder, counts[0]) as loop:
            k = loop.index
            inner = self.at(a, k, strides[0][0]), self.at(b, k, strides[0][1])
            with self.nest(counts[1:], strides[1:], *inner) as found:
                yield found

    def total(self, vector: Any) -> Any:
        """The sum of a vector's lanes."""
        while self.width > 1 and vector.type.count > 1:
            half = vector.type.count // 2
            kind = llvm.VectorType(llvm.IntType(32), half)
            unknown = llvm.Constant(vector.type, llvm.Undefined)
            low = self.builder.shuffle_vector(vector, unknown, llvm.Constant(kind, list(range(half))))
            high = self.builder.shuffle_vector(vector, unknown, llvm.Constant(kind, list(range(half, 2 * half))))
            vector = self.builder.fadd(low, high)
        return self.builder.extract_element(vector, llvm.Constant(llvm.IntType(32), 0)) if self.width > 1 else vector


def outer_tile(name: str, rows: int, vectors: int, width: int) -> Emitter:
    """tile(a, a0, b, b0, y, y0, row stride of a, row stride of y, then count and strides of each loop, scale, add).

    y = scale * sum, or y += scale * sum if `add` holds.
    """

    def emit(builder: Any, args: Sequence[Any]) -> None:
        a, a0, b, b0, y, y0, a_row, y_row, *loops, scale, add = args
        code = _Builder(builder, name, width)
        sums = code.sums(rows * vectors)
        counts, strides = loops[0::3], list(zip(loops[1::3], loops[2::3], strict=True))
        with code.nest(counts, strides, a0, b0) as (at_a, at_b):
            columns = [code.load(b, builder.add(at_b, code.constant(width * v))) for v in range(vectors)]
            for row in range(rows):
                number = code.splat(builder.load(builder.gep(a, [code.at(at_a, code.constant(row), a_row)])))
                for v, column in enumerate(columns):
                    code.multiply_add(number, column, sums[row * vectors + v])
        _finish(code, sums, rows, vectors, y, y0, y_row, scale, add)

    return emit


def lane_tile(name: str, rows: int, vectors: int, width: int) -> Emitter:
    """tile(a, a0, b, b0, y, y0, row stride of y, steps, stride of a, stride of b, scale, add): rows lie side by side.

    As an outer tile whose rows are contiguous in a: where a vector register multiplies by one of its lanes, the rows of
    a step are loaded as vectors too.
    """

    def emit(builder: Any, args: Sequence[Any]) -> None:
        a, a0, b, b0, y, y0, y_row, steps, a_step, b_step, scale, add = args
        code = _Builder(builder, name, width)
        sums = code.sums(rows * vectors)
        with code.nest([steps], [(a_step, b_step)], a0, b0) as (at_a, at_b):
            columns = [code.load(b, builder.add(at_b, code.constant(width * v))) for v in range(vectors)]
            for row, factor in enumerate(_row_factors(code, a, at_a, rows)):
                for v, column in enumerate(columns):
                    code.multiply_add(factor, column, sums[row * vectors + v])
        _finish(code, sums, rows, vectors, y, y0, y_row, scale, add)

    return emit


def _row_factors(code: _Builder, a: Any, at_a: Any, rows: int) -> Iterator[Any]:
    """One number of a for each row, in every lane of a vector."""
    builder, width = code.builder, code.width
    if multiplies_by_lane() and rows % width == 0 and width > 1:
        unknown = llvm.Constant(code.vector, llvm.Undefined)
        for first in range(0, rows, width):
            vector = code.load(a, builder.add(at_a, code.constant(first)))
            for lane in range(width):
                mask = llvm.Constant(llvm.VectorType(llvm.IntType(32), width), [lane] * width)
                yield builder.shuffle_vector(vector, unknown, mask)
    else:
        for row in range(rows):
            yield code.splat(builder.load(builder.gep(a, [builder.add(at_a, code.constant(row))])))


def _finish(
    code: _Builder, sums: list[Any], rows: int, vectors: int, y: Any, y0: Any, y_row: Any, scale: Any, add: Any
) -> None:
    """y = scale * sum, or y += scale * sum if `add` holds."""
    builder, factor = code.builder, code.splat(scale)
    places = [
        builder.add(code.at(y0, code.constant(row), y_row), code.constant(code.width * v))
        for row in range(rows)
        for v in range(vectors)
    ]
    with builder.if_else(add) as (adding, storing):
        with adding:
            for place, total in zip(places, sums, strict=True):
                value = builder.call(code.fused, [builder.load(total), factor, code.load(y, place)])
                code.store(value, y, place)
        with storing:
            for place, total in zip(places, sums, strict=True):
                code.store(builder.fmul(builder.load(total), factor), y, place)


def dot_tile(name: str, rows: int, columns: int, width: int) -> Emitter:
    """tile(a, a0, b, b0, y, y0, row strides of a and y, column strides of b and y, loops, scale, add)."""

    def emit(builder: Any, args: Sequence[Any]) -> None:
        a, a0, b, b0, y, y0, a_row, y_row, b_column, y_column, *loops, scale, add = args
        code, single = _Builder(builder, name, width), _Builder(builder, name, 1)
        sums, rest = code.sums(rows * columns), single.sums(rows * columns)
        counts, strides = loops[0::3], list(zip(loops[1::3], loops[2::3], strict=True))
        with code.nest(counts[:-1], strides[:-1], a0, b0) as (at_a, at_b):
            whole = builder.sdiv(counts[-1], code.constant(width))
            with cgutils.for_range(builder, whole) as loop:
                _dots(code, builder.mul(loop.index, code.constant(width)), sums)(at_a, at_b, a, b, a_row, b_column)
            start = builder.mul(whole, code.constant(width))
            with cgutils.for_range(builder, builder.sub(counts[-1], start)) as loop:
                _dots(single, builder.add(start, loop.index), rest)(at_a, at_b, a, b, a_row, b_column)
        keep = add
        for row in range(rows):
            for column in range(columns):
                k = row * columns + column
                value = builder.fadd(code.total(builder.load(sums[k])), builder.load(rest[k]))
                place = code.at(code.at(y0, code.constant(row), y_row), code.constant(column), y_column)
                total = cgutils.alloca_once(builder, single.element)
                builder.store(builder.fmul(value, scale), total)
                with builder.if_then(keep):
                    builder.store(builder.fadd(builder.load(total), single.load(y, place)), total)
                single.store(builder.load(total), y, place)

    def _dots(code: _Builder, k: Any, sums: list[Any]) -> Callable[..., None]:
        def step(at_a: Any, at_b: Any, a: Any, b: Any, a_row: Any, b_column: Any) -> None:
            builder = code.builder
            left = [code.load(a, builder.add(code.at(at_a, code.constant(r), a_row), k)) for r in range(rows)]
            right = [code.load(b, builder.add(code.at(at_b, code.constant(c), b_column), k)) for c in range(columns)]
            for r, one in enumerate(left):
                for c, other in enumerate(right):
                    code.multiply_add(one, other, sums[r * columns + c])

        return step

    return emit


FORMS = {"outer": outer_tile, "lane": lane_tile, "dot": dot_tile}
NAME = re.compile(r"\b(outer|lane|dot)_(f4|f8)_(\d+)_(\d+)_(\d+)\b")


@cache
def emitter(name: str) -> Emitter:
    """The tile of a name, which tells its form, element, rows, columns (of vectors unless it is a dot) and lanes."""
    match = NAME.fullmatch(name)
    assert match is not None
    return FORMS[match[1]](match[2], int(match[3]), int(match[4]), int(match[5]))
