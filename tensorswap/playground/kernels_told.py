"""A text and sizes -> the kernels of its value and gradient as JSON: plan, cost, roofline and source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Any

import numpy as np

from ..errors import DerivativeError
from ..explain.explanation import Explanation, explanation
from ..pictures.roofline import Point, roofline_svg
from ..plan.table import PlanTable
from ..program import Program, program
from ..rules.activity import default_wrt
from ..rules.derivation import ValueAndGradient
from ..run.call import plan_of, source_of
from ..run.execute import Executable
from ..trust.inputs import Draw, Inputs, free_sizes, random_inputs, without_memory
from .analysis import DRAW, smooth_outputs
from .kernel_lines import Links, parts
from .machine import machine

DOUBLE = np.dtype(np.float64)


def with_gradient(made: Program) -> Program:
    """The program that gives all outputs and the gradient by every input that has one; itself if there is none."""
    of, wrt = smooth_outputs(made.loops), default_wrt(made.loops)
    if not of or not wrt:
        return made
    unit = all(made.loops.ranks[name] == 0 for name in of)
    derivation = ValueAndGradient(tuple(of), wrt, unit)
    try:
        return Program(derivation(made.loops), made, derivation)
    except DerivativeError:  # the pane of the adjoint says why
        return made


def inputs(made: Program, sizes: Mapping[str, int], draw: Draw = DRAW) -> Inputs:
    """Random arguments of the program with the sizes that sliders say, as far as it has them."""
    known = free_sizes(made.loops, draw)
    return random_inputs(made.loops, {**known, **{n: s for n, s in sizes.items() if n in known}}, {}, DOUBLE, draw)


def seeds(both: Program, made: Inputs) -> dict[str, tuple[int, ...]]:
    """The gradients of outputs that a call needs, and their shapes."""
    names = [name for name in both.inputs if name not in made.bound.loops.inputs]
    return {name: made.bound.sizes.shapes[name.rpartition(".")[0]] for name in names}


@lru_cache(maxsize=4)
def programs(text: str) -> tuple[Program, Program, Explanation]:
    """A text's program, with its gradient, and its explanation: kept while sliders move."""
    made = program(text)
    return made, with_gradient(made), explanation(made.loops, source=text)


def kernels_told(text: str, sizes: Mapping[str, int]) -> dict[str, Any]:
    """What `p.plan` and `p.source` show, with the statements that each kernel and each line comes from."""
    made, both, explained = programs(text)
    given = inputs(made, sizes, replace(DRAW, shapes_alone=True))
    shapes = seeds(both, given).items()
    known = both.prepared({**given.arguments, **{n: without_memory(s, DOUBLE) if s else 1.0 for n, s in shapes}})
    table = plan_of(known)
    told: dict[str, Any] = {
        "sizes": given.bound.sizes.index,
        "shapes": {name: given.bound.sizes.shapes[name] for name in (*made.inputs, *made.outputs)},
        "reason": table.reason or "", "note": table.note, "results": table.results, "workspace": table.workspace,
        "saved": table.saved, "rows": [asdict(row) for row in table.rows], "source": source_of(known), "parts": [],
        "table": str(table),
    }  # fmt: skip
    if known.plans is not None:
        links = Links(known.plans.executable.loops, explained)
        shown = [k.nest for k in known.plans.executable.kernels if k.nest.statements or k.nest.joins]
        for row, nest in zip(told["rows"], shown, strict=True):
            pairs = [links.of(s) for s in nest.statements] or [links.of_tensor(nest.joins, frozenset())]
            row["links"] = [{"statements": sorted(pair[0]), "adjoints": sorted(pair[1])} for pair in pairs]
        told["parts"] = [asdict(part) for part in parts(told["source"], known.plans.executable, explained)]
        told |= _cost(table, known.plans.executable)
    return told


def _cost(table: PlanTable, made: Executable) -> dict[str, Any]:
    """What the kernels do, and how long that takes at best on this machine."""
    here = machine()
    rows = [(k, row) for k, row in enumerate(table.rows, 1) if row.operations and row.bytes]
    points = [Point(str(k), row.operations, row.bytes) for k, row in rows]
    seconds = sum(max(row.operations / here.operations, row.bytes / here.bytes) for _, row in rows)
    return {
        "operations": sum(row.operations for row in table.rows),
        "bytes": sum(row.bytes for row in table.rows),
        "seconds": seconds,
        "threads": made.threads,
        "machine": asdict(here),
        "roofline": roofline_svg(points, here.operations, here.bytes),
    }
