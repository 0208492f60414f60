"""Small: a call at tiny sizes, with random values of the same types, for a program that was called at others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..errors import SwapError
from ..language import ir
from ..language.sizes import Sizes
from .inputs import Draw, Inputs, random_inputs

POINTS = 20_000  # of all statements together: a check may not take longer than what it checks
DOUBLE = np.dtype(np.float64)
DRAWS = (  # different sizes tell indices apart; where a program wants them equal, they are
    Draw((2, 3), 1),
    Draw((3,), 2),
    Draw((3, 2, 4), 3, numbers=(-1.3, 1.7)),
    Draw((5, 4, 3), 4),
)


def small_calls(loops: ir.Loops, statics: Mapping[str, int], types: Mapping[str, np.dtype[Any]]) -> Iterator[Inputs]:
    """Calls of a program with numbers in float64; none if tiny sizes do not fit together, as with fixed large ones."""
    whole = {name: dtype for name, dtype in types.items() if dtype.kind != "f" and name in loops.inputs}
    known = {name: value for name, value in statics.items() if name in loops.static_names}
    for draw in DRAWS:
        chosen = Draw(draw.sizes, draw.seed, whole, draw.numbers)
        try:
            made = random_inputs(loops, known, {}, DOUBLE, chosen)
        except SwapError:
            continue
        if points(made.bound.loops, made.bound.sizes) <= POINTS:
            yield made


def points(loops: ir.Loops, sizes: Sizes) -> int:
    """How many times the statements of a program run, all together."""
    around = [({*s.indices, *(b.index for b in blocks)}) for s, blocks in loops.located]
    return sum(math.prod(sizes.index[i] for i in names) for names in around)
