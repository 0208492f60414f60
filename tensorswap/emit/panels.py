"""Panels: copies of an operand that lie as tiles read them, made as far out in the nest as nothing changes it."""

from __future__ import annotations

import math

from ..language import ir
from ..language.affine import affine
from ..language.ir import Number
from .tiling import Tiling

PANEL = "panel "  # names memory that holds panels
SHARED = 1 << 14  # elements of panels for which a kernel of their own pays


class Panels:
    """Writes the packing of one contraction's operands, and tells where tiles find them. A side is "a" or "b"."""

    def __init__(self, tiling: Tiling) -> None:
        self.tiling = tiling
        self.write = tiling.write
        self.layout = tiling.layout

    # -- packing

    def pack_rows(self, indent: str) -> list[str]:
        """The panel of one tile's rows of a."""
        panel = self.memory("a", self.tiling.rows * self.tiling.steps)
        return self.pack("a", indent, panel, "0")

    def pack_columns(self, indent: str, low: str) -> list[str]:
        """The panel of one tile's columns of b, in a block that starts at `low`."""
        tiling, column = self.tiling, self.tiling.found.column
        columns = tiling.block or self.layout.most.get(column, self.layout.sizes.index[column])
        panel = self.memory("b", -(-columns // tiling.columns) * tiling.columns * tiling.steps)
        return self.pack("b", indent, panel, self.place_in_block(low))

    def pack_ahead(self, side: str, indent: str) -> list[str]:
        """Panels of all that a statement reads of an operand, before the strips of some nest around it: each thread has
        its own, or packs a part of those that all share."""
        operand, _, size = self.tiling.side(side)
        loops = self.loops_of(side)
        panel = self.memory(side, self.size_ahead(side))
        lines = []
        for name in loops:
            lines.append(indent + self.tiling.loop(name))
            indent += "    "
        low, high = self.tiling.ranges[operand.along]
        begin, step = (f"{low} + part * {size}", f"parts * {size}") if self.shared(side) else (low, f"{size}")
        lines.append(f"{indent}for first in range({begin}, {high}, {step}):")
        lines.append(f"{indent}    {self.layout.index(operand.along)} = min(first, {high} - {size})")
        return lines + self.pack(side, indent + "    ", panel, self.place_ahead(side, "first"))

    def pack(self, side: str, indent: str, panel: str, place: str) -> list[str]:
        """Copies one panel: for each step of the sum, the elements that a tile spans, side by side."""
        tiling, index = self.tiling, self.layout.index
        operand, moves, size = tiling.side(side)
        loops: list[str] = []
        terms, step = [], size
        for name in reversed(tiling.found.summed):
            low, high = tiling.ranges[name]
            if tiling.chunk is not None and name == tiling.found.summed[0]:
                low, high = "chunk", f"min(chunk + {tiling.chunk}, {high})"
            loops.insert(0, f"for {index(name)} in range({low}, {high}):")
            terms.append(f"({index(name)} - {low}) * {step}" if low != "0" else f"{index(name)} * {step}")
            step *= self.layout.sizes.index[name]
        lanes = f"for lane in range({size}):"
        along = moves[operand.along]
        lines = []
        for text in [*loops, lanes] if along == 1 else [lanes, *loops]:
            lines.append(indent + text)
            indent += "    "
        tensor = self.layout.tensor(operand.access.tensor)
        source = f"{tensor}[{self.write.offset(operand.access)} + lane * {along}]"
        if tiling.found.masks and side == "b":
            source = f"({source} if {self.inside_masks()} else {self.write.cast('0', tiling.dtype)})"
        start = [] if place == "0" else [place]
        return [*lines, f"{indent}{panel}[{' + '.join([*start, *terms, 'lane'])}] = {source}"]

    def inside_masks(self) -> str:
        """Whether a lane of a panel of b takes part at a step of the sum."""
        texts = []
        for mask in self.tiling.found.masks:
            form = affine(self.layout.known(mask))
            assert form is not None
            coefficient = form.terms[self.tiling.found.column]
            assert isinstance(coefficient, Number)
            texts.append(f"{self.write.integer(form.expression())} + lane * {int(coefficient.value)} >= 0")
        return " and ".join(texts)

    # -- memory

    def name(self, side: str) -> str:
        return f"{PANEL}{side} {id(self.tiling.statement)}"

    def memory(self, side: str, size: int) -> str:
        """The kernel's name for memory that holds panels."""
        name = self.name(side)
        if name not in self.layout.sizes.shapes:
            self.layout.sizes.shapes[name] = (size,)
            self.layout.kinds[name] = "address" if self.shared(side) else "local"
            self.write.types.tensors[name] = self.write.types.tensors[self.tiling.statement.target.tensor]
        return self.layout.tensor(name)

    def shared(self, side: str) -> bool:
        """Whether all threads share panels: large ones that stay as they are for the whole kernel."""
        operand, _, _ = self.tiling.side(side)
        return operand.mode == "ahead" and operand.level == 0 and self.size_ahead(side) >= SHARED

    def size_ahead(self, side: str) -> int:
        """Elements of all panels of an operand."""
        extents = [self.layout.most.get(i, self.layout.sizes.index[i]) for i in self.loops_of(side)]
        return math.prod(extents) * self.tiles_size(side)

    def loops_of(self, side: str) -> list[str]:
        """The loops around the tiles that an operand moves with."""
        _, moves, _ = self.tiling.side(side)
        return [i for i in [*self.tiling.outer_loops, *self.tiling.row_loops] if moves.get(i)]

    def tiles_size(self, side: str) -> int:
        """Elements in the panels of all tiles along an operand."""
        operand, _, size = self.tiling.side(side)
        count = self.layout.most.get(operand.along, self.layout.sizes.index[operand.along])
        return -(-count // size) * size * self.tiling.steps

    def place_in_block(self, low: str) -> str:
        """Where the panel of a tile's columns starts, among those of a block."""
        return f"(column - {low}) * {self.tiling.steps}" if low != "0" else f"column * {self.tiling.steps}"

    def place_ahead(self, side: str, first: str) -> str:
        """Where the panel of a tile starts, among those that were packed ahead."""
        operand, _, _ = self.tiling.side(side)
        steps, low = self.tiling.steps, self.tiling.ranges[operand.along][0]
        terms = [f"({first} - {low}) * {steps}" if low != "0" else f"{first} * {steps}"]
        step = self.tiles_size(side)
        for name in reversed(self.loops_of(side)):
            low = self.tiling.ranges[name][0]
            index = self.layout.index(name)
            terms.append(f"({index} - {low}) * {step}" if low != "0" else f"{index} * {step}")
            step *= self.layout.most.get(name, self.layout.sizes.index[name])
        return " + ".join(terms)

    # -- what tiles read

    def source(self, side: str, starts: dict[str, str], low: str) -> tuple[str, str]:
        """The tensor or panel that a tile reads, and where it begins, in a block of columns from `low` on."""
        operand, moves, _ = self.tiling.side(side)
        found, first = self.tiling.found, self.tiling.found.summed[0]
        begins = found.bounds or found.masks
        skipped = f" + ({starts[first]} - {self.tiling.ranges[first][0]}) * {self.step(side)}" if begins else ""
        if operand.mode == "ahead":
            place = self.place_ahead(side, "row" if side == "a" else "column")
            return self.layout.tensor(self.name(side)), place + skipped
        if operand.mode == "packed":
            place = self.place_in_block(low) if side == "b" else "0"
            return self.layout.tensor(self.name(side)), place + skipped
        zero = ir.transform(operand.access, ir.substitute_indices(dict.fromkeys(found.summed, Number(0))))
        assert isinstance(zero, ir.Access)
        extra = "".join(f" + {start} * {moves[name]}" for name, start in starts.items())
        return self.layout.tensor(operand.access.tensor), self.write.offset(zero) + extra

    def step(self, side: str) -> int:
        """How far apart the steps of a lane tile lie."""
        operand, moves, size = self.tiling.side(side)
        return size if operand.mode in ("packed", "ahead") else moves[self.tiling.found.summed[-1]]
