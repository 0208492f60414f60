"""Contractions: a sum of products of two tensors -> loops around register tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from ..kernel.ir import WORD, If, Statement, Value, Variable, compare, least, number, word
from ..language import ir
from .panels import CHUNK, COLUMN, ROW, Panels
from .roles import Contraction, Mode
from .scope import Scope
from .tilecall import TileWriter
from .tiling import Tiling


class ContractionWriter:
    """Writes one contraction. `ahead` takes what comes before the strips of each level of the nest, `packing` what
    comes before the kernel."""

    def __init__(
        self, found: Contraction, statement: ir.Statement, scope: Scope, store: bool, number: int,
        ahead: list[list[Statement]], packing: list[Statement],
    ) -> None:  # fmt: skip
        self.found = found
        self.scope = scope
        self.layout = scope.layout
        self.ahead = ahead
        self.packing = packing
        self.tiling = Tiling(found, statement, scope, number)
        self.panels = Panels(self.tiling)
        self.tile = TileWriter(self.tiling, self.panels, store)

    def emit(self, plain: Callable[[], None]) -> None:
        """`plain` writes the statement as plain loops."""
        for side in (self.tiling.a, self.tiling.b):
            if side.operand.mode is Mode.AHEAD:
                before = self.packing if self.panels.shared(side) else self.ahead[side.operand.level]
                with self.scope.collected() as body:
                    self.panels.pack_ahead(side)
                before += body
        if not self.found.masks:
            self.tiles()
            return
        check = (
            self.not_finite()
        )  # a zero that stands for what is outside must not meet an infinity: 0 * inf is no zero
        with self.scope.collected() as one_by_one:
            plain()
        with self.scope.collected() as tiled:
            self.tiles()
        self.scope.add(If(compare("!=", check, check), tuple(one_by_one), tuple(tiled)))

    def tiles(self) -> None:
        found, tiling, scope = self.found, self.tiling, self.scope
        with ExitStack() as around:
            for name in tiling.outer_loops:
                if name not in tiling.inner_loops:
                    around.enter_context(scope.loop(name, *tiling.ranges[name]))
            around.enter_context(scope.when([scope.write.truth(atom) for atom in found.conditions]))
            if not tiling.runs_by():
                around.enter_context(self.chunks())
            low, high = tiling.ranges[found.column]
            if tiling.block is not None:
                block = Variable("block", WORD)
                around.enter_context(scope.counted(block, low, high, word(tiling.block)))
                low, high = block, scope.set("end", least(block + tiling.block, high))
            if tiling.runs_by():
                around.enter_context(self.chunks())
            self.block_of_columns(low, high)

    @contextmanager
    def chunks(self) -> Iterator[None]:
        """A loop over the steps of a sum that tiles run over before the next ones, if these are not all."""
        tiling = self.tiling
        if tiling.chunk is None:
            yield
            return
        with self.scope.counted(CHUNK, *tiling.ranges[self.found.summed[0]], word(tiling.chunk)):
            yield

    def block_of_columns(self, low: Value, high: Value) -> None:
        found, tiling, scope = self.found, self.tiling, self.scope
        if found.b.mode is Mode.PACKED:
            self.panels.pack_block(tiling.b, low, high, tiling.block)
        with ExitStack() as around:
            for name in tiling.row_loops:
                around.enter_context(scope.loop(name, *tiling.ranges[name]))
            if found.a.mode is Mode.PACKED:  # a panel of a stays in the nearest cache, those of b run by
                self.packed_rows(around)
                for name in tiling.inner_loops:
                    around.enter_context(scope.loop(name, *tiling.ranges[name]))
                around.enter_context(self.columns(low, high))
            elif tiling.stays_at_rows():
                around.enter_context(self.rows(*tiling.ranges[found.row]))
                around.enter_context(self.columns(low, high))
            else:
                around.enter_context(self.columns(low, high))
                around.enter_context(self.rows(*tiling.ranges[found.row]))
            self.tile.emit()

    def packed_rows(self, around: ExitStack) -> None:
        """A loop over rows, each packed before the tiles that read it; or some at a time that lie side by side."""
        tiling, scope = self.tiling, self.scope
        low, high = tiling.ranges[self.found.row]
        panels = tiling.panels_in_line(tiling.a)
        if panels == 1:
            around.enter_context(self.rows(low, high))
            self.panels.pack_block(tiling.a, ROW, None, tiling.rows)
            return
        some, size = Variable("rows", WORD), panels * tiling.rows
        around.enter_context(scope.counted(some, low, high, word(size)))
        end = scope.set("end_of_rows", least(some + size, high))
        self.panels.pack_block(tiling.a, some, end, size)
        around.enter_context(self.rows(some, end))

    @contextmanager
    def rows(self, low: Value, high: Value) -> Iterator[None]:
        last = self.tiling.ranges[self.found.row][1]
        with self.scope.counted(ROW, low, high, word(self.tiling.rows)):
            self.scope.set(self.layout.index(self.found.row).name, least(ROW, last - self.tiling.rows))
            yield

    @contextmanager
    def columns(self, low: Value, high: Value) -> Iterator[None]:
        """Tiles at an edge move back, but not beyond the edge of all columns."""
        last = self.tiling.ranges[self.found.column][1]
        with self.scope.counted(COLUMN, low, high, word(self.tiling.columns)):
            self.scope.set(self.layout.index(self.found.column).name, least(COLUMN, last - self.tiling.columns))
            yield

    def not_finite(self) -> Variable:
        """A variable that is NaN if anything that the statement reads of a is not finite."""
        scope, tiling = self.scope, self.tiling
        zero = number(0, tiling.type)
        check = scope.set("check", zero)
        with ExitStack() as around:
            for name in tiling.ranges:
                if tiling.a.moves.get(name):
                    around.enter_context(scope.loop(name, *tiling.ranges[name]))
            scope.set("check", check + scope.write.element(self.found.a.access) * zero)
        return check
