"""Contractions: a sum of products of two tensors -> loops around register tiles."""

from __future__ import annotations

from collections.abc import Callable

from ..language import ir
from .expression import Expressions
from .panels import Panels
from .roles import Contraction
from .tilecall import TileCall
from .tiling import Ranges, Tiling


class ContractionWriter:
    """Writes one contraction. `ahead` takes the lines of each level of the nest that come before its strips, `packing`
    those that come before the kernel."""

    def __init__(
        self, found: Contraction, statement: ir.Statement, write: Expressions, lines: list[str], store: bool,
        ahead: list[tuple[list[str], str]], packing: list[str], ranges: Ranges,
    ) -> None:  # fmt: skip
        self.found = found
        self.write = write
        self.layout = write.layout
        self.lines = lines
        self.ahead = ahead
        self.packing = packing
        self.tiling = Tiling(found, statement, write, ranges)
        self.panels = Panels(self.tiling)
        self.tile = TileCall(self.tiling, self.panels, lines, store)

    def add(self, indent: str, *texts: str) -> None:
        self.lines.extend(indent + text for text in texts)

    def loops(self, indent: str, names: list[str]) -> str:
        for name in names:
            self.add(indent, self.tiling.loop(name))
            indent += "    "
        return indent

    def emit(self, indent: str, plain: Callable[[str], None]) -> None:
        """`plain` writes the statement as plain loops."""
        found, tiling, add, index = self.found, self.tiling, self.add, self.layout.index
        if found.masks:  # a zero that stands for what is outside must not meet an infinity: 0 * inf is no zero
            self.check_finite(indent)
            add(indent, "if check != check:")
            plain(indent + "    ")
            add(indent, "else:")
            indent += "    "
        for side, operand in (("a", found.a), ("b", found.b)):
            if operand.mode == "ahead":
                before, outer = (self.packing, "    ") if self.panels.shared(side) else self.ahead[operand.level]
                before += self.panels.pack_ahead(side, outer)
        indent = self.loops(indent, tiling.outer_loops)
        if found.conditions:
            add(indent, f"if {' and '.join(self.write.truth(atom) for atom in found.conditions)}:")
            indent += "    "
        if tiling.chunk is not None:
            low, high = tiling.ranges[found.summed[0]]
            add(indent, f"for chunk in range({low}, {high}, {tiling.chunk}):")
            indent += "    "
        low_c, high_c = tiling.ranges[found.column]
        last_c = high_c
        if tiling.block is not None:
            add(indent, f"for block in range({low_c}, {high_c}, {tiling.block}):")
            indent += "    "
            add(indent, f"end = min(block + {tiling.block}, {high_c})")
            low_c, high_c = "block", "end"
        column_loop = [
            f"for column in range({low_c}, {high_c}, {tiling.columns}):",
            f"    {index(found.column)} = min(column, {last_c} - {tiling.columns})",
        ]
        if found.b.mode == "packed":
            add(indent, *column_loop)
            self.lines += self.panels.pack_columns(indent + "    ", low_c)
        indent = self.loops(indent, tiling.row_loops)
        low_r, high_r = tiling.ranges[found.row]
        row_loop = [
            f"for row in range({low_r}, {high_r}, {tiling.rows}):",
            f"    {index(found.row)} = min(row, {high_r} - {tiling.rows})",
        ]
        if found.a.mode == "packed":  # a panel of a stays in the nearest cache, those of b run by
            add(indent, *row_loop)
            self.lines += self.panels.pack_rows(indent + "    ")
            add(indent + "    ", *column_loop)
        elif found.form == "lane":
            add(indent, *row_loop)
            add(indent + "    ", *column_loop)
        else:
            add(indent, *column_loop)
            add(indent + "    ", *row_loop)
        self.tile.emit(indent + "        ", low_c)

    def check_finite(self, indent: str) -> None:
        """Makes `check` NaN if anything that the statement reads of a is not finite."""
        access, tiling = self.found.a.access, self.tiling
        zero = self.write.cast("0", tiling.dtype)
        self.add(indent, f"check = {zero}")
        names = [i for i in tiling.statement.indices if tiling.of_a.get(i) and i in tiling.ranges]
        indent = self.loops(indent, names)
        value = f"{self.layout.tensor(access.tensor)}[{self.write.offset(access)}]"
        self.add(indent, f"check = check + {value} * {zero}")
