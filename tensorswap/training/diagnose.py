"""Diagnose: where the first number that is none appeared in a training step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..interpret import reference
from ..language.render import statement as show
from ..program import Program
from ..run.arguments import bind


def first_nan(program: Program, arguments: Mapping[str, Any]) -> str:
    """The statement and the element where NaN or infinity first appears, in words."""
    bound = bind(program.loops, arguments)
    written = tuple(bound.loops.written)
    everything = replace(bound.loops, returns=written, header=None)
    with np.errstate(all="ignore"):
        values = reference.run(everything, bound.arrays, bound.sizes, bound.kinds, bound.dtype)
    for kind, wrong in (("NaN", np.isnan), ("infinite", np.isinf)):
        for statement in bound.loops.statements:
            name = statement.target.tensor
            value = np.asarray(values[name])
            if value.dtype.kind != "f" or not wrong(value).any():
                continue
            if statement.operator in ("max=", "min=") and kind == "infinite":
                continue
            place = np.argwhere(wrong(value))[0]
            at = f"[{', '.join(map(str, place.tolist()))}]" if place.size else ""
            return f"{name}{at} became {kind} in `{show(statement)}`"
    return "the interpreter finds all values finite: the step lies at the edge of what the type can hold"
