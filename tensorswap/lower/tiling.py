"""Tiling: the size of a contraction's tiles, the loops around them, and how much is packed at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..kernel.ir import Tile, Value, is_zero, type_of
from ..kernel.registers import registers
from ..language import ir
from .roles import NEAR, Contraction, Mode, Operand, run_as_one, strides
from .scope import Range, Scope

STEPS = 256  # steps of a sum whose panels are packed at a time, if there are more
IN_LINE = 1024  # the same, of panels that were packed ahead and are read in line
COLUMNS = 256  # columns that are read at a time of panels that were packed ahead, if those fill the cache of a core
SPARED = 1.25  # times as many are still taken at once
VISIT = 128  # bytes of a row of memory that are packed at a time, if it is longer; those of two panels at least
THRIFT = 0.9  # of the vectors that tiles of two in a row would take: so few are worth tiles of three; as many, where
# each number of a is a load of its own, of which wider tiles have fewer


@dataclass(frozen=True)
class Side:
    """One operand: how far each index moves through it, how many elements of it a tile spans, and the steps of the sum
    in a panel of it."""

    name: str
    operand: Operand
    moves: dict[str, int]
    size: int
    steps: int

    @property
    def packed(self) -> bool:
        return self.operand.mode in (Mode.PACKED, Mode.AHEAD)


class Tiling:
    """All that packing and the loops around tiles have to agree on. `ranges` tells where each loop starts and ends."""

    def __init__(self, found: Contraction, statement: ir.Statement, scope: Scope, number: int) -> None:
        self.found = found
        self.statement = statement
        self.number = number  # of the statement, in its kernel
        self.scope = scope
        self.write = scope.write
        self.layout = scope.layout
        self.ranges: dict[str, Range] = {
            i: scope.range(i, [], [])[:2]
            for i in dict.fromkeys((*statement.indices, found.column))
            if i not in scope.fixed
        }
        self.dtype = self.layout.stored(statement.target.tensor)
        self.type = type_of(self.dtype)
        self.tile, self.rows, self.columns = self.shape()
        of_a, of_b, self.of_y = (
            strides(access, self.layout) or {} for access in (found.a.access, found.b.access, statement.target)
        )
        inside = {found.row, found.column, *found.summed}
        outermost = {i for atom in found.conditions for i in ir.index_names(atom)}
        free = [i for i in self.ranges if i not in inside]
        self.row_loops = [i for i in free if i not in outermost and of_a.get(i) and not of_b.get(i)]
        self.outer_loops = [i for i in free if i not in self.row_loops]
        # of these, the ones through which tiles run that stay at a panel of rows
        stays = found.a.mode is Mode.PACKED and found.b.mode is not Mode.PACKED and not found.conditions
        self.inner_loops = [i for i in self.outer_loops if stays and not of_a.get(i)]
        self.rest = math.prod(self.layout.count(i) for i in found.summed[1:])
        self.chunk = self.steps_at_a_time()  # values of the first summed index that a tile runs over, if not all
        self.a = Side("a", found.a, of_a, self.rows, self.steps_of(found.a))
        self.b = Side("b", found.b, of_b, self.columns, self.steps_of(found.b))
        self.block = self.columns_at_a_time()  # if not all

    def steps_at_a_time(self) -> int | None:
        """Tiles run over so many steps of the sum before the next ones do: what they read is still in the nearest cache
        when others read it again."""
        found, first = self.found, self.found.summed[0]
        most = max(STEPS // max(self.rest, 1), 1)
        known = self.layout.is_constant(first) and is_zero(self.ranges[first][0])
        modes = (found.a.mode, found.b.mode)
        count = self.layout.most.get(first, self.layout.count(first))
        if found.bounds or found.masks:
            return None
        if self.runs_by():
            some = max(IN_LINE // self.rest, 1)
            return some if known and not registers().by_lane and count > 2 * some else None
        if Mode.PACKED in modes:
            if not known and Mode.AHEAD not in modes:
                return most
            if found.b.mode is Mode.PACKED:
                return -(-count // -(-count // most)) if count > SPARED * most else None
            return most if count > 2 * most else None
        rows, columns = (self.layout.count(i) for i in (found.row, found.column))
        several = rows > self.rows or columns > self.columns
        far = (rows + columns) * count * self.rest * self.dtype.itemsize > NEAR
        return most if found.form != "dot" and several and far and count > 2 * most else None

    def runs_by(self) -> bool:
        """Whether panels were packed ahead that are too many for a cache: they are read in line, block by block."""
        count = self.layout.count(self.found.column) * self.layout.count(self.found.summed[0]) * self.rest
        return self.found.b.mode is Mode.AHEAD and count * self.dtype.itemsize > registers().cache

    def steps_of(self, operand: Operand) -> int:
        """Those that are packed at a time: all, if they are packed ahead."""
        values = self.chunk if operand.mode is not Mode.AHEAD else None
        return (self.layout.count(self.found.summed[0]) if values is None else values) * self.rest

    def columns_at_a_time(self) -> int | None:
        """Panels of so many columns stay in a cache, while tiles of several rows read them: in the nearest one, if the
        panels of all rows are there."""
        count, mode, own = self.layout.count(self.found.column), self.found.b.mode, registers().cache
        each = max(self.b.steps, 1) * self.dtype.itemsize
        if mode is Mode.AHEAD:
            fitting = min(own // 4 // each, COLUMNS) // self.columns * self.columns
            return max(fitting, self.columns) if count * each > own * 3 // 4 else None
        if mode is not Mode.PACKED:
            return None
        if self.found.a.mode is Mode.AHEAD:
            together = self.columns * self.panels_in_line(self.b)
            near = max(NEAR // each, together)
            return near // together * together if count > near else None
        most = max(own // 2 // each // self.columns, 1) * self.columns
        blocks = -(-count // most)
        return -(-count // (blocks * self.columns)) * self.columns if count > SPARED * most else None

    def stays_at_rows(self) -> bool:
        """Whether tiles stay at their rows of a and run through the columns: these rows, or a panel of them, are in the
        nearest cache, but not all rows are."""
        found = self.found
        if found.form == "lane" or found.a.mode is Mode.PACKED:
            return True
        rows = self.layout.count(found.row) * self.layout.count(found.summed[0]) * self.rest
        return not registers().by_lane and found.b.mode is not Mode.DIRECT and rows * self.dtype.itemsize > NEAR

    def runs_as_one(self, side: Side) -> bool:
        """Whether loops over summed indices run through an operand, or its panel, as one."""
        return side.packed or run_as_one(self.found.summed, side.moves, self.layout)

    def panels_in_line(self, side: Side) -> int:
        """Panels that are packed together, since a row of memory holds pieces of all of them."""
        bounded = self.found.bounds or (self.found.masks and side.name == "b")
        in_line = side.moves[side.operand.along] == 1 and not bounded
        if not in_line:
            return 1
        count = self.layout.greatest_count(side.operand.along)
        return max(min(max(VISIT // (side.size * self.dtype.itemsize), 2), count // side.size), 1)

    def shape(self) -> tuple[Tile, int, int]:
        """The tile, and its rows and columns: no more than there are."""
        own = registers()
        lanes = own.bytes // self.dtype.itemsize
        most_rows, most_columns = (self.layout.least_count(i) for i in (self.found.row, self.found.column))
        if self.found.form == "dot":
            rows, columns = int(min(own.dot[0], most_rows)), int(min(own.dot[1], most_columns))
            return Tile("dot", self.type, rows, columns, lanes), rows, columns
        whole = lanes
        while whole > most_columns:
            whole //= 2
        vectors, columns = self.vectors_of(whole, most_columns)
        known = self.found.column not in self.layout.least and self.layout.is_constant(self.found.column)
        if known and own.masks and whole < most_columns < lanes:  # some lanes of one vector, not two that overlap
            whole, vectors, columns = 2 * whole, 1, int(most_columns)
        rows = int(min(own.rows(vectors), most_rows))
        form = self.found.form if own.by_lane else "outer"  # elsewhere a lane tile is one whose rows lie side by side
        return Tile(form, self.type, rows, columns, whole), rows, columns

    def vectors_of(self, lanes: int, most: float) -> tuple[int, int]:
        """The vectors of an outer tile and its columns. Tiles of equal width share a known number of columns, of which
        the last vectors overlap; three vectors where that saves much."""
        column = self.found.column
        if column in self.layout.least or not self.layout.is_constant(column):
            vectors = int(min(registers().outer[1], most // lanes))
            return vectors, vectors * lanes
        count = self.layout.count(column)
        if count <= lanes:
            return 1, lanes
        tiles, vectors = {v: -(-count // (v * lanes)) for v in (2, 3)}, 2
        thrift = THRIFT if registers().by_lane else 1
        if tiles[3] * 3 <= thrift * tiles[2] * 2:
            vectors = 3
        columns = -(-count // tiles[vectors])
        if tiles[vectors] > 1 and count % columns:
            columns = vectors * lanes  # no tile of equal width fits: whole vectors lie better in lines of memory
        return -(-columns // lanes), columns

    def first_of_sum(self) -> Value:
        """Where the loop over the first summed index starts."""
        return self.ranges[self.found.summed[0]][0]
