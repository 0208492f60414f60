"""Contractions: a sum of products of two tensors -> loops over register tiles.

Roles in y[row, column] += a[row, k] * b[column, k], with any further indices as loops around the tiles. A tile is
*outer* (vectors along the column, contiguous in b), *lane* (the same, with rows contiguous in a too) or *dot* (vectors
along the last summed index, contiguous in a and b). An operand that does not lie so is packed: copied into panels, as
far out in the nest as nothing changes it. At an edge the last tile moves back over the one before it; where that would
add twice, and where a guard cuts through a tile or y is not contiguous, the tile goes to a buffer first.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from ..language import ir
from ..language.affine import Affine, affine, is_constant
from ..language.bounds import at_least_zero
from ..language.build import ONE, conjuncts, divide, multiply
from ..language.ir import Expr, Number
from .expression import CAST, Expressions
from .layout import Layout
from .registers import ROWS, VECTORS, vector_bytes

WORTHWHILE = 4  # steps of the sum below which a tile's start and end cost more than its middle
STEPS = 256  # steps of a sum whose panels are packed at a time, if there are many more
COLUMNS = 256  # columns whose panels are packed at a time, if there are many more
REUSE = 16  # rows that a packed panel must serve to be worth its packing
LINE = 64  # bytes of a line of the cache
NEAR = 24 * 1024  # bytes of the nearest cache that one operand of a tile may take
KEPT = 1 << 20  # bytes of panels that are packed ahead

Ranges = dict[str, tuple[str, str]]


@dataclass(frozen=True)
class Operand:
    """One of the two tensors: its access, the index that tiles run along, and how it is read.

    "direct": as it lies, contiguous along its index; "scalar": as it lies, one number at a time; "packed": through
    panels; "ahead": through panels that were packed further out, at the given level of the nest.
    """

    access: ir.Access
    along: str
    mode: str = "direct"
    level: int = 0


@dataclass(frozen=True)
class Contraction:
    """The roles of tensors and indices."""

    form: str  # of the tile
    a: Operand
    b: Operand
    summed: tuple[str, ...]  # the last one innermost
    scale: Expr
    guards: tuple[Expr, ...] = ()  # on row and column
    bounds: tuple[Expr, ...] = ()  # on row and the summed index: at least 0
    masks: tuple[Expr, ...] = ()  # the same on column and the summed index: panels of b hold zeros where they fail
    conditions: tuple[Expr, ...] = ()  # on indices outside

    @property
    def row(self) -> str:
        return self.a.along

    @property
    def column(self) -> str:
        return self.b.along


def factors(value: Expr) -> tuple[list[ir.Access], Expr] | None:
    """The two accesses of a product and the constant beside them; None if the value is anything else."""
    match value:
        case ir.Access():
            return ([value], ONE) if value.indices else ([], value)
        case ir.Unary(operator="-", operand=operand):
            inner = factors(operand)
            return (inner[0], multiply(Number(-1), inner[1])) if inner else None
        case ir.Binary(operator="*" | "/" as operator, left=left, right=right):
            a = factors(left)
            if operator == "/":
                return (a[0], divide(a[1], right)) if a and is_constant(right) else None
            b = factors(right)
            return (a[0] + b[0], multiply(a[1], b[1])) if a and b else None
    return ([], value) if is_constant(value) else None


def strides(access: ir.Access, layout: Layout) -> dict[str, int] | None:
    """How far each index moves through memory; None if some place is not affine."""
    found: dict[str, int] = {}
    for place, step in zip(access.indices, layout.strides(access.tensor), strict=True):
        form = affine(layout.known(place))
        if form is None:
            return None
        for index, coefficient in form.terms.items():
            if not isinstance(coefficient, Number) or not isinstance(coefficient.value, int):
                return None
            found[index] = found.get(index, 0) + coefficient.value * step
    return found


class Roles:
    """Finds the best roles for one statement. `levels` tells, for each level of the nest around it from the outermost
    on, the index of that level and the tensors written within it."""

    def __init__(
        self, statement: ir.Statement, write: Expressions, fixed: set[str], levels: list[tuple[str, frozenset[str]]]
    ) -> None:
        self.statement = statement
        self.write = write
        self.layout = write.layout
        self.fixed = fixed
        self.levels = levels

    def find(self) -> Contraction | None:
        statement, write = self.statement, self.write
        target = statement.target
        if statement.operator not in ir.SUM:
            return None
        bare = [e for e in target.indices if isinstance(e, ir.Index)]
        others = [e for e in target.indices if not isinstance(e, ir.Index)]
        if len(set(bare)) < len(bare) or not all(ir.index_names(e) <= self.fixed for e in others):
            return None
        parts = factors(statement.value)
        if parts is None or len(parts[0]) != 2 or target.tensor in ir.tensors_read(statement):
            return None
        dtype = write.stored(target.tensor)
        if dtype.kind != "f" or any(write.stored(a.tensor) != dtype for a in parts[0]):
            return None
        moves = [strides(access, self.layout) for access in (target, *parts[0])]
        if any(m is None for m in moves):
            return None
        self.y, first, second = (m or {} for m in moves)
        free = [i for i in statement.indices if i not in self.fixed]
        self.summed = [i for i in free if i not in self.y]
        if not self.summed or any(i not in first or i not in second for i in self.summed):
            return None
        weight = self.layout.weight
        if math.prod(weight(i) for i in self.summed) < WORTHWHILE:
            return None
        choices: list[tuple[tuple[float, ...], Contraction]] = []
        sides = ((parts[0][0], first), (parts[0][1], second))
        for (a, of_a), (b, of_b) in (sides, sides[::-1]):
            rows = [i for i in free if self.y.get(i) and of_a.get(i) and not of_b.get(i) and weight(i) > 1]
            columns = [i for i in free if self.y.get(i) and of_b.get(i) and not of_a.get(i) and weight(i) > 1]
            for column in columns:
                for row in rows:
                    judged = self.judge(Operand(a, row), of_a, Operand(b, column), of_b, parts[1])
                    if judged is not None:
                        choices.append(judged)
        return max(choices, key=lambda choice: choice[0])[1] if choices else None

    def judge(
        self, a: Operand, of_a: dict[str, int], b: Operand, of_b: dict[str, int], scale: Expr
    ) -> tuple[tuple[float, ...], Contraction] | None:
        """How good these roles are, and the form of tile for them."""
        layout, weight = self.layout, self.layout.weight
        taken = self.guarded(Contraction("", a, b, tuple(self.summed), scale))
        if taken is None:
            return None
        steps = math.prod(weight(i) for i in self.summed)
        # an index of which a strip runs stands outermost: the steps inside it then follow each other without gaps
        single = {i for i in self.summed if layout.most.get(i) == 1}
        partial = {i for i in self.summed if i in layout.least} - single
        rank = {i: 0 if i in single else 1 if i in partial else 2 for i in self.summed}
        order = sorted(self.summed, key=lambda i: (rank[i], -abs(of_b[i]), -abs(of_a[i])))
        if len(partial) > 1:
            return None
        lanes = vector_bytes() // self.write.stored(a.access.tensor).itemsize
        rows, columns = layout.least_count(a.along), layout.least_count(b.along)
        fits = min(columns, lanes * VECTORS[vector_bytes()]) * min(rows, ROWS[vector_bytes()])
        contiguous = self.y[b.along] == 1
        if not contiguous and steps < 32:
            return None
        one_loop = len(order) == 1
        in_row = layout.typical(a.along) * math.prod(
            weight(i) for i in of_a if i in self.y and not of_b.get(i) and i != a.along
        )
        in_column = columns
        dot_along = [i for i in self.summed if of_a[i] == 1 and of_b[i] == 1 and weight(i) >= 16]
        ahead_b, ahead_a = self.ahead(b, of_b), self.ahead(a, of_a)
        thrashing = self.thrashes(of_b, order[-1])
        if taken.masks and ahead_b is None and in_row < REUSE:
            return None
        packs = bool(taken.masks) or (thrashing and (ahead_b is not None or in_row >= 4 * REUSE))
        if of_b[b.along] == 1 and not packs:
            b = replace(b, mode="direct")
        elif ahead_b is not None:
            b = replace(b, mode="ahead", level=ahead_b)
        elif in_row >= REUSE or taken.masks:
            b = replace(b, mode="packed")
        elif of_b[b.along] == 1:
            b = replace(b, mode="direct")
        elif dot_along and len(order) <= 3:
            order = [*(i for i in order if i != dot_along[0]), dot_along[0]]
            found = replace(taken, form="dot", a=a, b=b, summed=tuple(order))
            return (fits * (1.0 if min(rows, columns) >= 4 else 0.3), in_column, in_row), found
        else:
            return None
        merged = one_loop or self.merges(of_b, order)
        jumping = self.thrashes(of_a, order[-1]) and in_column >= 16
        if of_a[a.along] == 1 and (one_loop or self.merges(of_a, order)) and not jumping:
            a = replace(a, mode="direct")
        elif ahead_a is not None and steps >= 16:
            a = replace(a, mode="ahead", level=ahead_a)
        elif (jumping and of_a[a.along] == 1) or (in_column >= 32 and steps >= 16 and b.mode != "direct"):
            a = replace(a, mode="packed")
        else:
            a = replace(a, mode="scalar")
        if a.mode != "scalar" and b.mode == "direct" and not merged:
            if in_row >= REUSE:
                b = replace(b, mode="packed")
            else:
                a = replace(a, mode="scalar")
        if a.mode == "scalar" and len(order) > 3:
            return None
        found = replace(taken, form="outer" if a.mode == "scalar" else "lane", a=a, b=b, summed=tuple(order))
        ease = {"direct": 2.0, "ahead": 1.8, "packed": 1.5}[b.mode] * (1.0 if contiguous else 0.6)
        if columns < lanes * VECTORS[vector_bytes()]:
            ease *= 0.6  # with fewer vectors in a row of the tile, there are more loads for each product
        if a.mode == "scalar" and self.collides(of_a[a.along]):
            ease *= 0.9  # of two indices the other one is the better row
        return (fits * ease, in_column, in_row), found

    def merges(self, moves: dict[str, int], order: list[str]) -> bool:
        """Whether loops inside each other run through memory as one."""
        return all(
            moves[outer] == moves[inner] * self.layout.sizes.index[inner] for outer, inner in itertools.pairwise(order)
        ) and not any(i in self.layout.least for i in order)

    def thrashes(self, moves: dict[str, int], last: str) -> bool:
        """Whether the lines of memory that the steps of a sum touch drive each other out of the nearest cache: there
        are too many, or they are apart by a power of two."""
        step = abs(moves[last]) * self.write.stored(self.statement.target.tensor).itemsize
        steps = self.layout.typical(last)
        return (steps >= 64 and step >= 1024 and step % 512 == 0) or (step > LINE and steps * LINE > NEAR)

    def collides(self, stride: int) -> bool:
        """Whether rows that lie so far apart share the same few places of the nearest cache."""
        step = abs(stride) * self.write.stored(self.statement.target.tensor).itemsize
        return step >= 2048 and step % 1024 == 0

    def ahead(self, operand: Operand, moves: dict[str, int]) -> int | None:
        """The outermost level of the nest at which the panels of an operand can be packed, if that is any gain."""
        tensor = operand.access.tensor
        named = {i for i in moves if moves[i]}
        if named & self.fixed or any(i in self.layout.least for i in self.summed):
            return None
        for level, (_, written) in enumerate(self.levels):
            inside = {name for name, _ in self.levels[level:]}
            if tensor in written or named & inside:
                continue
            extents = [self.layout.most.get(i, self.layout.sizes.index[i]) for i in named]
            size = math.prod(extents) * self.write.stored(tensor).itemsize
            return level if size <= KEPT else None
        return None

    def guarded(self, found: Contraction) -> Contraction | None:
        """The roles with the guard taken apart; None if a part of it does not fit."""
        inner = {found.row, found.column, *found.summed}
        guards: list[Expr] = []
        bounds: list[Expr] = []
        conditions: list[Expr] = []
        masks: list[Expr] = []
        for atom in conjuncts(self.statement.guard):
            names = ir.index_names(atom) - self.fixed
            if any(isinstance(n, ir.Inside) for n in ir.walk(atom)):
                return None
            touched = names & inner
            if not touched:
                conditions.append(atom)
                continue
            forms = [affine(self.layout.known(b)) for b in at_least_zero(atom)]
            if not forms or any(f is None or not all(isinstance(c, Number) for c in f.terms.values()) for f in forms):
                return None
            if touched <= {found.row, found.column}:
                guards.append(atom)
            elif len(found.summed) == 1 and touched <= {found.row, found.column, found.summed[0]}:
                units = (Number(1), Number(-1))
                if any(f is None or f.terms.get(found.summed[0]) not in units for f in forms):
                    return None
                if {found.row, found.column} <= touched:
                    return None
                (masks if found.column in touched else bounds).extend(at_least_zero(atom))
            else:
                return None
        # a tile reads whole blocks: a guard must not be what keeps an access in bounds
        whole = all(isinstance(e, ir.Index) for o in (found.a, found.b) for e in o.access.indices)
        if self.statement.guard is not None and not whole:
            return None
        if masks and bounds:
            return None
        return replace(
            found, guards=tuple(guards), bounds=tuple(bounds), conditions=tuple(conditions), masks=tuple(masks)
        )


class ContractionWriter:
    """Writes the loops around the tiles of one contraction. `ahead` takes the lines of each level of the nest that
    come before its strips."""

    def __init__(
        self, found: Contraction, statement: ir.Statement, write: Expressions, lines: list[str], store: bool,
        ahead: list[tuple[list[str], str]], ranges: Ranges,
    ) -> None:  # fmt: skip
        self.found = found
        self.statement = statement
        self.write = write
        self.layout = write.layout
        self.lines = lines
        self.store = store
        self.ahead = ahead
        self.ranges = ranges
        self.dtype = write.stored(statement.target.tensor)
        self.type = CAST[self.dtype]
        tensors = (found.a.access, found.b.access, statement.target)
        self.of_a, self.of_b, self.of_y = (strides(access, self.layout) or {} for access in tensors)
        self.rows, self.columns, self.tile = self.shape()
        free = [i for i in statement.indices if i in ranges]
        inside = {found.row, found.column, *found.summed}
        inside |= {i for atom in found.conditions for i in ir.index_names(atom)}  # these loops stand outermost
        self.row_loops = [i for i in free if i not in inside and self.of_a.get(i) and not self.of_b.get(i)]
        inside = {found.row, found.column, *found.summed}
        self.outer_loops = [i for i in free if i not in inside and i not in self.row_loops]
        packing = "packed" in (found.a.mode, found.b.mode)
        first = found.summed[0]
        known = first in self.layout.constant and ranges[first][0] == "0"
        rest = math.prod(self.layout.sizes.index[i] for i in found.summed[1:])
        most = max(STEPS // max(rest, 1), 1)
        long = not known or self.layout.sizes.index[first] > 2 * most
        whole = "ahead" in (found.a.mode, found.b.mode) or bool(found.bounds or found.masks)
        self.chunk = most if packing and long and not whole else None
        count = self.layout.sizes.index[first]
        self.steps = (min(2 * most, count) if self.chunk is None and known else most if self.chunk else count) * rest
        if self.chunk is None:
            self.steps = count * rest
        wide = self.layout.sizes.index[found.column] > 2 * COLUMNS
        self.block = COLUMNS if found.b.mode == "packed" and wide else None

    def shape(self) -> tuple[int, int, str]:
        """Rows and columns of a tile, no more than there are; and the name of its function."""
        width = vector_bytes()
        lanes = width // self.dtype.itemsize
        most_rows, most_columns = (self.layout.least_count(i) for i in (self.found.row, self.found.column))
        if self.found.form == "dot":
            rows, columns = int(min(4, most_rows)), int(min(4, most_columns))
            return rows, columns, f"dot_{self.type}_{rows}_{columns}_{lanes}"
        rows = int(min(ROWS[width], most_rows))
        while lanes > most_columns:
            lanes //= 2
        vectors = int(min(VECTORS[width], most_columns // lanes))
        return rows, vectors * lanes, f"{self.found.form}_{self.type}_{rows}_{vectors}_{lanes}"

    def add(self, indent: str, *texts: str) -> None:
        self.lines.extend(indent + text for text in texts)

    def scale(self) -> str:
        sign = "-" if self.statement.operator == "-=" else ""
        return f"{sign}{self.write.value(self.found.scale, self.dtype)}"

    def loop(self, indent: str, name: str) -> str:
        low, high = self.ranges[name]
        self.add(indent, f"for {self.layout.index(name)} in range({low}, {high}):")
        return indent + "    "

    def emit(self, indent: str, plain: Callable[[str], None]) -> None:
        """`plain` writes the statement as plain loops."""
        found, add, index = self.found, self.add, self.layout.index
        if found.masks:  # a zero that stands for what is outside must not meet an infinity: 0 * inf is no zero
            self.check_finite(indent)
            add(indent, "if check != check:")
            plain(indent + "    ")
            add(indent, "else:")
            indent += "    "
        for operand, moves, size in ((found.a, self.of_a, self.rows), (found.b, self.of_b, self.columns)):
            if operand.mode == "ahead":
                self.pack_ahead(operand, moves, size)
        for name in self.outer_loops:
            indent = self.loop(indent, name)
        if found.conditions:
            add(indent, f"if {' and '.join(self.write.truth(atom) for atom in found.conditions)}:")
            indent += "    "
        if self.chunk is not None:
            low, high = self.ranges[found.summed[0]]
            add(indent, f"for chunk in range({low}, {high}, {self.chunk}):")
            indent += "    "
        low_c, high_c = self.ranges[found.column]
        if self.block is not None:
            add(indent, f"for block in range({low_c}, {high_c}, {self.block}):")
            indent += "    "
            add(indent, f"end = min(block + {self.block}, {high_c})")
            low_c, high_c = "block", "end"
        last_c = self.ranges[found.column][1]
        if found.b.mode == "packed":
            self.add(indent, f"for column in range({low_c}, {high_c}, {self.columns}):")
            self.add(indent, f"    {index(found.column)} = min(column, {last_c} - {self.columns})")
            place = f"(column - {low_c}) * {self.steps}" if low_c != "0" else f"column * {self.steps}"
            self.pack(indent + "    ", found.b, self.of_b, self.columns, self.panel("b", self.b_size()), place)
        for name in self.row_loops:
            indent = self.loop(indent, name)
        low_r, high_r = self.ranges[found.row]
        row_loop = [
            f"for row in range({low_r}, {high_r}, {self.rows}):",
            f"    {index(found.row)} = min(row, {high_r} - {self.rows})",
        ]
        column_loop = [
            f"for column in range({low_c}, {high_c}, {self.columns}):",
            f"    {index(found.column)} = min(column, {last_c} - {self.columns})",
        ]
        if found.a.mode == "packed":  # a panel of a stays in the nearest cache, those of b run by
            add(indent, *row_loop)
            self.pack(indent + "    ", found.a, self.of_a, self.rows, self.panel("a", self.rows * self.steps), "0")
            add(indent + "    ", *column_loop)
        elif found.form == "lane":
            add(indent, *row_loop)
            add(indent + "    ", *column_loop)
        else:
            add(indent, *column_loop)
            add(indent + "    ", *row_loop)
        self.one_tile(indent + "        ", low_c)

    def check_finite(self, indent: str) -> None:
        """Makes `check` NaN if anything that the statement reads of a is not finite."""
        access = self.found.a.access
        self.add(indent, f"check = {self.write.cast('0', self.dtype)}")
        for name in (i for i in self.statement.indices if self.of_a.get(i) and i in self.ranges):
            indent = self.loop(indent, name)
        value = f"{self.layout.tensor(access.tensor)}[{self.write.offset(access)}]"
        self.add(indent, f"check = check + {value} * {self.write.cast('0', self.dtype)}")

    # -- panels

    def b_size(self) -> int:
        columns = self.block or self.layout.most.get(self.found.column, self.layout.sizes.index[self.found.column])
        return -(-columns // self.columns) * self.columns * self.steps

    def panel(self, side: str, size: int) -> str:
        """The kernel's name for scratch memory that holds panels."""
        name = f"panel {side} {id(self.statement)}"
        if name not in self.layout.sizes.shapes:
            self.layout.sizes.shapes[name] = (size,)
            self.layout.kinds[name] = "local"
            self.write.types.tensors[name] = self.write.types.tensors[self.statement.target.tensor]
        return self.layout.tensor(name)

    def pack(self, indent: str, operand: Operand, moves: dict[str, int], size: int, panel: str, place: str) -> None:
        """Copies one panel: for each step of the sum, `size` elements side by side."""
        found, index = self.found, self.layout.index
        loops: list[str] = []
        terms, step = [], size
        for name in reversed(found.summed):
            low, high = self.ranges[name]
            if self.chunk is not None and name == found.summed[0]:
                low, high = "chunk", f"min(chunk + {self.chunk}, {high})"
            loops.insert(0, f"for {index(name)} in range({low}, {high}):")
            terms.append(f"({index(name)} - {low}) * {step}" if low != "0" else f"{index(name)} * {step}")
            step *= self.layout.sizes.index[name]
        lanes = f"for lane in range({size}):"
        along = moves[operand.along]
        inner = indent
        for text in [*loops, lanes] if along == 1 else [lanes, *loops]:
            self.add(inner, text)
            inner += "    "
        tensor = self.layout.tensor(operand.access.tensor)
        source = f"{tensor}[{self.write.offset(operand.access)} + lane * {along}]"
        if self.found.masks and operand is self.found.b:
            source = f"({source} if {self.inside_masks()} else {self.write.cast('0', self.dtype)})"
        start = [] if place == "0" else [place]
        self.add(inner, f"{panel}[{' + '.join([*start, *terms, 'lane'])}] = {source}")

    def inside_masks(self) -> str:
        """Whether a lane of a panel of b takes part at a step of the sum."""
        texts = []
        for mask in self.found.masks:
            form = affine(self.layout.known(mask))
            assert form is not None
            coefficient = form.terms[self.found.column]
            assert isinstance(coefficient, Number)
            texts.append(f"{self.write.integer(form.expression())} + lane * {int(coefficient.value)} >= 0")
        return " and ".join(texts)

    def pack_ahead(self, operand: Operand, moves: dict[str, int], size: int) -> None:
        """Panels of all that a statement reads of an operand, before the strips of some nest around it."""
        lines, indent = self.ahead[operand.level]
        here, self.lines = self.lines, lines
        side = "a" if operand is self.found.a else "b"
        loops = self.loops_of(side)
        total = self.tiles_size(operand, size)
        extents = [self.layout.most.get(i, self.layout.sizes.index[i]) for i in loops]
        panel = self.panel(side, math.prod(extents) * total)
        for name in loops:
            indent = self.loop(indent, name)
        low, high = self.ranges[operand.along]
        self.add(indent, f"for first in range({low}, {high}, {size}):")
        index = self.layout.index(operand.along)
        self.add(indent, f"    {index} = min(first, {high} - {size})")
        self.pack(indent + "    ", operand, moves, size, panel, self.panel_place(side, "first"))
        self.lines = here

    def loops_of(self, side: str) -> list[str]:
        """The loops around the tiles that an operand moves with."""
        moves = self.of_a if side == "a" else self.of_b
        return [i for i in [*self.outer_loops, *self.row_loops] if moves.get(i)]

    def tiles_size(self, operand: Operand, size: int) -> int:
        """Elements in the panels of all tiles along an operand."""
        count = self.layout.most.get(operand.along, self.layout.sizes.index[operand.along])
        return -(-count // size) * size * self.steps

    def panel_place(self, side: str, first: str) -> str:
        """Where the panel of a tile starts, among those that were packed ahead."""
        operand, size = (self.found.a, self.rows) if side == "a" else (self.found.b, self.columns)
        low = self.ranges[operand.along][0]
        terms = [f"({first} - {low}) * {self.steps}" if low != "0" else f"{first} * {self.steps}"]
        step = self.tiles_size(operand, size)
        for name in reversed(self.loops_of(side)):
            low = self.ranges[name][0]
            index = self.layout.index(name)
            terms.append(f"({index} - {low}) * {step}" if low != "0" else f"{index} * {step}")
            step *= self.layout.most.get(name, self.layout.sizes.index[name])
        return " + ".join(terms)

    # -- tiles

    def one_tile(self, indent: str, low_c: str) -> None:
        found, add, layout = self.found, self.add, self.layout
        target = self.statement.target
        starts, counts = self.sum_ranges(indent)
        zero = ir.substitute_indices(dict.fromkeys(found.summed, Number(0)))
        y = ir.transform(target, zero)
        assert isinstance(y, ir.Access)
        from_a, at_a = self.source("a", starts, low_c)
        from_b, at_b = self.source("b", starts, low_c)
        into, at_y = layout.tensor(target.tensor), self.write.offset(y)
        keep = "False" if self.store else "True"
        if self.store and self.chunk is not None:
            keep = f"chunk > {self.ranges[found.summed[0]][0]}"
        dot = found.form == "dot"
        aside = []  # why a tile may not go straight to its place
        if not dot and self.of_y[found.column] != 1:
            aside.append("True")
        else:
            if keep != "False":
                aside += self.edges()
            aside += [f"{least} < 0" for least, _ in self.corners()]
        y_row, y_column = str(self.of_y[found.row]), str(self.of_y[found.column])
        skip = " or ".join(f"{most} < 0" for _, most in self.corners())
        if skip:
            add(indent, f"if {skip}:", "    continue")
        if aside:
            add(indent, f"aside = {' or '.join(aside)}")
            add(indent, f"into = {self.buffer()} if aside else {into}")
            add(indent, f"place = 0 if aside else {at_y}")
            add(indent, f"across = {self.columns} if aside else {y_row}")
            if dot:
                add(indent, f"along = 1 if aside else {y_column}")
            into, at_y, y_row, y_column = "into", "place", "across", "along"
            keep = f"{keep} and not aside" if keep != "False" else keep
        arguments = [from_a, at_a, from_b, at_b, into, at_y]
        if found.form == "lane":
            times = self.product(counts)
            arguments += [y_row, times, str(self.step("a")), str(self.step("b"))]
        else:
            arguments += [str(self.of_a[found.row]), y_row]
            if dot:
                arguments += [str(self.of_b[found.column]), y_column]
            for count, stride_a, stride_b in self.nested(counts):
                arguments += [count, str(stride_a), str(stride_b)]
        add(indent, f"{self.tile}({', '.join(arguments)}, {self.scale()}, {keep})")
        if aside:
            self.write_back(indent)
        if found.bounds:
            self.left_over(indent)

    def sum_ranges(self, indent: str) -> tuple[dict[str, str], list[str]]:
        """Where the loops over summed indices start, unless at 0, and how many values each runs over."""
        starts, counts = {}, []
        for position, name in enumerate(self.found.summed):
            low, high = self.ranges[name]
            count = high if low == "0" else f"{high} - {low}"
            if position == 0 and self.chunk is not None:
                low, count = "chunk", f"min({self.chunk}, {high} - chunk)"
            elif position == 0 and (self.found.bounds or self.found.masks):
                low, count = self.tile_range(indent, low, high)
            if low != "0":
                starts[name] = low
            counts.append(count)
        return starts, counts

    def source(self, side: str, starts: dict[str, str], low_c: str) -> tuple[str, str]:
        """The tensor or panel that a tile reads, and where it begins."""
        operand, moves = (self.found.a, self.of_a) if side == "a" else (self.found.b, self.of_b)
        panel = f"panel {side} {id(self.statement)}"
        first = self.found.summed[0]
        begins = self.found.bounds or self.found.masks
        skipped = f" + ({starts[first]} - {self.ranges[first][0]}) * {self.step(side)}" if begins else ""
        if operand.mode == "ahead":
            return self.layout.tensor(panel), self.panel_place(side, "row" if side == "a" else "column") + skipped
        if operand.mode == "packed":
            place = "0"
            if side == "b":
                place = f"(column - {low_c}) * {self.steps}" if low_c != "0" else f"column * {self.steps}"
            return self.layout.tensor(panel), place + skipped
        zero = ir.transform(operand.access, ir.substitute_indices(dict.fromkeys(self.found.summed, Number(0))))
        assert isinstance(zero, ir.Access)
        extra = "".join(f" + {low} * {moves[name]}" for name, low in starts.items())
        return self.layout.tensor(operand.access.tensor), self.write.offset(zero) + extra

    def step(self, side: str) -> int:
        """How far apart the steps of a lane tile lie."""
        operand, moves = (self.found.a, self.of_a) if side == "a" else (self.found.b, self.of_b)
        if operand.mode in ("packed", "ahead"):
            return self.rows if side == "a" else self.columns
        return moves[self.found.summed[-1]]

    @staticmethod
    def product(counts: list[str]) -> str:
        if all(count.isdigit() for count in counts):
            return str(math.prod(int(count) for count in counts))
        return " * ".join(f"({count})" for count in counts)

    def nested(self, counts: list[str]) -> list[tuple[str, int, int]]:
        """The three loops of an outer or dot tile; one for two that run on where the other ends."""
        result: list[tuple[str, int, int]] = []
        step = self.columns
        panel_steps: dict[str, int] = {}
        for name in reversed(self.found.summed):
            panel_steps[name] = step
            step *= self.layout.sizes.index[name]
        through_panel = self.found.b.mode in ("packed", "ahead")
        for name, count in zip(self.found.summed, counts, strict=True):
            stride_a, stride_b = self.of_a[name], panel_steps[name] if through_panel else self.of_b[name]
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
        self.add(indent, f"low_k = {_joined('max', lows)}")
        self.add(indent, f"high_k = max(low_k, {_joined('min', highs)})")
        return "low_k", "high_k - low_k"

    def over_tile(self, form: Affine, most: bool) -> str:
        """The least or the greatest value of a form over the elements of a tile."""
        shift = 0
        for name, size in ((self.found.row, self.rows), (self.found.column, self.columns)):
            coefficient = form.terms.get(name, Number(0))
            assert isinstance(coefficient, Number)
            shift += (max if most else min)(int(coefficient.value) * (size - 1), 0)
        return f"{self.write.integer(form.expression())} + {shift}"

    def edges(self) -> list[str]:
        """Conditions under which a tile was moved back over the one before."""
        found, result = self.found, []
        for name, step, start in ((found.row, self.rows, "row"), (found.column, self.columns, "column")):
            low, high = self.ranges[name]
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
                for name, size in ((self.found.row, self.rows), (self.found.column, self.columns)):
                    coefficient = form.terms.get(name, Number(0))
                    assert isinstance(coefficient, Number)
                    span = int(coefficient.value) * (size - 1)
                    least, most = least + min(span, 0), most + max(span, 0)
                base = self.write.integer(form.expression())
                found.append((f"{base} + {least}", f"{base} + {most}"))
        return found

    def buffer(self) -> str:
        name = f"buffer {CAST[self.dtype]}"
        size = self.rows * self.columns
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
        value = f"{self.buffer()}[({row} - first_row) * {self.columns} + {column} - first_column]"
        lines = [
            "if aside:",
            f"    first_row, first_column = {row}, {column}",
            f"    for {row} in range(row, first_row + {self.rows}):",
            f"        for {column} in range(column, first_column + {self.columns}):",
        ]
        inner = "            "
        if found.guards:
            lines.append(f"{inner}if {' and '.join(self.write.truth(atom) for atom in found.guards)}:")
            inner += "    "
        whole = self.store and not found.guards
        if not whole:
            lines.append(f"{inner}{place} = {place} + {value}")
        elif self.chunk is not None:
            low = self.ranges[found.summed[0]][0]
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
        low, high = self.ranges[k]
        lows, highs = [low], [high]
        for bound in found.bounds:
            form = affine(layout.known(bound))
            assert form is not None
            rest = self.write.integer(form.without(k).expression())
            if form.terms[k] == Number(1):
                lows.append(f"-({rest})")
            else:
                highs.append(f"({rest}) + 1")
        columns = f"        for {column} in range(column, first_column + {self.columns}):"
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
            f"for {row} in range(row, first_row + {self.rows}):",
            f"    least, most = {_joined('max', lows)}, {_joined('min', highs)}",
            f"    for {name} in range(least, min(most, low_k)):",
            *step,
            f"    for {name} in range(max(least, high_k), most):",
            *step,
            f"{row}, {column} = first_row, first_column",
        ]
        self.add(indent, *lines)


def _joined(function: str, parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{function}({', '.join(parts)})"


__all__ = ["Contraction", "ContractionWriter", "Roles"]
