"""Calls of tiles: where one tile begins and ends, and what its edges and guards leave to do beside it.

At an edge the last tile moves back over the one before it; where that would add twice, and where a guard cuts through a
tile or y is not contiguous, the tile goes to a buffer first.
"""

from __future__ import annotations

import math

from ..language import ir
from ..language.affine import Affine, affine
from ..language.bounds import at_least_zero
from ..language.ir import Number
from .expression import CAST, joined
from .panels import Panels
from .tiling import Tiling


class TileCall:
    """Writes the innermost lines of one contraction: those of a single tile."""

    def __init__(self, tiling: Tiling, panels: Panels, lines: list[str], store: bool) -> None:
        self.tiling = tiling
        self.panels = panels
        self.lines = lines
        self.store = store  # whether the tile holds the first values of its elements
        self.found = tiling.found
        self.statement = tiling.statement
        self.write = tiling.write
        self.layout = tiling.layout

    def add(self, indent: str, *texts: str) -> None:
        self.lines.extend(indent + text for text in texts)

    def emit(self, indent: str, low: str) -> None:
        """The call, in a block of columns from `low` on."""
        found, add, layout = self.found, self.add, self.layout
        target = self.statement.target
        starts, counts = self.sum_ranges(indent)
        zero = ir.substitute_indices(dict.fromkeys(found.summed, Number(0)))
        y = ir.transform(target, zero)
        assert isinstance(y, ir.Access)
        from_a, at_a = self.panels.source("a", starts, low)
        from_b, at_b = self.panels.source("b", starts, low)
        into, at_y = layout.tensor(target.tensor), self.write.offset(y)
        keep = "False" if self.store else "True"
        if self.store and self.tiling.chunk is not None:
            keep = f"chunk > {self.tiling.ranges[found.summed[0]][0]}"
        dot = found.form == "dot"
        aside = []  # why a tile may not go straight to its place
        if not dot and self.tiling.of_y[found.column] != 1:
            aside.append("True")
        else:
            if keep != "False":
                aside += self.edges()
            aside += [f"{least} < 0" for least, _ in self.corners()]
        y_row, y_column = str(self.tiling.of_y[found.row]), str(self.tiling.of_y[found.column])
        skip = " or ".join(f"{most} < 0" for _, most in self.corners())
        if skip:
            add(indent, f"if {skip}:", "    continue")
        if aside:
            add(indent, f"aside = {' or '.join(aside)}")
            add(indent, f"into = {self.buffer()} if aside else {into}")
            add(indent, f"place = 0 if aside else {at_y}")
            add(indent, f"across = {self.tiling.columns} if aside else {y_row}")
            if dot:
                add(indent, f"along = 1 if aside else {y_column}")
            into, at_y, y_row, y_column = "into", "place", "across", "along"
            keep = f"{keep} and not aside" if keep != "False" else keep
        arguments = [from_a, at_a, from_b, at_b, into, at_y]
        if found.form == "lane":
            times = self.product(counts)
            arguments += [y_row, times, str(self.panels.step("a")), str(self.panels.step("b"))]
        else:
            arguments += [str(self.tiling.of_a[found.row]), y_row]
            if dot:
                arguments += [str(self.tiling.of_b[found.column]), y_column]
            for count, stride_a, stride_b in self.nested(counts):
                arguments += [count, str(stride_a), str(stride_b)]
        add(indent, f"{self.tiling.tile}({', '.join(arguments)}, {self.scale()}, {keep})")
        if aside:
            self.write_back(indent)
        if found.bounds:
            self.left_over(indent)

    def scale(self) -> str:
        sign = "-" if self.statement.operator == "-=" else ""
        return f"{sign}{self.write.value(self.found.scale, self.tiling.dtype)}"

    def sum_ranges(self, indent: str) -> tuple[dict[str, str], list[str]]:
        """Where the loops over summed indices start, unless at 0, and how many values each runs over."""
        starts, counts = {}, []
        for position, name in enumerate(self.found.summed):
            low, high = self.tiling.ranges[name]
            count = high if low == "0" else f"{high} - {low}"
            if position == 0 and self.tiling.chunk is not None:
                low, count = "chunk", f"min({self.tiling.chunk}, {high} - chunk)"
            elif position == 0 and (self.found.bounds or self.found.masks):
                low, count = self.tile_range(indent, low, high)
            if low != "0":
                starts[name] = low
            counts.append(count)
        return starts, counts

    @staticmethod
    def product(counts: list[str]) -> str:
        if all(count.isdigit() for count in counts):
            return str(math.prod(int(count) for count in counts))
        return " * ".join(f"({count})" for count in counts)

    def nested(self, counts: list[str]) -> list[tuple[str, int, int]]:
        """The three loops of an outer or dot tile; one for two that run on where the other ends."""
        result: list[tuple[str, int, int]] = []
        step = self.tiling.columns
        panel_steps: dict[str, int] = {}
        for name in reversed(self.found.summed):
            panel_steps[name] = step
            step *= self.layout.sizes.index[name]
        through_panel = self.found.b.mode in ("packed", "ahead")
        for name, count in zip(self.found.summed, counts, strict=True):
            stride_a, stride_b = self.tiling.of_a[name], panel_steps[name] if through_panel else self.tiling.of_b[name]
            if result and count.isdigit():
                outer = result[-1]
                if outer[1] == stride_a * int(count) and outer[2] == stride_b * int(count):
                    times = str(int(outer[0]) * int(count)) if outer[0].isdigit() else f"({outer[0]}) * {count}"
                    result[-1] = (times, stride_a, stride_b)
                    continue
            result.append((count, stride_a, stride_b))
        return [("1", 0, 0)] * (3 - len(result)) + result

    def tile_range(self, indent: str, low: str, high: str) -> tuple[str, str]:
        """The start and the number of values of the summed index: those that all rows of a tile have in common, and
        that some column of it has."""
        k = self.found.summed[0]
        lows, highs = [low], [high]
        for bound in (*self.found.bounds, *self.found.masks):
            form = affine(self.layout.known(bound))
            assert form is not None
            least = self.over_tile(form.without(k), most=bound in self.found.masks)
            if form.terms[k] == Number(1):  # k + rest >= 0 for every row of the tile
                lows.append(f"-({least})")
            else:
                highs.append(f"({least}) + 1")
        self.add(indent, f"low_k = {joined('max', lows)}")
        self.add(indent, f"high_k = max(low_k, {joined('min', highs)})")
        return "low_k", "high_k - low_k"

    def over_tile(self, form: Affine, most: bool) -> str:
        """The least or the greatest value of a form over the elements of a tile."""
        shift = 0
        for name, size in ((self.found.row, self.tiling.rows), (self.found.column, self.tiling.columns)):
            coefficient = form.terms.get(name, Number(0))
            assert isinstance(coefficient, Number)
            shift += (max if most else min)(int(coefficient.value) * (size - 1), 0)
        return f"{self.write.integer(form.expression())} + {shift}"

    def edges(self) -> list[str]:
        """Conditions under which a tile was moved back over the one before."""
        found, result = self.found, []
        for name, step, start in ((found.row, self.tiling.rows, "row"), (found.column, self.tiling.columns, "column")):
            low, high = self.tiling.ranges[name]
            if not (low == "0" and high.isdigit() and int(high) % step == 0):
                result.append(f"{self.layout.index(name)} < {start}")
        return result

    def corners(self) -> list[tuple[str, str]]:
        """For each guard, the least and the greatest value over the tile of what must be at least 0."""
        found = []
        for atom in self.found.guards:
            for bound in at_least_zero(atom):
                form = affine(self.layout.known(bound))
                assert form is not None
                least = most = 0
                for name, size in ((self.found.row, self.tiling.rows), (self.found.column, self.tiling.columns)):
                    coefficient = form.terms.get(name, Number(0))
                    assert isinstance(coefficient, Number)
                    span = int(coefficient.value) * (size - 1)
                    least, most = least + min(span, 0), most + max(span, 0)
                base = self.write.integer(form.expression())
                found.append((f"{base} + {least}", f"{base} + {most}"))
        return found

    def buffer(self) -> str:
        name = f"buffer {CAST[self.tiling.dtype]}"
        size = self.tiling.rows * self.tiling.columns
        old = self.layout.sizes.shapes.get(name, (0,))[0]
        self.layout.sizes.shapes[name] = (max(size, old),)
        self.layout.kinds[name] = "local"
        self.write.types.tensors[name] = self.write.types.tensors[self.statement.target.tensor]
        return self.layout.tensor(name)

    def write_back(self, indent: str) -> None:
        """From the buffer to the elements that are this tile's own."""
        found, layout = self.found, self.layout
        row, column = layout.index(found.row), layout.index(found.column)
        place = f"{layout.tensor(self.statement.target.tensor)}[{self.write.offset(self.statement.target)}]"
        value = f"{self.buffer()}[({row} - first_row) * {self.tiling.columns} + {column} - first_column]"
        lines = [
            "if aside:",
            f"    first_row, first_column = {row}, {column}",
            f"    for {row} in range(row, first_row + {self.tiling.rows}):",
            f"        for {column} in range(column, first_column + {self.tiling.columns}):",
        ]
        inner = "            "
        if found.guards:
            lines.append(f"{inner}if {' and '.join(self.write.truth(atom) for atom in found.guards)}:")
            inner += "    "
        whole = self.store and not found.guards
        if not whole:
            lines.append(f"{inner}{place} = {place} + {value}")
        elif self.tiling.chunk is not None:
            low = self.tiling.ranges[found.summed[0]][0]
            lines.append(f"{inner}{place} = {place} + {value} if chunk > {low} else {value}")
        else:
            lines.append(f"{inner}{place} = {value}")
        lines.append(f"    {row}, {column} = first_row, first_column")
        self.add(indent, *lines)

    def left_over(self, indent: str) -> None:
        """The points of a tile whose summed index is not common to all of its elements."""
        found, layout = self.found, self.layout
        k = found.summed[0]
        row, column, name = layout.index(found.row), layout.index(found.column), layout.index(k)
        low, high = self.tiling.ranges[k]
        lows, highs = [low], [high]
        for bound in found.bounds:
            form = affine(layout.known(bound))
            assert form is not None
            rest = self.write.integer(form.without(k).expression())
            if form.terms[k] == Number(1):
                lows.append(f"-({rest})")
            else:
                highs.append(f"({rest}) + 1")
        columns = f"        for {column} in range(column, first_column + {self.tiling.columns}):"
        truths = [self.write.truth(atom) for atom in found.guards]
        guard = [f"            if {' and '.join(truths)}:"] if truths else []
        place = f"{layout.tensor(self.statement.target.tensor)}[{self.write.offset(self.statement.target)}]"
        a, b = (
            f"{layout.tensor(operand.access.tensor)}[{self.write.offset(operand.access)}]"
            for operand in (found.a, found.b)
        )
        step = [
            f"        number = {a} * {self.scale()}",
            columns,
            *guard,
            f"            {'    ' if guard else ''}{place} = {place} + number * {b}",
        ]
        lines = [
            f"first_row, first_column = {row}, {column}",
            f"for {row} in range(row, first_row + {self.tiling.rows}):",
            f"    least, most = {joined('max', lows)}, {joined('min', highs)}",
            f"    for {name} in range(least, min(most, low_k)):",
            *step,
            f"    for {name} in range(max(least, high_k), most):",
            *step,
            f"{row}, {column} = first_row, first_column",
        ]
        self.add(indent, *lines)
