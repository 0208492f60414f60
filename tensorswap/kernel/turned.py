"""Turned copies: rows of memory that come to stand side by side, in square blocks that stay in vector registers.

Rows of a block are vectors. First their lanes are interleaved within each 16 bytes, which every CPU does in one
instruction, then pieces of 16 bytes change places.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import assembly as llvm
from .tile import LANE, NUMBER, Vectors, depending, repeated

PIECE = 16  # bytes


class Turned:
    """Writes target[to + k*across + r] = source[at + r*apart + k], for all steps k and lanes r. Blocks at the end go
    back over elements that are done."""

    def __init__(self, builder: Any, size: int, vector: int, lanes: int, steps: Any) -> None:
        """`size` and `vector` are bytes of a number and of a register."""
        self.side = 1 << (min(lanes, vector // size).bit_length() - 1)
        self.builder, self.lanes, self.steps = builder, lanes, steps
        self.code = Vectors(builder, size, self.side)

    def write(
        self, target: Any, to: Any, across: Any, source: Any, at: Any, apart: Any, plain: Callable[[], None]
    ) -> None:
        """`plain` writes it in plain loops: that is for few steps or lanes."""

        def block(lane: Any, step: Any) -> None:
            code = self.code
            begin, place = code.at(at, lane, apart), code.at(to, step, across)
            begin, place = self.builder.add(begin, step), self.builder.add(place, lane)
            rows = [code.load(source, code.at(begin, row, apart)) for row in range(self.side)]
            for k, column in enumerate(_transposed(code, rows)):
                code.store(column, target, code.at(place, k, across))

        if self.side == 1:
            plain()
            return
        enough = self.builder.icmp_signed(">=", self.steps, NUMBER(self.side))
        if isinstance(self.steps, llvm.Constant):
            enough = llvm.Constant(llvm.IntType(1), self.steps.constant >= self.side)

        def blocks(enough: bool) -> None:
            if not enough:
                plain()
                return
            lanes = NUMBER(self.lanes)
            self.along(self.steps, lambda step: self.along(lanes, lambda lane: block(lane, step)))

        depending(self.builder, enough, blocks)

    def along(self, count: Any, body: Callable[[Any], None]) -> None:
        """A loop over the places where blocks begin: the last one where it still fits."""
        builder, side = self.builder, NUMBER(self.side)
        last = builder.sub(count, side)

        def at(number: Any, none: list[Any]) -> list[Any]:
            start = builder.mul(number, side)
            body(builder.select(builder.icmp_signed("<", start, last), start, last))
            return none

        repeated(builder, builder.sdiv(builder.add(count, NUMBER(self.side - 1)), side), [], at)


def _transposed(code: Vectors, rows: list[Any]) -> list[Any]:
    """The columns of a square block."""
    side = len(rows)
    piece = min(PIECE // code.size, side)
    columns = [c for first in range(0, side, piece) for c in _interleaved(code, rows[first : first + piece], piece)]
    apart = piece
    while apart < side:
        for k in (k for k in range(side) if not k & apart):
            upper, lower = columns[k], columns[k + apart]
            low = [p if not p & apart else side + p - apart for p in range(side)]
            high = [p + apart if not p & apart else side + p for p in range(side)]
            columns[k], columns[k + apart] = (_shuffled(code, upper, lower, lanes) for lanes in (low, high))
        apart *= 2
    return columns


def _interleaved(code: Vectors, rows: list[Any], piece: int) -> list[Any]:
    """Rows whose pieces are transposed, each piece by itself."""
    side, half = code.width, piece // 2
    done = 1
    while done < piece:
        pairs = [(rows[k], rows[k + half]) for k in range(half)]
        ways = [
            [start + first + offset for start in range(0, side, piece) for first in range(begin, begin + half)
             for offset in (0, side)]
            for begin in (0, half)
        ]  # fmt: skip
        rows = [_shuffled(code, *pair, way) for pair in pairs for way in ways]
        done *= 2
    return rows


def _shuffled(code: Vectors, one: Any, other: Any, lanes: list[int]) -> Any:
    return code.builder.shuffle_vector(one, other, llvm.Constant(llvm.VectorType(LANE, len(lanes)), lanes))
