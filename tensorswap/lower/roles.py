"""Roles: which indices of a sum of products of two tensors are row and column, and how tiles read the tensors.

Roles in y[row, column] += a[row, k] * b[column, k], with any further indices as loops around the tiles. A tile is
*outer* (vectors along the column, contiguous in b), *lane* (the same, with rows contiguous in a too) or *dot* (vectors
along the last summed index, contiguous in a and b). An operand that does not lie so is packed: copied into panels.

Where b has no index of its own and a is read in windows, w[u,v] += a[i+u,j+v] * b[i,j], row and column are both of a.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from ..kernel.ir import LOOPS
from ..kernel.registers import LINE, registers
from ..language import ir
from ..language.affine import affine, is_constant
from ..language.bounds import at_least_zero, counts
from ..language.build import conjuncts, is_integer, maximum, minimum
from ..language.interval import interval
from ..language.ir import Expr, Number
from ..plan.work import TILED, are_few
from .expression import Expressions
from .layout import Layout

TURNING = 32  # steps of a sum below which sums are not worth turning, where they lie otherwise than their vectors
REUSE = 13  # rows that a packed panel must serve to be worth its packing
MANY = 96  # the same, if what is packed is near anyway
FAR = 1 << 18  # bytes of a tensor that is not
LONG = 64  # steps of a sum that are many
TURNED = 8  # columns, and steps of a sum, of a panel that is turned in registers, and serves FEW_ROWS well
FEW_ROWS = 4
NEAR = 24 * 1024  # bytes of the nearest cache that one operand of a tile may take
# Bytes of panels that are packed ahead, beyond the cache of a core, if they would be packed again for every few rows,
# since reading them again costs less; and if many rows read them, while blocks of columns stay near.
STREAMED, LARGE_PANELS = 1 << 25, 1 << 27
FEW = 128  # rows that are too few for large panels of their own
WAY = 4096  # bytes: rows so far apart share one place of the nearest cache, which holds no more of them than a tile has
CROWDED = 512  # columns for which a panel of such rows is worth its packing
NO_COLUMN = "no column"  # stands for one where there is none


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


SMALL, LARGE = 2**31, 2**40  # what sums of indices come to, and a number that they do not come near in any tile
EASE = {Mode.DIRECT: 2.0, Mode.AHEAD: 1.8, Mode.PACKED: 1.5}


Scale = tuple[tuple[str, Expr], ...]  # numbers by which a product is multiplied or divided, one after the other


@dataclass(frozen=True)
class Contraction:
    """The roles of tensors and indices."""

    form: str  # of the tile
    a: Operand
    b: Operand
    summed: tuple[str, ...]  # the last one innermost
    scale: Scale
    guards: tuple[Expr, ...] = ()  # on row and column
    bounds: tuple[Expr, ...] = ()  # on row and the summed index: at least 0
    masks: tuple[Expr, ...] = ()  # the same on column and the summed index: panels of b hold zeros where they fail
    conditions: tuple[Expr, ...] = ()  # on indices outside
    values: tuple[tuple[str, Expr], ...] = ()  # what names stand for in these: whole numbers that are read

    @property
    def row(self) -> str:
        return self.a.along

    @property
    def column(self) -> str:
        return self.b.along


def factors(value: Expr) -> tuple[list[ir.Access], Scale] | None:
    """The two accesses of a product and the numbers beside them; None if the value is anything else."""
    match value:
        case ir.Access():
            return ([value], ()) if value.indices else ([], (("*", value),))
        case ir.Unary(operator="-", operand=operand):
            inner = factors(operand)
            return (inner[0], (("*", Number(-1)), *inner[1])) if inner else None
        case ir.Binary(operator="*" | "/" as operator, left=left, right=right):
            a = factors(left)
            if operator == "/":
                return (a[0], (*a[1], ("/", right))) if a and is_constant(right) else None
            b = factors(right)
            return (a[0] + b[0], a[1] + b[1]) if a and b else None
    return ([], (("*", value),)) if is_constant(value) else None


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


def run_as_one(loops: Sequence[str], moves: dict[str, int], layout: Layout) -> bool:
    """Whether loops inside each other, over all of their indices, run through memory as one."""
    if len(loops) == 1:
        return True
    pairs = itertools.pairwise(loops)
    whole = not any(i in layout.least for i in loops)
    return whole and all(moves[outer] == moves[inner] * layout.count(inner) for outer, inner in pairs)


@dataclass(frozen=True)
class Product:
    """A sum of products of two tensors: how far each index moves through the target, `y`, and through the two sides."""

    y: dict[str, int]
    sides: tuple[tuple[ir.Access, dict[str, int]], tuple[ir.Access, dict[str, int]]]
    free: list[str]
    summed: tuple[str, ...]
    scale: Scale


class Roles:
    """Finds the best roles for one statement. `levels` tells, for each level of the nest around it from the outermost
    on, the index of that level and the tensors written within it."""

    def __init__(
        self, statement: ir.Statement, write: Expressions, fixed: set[str], levels: list[tuple[str, frozenset[str]]]
    ) -> None:
        self.statement = statement
        self.layout = write.layout
        self.fixed = fixed
        self.levels = levels

    def find(self) -> Contraction | None:
        product = self.product()
        if product is None or self.streams(product):
            return None
        for trials in (self.trials(product), self.windows(product)):
            choices = [judged for trial in trials if (judged := trial.judged()) is not None]
            if choices:
                return max(choices, key=lambda choice: choice[0])[1]
        return None

    def product(self) -> Product | None:
        """The statement as a sum of products, if tiles are worth their start."""
        target = self.statement.target
        parts = factors(self.statement.value) if self.statement.operator in ir.SUM else None
        if parts is None or len(parts[0]) != 2 or not self.is_tiled(target, parts[0]):
            return None
        moves = [m for access in (target, *parts[0]) if (m := strides(access, self.layout)) is not None]
        if len(moves) < 3:
            return None
        y, first, second = moves
        free = [i for i in self.statement.indices if i not in self.fixed]
        summed = tuple(i for i in free if i not in y)
        if not summed or any(i not in first or i not in second for i in summed):
            return None
        if math.prod(self.layout.weight(i) for i in summed) < TILED:
            return None
        return Product(y, ((parts[0][0], first), (parts[0][1], second)), free, summed, parts[1])

    def streams(self, product: Product) -> bool:
        """Whether a product makes a few rows of a matrix that lies in lines along them: plain loops read those one
        after the other, each once, where tiles would jump from line to line."""
        for (_, of_a), (b, of_b) in (product.sides, product.sides[::-1]):
            columns = [i for i in product.free if of_b.get(i) == 1 and product.y.get(i) == 1 and not of_a.get(i)]
            rows = [i for i in product.free if product.y.get(i) and i not in columns]
            if len(columns) != 1 or len(product.summed) != 1 or any(of_b.get(i) for i in rows):
                continue
            count = math.prod(self.layout.count(i) for i in rows)
            size = self.layout.elements(b.tensor) * self.layout.stored(b.tensor).itemsize
            # tiles that ask for lines early need fewer rows to be worth jumping from line to line
            few = are_few(count, size) or (registers().by_lane and count < REUSE and size >= FAR)
            if few and self.layout.typical(columns[0]) >= LONG and self.statement.guard is None:
                return True
        return False

    def is_tiled(self, target: ir.Access, read: list[ir.Access]) -> bool:
        """Whether the elements of the target are a tile's own, and all three tensors of one type."""
        bare = [e for e in target.indices if isinstance(e, ir.Index)]
        others = [e for e in target.indices if not isinstance(e, ir.Index)]
        if len(set(bare)) < len(bare) or not all(ir.index_names(e) <= self.fixed for e in others):
            return False
        dtype = self.layout.stored(target.tensor)
        alike = dtype.kind == "f" and all(self.layout.stored(a.tensor) == dtype for a in read)
        return alike and target.tensor not in ir.tensors_read(self.statement)

    def trials(self, product: Product) -> Iterator[Trial]:
        """Every choice of a row and a column that the guard allows."""
        for (a, of_a), (b, of_b) in (product.sides, product.sides[::-1]):
            free = [i for i in product.free if product.y.get(i) and self.layout.weight(i) > 1]
            rows = [i for i in free if of_a.get(i) and not of_b.get(i)]
            columns = [i for i in free if of_b.get(i) and not of_a.get(i)]
            for column in columns:
                for row in rows:
                    roles = Contraction("", Operand(a, row), Operand(b, column), product.summed, product.scale)
                    guarded = self.guarded(roles)
                    if guarded is not None:
                        yield Trial(self, guarded, product.y, of_a, of_b)

    def windows(self, product: Product) -> Iterator[Trial]:
        """Indices that move windows over one tensor, if the other has none of its own."""
        if self.statement.guard is not None:
            return
        for (a, of_a), (b, of_b) in (product.sides, product.sides[::-1]):
            free = [i for i in product.free if product.y.get(i) and self.layout.weight(i) > 1]
            if any(of_b.get(i) and not of_a.get(i) for i in free):
                continue
            places = [ir.index_names(place) for place in a.indices]
            moving = [i for i in free if of_a.get(i) and not of_b.get(i)]
            moving = [i for i in moving if any(i in place and place & {*product.summed} for place in places)]
            if not moving:
                continue
            *others, row = sorted(moving, key=lambda i: -abs(of_a[i]))
            column = others[-1] if others else NO_COLUMN
            if not others:
                self.layout.joined[NO_COLUMN] = 1
            roles = Contraction("", Operand(a, row), Operand(b, column), product.summed, product.scale)
            yield Trial(self, roles, {NO_COLUMN: 0} | product.y, of_a, {column: 0} | of_b)

    def guarded(self, found: Contraction) -> Contraction | None:
        """The roles with the guard taken apart; None if a part of it does not fit."""
        parts: dict[str, tuple[Expr, ...]] = dict.fromkeys(("guards", "bounds", "masks", "conditions"), ())
        values: dict[str, Expr] = {}
        for asked in conjuncts(self.statement.guard):
            atom, named = self.with_names(asked, found)
            kind = self.kind_of(atom, found)
            if kind is None:
                return None
            values |= named
            parts[kind] += tuple(at_least_zero(atom)) if kind in ("bounds", "masks") else (atom,)
        # a tile reads whole blocks: a guard must not be what keeps an access in bounds
        whole = all(isinstance(e, ir.Index) for o in (found.a, found.b) for e in o.access.indices)
        if (self.statement.guard is not None and not whole) or (parts["masks"] and parts["bounds"]):
            return None
        if (parts["masks"] or parts["bounds"]) and any(
            isinstance(n, ir.Access) for _, factor in found.scale for n in ir.walk(factor)
        ):
            return None  # no terms are 0, whatever they would have been multiplied by
        known = tuple(values.items())
        return Contraction(found.form, found.a, found.b, found.summed, found.scale, **parts, values=known)

    def with_names(self, atom: Expr, found: Contraction) -> tuple[Expr, dict[str, Expr]]:
        """A comparison with a side that reads whole numbers, `length[b] + 1`, if the loops of tiles do not change it:
        the name of an index stands in its place; and what it stands for, held where no index comes, so that sums fit.
        A side is computed as the text says: the numbers may be any, and where they wrap around, so does the side. All
        else that reads numbers stays as it is."""
        inner = {found.row, found.column, *found.summed}
        if not isinstance(atom, ir.Compare) or not ir.index_names(atom) & inner:
            return atom, {}
        sides = [s for s in (atom.left, atom.right) if any(isinstance(n, ir.Access) for n in ir.walk(s))]
        if len(sides) != 1 or ir.index_names(sides[0]) & inner or not self.is_whole(sides[0]):
            return atom, {}
        (side,) = sides
        if not self.is_small(atom.left if side is atom.right else atom.right):
            return atom, {}
        name = f"the value of {side}"
        left, right = (ir.Index(name) if s is side else s for s in (atom.left, atom.right))
        made = replace(atom, left=left, right=right)
        forms = [affine(bound) for bound in at_least_zero(made)]
        alone = all(f is not None and f.terms.get(name) in (Number(1), Number(-1)) for f in forms)
        if not alone:
            return atom, {}
        return made, {name: minimum(maximum(side, Number(-LARGE)), Number(LARGE))}

    def is_small(self, place: Expr) -> bool:
        """Whether a sum of indices stays small, with the sizes and static integers of this call."""
        known = self.layout.known(place)
        sizes = {name: self.layout.count(name) for name in ir.index_names(known)}
        between = interval(known, sizes) if is_integer(known) else None
        return between is not None and all(abs(self.layout.sizes.value(end)) <= SMALL for end in between)

    def is_whole(self, side: Expr) -> bool:
        """Whether it is a whole number that fits a word, computed as places are, of numbers at places that are not read
        themselves."""
        accesses = [n for n in ir.walk(side) if isinstance(n, ir.Access)]
        nested = any(isinstance(n, ir.Access) for a in accesses for place in a.indices for n in ir.walk(place))
        dtypes = {self.layout.stored(a.tensor) for a in accesses}
        fit = all(dtype.kind == "i" or (dtype.kind == "u" and dtype.itemsize < 8) for dtype in dtypes)
        return not nested and fit and counts(side)

    def kind_of(self, atom: Expr, found: Contraction) -> str | None:
        """What a part of the guard is to these roles, by the indices that it compares."""
        touched = (ir.index_names(atom) - self.fixed) & {found.row, found.column, *found.summed}
        if any(isinstance(n, ir.Inside) for n in ir.walk(atom)):
            return None
        if not touched:
            return "conditions"
        forms = [affine(self.layout.known(b)) for b in at_least_zero(atom)]
        terms = [f.terms for f in forms if f is not None and all(isinstance(c, Number) for c in f.terms.values())]
        if not forms or len(terms) < len(forms):
            return None
        if touched <= {found.row, found.column}:
            return "guards"
        if len(found.summed) > 1 or {found.row, found.column} <= touched:
            return None
        if any(term.get(found.summed[0]) not in (Number(1), Number(-1)) for term in terms):
            return None
        if not any(found.column in term for term in terms):  # `l + j > j` is none
            return "bounds"
        # panels of b are packed further out, where other indices have no value yet
        return "masks" if ir.index_names(atom) <= {found.column, *found.summed} else None


class Trial:
    """One choice of row and column: the form of tile for it, and how good that is."""

    def __init__(
        self, roles: Roles, found: Contraction, y: dict[str, int], of_a: dict[str, int], of_b: dict[str, int]
    ) -> None:
        self.roles, self.layout, self.found = roles, roles.layout, found
        self.of_a, self.of_b = of_a, of_b
        weight, layout, summed = self.layout.weight, self.layout, found.summed
        self.itemsize = layout.stored(roles.statement.target.tensor).itemsize
        self.steps = math.prod(weight(i) for i in summed)
        # an index of which a strip runs stands outermost: the steps inside it then follow each other without gaps
        single = {i for i in summed if layout.most.get(i) == 1}
        self.partial = {i for i in summed if i in layout.least} - single
        rank = {i: 0 if i in single else 1 if i in self.partial else 2 for i in summed}
        self.order = sorted(summed, key=lambda i: (rank[i], -abs(of_b[i]), -abs(of_a[i])))
        self.rows, self.columns = layout.least_count(found.row), layout.least_count(found.column)
        self.wide = registers().outer[1] * (registers().bytes // self.itemsize)  # of a whole tile
        self.in_row, self.in_column = (
            layout.typical(own) * math.prod(weight(i) for i in moves if i in y and not other.get(i) and i != own)
            for own, moves, other in ((found.row, of_a, of_b), (found.column, of_b, of_a))
        )
        self.contiguous = y[found.column] == 1

    def judged(self) -> tuple[tuple[float, ...], Contraction] | None:
        """How good these roles are, and the roles with the form of tile for them."""
        at_once = math.prod(self.layout.typical(i) for i in self.found.summed)
        if len(self.partial) > 1 or (not self.contiguous and at_once < TURNING):
            return None
        b = self.second() if self.of_b[self.found.column] else None
        if b is None:
            return self.dot()
        a, b = self.together(self.first(b), b)
        if a.mode is Mode.SCALAR and len(self.order) > LOOPS:
            return None
        form = "outer" if a.mode is Mode.SCALAR else "lane"
        return self.score(self.ease(a, b)), replace(self.found, form=form, a=a, b=b, summed=tuple(self.order))

    def score(self, ease: float) -> tuple[float, ...]:
        fits = min(self.columns, self.wide) * min(self.rows, registers().outer[0])
        return fits * ease, self.columns, self.in_row

    def second(self) -> Operand | None:
        """How tiles that run along the columns read the second tensor, if they can."""
        most = STREAMED if self.in_row < FEW else LARGE_PANELS if self.reads_in_line() else registers().cache
        b, ahead = self.found.b, self.ahead(self.found.b, self.of_b, most)
        if self.found.masks and ahead is None and self.in_row < REUSE:
            return None
        thrashing = self.thrashes(self.of_b) and (ahead is not None or self.in_row >= 4 * REUSE)
        jumping = (
            self.jumps(self.of_b) and self.in_row >= (REUSE if self.is_far(b) else MANY) and self.bytes_of(b) > NEAR
        )
        if self.of_b[b.along] == 1 and not self.found.masks and not thrashing and not jumping:
            return replace(b, mode=Mode.DIRECT)
        if ahead is not None:
            return replace(b, mode=Mode.AHEAD, level=ahead)
        small = self.in_row >= FEW_ROWS and max(self.steps, self.columns) <= TURNED
        return replace(b, mode=Mode.PACKED) if self.in_row >= REUSE or small else None

    def first(self, b: Operand) -> Operand:
        """How they read the first one."""
        a, ahead, long = self.found.a, self.ahead(self.found.a, self.of_a, registers().cache), self.steps >= 16
        in_line, wide = self.of_a[a.along] == 1, self.layout.typical(self.found.column)
        jumping = self.thrashes(self.of_a) and wide >= 16
        jumping |= self.is_far(a) and self.jumps(self.of_a) and wide >= FEW_ROWS
        if in_line and self.runs_as_one(self.of_a) and not jumping:
            return replace(a, mode=Mode.DIRECT)
        beyond = b.mode is Mode.AHEAD and self.bytes_of(b) > registers().cache
        if (beyond or b.mode is Mode.PACKED) and self.reads_in_line():
            return replace(a, mode=Mode.SCALAR)
        # where numbers of a are loads of their own, a thread that packs b packs a as well, and waits for no other core
        apart = b.mode is Mode.PACKED and in_line and jumping and not registers().by_lane
        if ahead is not None and long and not apart:
            return replace(a, mode=Mode.AHEAD, level=ahead)
        side_by_side = registers().by_lane and wide >= 32 and long and b.mode is not Mode.DIRECT
        crowded = self.steps >= LONG and wide >= CROWDED and abs(self.of_a[a.along]) * self.itemsize % WAY == 0
        if (jumping and in_line) or side_by_side or crowded or self.returns(b):
            return replace(a, mode=Mode.PACKED)
        return replace(a, mode=Mode.SCALAR)

    def is_simple(self) -> bool:
        """Whether all tiles make all steps of the sum."""
        found = self.found
        return not (found.conditions or found.masks or found.bounds) and len(self.order) <= LOOPS

    def reads_in_line(self) -> bool:
        """Whether tiles read a first tensor well as it lies, while panels of the second one run by."""
        return self.is_simple() and self.of_a[self.found.row] != 1 and not registers().by_lane

    def returns(self, b: Operand) -> bool:
        """Whether tiles would come back to a first tensor that is far again and again: they stay at their rows of it,
        and run through the second one."""
        found, simple = self.found, b.mode is Mode.DIRECT and self.is_simple()
        return simple and self.is_far(found.a) and self.in_column >= 2 * self.wide and self.steps >= LONG

    def bytes_of(self, operand: Operand) -> int:
        return self.layout.elements(operand.access.tensor) * self.itemsize

    def is_far(self, operand: Operand) -> bool:
        return self.bytes_of(operand) >= FAR

    def together(self, a: Operand, b: Operand) -> tuple[Operand, Operand]:
        """Tiles that multiply by lanes of registers like to step through both tensors at one pace: a second one that
        lies in several pieces is packed for them."""
        if not registers().by_lane or self.runs_as_one(self.of_b):
            return a, b
        if a.mode is Mode.SCALAR or b.mode is not Mode.DIRECT:
            return a, b
        if a.mode is Mode.PACKED and self.returns(b):
            return a, b
        return (a, replace(b, mode=Mode.PACKED)) if self.in_row >= REUSE else (replace(a, mode=Mode.SCALAR), b)

    def dot(self) -> tuple[tuple[float, ...], Contraction] | None:
        """Vectors along a summed index that is contiguous in both."""
        along = [i for i in self.found.summed if self.of_a[i] == self.of_b[i] == 1 and self.layout.weight(i) >= 16]
        if self.found.masks or not along or len(self.order) > LOOPS:
            return None
        order = (*(i for i in self.order if i != along[0]), along[0])
        found = replace(self.found, form="dot", summed=order)
        return self.score(1.0 if min(self.rows, self.columns) >= 4 else 0.3), found

    def ease(self, a: Operand, b: Operand) -> float:
        ease = EASE[b.mode] * (1.0 if self.contiguous else 0.6)
        lanes = registers().bytes // self.itemsize
        if self.columns <= lanes or (self.columns < self.wide and self.found.column in self.layout.least):
            ease *= 0.6  # with fewer vectors in a row of the tile, there are more loads for each product
        apart = abs(self.of_a[a.along]) * self.itemsize
        if a.mode is Mode.SCALAR and apart >= 2048 and apart % 1024 == 0:
            ease *= 0.9  # such rows share the same few places of the nearest cache: the other index is the better row
        return ease

    def runs_as_one(self, moves: dict[str, int]) -> bool:
        return run_as_one(self.order, moves, self.layout)

    def thrashes(self, moves: dict[str, int]) -> bool:
        """Whether the lines of memory that the steps of a sum touch drive each other out of the nearest cache: there
        are too many, or they are apart by a power of two."""
        step, steps = self.innermost(moves)
        return (steps >= 64 and step >= 1024 and step % 512 == 0) or (step > LINE and steps * LINE > NEAR)

    def jumps(self, moves: dict[str, int]) -> bool:
        """Whether each of many steps of a sum touches a line of memory of its own, in which others find nothing."""
        step, steps = self.innermost(moves)
        return step > LINE and steps >= LONG

    def innermost(self, moves: dict[str, int]) -> tuple[int, float]:
        """Of the loop that runs inside the others: how many bytes a step is, and how many steps there are."""
        last = next((i for i in reversed(self.order) if self.layout.weight(i) > 1), self.order[-1])
        return abs(moves[last]) * self.itemsize, self.layout.typical(last)

    def ahead(self, operand: Operand, moves: dict[str, int], limit: int) -> int | None:
        """The outermost level of the nest at which the panels of an operand can be packed, if that is any gain: they
        have so many bytes at most."""
        tensor, levels = operand.access.tensor, self.roles.levels
        named = {i for i in moves if moves[i]}
        if named & self.roles.fixed or any(i in self.layout.least for i in self.found.summed):
            return None
        for level, (_, written) in enumerate(levels):
            inside = {name for name, _ in levels[level:]}
            if tensor in written or named & inside:
                continue
            size = math.prod(self.layout.greatest_count(i) for i in named) * self.itemsize
            return level if size <= limit else None
        return None
