"""Calls of tiles: where one tile begins and ends, and what its edges and guards leave to do beside it.

At an edge the last tile moves back over the one before it; where that would add twice, and where a guard cuts through a
tile or y is not contiguous, the tile goes to a buffer first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ..kernel import ir as kernel
from ..kernel.ir import (
    FALSE,
    LOOPS,
    ONE,
    TRUE,
    ZERO,
    Choice,
    Memory,
    Panel,
    Value,
    Variable,
    compare,
    constant,
    extreme,
    joined,
    least,
    most,
    number,
    type_of,
    word,
)
from ..language import ir
from ..language.affine import Affine, affine
from ..language.bounds import at_least_zero
from ..language.ir import Expr, Number
from .layout import BufferOf
from .panels import CHUNK, COLUMN, ROW, Panels
from .tiling import Side, Tiling

Loop = tuple[Value, int, int]  # how often, and how far that moves through a and b


@dataclass(frozen=True)
class Summed:
    """The loops over summed indices: where each starts, and how many values it runs over."""

    starts: dict[str, Value]
    counts: list[Value]


class TileWriter:
    """Writes the innermost statements of one contraction: those of a single tile."""

    def __init__(self, tiling: Tiling, panels: Panels, store: bool) -> None:
        self.tiling = tiling
        self.panels = panels
        self.store = store  # whether the tile holds the first values of its elements
        self.found = tiling.found
        self.statement = tiling.statement
        self.scope = tiling.scope
        self.write = tiling.write
        self.layout = tiling.layout
        self.read = ir.substitute_indices(dict(self.found.values))
        self.row, self.column = (self.layout.index(name) for name in (self.found.row, self.found.column))

    def emit(self) -> None:
        if self.found.bounds and not self.store:
            first, past = self.bounded_range(*self.tiling.ranges[self.found.summed[0]], greatest=True)
            with self.scope.when([compare("<=", past, first)]):
                self.scope.add(kernel.Skip())
        summed = self.summed()
        a, b = (self.operand(side, summed) for side in (self.tiling.a, self.tiling.b))
        corners = self.corners()
        if corners:
            with self.scope.when([joined("or", [compare("<", greatest, 0) for _, greatest in corners])]):
                self.scope.add(kernel.Skip())
        keep, y = self.keep(), self.target()
        aside = self.aside(corners, keep)
        if aside is not None:
            keep, y = self.through_buffer(aside, keep, y)
        loops = tuple((count, word(in_a), word(in_b)) for count, in_a, in_b in self.loops(summed))
        self.scope.add(kernel.TileCall(self.tiling.tile, a, b, y, loops, self.scale(), keep))
        if aside is not None:
            self.write_back(aside)
        if any(self.found.row in self.form(bound).terms for bound in self.found.bounds):
            self.left_over()

    # -- operands

    def operand(self, side: Side, summed: Summed) -> Panel:
        memory, place = self.panels.source(side, summed.starts)
        row, column = (word(side.moves.get(name, 0)) for name in (self.found.row, self.found.column))
        if side is self.tiling.a:
            return Panel(memory, place, ONE if self.found.form == "lane" else row, column)
        return Panel(memory, place, ZERO, column if self.found.form == "dot" else ONE)

    def target(self) -> Panel:
        zero = ir.substitute_indices(dict.fromkeys(self.found.summed, Number(0)))
        y = ir.transform(self.statement.target, zero)
        assert isinstance(y, ir.Access)
        across, along = (word(self.tiling.of_y.get(name, 0)) for name in (self.found.row, self.found.column))
        return Panel(self.layout.tensor(y.tensor), self.write.offset(y), across, along)

    def scale(self) -> Value:
        """Computed in the type of the sums: the numbers may be of a narrower one, in which they do not fit."""
        dtype = self.tiling.dtype
        one = number(1, type_of(dtype))
        value: Value = one
        for operator, factor in self.found.scale:
            other = self.write.value(factor, dtype)
            value = value / other if operator == "/" else other if value is one else value * other
        return -value if self.statement.operator == "-=" else value

    def keep(self) -> Value:
        """Whether a tile adds to what stands in its place."""
        if not self.store:
            return TRUE
        return FALSE if self.tiling.chunk is None else compare(">", CHUNK, self.tiling.first_of_sum())

    # -- the sum

    def summed(self) -> Summed:
        starts, counts = {}, []
        for position, name in enumerate(self.found.summed):
            low, high = self.tiling.ranges[name]
            count = high - low
            if position == 0 and self.tiling.chunk is not None:
                low, count = CHUNK, least(self.tiling.chunk, high - CHUNK)
            elif position == 0 and (self.found.bounds or self.found.masks):
                low, count = self.common_range(low, high)
            starts[name] = low
            counts.append(count)
        return Summed(starts, counts)

    def loops(self, summed: Summed) -> list[Loop]:
        """The loops of a tile; one for two that run on where the other ends."""
        a, b = self.tiling.a, self.tiling.b
        if self.tiling.runs_as_one(a) and self.tiling.runs_as_one(b):
            times: Value = ONE
            for count in summed.counts:
                times = times * count
            return [(ONE, 0, 0)] * (LOOPS - 1) + [(times, self.panels.step(a), self.panels.step(b))]
        result: list[Loop] = []
        for name, count in zip(self.found.summed, summed.counts, strict=True):
            in_a, in_b, known = self.panels.move(a, name), self.panels.move(b, name), constant(count)
            if result and known is not None and result[-1][1:] == (in_a * known, in_b * known):
                result[-1] = (result[-1][0] * known, in_a, in_b)
            else:
                result.append((count, in_a, in_b))
        return [(ONE, 0, 0)] * (LOOPS - len(result)) + result

    def common_range(self, low: Value, high: Value) -> tuple[Value, Value]:
        """The start and the number of values of the summed index: those that all rows of a tile have in common, and
        that some column of it has."""
        first, past = self.bounded_range(low, high, greatest=False)
        first = self.scope.set("low_k", first)
        past = self.scope.set("high_k", most(first, past))
        return first, past - first

    def bounded_range(self, low: Value, high: Value, greatest: bool) -> tuple[Value, Value]:
        """The values of the summed index that all rows of a tile have in common, or those that some row has: of them,
        those that some column has. There may be none."""
        k = self.found.summed[0]
        lows, highs = [low], [high]
        for bound in (*self.found.bounds, *self.found.masks):
            form = self.form(bound)
            rest = self.over_tile(form.without(k), greatest=greatest or bound in self.found.masks)
            if form.terms[k] == Number(1):  # k + rest >= 0
                lows.append(-rest)
            else:
                highs.append(rest + 1)
        return extreme("max", lows), extreme("min", highs)

    def form(self, bound: Expr) -> Affine:
        form = affine(self.layout.known(bound))
        assert form is not None
        return form

    def over_tile(self, form: Affine, greatest: bool) -> Value:
        """The least or the greatest value of a form over the elements of a tile."""
        shift = 0
        for name, size in ((self.found.row, self.tiling.rows), (self.found.column, self.tiling.columns)):
            coefficient = form.terms.get(name, Number(0))
            assert isinstance(coefficient, Number)
            shift += (max if greatest else min)(int(coefficient.value) * (size - 1), 0)
        return self.integer(form) + shift

    def integer(self, form: Affine) -> Value:
        return self.write.integer(ir.transform(form.expression(), self.read))

    # -- edges and guards

    def aside(self, corners: list[tuple[Value, Value]], keep: Value) -> Variable | None:
        """Whether a tile may not go straight to its place; None if it always may."""
        if self.found.form != "dot" and self.tiling.of_y[self.found.column] != 1:
            return self.scope.set("aside", TRUE)
        reasons = [] if keep is FALSE else self.edges()
        reasons += [compare("<", smallest, 0) for smallest, _ in corners]
        return self.scope.set("aside", joined("or", reasons)) if reasons else None

    def edges(self) -> list[Value]:
        """Conditions under which a tile was moved back over the one before."""
        result = []
        for name, step, start in (
            (self.found.row, self.tiling.rows, ROW),
            (self.found.column, self.tiling.columns, COLUMN),
        ):
            if not self.comes_out_even(name, step):
                result.append(compare("<", self.layout.index(name), start))
        return result

    def comes_out_even(self, name: str, step: int) -> bool:
        """Whether tiles of so many values cover all of an index, or of any strip of it, and nothing twice."""
        low, high = self.tiling.ranges[name]
        if self.scope.strips.get(name) == (low, high):
            size = constant(self.layout.size(name))
            return size is not None and size % step == 0 and self.layout.least[name] % step == 0
        past = constant(high)
        return kernel.is_zero(low) and past is not None and past % step == 0

    def corners(self) -> list[tuple[Value, Value]]:
        """For each guard, the least and the greatest value over the tile of what must be at least 0."""
        forms = [self.form(bound) for atom in self.found.guards for bound in at_least_zero(atom)]
        return [(self.over_tile(form, greatest=False), self.over_tile(form, greatest=True)) for form in forms]

    def through_buffer(self, aside: Variable, keep: Value, y: Panel) -> tuple[Value, Panel]:
        scope = self.scope
        into = Memory("into", self.tiling.type)
        scope.add(kernel.Choose(into, aside, self.buffer(), y.memory))
        at = scope.set("place", Choice(aside, ZERO, y.at))
        across = scope.set("across", Choice(aside, word(self.tiling.columns), y.row))
        along = scope.set("along", Choice(aside, ONE, y.column)) if self.found.form == "dot" else ONE
        kept = keep if keep is FALSE else joined("both", [keep, kernel.negation(aside)])
        return kept, Panel(into, at, across, along)

    def buffer(self) -> Memory:
        size = self.tiling.rows * self.tiling.columns
        return self.layout.keep(BufferOf(self.tiling.type), size, self.tiling.dtype, kernel.Role.LOCAL)

    def write_back(self, aside: Variable) -> None:
        """From the buffer to the elements that are this tile's own."""
        scope, found, tiling = self.scope, self.found, self.tiling
        with scope.when([aside]), self.over_rows() as first_column, self.own_columns(first_column):
            at = (self.row - Variable("first_row", kernel.WORD)) * tiling.columns + (self.column - first_column)
            value: Value = kernel.Load(self.buffer(), at)
            place = self.write.element(self.statement.target)
            if not self.store or found.guards:
                value = place + value
            elif tiling.chunk is not None:
                value = Choice(compare(">", CHUNK, tiling.first_of_sum()), place + value, value, lazy=True)
            scope.store(place.memory, place.offset, value)

    def left_over(self) -> None:
        """The points of a tile whose summed index is not common to all of its elements."""
        scope, found = self.scope, self.found
        k = found.summed[0]
        low, high = self.tiling.ranges[k]
        low_k, high_k = Variable("low_k", kernel.WORD), Variable("high_k", kernel.WORD)
        with self.over_rows() as first_column:
            lows, highs = [low], [high]
            for bound in found.bounds:
                form = self.form(bound)
                rest = self.integer(form.without(k))
                if form.terms[k] == Number(1):
                    lows.append(-rest)
                else:
                    highs.append(rest + 1)
            smallest, greatest = scope.set("least", extreme("max", lows)), scope.set("most", extreme("min", highs))
            steps = [self.form(bound).terms[k] for bound in (*found.bounds, *found.masks)]
            below = [(smallest, least(greatest, low_k))] if Number(1) in steps else []
            above = [(most(smallest, high_k), greatest)] if any(step != Number(1) for step in steps) else []
            for first, past in (*below, *above):
                with scope.loop(k, first, past):
                    factor = scope.set("number", self.write.element(found.a.access) * self.scale())
                    with self.own_columns(first_column):
                        place = self.write.element(self.statement.target)
                        scope.store(place.memory, place.offset, place + factor * self.write.element(found.b.access))

    @contextmanager
    def own_columns(self, first_column: Variable) -> Iterator[None]:
        """A loop over the columns that are this tile's own, where the guards hold: bounds, if they can be."""
        scope, column = self.scope, self.found.column
        even = self.comes_out_even(column, self.tiling.columns)
        lows: list[Value] = [first_column if even else COLUMN]
        highs: list[Value] = [first_column + self.tiling.columns]
        tests = []
        for atom in self.found.guards:
            forms = [self.form(bound) for bound in at_least_zero(atom)]
            if not all(form.terms.get(column) in (Number(1), Number(-1)) for form in forms):
                tests.append(self.write.truth(ir.transform(atom, self.read)))
                continue
            for form in forms:
                rest = self.integer(form.without(column))
                if form.terms[column] == Number(1):  # column + rest >= 0
                    lows.append(-rest)
                else:
                    highs.append(rest + 1)
        with scope.counted(self.column, extreme("max", lows), extreme("min", highs)), scope.when(tests):
            yield

    @contextmanager
    def over_rows(self) -> Iterator[Variable]:
        """A loop over the rows that are this tile's own; gives its first column. Row and column are as before behind
        it."""
        scope = self.scope
        first_row, first_column = scope.set("first_row", self.row), scope.set("first_column", self.column)
        with scope.counted(self.row, ROW, first_row + self.tiling.rows):
            yield first_column
        scope.add(kernel.Set(self.row, first_row), kernel.Set(self.column, first_column))
