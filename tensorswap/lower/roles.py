"""Roles: which indices of a sum of products of two tensors are row and column, and how tiles read the tensors.

Roles in y[row, column] += a[row, k] * b[column, k], with any further indices as loops around the tiles. A tile is
*outer* (vectors along the column, contiguous in b), *lane* (the same, with rows contiguous in a too) or *dot* (vectors
along the last summed index, contiguous in a and b). An operand that does not lie so is packed: copied into panels.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from enum import Enum

from ..kernel import registers
from ..kernel.registers import ROWS, VECTORS
from ..language import ir
from ..language.affine import affine, is_constant
from ..language.bounds import at_least_zero
from ..language.build import ONE, conjuncts, divide, multiply
from ..language.ir import Expr, Number
from .expression import Expressions
from .layout import Layout

WORTHWHILE = 4  # steps of the sum below which a tile's start and end cost more than its middle
REUSE = 16  # rows that a packed panel must serve to be worth its packing
LINE = 64  # bytes of a line of the cache
NEAR = 24 * 1024  # bytes of the nearest cache that one operand of a tile may take
KEPT = 1 << 20  # bytes of panels that are packed ahead


class Mode(Enum):
    """How tiles read an operand."""

    DIRECT = "as it lies, contiguous along its index"
    SCALAR = "as it lies, one number at a time"
    PACKED = "through panels"
    AHEAD = "through panels that were packed further out, at some level of the nest"


@dataclass(frozen=True)
class Operand:
    """One of the two tensors: its access, the index that tiles run along, how it is read, and that level."""

    access: ir.Access
    along: str
    mode: Mode = Mode.DIRECT
    level: int = 0


EASE = {Mode.DIRECT: 2.0, Mode.AHEAD: 1.8, Mode.PACKED: 1.5}


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
        dtype = write.layout.stored(target.tensor)
        if dtype.kind != "f" or any(write.layout.stored(a.tensor) != dtype for a in parts[0]):
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
        width = registers.vector_bytes()
        wide = VECTORS[width] * (width // self.write.layout.stored(a.access.tensor).itemsize)
        rows, columns = layout.least_count(a.along), layout.least_count(b.along)
        fits = min(columns, wide) * min(rows, ROWS[width])
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
            b = replace(b, mode=Mode.DIRECT)
        elif ahead_b is not None:
            b = replace(b, mode=Mode.AHEAD, level=ahead_b)
        elif in_row >= REUSE or taken.masks:
            b = replace(b, mode=Mode.PACKED)
        elif of_b[b.along] == 1:
            b = replace(b, mode=Mode.DIRECT)
        elif dot_along and len(order) <= 3:
            order = [*(i for i in order if i != dot_along[0]), dot_along[0]]
            found = replace(taken, form="dot", a=a, b=b, summed=tuple(order))
            return (fits * (1.0 if min(rows, columns) >= 4 else 0.3), in_column, in_row), found
        else:
            return None
        merged = one_loop or self.merges(of_b, order)
        jumping = self.thrashes(of_a, order[-1]) and in_column >= 16
        if of_a[a.along] == 1 and (one_loop or self.merges(of_a, order)) and not jumping:
            a = replace(a, mode=Mode.DIRECT)
        elif ahead_a is not None and steps >= 16:
            a = replace(a, mode=Mode.AHEAD, level=ahead_a)
        elif (jumping and of_a[a.along] == 1) or (in_column >= 32 and steps >= 16 and b.mode is not Mode.DIRECT):
            a = replace(a, mode=Mode.PACKED)
        else:
            a = replace(a, mode=Mode.SCALAR)
        if a.mode is not Mode.SCALAR and b.mode is Mode.DIRECT and not merged:
            if in_row >= REUSE:
                b = replace(b, mode=Mode.PACKED)
            else:
                a = replace(a, mode=Mode.SCALAR)
        if a.mode is Mode.SCALAR and len(order) > 3:
            return None
        found = replace(taken, form="outer" if a.mode is Mode.SCALAR else "lane", a=a, b=b, summed=tuple(order))
        ease = EASE[b.mode] * (1.0 if contiguous else 0.6)
        if columns < wide:
            ease *= 0.6  # with fewer vectors in a row of the tile, there are more loads for each product
        if a.mode is Mode.SCALAR and self.collides(of_a[a.along]):
            ease *= 0.9  # of two indices the other one is the better row
        return (fits * ease, in_column, in_row), found

    def merges(self, moves: dict[str, int], order: list[str]) -> bool:
        """Whether loops inside each other run through memory as one."""
        return all(
            moves[outer] == moves[inner] * self.layout.count(inner) for outer, inner in itertools.pairwise(order)
        ) and not any(i in self.layout.least for i in order)

    def thrashes(self, moves: dict[str, int], last: str) -> bool:
        """Whether the lines of memory that the steps of a sum touch drive each other out of the nearest cache: there
        are too many, or they are apart by a power of two."""
        step = abs(moves[last]) * self.write.layout.stored(self.statement.target.tensor).itemsize
        steps = self.layout.typical(last)
        return (steps >= 64 and step >= 1024 and step % 512 == 0) or (step > LINE and steps * LINE > NEAR)

    def collides(self, stride: int) -> bool:
        """Whether rows that lie so far apart share the same few places of the nearest cache."""
        step = abs(stride) * self.write.layout.stored(self.statement.target.tensor).itemsize
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
            extents = [self.layout.greatest_count(i) for i in named]
            size = math.prod(extents) * self.write.layout.stored(tensor).itemsize
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
