"""Tiling: the size of a contraction's tiles, the loops around them, and how much is packed at a time."""

from __future__ import annotations

import math

from ..language import ir
from . import registers
from .expression import CAST, Expressions
from .registers import ROWS, VECTORS
from .roles import Contraction, Operand, strides

STEPS = 256  # steps of a sum whose panels are packed at a time, if there are many more
COLUMNS = 256  # columns whose panels are packed at a time, if there are many more

Ranges = dict[str, tuple[str, str]]


class Tiling:
    """All that packing and the loops around tiles have to agree on. `ranges` tells where each loop starts and ends."""

    def __init__(self, found: Contraction, statement: ir.Statement, write: Expressions, ranges: Ranges) -> None:
        self.found = found
        self.statement = statement
        self.write = write
        self.layout = write.layout
        self.ranges = ranges
        self.dtype = write.stored(statement.target.tensor)
        tensors = (found.a.access, found.b.access, statement.target)
        self.of_a, self.of_b, self.of_y = (strides(access, self.layout) or {} for access in tensors)
        self.rows, self.columns, self.tile = self.shape()
        free = [i for i in statement.indices if i in ranges]
        inside = {found.row, found.column, *found.summed}
        outermost = {i for atom in found.conditions for i in ir.index_names(atom)}
        self.row_loops = [i for i in free if i not in inside | outermost and self.of_a.get(i) and not self.of_b.get(i)]
        self.outer_loops = [i for i in free if i not in inside and i not in self.row_loops]
        packing = "packed" in (found.a.mode, found.b.mode)
        first = found.summed[0]
        count = self.layout.sizes.index[first]
        known = first in self.layout.constant and ranges[first][0] == "0"
        rest = math.prod(self.layout.sizes.index[i] for i in found.summed[1:])
        most = max(STEPS // max(rest, 1), 1)
        long = not known or count > 2 * most
        whole = "ahead" in (found.a.mode, found.b.mode) or bool(found.bounds or found.masks)
        self.chunk = most if packing and long and not whole else None  # values of the first summed index at a time
        self.steps = (count if self.chunk is None else self.chunk) * rest  # of the sum, in one panel
        wide = self.layout.sizes.index[found.column] > 2 * COLUMNS
        self.block = COLUMNS if found.b.mode == "packed" and wide else None  # columns at a time

    def shape(self) -> tuple[int, int, str]:
        """Rows and columns of a tile, no more than there are; and the name of its function."""
        width, kind = registers.vector_bytes(), CAST[self.dtype]
        lanes = width // self.dtype.itemsize
        most_rows, most_columns = (self.layout.least_count(i) for i in (self.found.row, self.found.column))
        if self.found.form == "dot":
            rows, columns = int(min(4, most_rows)), int(min(4, most_columns))
            return rows, columns, f"dot_{kind}_{rows}_{columns}_{lanes}"
        rows = int(min(ROWS[width], most_rows))
        while lanes > most_columns:
            lanes //= 2
        vectors = int(min(VECTORS[width], most_columns // lanes))
        return rows, vectors * lanes, f"{self.found.form}_{kind}_{rows}_{vectors}_{lanes}"

    def side(self, side: str) -> tuple[Operand, dict[str, int], int]:
        """Of "a" or "b": the operand, how far each index moves through it, and how many elements of it a tile spans."""
        if side == "a":
            return self.found.a, self.of_a, self.rows
        return self.found.b, self.of_b, self.columns

    def loop(self, name: str) -> str:
        low, high = self.ranges[name]
        return f"for {self.layout.index(name)} in range({low}, {high}):"
