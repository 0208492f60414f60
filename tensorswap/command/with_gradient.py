"""A program with its gradient, as a training step has them, and random gradients that come from above."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import DerivativeError
from ..language import ir
from ..program import Program
from ..rules.activity import active, default_wrt, integer_uses
from ..rules.adjoint import derive
from ..trust.inputs import Inputs, without_memory


def with_gradient(program: Program, made: Inputs, wrt: list[str] | None) -> tuple[Program | None, str]:
    """The program that gives the outputs and the gradients, and what to say of it."""
    loops = program.loops
    by = wrt or list(default_wrt(loops))
    integers = integer_uses(loops)
    of = [name for name in loops.outputs if name not in integers and active(loops, by, [name])]
    if not wrt and not of:
        return None, "no input has a derivative here"
    unit = all(not made.bound.sizes.shapes[name] for name in of)  # as p.grad has it; else as p.adjoint, with seeds

    def derivation(given: ir.Loops) -> ir.Loops:
        return derive(given, by, of or None, unit=unit, keep=given.outputs)[0]

    try:
        return Program(derivation(loops), program, derivation), f"gradient by {', '.join(by)}"
    except DerivativeError as error:
        if wrt:
            raise
        return None, f"no gradient: {error}"


def seeds(both: Program, made: Inputs, dtype: str) -> dict[str, Any]:
    """Random gradients that come from above."""
    generator = np.random.default_rng(1)
    return {
        name: generator.random(shape).astype(dtype) if shape else float(generator.random())
        for name, shape in _of_seeds(both, made).items()
    }


def seeds_without_memory(both: Program, made: Inputs, dtype: str) -> dict[str, Any]:
    """The same as shapes alone, for a plan."""
    kind = np.dtype(dtype)
    return {n: without_memory(shape, kind) if shape else 0.5 for n, shape in _of_seeds(both, made).items()}


def _of_seeds(both: Program, made: Inputs) -> dict[str, tuple[int, ...]]:
    names = [name for name in both.inputs if name not in made.bound.loops.inputs]
    return {name: made.bound.sizes.shapes[name.rpartition(".")[0]] for name in names}
