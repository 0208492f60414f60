"""Panels: copies of an operand that lie as tiles read them, made as far out in the nest as nothing changes it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from ..kernel import ir as kernel
from ..kernel.ir import (
    PART,
    PARTS,
    WORD,
    ZERO,
    Load,
    Memory,
    Role,
    Value,
    Variable,
    compare,
    constant,
    least,
    total,
    word,
)
from ..language import ir
from ..language.affine import affine
from ..language.ir import Number
from .layout import PanelsOf
from .roles import Mode
from .scope import Range
from .tiling import Side, Tiling

SHARED = 1 << 16  # elements of panels for which a kernel of their own pays: what one core has written, others wait for

ROW, COLUMN, FIRST, LANE, CHUNK = (Variable(name, WORD) for name in ("row", "column", "first", "lane", "chunk"))


class Panels:
    """Writes the packing of one contraction's operands, and tells where tiles find them."""

    def __init__(self, tiling: Tiling) -> None:
        self.tiling = tiling
        self.scope = tiling.scope
        self.write = tiling.write
        self.layout = tiling.layout
        self.begins: dict[str, Value] = {}  # where blocks that are packed begin

    # -- packing

    def pack_block(self, side: Side, low: Value, high: Value | None, most: int | None) -> None:
        """The panels of a block of an operand's index, which has so many values at most, if not all; or the one at
        which the index stands."""
        self.begins[side.name] = low
        count = self.layout.greatest_count(side.operand.along) if most is None else most
        panel = self.memory(side, -(-count // side.size) * side.size * side.steps)
        if high is None:
            self.pack(side, panel, ZERO)
            return
        for panels, first, past in self.pieces(side, low, high):
            with self.scope.counted(self.start(side), first, past, word(panels * side.size)):
                self.move_to(side, self.start(side))
                self.pack(side, panel, self.place_in_block(side), panels)

    def pack_ahead(self, side: Side) -> None:
        """Panels of all that a statement reads of an operand, before the strips of some nest around it: each thread has
        its own, or packs a part of those that all share."""
        panel = self.memory(side, self.size_ahead(side))
        with ExitStack() as around:
            for name in self.loops_of(side):
                around.enter_context(self.scope.loop(name, *self.tiling.ranges[name]))
            for panels, first, past in self.pieces(side, *self.tiling.ranges[side.operand.along]):
                size = panels * side.size
                begin, step = (first + PART * size, PARTS * size) if self.shared(side) else (first, word(size))
                with self.scope.counted(FIRST, begin, past, step):
                    self.move_to(side, FIRST)
                    self.pack(side, panel, self.place_ahead(side, FIRST), panels)

    def pieces(self, side: Side, low: Value, high: Value) -> list[tuple[int, Value, Value]]:
        """A range of an operand's index in two: where some panels can be packed together, and the rest of it; with how
        many at a time."""
        panels = self.tiling.panels_in_line(side)
        size, count = panels * side.size, constant(high - low)
        if panels == 1 or (count is not None and count < size):
            return [(1, low, high)]
        if count is not None and count % size == 0:
            return [(panels, low, high)]
        split = self.scope.set("split", low + (high - low) // size * size)
        return [(panels, low, split), (1, split, high)]

    def move_to(self, side: Side, first: Value) -> None:
        """The index of a panel's first element: that at an edge begins before, but not before the one of all."""
        along = side.operand.along
        last = self.tiling.ranges[along][1] - side.size
        self.scope.set(self.layout.index(along).name, least(first, last))

    def pack(self, side: Side, panel: Memory, place: Value, panels: int = 1) -> None:
        """Copies a panel, or some: for each step of the sum, the elements that a tile spans, side by side."""
        tiling, scope = self.tiling, self.scope
        loops: list[tuple[Variable, Range]] = []
        terms, step = [], side.size
        for name in reversed(tiling.found.summed):
            low, high = tiling.ranges[name]
            if tiling.chunk is not None and side.operand.mode is Mode.PACKED and name == tiling.found.summed[0]:
                low, high = CHUNK, least(CHUNK + tiling.chunk, high)
            loops.insert(0, (self.layout.index(name), (low, high)))
            terms.append((self.layout.index(name) - low) * step)
            step *= self.layout.count(name)
        if self.turns(side):
            self.turn(side, panel, place, loops, terms)
            return
        if side.moves[side.operand.along] == 1 and not (tiling.found.masks and side is tiling.b):
            self.lay(side, panel, place, loops, terms, panels)
            return
        lanes = (LANE, (ZERO, word(side.size)))
        along = side.moves[side.operand.along]
        access = side.operand.access
        with ExitStack() as around:
            for variable, (low, high) in [*loops, lanes] if along == 1 else [lanes, *loops]:
                around.enter_context(scope.counted(variable, low, high))
            at = total([self.write.offset(access), LANE * along])
            value: Value = Load(self.layout.tensor(access.tensor), at)
            if tiling.found.masks and side is tiling.b:
                value = kernel.Choice(self.inside_masks(), value, kernel.number(0, tiling.type), lazy=True)
            scope.store(panel, total([place, *terms, LANE]), value)

    def lay(
        self, side: Side, panel: Memory, place: Value,
        loops: list[tuple[Variable, Range]], terms: list[Value], panels: int,
    ) -> None:  # fmt: skip
        """Copies some panels, for each step of the outer sums."""
        apart = word(side.moves[self.tiling.found.summed[-1]])
        with self.through(side, place, loops, terms) as (source, at, to, steps):
            far = word(side.size * side.steps)
            self.scope.add(kernel.Lay(panel, to, far, source, at, apart, steps, panels, side.size))

    def turns(self, side: Side) -> bool:
        """Whether steps of the innermost sum lie in line, so that what a tile spans is far apart."""
        tiling = self.tiling
        masked = bool(tiling.found.masks) and side is tiling.b
        return not masked and side.moves[side.operand.along] != 1 and side.moves[tiling.found.summed[-1]] == 1

    def turn(
        self, side: Side, panel: Memory, place: Value, loops: list[tuple[Variable, Range]], terms: list[Value]
    ) -> None:
        """Copies one panel in blocks that are turned, for each step of the outer sums."""
        apart = word(side.moves[side.operand.along])
        with self.through(side, place, loops, terms) as (source, at, to, steps):
            self.scope.add(kernel.Turn(panel, to, word(side.size), source, at, apart, steps, side.size))

    @contextmanager
    def through(
        self, side: Side, place: Value, loops: list[tuple[Variable, Range]], terms: list[Value]
    ) -> Iterator[tuple[Memory, Value, Value, Value]]:
        """Loops through an operand, but for the last ones, which run through memory as one: where these begin, there
        and in a panel, and how many steps they have together."""
        summed, last = self.tiling.found.summed, len(loops) - 1
        low, high = loops[last][1]
        steps = high - low
        while last and constant(steps) is not None:
            name, (low, high) = summed[last - 1], loops[last - 1][1]
            if side.moves[name] != side.moves[summed[-1]] * (constant(steps) or 0):
                break
            last, steps = last - 1, (high - low) * steps
        with ExitStack() as around:
            for variable, (first, past) in loops[:last]:
                around.enter_context(self.scope.counted(variable, first, past))
            for variable, (first, _) in loops[last:]:
                self.scope.add(kernel.Set(variable, first))
            access = side.operand.access
            source, at = self.layout.tensor(access.tensor), self.write.offset(access)
            yield source, at, total([place, *terms[len(loops) - last :]]), steps

    def inside_masks(self) -> Value:
        """Whether a lane of a panel of b takes part at a step of the sum."""
        tests = []
        for mask in self.tiling.found.masks:
            form = affine(self.layout.known(mask))
            assert form is not None
            coefficient = form.terms[self.tiling.found.column]
            assert isinstance(coefficient, Number)
            tests.append(compare(">=", self.write.integer(form.expression()) + LANE * int(coefficient.value), 0))
        return kernel.joined("and", tests)

    # -- memory

    def memory(self, side: Side, elements: int = 0) -> Memory:
        """Memory that holds the panels of an operand."""
        role = Role.TENSOR if self.shared(side) else Role.LOCAL
        return self.layout.keep(
            PanelsOf(side.name, self.layout.kernel, self.tiling.number), elements, self.tiling.dtype, role
        )

    def shared(self, side: Side) -> bool:
        """Whether all threads share panels: large ones that stay as they are for the whole kernel."""
        operand = side.operand
        return operand.mode is Mode.AHEAD and operand.level == 0 and self.size_ahead(side) >= SHARED

    def size_ahead(self, side: Side) -> int:
        """Elements of all panels of an operand."""
        return math.prod(self.layout.greatest_count(i) for i in self.loops_of(side)) * self.tiles_size(side)

    def loops_of(self, side: Side) -> list[str]:
        """The loops around the tiles that an operand moves with."""
        return [i for i in [*self.tiling.outer_loops, *self.tiling.row_loops] if side.moves.get(i)]

    def tiles_size(self, side: Side) -> int:
        """Elements in the panels of all tiles along an operand."""
        count = self.layout.greatest_count(side.operand.along)
        return -(-count // side.size) * side.size * side.steps

    def start(self, side: Side) -> Variable:
        """Where a tile begins."""
        return ROW if side is self.tiling.a else COLUMN

    def place_in_block(self, side: Side) -> Value:
        """Where the panel of a tile starts, among those of a block."""
        begin = self.begins[side.name]
        return ZERO if begin is self.start(side) else (self.start(side) - begin) * side.steps

    def place_ahead(self, side: Side, first: Value) -> Value:
        """Where the panel of a tile starts, among those that were packed ahead."""
        place = (first - self.tiling.ranges[side.operand.along][0]) * side.steps
        step = self.tiles_size(side)
        for name in reversed(self.loops_of(side)):
            place = place + (self.layout.index(name) - self.tiling.ranges[name][0]) * step
            step *= self.layout.greatest_count(name)
        return place

    # -- what tiles read

    def source(self, side: Side, starts: dict[str, Value]) -> tuple[Memory, Value]:
        """The tensor or panel that a tile reads, and where it begins."""
        found, ahead = self.tiling.found, side.operand.mode is Mode.AHEAD
        if side.packed:
            place = self.place_ahead(side, self.start(side)) if ahead else self.place_in_block(side)
            if found.bounds or found.masks or (ahead and self.tiling.chunk is not None):
                begun = starts[found.summed[0]] - self.tiling.first_of_sum()
                place = place + begun * (self.tiling.rest * self.step(side))
            return self.memory(side), place
        access = side.operand.access
        zero = ir.transform(access, ir.substitute_indices(dict.fromkeys(found.summed, Number(0))))
        assert isinstance(zero, ir.Access)
        moved = [start * side.moves[name] for name, start in starts.items() if not kernel.is_zero(start)]
        return self.layout.tensor(access.tensor), total([self.write.offset(zero), *moved])

    def move(self, side: Side, name: str) -> int:
        """How far a step of a summed index moves through an operand, or through its panel."""
        if not side.packed:
            return side.moves[name]
        summed = self.tiling.found.summed
        return side.size * math.prod(self.layout.count(inner) for inner in summed[summed.index(name) + 1 :])

    def step(self, side: Side) -> int:
        """How far a step of the innermost one moves."""
        return self.move(side, self.tiling.found.summed[-1])
