"""Register tiles: small blocks of a contraction that stay in vector registers, written with llvmlite.

Three forms. *Outer*: vectors along a contiguous index of the result; each step multiplies one vector of b with one
number of a for every row. *Lane*: the same, with the rows of a side by side: where a vector register multiplies by one
of its lanes, they are loaded as vectors too. *Dot*: vectors along a contiguous index that is summed over; each pair of
a row of a and a column of b has a vector of partial sums, added up at the end; both may be of a, which then is read in
windows. Strides that are constants stay so.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from .. import assembly as llvm
from .registers import LINE, MASKED, registers

NUMBER = llvm.IntType(64)
LANE = llvm.IntType(32)
WRITTEN_OUT = 32  # values that a loop of known rounds makes at most, if these are written one after the other
INNERMOST = 80  # the same, of the last of several loops: it would end before a CPU is at its speed
STEPS = 4  # of a sum between two jumps, where each number of a is a load: so a CPU has room for its multiply-adds
EARLY = 32  # steps before a row of b is wanted, that line of it is asked for
EACH = 4  # values for which a round counts at least
FETCH = "llvm.prefetch.p0i8"
ROLLED = "tensorswap.rolled"  # the name of a module's word for loops that LLVM leaves as they are

Loop = tuple[Any, Any, Any]  # how often, and how far each step moves through a and b
Sums = list[Any]


@dataclass(frozen=True)
class Block:
    """Memory that a tile reads or writes: its start, the place of the tile, and how far apart rows and columns are."""

    start: Any
    at: Any
    row: Any
    column: Any


def stays_rolled(back: Any) -> None:
    """Tells LLVM not to write out the steps of a loop, by a mark on the jump back to its start."""
    _mark(back, ROLLED, [("llvm.loop.unroll.disable",)])


def becomes_vectors(back: Any, lanes: int, vectors: int) -> None:
    """Tells LLVM to run so many vectors of a loop's steps at once."""
    how = [("llvm.loop.vectorize.width", lanes), ("llvm.loop.interleave.count", vectors)]
    _mark(back, f"tensorswap.at_once.{lanes}.{vectors}", [*how, ("llvm.loop.unroll.disable",)])


def in_pairs(back: Any) -> None:
    """Tells LLVM to run two vectors of a loop's steps side by side. Each instruction of a function waits for the one
    before it, and a CPU sees too few of them ahead to begin with the next vector by itself."""
    _mark(back, "tensorswap.in_pairs", [("llvm.loop.interleave.count", 2)])


def written_out(back: Any, steps: int) -> None:
    """Tells LLVM to write out so many steps of a loop: what one makes and the next reads need not change registers."""
    _mark(back, f"tensorswap.written_out.{steps}", [("llvm.loop.unroll.count", steps)])


def _mark(back: Any, name: str, told: list[tuple[Any, ...]]) -> None:
    module = back.function.module
    if name not in module.namedmetadata:
        words = [module.add_metadata([LANE(w) if isinstance(w, int) else w for w in words]) for words in told]
        mark = module.add_metadata(words)
        mark.operands = (mark, *mark.operands)  # LLVM takes a mark for a loop's only if it names itself first
        module.add_named_metadata(name, mark)
    back.set_metadata("llvm.loop", module.namedmetadata[name].operands[0])


def _known(code: Any) -> int | None:
    """The whole number that code stands for, if that is known."""
    return code if isinstance(code, int) else code.constant if isinstance(code, llvm.Constant) else None


class Vectors:
    """LLVM code on vectors of one width, of which all memory has so many numbers, if that are fewer; or on single
    numbers."""

    def __init__(self, builder: Any, size: int, width: int, most: int | None = None) -> None:
        self.builder = builder
        self.size = size  # of a number, in bytes
        self.element = llvm.FloatType() if size == 4 else llvm.DoubleType()
        self.vector = llvm.VectorType(self.element, width) if width > 1 else self.element
        self.width = width
        few = [int(lane < most) for lane in range(width)] if most is not None and most < width else None
        self.mask = few and llvm.Constant(llvm.VectorType(llvm.IntType(1), width), few)
        name = f"llvm.fma.{f'v{width}' if width > 1 else ''}f{8 * size}"
        kind = llvm.FunctionType(self.vector, [self.vector] * 3)
        self.fused = builder.module.globals.get(name) or llvm.Function(builder.module, kind, name)

    def at(self, base: Any, index: Any, stride: Any) -> Any:
        """base + index * stride"""
        count, step = _known(index), _known(stride)
        if count == 0 or step == 0:
            return base
        if count is not None and step is not None:
            moved = NUMBER(count * step)
        elif 1 in (count, step):
            moved = stride if count == 1 else index
        else:
            moved = self.builder.mul(NUMBER(index) if isinstance(index, int) else index, stride)
        return moved if _known(base) == 0 else self.builder.add(base, moved)

    def further(self, memory: Any, offset: Any) -> Any:
        """The memory so many numbers further on."""
        if _known(offset) == 0:
            return memory
        return self.builder.gep(memory, [NUMBER(offset) if isinstance(offset, int) else offset])

    def address(self, memory: Any, offset: Any) -> Any:
        place = self.further(memory, offset)
        return self.builder.bitcast(place, self.vector.as_pointer()) if self.width > 1 else place

    def load(self, memory: Any, offset: Any, mask: Any = None) -> Any:
        """A vector; or the lanes of a mask, with zeros beside them, where there may be no memory."""
        place, mask = self.address(memory, offset), mask or self.mask
        if mask is None:
            return self.builder.load(place, align=self.size)
        return self._masked("load", self.vector, [place, LANE(self.size), mask, *self.zeros(1)])

    def store(self, value: Any, memory: Any, offset: Any) -> None:
        place = self.address(memory, offset)
        if self.mask is None:
            self.builder.store(value, place, align=self.size)
        else:
            self._masked("store", llvm.VoidType(), [value, place, LANE(self.size), self.mask])

    def _masked(self, what: str, result: Any, arguments: list[Any]) -> Any:
        name, module = f"llvm.masked.{what}.v{self.width}f{8 * self.size}.p0", self.builder.module
        kind = llvm.FunctionType(result, [argument.type for argument in arguments])
        return self.builder.call(module.globals.get(name) or llvm.Function(module, kind, name), arguments)

    @property
    def has_masks(self) -> bool:
        return self.width * self.size >= MASKED

    def first_lanes(self, count: Any) -> Any:
        """So many lanes of a vector, as a mask."""
        lanes = llvm.Constant(llvm.VectorType(LANE, self.width), list(range(self.width)))
        many = self.builder.insert_element(llvm.Constant(lanes.type, llvm.Undefined), count, LANE(0))
        return self.builder.icmp_signed("<", lanes, self.shuffled(many, [0] * self.width))

    def fetch(self, place: Any, write: bool = False) -> None:
        """Asks for a line of memory that will be wanted; where there is none, nothing happens."""
        byte, module = llvm.IntType(8).as_pointer(), self.builder.module
        kind = llvm.FunctionType(llvm.VoidType(), [byte, LANE, LANE, LANE])
        function = module.globals.get(FETCH) or llvm.Function(module, kind, FETCH)
        near, data = LANE(3), LANE(1)
        self.builder.call(function, [self.builder.bitcast(place, byte), LANE(int(write)), near, data])

    def shuffled(self, vector: Any, lanes: list[int]) -> Any:
        unused = llvm.Constant(vector.type, llvm.Undefined)
        return self.builder.shuffle_vector(vector, unused, llvm.Constant(llvm.VectorType(LANE, len(lanes)), lanes))

    def splat(self, number: Any) -> Any:
        if self.width == 1:
            return number
        first = self.builder.insert_element(llvm.Constant(self.vector, llvm.Undefined), number, LANE(0))
        return self.shuffled(first, [0] * self.width)

    def zeros(self, count: int) -> Sums:
        return [llvm.Constant(self.vector, None)] * count

    def multiply_add(self, a: Any, b: Any, total: Any) -> Any:
        return self.builder.call(self.fused, [a, b, total])

    def added_up(self, vector: Any) -> Any:
        """The sum of a vector's lanes."""
        if self.width == 1:
            return vector
        while vector.type.count > 1:
            half = vector.type.count // 2
            low, high = (self.shuffled(vector, list(range(k, k + half))) for k in (0, half))
            vector = self.builder.fadd(low, high)
        return self.builder.extract_element(vector, LANE(0))

    def nest(self, loops: Sequence[Loop], a: Any, b: Any, sums: Sums, step: Callable[[Any, Any, Sums], Sums]) -> Sums:
        """Loops inside each other, with a step at each place in a and b that makes new sums of the old ones."""
        if not loops:
            return step(a, b, sums)
        (count, move_a, move_b), *inner = loops

        def body(index: Any, old: Sums) -> Sums:
            return self.nest(inner, self.at(a, index, move_a), self.at(b, index, move_b), old, step)

        return repeated(self.builder, count, sums, body)


def repeated(
    builder: Any, count: Any, values: Sums, body: Callable[[Any, Sums], Sums], written_out: int = WRITTEN_OUT
) -> Sums:
    """A loop that makes new values of the old ones so many times; gives the last."""
    known = _known(count)
    if known is not None and (known == 1 or known * max(len(values), EACH) <= written_out):
        for number in range(known):
            values = body(NUMBER(number), values)
        return values
    before = builder.block
    inside, after = (builder.function.append_basic_block(text) for text in ("repeated", "after"))
    builder.cbranch(builder.icmp_signed(">", count, NUMBER(0)), inside, after)
    builder.position_at_end(inside)
    index, *old = (builder.phi(kind) for kind in (NUMBER, *(value.type for value in values)))
    new = body(index, old)
    following = builder.add(index, NUMBER(1), flags=["nsw"])
    last = builder.block
    stays_rolled(builder.cbranch(builder.icmp_signed("<", following, count), inside, after))
    for phi, first, later in zip((index, *old), (NUMBER(0), *values), (following, *new), strict=True):
        phi.add_incoming(first, before)
        phi.add_incoming(later, last)
    builder.position_at_end(after)
    results = [builder.phi(value.type) for value in values]
    for phi, first, later in zip(results, values, new, strict=True):
        phi.add_incoming(first, before)
        phi.add_incoming(later, last)
    return results


def walk(
    code: Vectors, count: Any, begin: Sequence[Any], moves: Sequence[Any], sums: Sums,
    step: Callable[[Sequence[Any], Sums], Sums], at_once: int, readers: int = 1,
) -> Sums:  # fmt: skip
    """An innermost loop, so many steps after each other between two jumps, each of which is given places in memory and
    moves them on. What a step adds to them is known before the loop: LLVM by itself has a place for each of those
    steps, and more places than a CPU has registers. The last place is given several times if it has several readers:
    LLVM does not know that they read the same."""
    builder, size = code.builder, len(begin)
    moves = [*moves, *[moves[-1]] * (readers - 1)]
    further = [[code.at(NUMBER(0), k, move) for move in moves] for k in range(at_once + 1)]

    def steps(many: int) -> Callable[[Any, Sums], Sums]:
        def body(_: Any, old: Sums) -> Sums:
            places, sums = old[:size], old[size:]
            while len(places) < len(moves):
                places.append(builder.hidden(places[-1]))
            for k in range(many):
                sums = step([code.further(*place) for place in zip(places, further[k], strict=True)], sums)
            return [*(code.further(*place) for place in zip(old[:size], further[many], strict=False)), *sums]

        return body

    known, values = _known(count), [*begin, *sums]
    if known is not None and known * max(len(sums), EACH) <= INNERMOST:
        return repeated(builder, count, values, steps(1), known * max(len(values), EACH))[size:]
    if at_once == 1:
        return repeated(builder, count, values, steps(1))[size:]
    whole = NUMBER(known // at_once) if known is not None else builder.sdiv(count, NUMBER(at_once))
    left = NUMBER(known % at_once) if known is not None else builder.sub(count, builder.mul(whole, NUMBER(at_once)))
    values = repeated(builder, whole, values, steps(at_once))
    return repeated(builder, left, values, steps(1))[size:]


def depending(builder: Any, test: Any, write: Callable[[bool], None]) -> None:
    """Code for both answers to a test, or for the one that is known."""
    if isinstance(test, llvm.Constant):
        write(bool(test.constant))
        return
    with builder.if_else(test) as (yes, no):
        with yes:
            write(True)
        with no:
            write(False)


def outer(
    builder: Any, size: int, rows: int, places: Sequence[int], width: int, columns: int, by_lane: bool,
    a: Block, b: Block, y: Block, loops: Sequence[Loop], scale: Any, add: Any,
) -> None:  # fmt: skip
    """An outer tile, or a lane tile if the rows of a lie side by side and registers multiply by lane. The vectors of a
    row begin at `places`, and may share elements, of which both have the same sums."""
    code = Vectors(builder, size, width, columns)
    apart = [code.at(NUMBER(0), row, a.row) for row in range(rows)]

    readers = len(places) if registers().takes_numbers and not by_lane else 1  # of a: one for each vector of a row

    def step(places_of: Sequence[Any], sums: Sums) -> Sums:
        of_b, *early = places_of[:-readers]
        vectors = [code.load(of_b, place) for place in places]
        for place in places[:: max(LINE // (size * width), 1)] if early else ():
            code.fetch(code.further(early[0], NUMBER(place)))
        of_a = places_of[-readers:]
        factors = _lanes(code, of_a[0], apart) if by_lane else _numbers(code, of_a, apart)
        pairs = ((factors(row, j), vector) for row in range(rows) for j, vector in enumerate(vectors))
        return [code.multiply_add(*pair, total) for pair, total in zip(pairs, sums, strict=True)]

    def along(at_a: Any, at_b: Any, sums: Sums) -> Sums:
        count, in_a, in_b = loops[-1]
        begin, moves = [code.further(b.start, at_b)], [in_b]
        if not by_lane:
            begin.append(code.further(begin[0], builder.mul(in_b, NUMBER(EARLY))))
            moves.append(in_b)
        places_of = [*begin, code.further(a.start, at_a)]
        return walk(code, count, places_of, [*moves, in_a], sums, step, 1 if by_lane else STEPS, readers)

    written = [code.further(y.start, code.at(y.at, row, y.row)) for row in range(rows)]
    if _known(add) != 0:
        for row in written:
            code.fetch(row, write=True)
            code.fetch(code.further(row, columns - 1), write=True)
    sums = code.nest(loops[:-1], a.at, b.at, code.zeros(rows * len(places)), along)
    elements = [(row, place) for row in written for place in places]
    factor = code.splat(scale)
    if _known(add) == 0:
        values = [builder.fmul(total, factor) for total in sums]
    else:
        before = _before(code, written, columns, add)
        olds = (code.load(row, place) for row in before for place in places)
        values = [code.multiply_add(total, factor, old) for total, old in zip(sums, olds, strict=True)]
    for (row, place), value in zip(elements, values, strict=True):
        code.store(value, row, place)


def _before(code: Vectors, rows: list[Any], count: int, add: Any) -> list[Any]:
    """Where the numbers stand that a tile adds to: in its rows, or zeros if it does not add."""
    if _known(add) is not None:
        return rows
    name, kind = f"zeros_{8 * code.size}_{count}", llvm.ArrayType(code.element, count)
    zeros = code.builder.module.globals.get(name)
    if zeros is None:
        zeros = llvm.GlobalVariable(code.builder.module, kind, name)
        zeros.linkage, zeros.global_constant = "internal", True
        zeros.initializer = llvm.Constant(kind, None)
    nothing = code.builder.bitcast(zeros, code.element.as_pointer())
    return [code.builder.select(add, row, nothing) for row in rows]


Factors = Callable[[int, int], Any]  # by the row of a tile, and the vector that it is multiplied by


def _lanes(code: Vectors, a: Any, apart: list[Any]) -> Factors:
    """One number of a for each row, which stand side by side, in every lane of a vector."""
    if code.width == 1 or len(apart) % code.width:
        return _numbers(code, [a], apart)
    vectors = [code.load(a, first) for first in range(0, len(apart), code.width)]
    return cache(lambda row, _: code.shuffled(vectors[row // code.width], [row % code.width] * code.width))


def _numbers(code: Vectors, readers: Sequence[Any], apart: list[Any]) -> Factors:
    """The same, each read for itself. With several readers, every other row's is read for each vector: multiply-adds
    read those themselves, and as many loads as a CPU has room for take the place of instructions of their own."""

    @cache
    def number(row: int, reader: int) -> Any:
        return code.splat(code.builder.load(code.further(readers[reader], apart[row])))

    return lambda row, j: number(row, j if row % 2 == 0 and len(readers) > 1 else 0)


def dot(
    builder: Any, size: int, rows: int, places: Sequence[int], width: int, columns: int, by_lane: bool,
    a: Block, b: Block, y: Block, loops: Sequence[Loop], scale: Any, add: Any,
) -> None:  # fmt: skip
    """A dot tile: the innermost loop runs along memory, vectors first, then the numbers that are left: as some lanes of
    a vector, or one after the other."""
    code, single = Vectors(builder, size, width), Vectors(builder, size, 1)
    count = rows * len(places)
    alone = [] if code.has_masks else single.zeros(count)  # sums of numbers that are left

    def products(code: Vectors, at_a: Any, at_b: Any, k: Any, sums: Sums, mask: Any = None) -> Sums:
        @cache
        def left(row: int, column: int) -> Any:
            return code.load(a.start, builder.add(code.at(code.at(at_a, row, a.row), column, a.column), k), mask)

        @cache
        def right(column: int) -> Any:
            return code.load(b.start, builder.add(code.at(at_b, column, b.column), k), mask)

        windows, same = _known(a.column) != 0, _known(b.column) == 0
        elements = itertools.product(range(rows), places)
        pairs = ((left(row, column if windows else 0), right(0 if same else column)) for row, column in elements)
        return [code.multiply_add(*pair, total) for pair, total in zip(pairs, sums, strict=True)]

    def along(at_a: Any, at_b: Any, sums: Sums) -> Sums:
        steps = loops[-1][0]
        whole = builder.sdiv(steps, NUMBER(width))
        start = builder.mul(whole, NUMBER(width))
        left = builder.sub(steps, start)
        vectors = repeated(
            builder, whole, sums[:count],
            lambda k, old: products(code, at_a, at_b, builder.mul(k, NUMBER(width)), old),
        )  # fmt: skip
        if code.has_masks:
            mask = code.first_lanes(builder.trunc(left, LANE))
            some = builder.zext(builder.icmp_signed(">", left, NUMBER(0)), NUMBER)
            return repeated(builder, some, vectors, lambda _, old: products(code, at_a, at_b, start, old, mask))
        rest = repeated(
            builder, left, sums[count:], lambda k, old: products(single, at_a, at_b, builder.add(start, k), old)
        )
        return [*vectors, *rest]

    sums = code.nest(loops[:-1], a.at, b.at, [*code.zeros(count), *alone], along)
    totals = [code.added_up(vector) for vector in sums[:count]]
    if alone:
        totals = [builder.fadd(total, rest) for total, rest in zip(totals, sums[count:], strict=True)]
    totals = [builder.fmul(total, scale) for total in totals]

    def store(adding: bool) -> None:
        for (row, column), total in zip(itertools.product(range(rows), places), totals, strict=True):
            place = code.at(code.at(y.at, row, y.row), column, y.column)
            value = builder.fadd(total, single.load(y.start, place)) if adding else total
            single.store(value, y.start, place)

    depending(builder, add, store)


FORMS = {"outer": outer, "lane": outer, "dot": dot}
