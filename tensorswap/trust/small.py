"""Small: a call at tiny sizes, with random values of the same types, for a program that was called at others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..errors import SwapError
from ..language import ir
from ..language.sizes import Sizes
from ..run.arguments import bind
from .inputs import Draw, Inputs, random_inputs

POINTS = 20_000  # of all statements together: a check may not take longer than what it checks
STEP = 100  # points that take as long as starting a statement once more, in a step of a block
NEAR = 1e-12  # relative
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
    """How long the interpreter takes for a program, in points of statements."""
    total = 0
    for statement, blocks in loops.located:
        outer = {block.index for block in blocks}
        steps = math.prod(sizes.index[i] for i in outer)
        total += steps * (STEP * bool(outer) + math.prod(sizes.index[i] for i in statement.indices if i not in outer))
    return total


def nearby(made: Inputs) -> Inputs:
    """The same call with numbers that differ by far more than rounding, and by far less than a fault."""
    generator = np.random.default_rng(7)

    def moved(value: Any) -> Any:
        array = np.asarray(value)
        if array.dtype.kind != "f":
            return value
        other = array * (1 + NEAR * generator.standard_normal(array.shape))
        return other if array.ndim else float(other)

    arguments = {name: moved(value) for name, value in made.arguments.items()}
    return Inputs(arguments, bind(made.bound.loops, arguments))
