"""Laid copies: rows of memory, of which pieces come to stand one below the other."""

from __future__ import annotations

from typing import Any

from .. import assembly as llvm
from .registers import LINE
from .tile import NUMBER, Vectors, repeated

AHEAD = 6  # rows that are on their way from memory, while one is copied: they are too far apart for a CPU to foresee


class Laid:
    """Writes target[to + p*far + k*lanes + r] = source[at + k*apart + p*lanes + r], for all steps k, panels p and lanes
    r, in vectors. The last of a panel may go back over elements that are done."""

    def __init__(self, builder: Any, size: int, vector: int, lanes: int) -> None:
        """`size` and `vector` are bytes of a number and of a register."""
        width = 1 << (min(lanes, vector // size).bit_length() - 1)
        self.builder, self.lanes, self.size = builder, lanes, size
        self.code = Vectors(builder, size, width)
        self.places = [min(place, lanes - width) for place in range(0, lanes, width)]

    def write(self, target: Any, to: Any, far: Any, source: Any, at: Any, apart: Any, steps: Any, panels: int) -> None:
        code, lanes = self.code, NUMBER(self.lanes)
        near = isinstance(apart, llvm.Constant) and abs(apart.constant) * self.size < LINE
        lines = [] if near else range(0, panels * self.lanes * self.size, LINE)
        starts = [code.at(to, panel, far) for panel in range(panels)]

        def row(step: Any, none: list[Any]) -> list[Any]:
            begin = code.at(at, step, apart)
            later = code.further(source, code.at(begin, AHEAD, apart))
            for first in lines:
                code.fetch(code.further(later, first // self.size))
            for panel, start in enumerate(starts):
                there = code.further(source, code.at(begin, panel, lanes))
                here = code.further(target, code.at(start, step, lanes))
                values = [code.load(there, place) for place in self.places]
                for place, value in zip(self.places, values, strict=True):
                    code.store(value, here, place)
            return none

        repeated(self.builder, steps, [], row)
