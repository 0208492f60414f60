"""What must be known before a kernel may run without checks of its own; a program that lacks it is interpreted."""

from __future__ import annotations

import numpy as np

from ..language import ir
from ..language.affine import is_constant
from ..language.bounds import unproven
from ..language.ir import Number
from ..language.render import access as show_access
from ..language.render import expression as show
from ..language.types import infer_types
from ..rules.once import shown_by_text
from .arguments import Bound

WORD = 2**63 - 1  # the largest whole number that kernels compute with


def needs_interpreter(bound: Bound) -> str | None:
    """Why a program cannot be compiled: something that only the values it computes can show."""
    for name, array in bound.arrays.items():
        if array.dtype == np.uint64 and array.size and int(array.max()) > WORD:
            return f"{name} holds whole numbers beyond 2**63"
    if not shown_by_text(bound.loops):
        return "only a run shows whether `=` writes each element once"
    types = infer_types(bound.loops, bound.kinds)
    for statement in bound.loops.statements:
        for node in statement.nodes:
            if not isinstance(node, ir.Binary) or node.operator not in ("//", "%") or types.of(node).dtype.kind == "f":
                continue
            if not is_constant(node.right) or bound.sizes.value(node.right) == 0:
                return f"only a run shows whether `{show(node)}` divides by zero"
    computed = set(bound.loops.written)
    gathered = {
        name: (Number(int(array.min())), Number(int(array.max())))
        for name, array in bound.arrays.items()
        if array.dtype.kind in "iu" and array.size and name not in bound.loops.updated
    }
    for use in unproven(bound.loops, bound.sizes, gathered):
        parts = [*use.access.indices, *use.conditions]
        if any(isinstance(n, ir.Access) and n.tensor in computed for part in parts for n in ir.walk(part)):
            return f"only a run shows whether {show_access(use.access)} is in bounds"
    return None
