"""What must be known before a kernel may run without checks of its own; a program that lacks it is interpreted."""

from __future__ import annotations

import numpy as np

from ..language import ir
from ..language.affine import is_constant
from ..language.bound import Bound, Ranges
from ..language.render import access as show_access
from ..language.render import expression as show
from ..language.word import WORD, Reaches
from ..rules.written_once import shown_by_text

DEEP = 150  # levels of an expression that kernels hold; each is a pair of parentheses, and Python reads 200


def needs_interpreter(bound: Bound, ranges: Ranges | None = None) -> str | None:
    """Why a program cannot be compiled: something that only the values it computes can show.

    `ranges` are those of integer inputs, if kernels will meet more than the arrays at hand.
    """
    for name, array in bound.arrays.items():
        if array.dtype == np.uint64 and array.size and int(array.max()) > WORD:
            return f"{name} holds whole numbers beyond 2**63"
    if not shown_by_text(bound.loops):
        return "only a run shows whether `=` writes each element once"
    for statement in bound.loops.statements:
        if max(ir.depth(statement.value), 0 if statement.guard is None else ir.depth(statement.guard)) > DEEP:
            return f"an expression of {statement.target.tensor} is nested more than {DEEP} levels deep"
    types = bound.types
    for statement in bound.loops.statements:
        for node in statement.nodes:
            if not isinstance(node, ir.Binary) or node.operator not in ("//", "%") or types.of(node).dtype.kind == "f":
                continue
            if not is_constant(node.right) or bound.sizes.value(node.right) == 0:
                return f"only a run shows whether `{show(node)}` divides by zero"
    computed = set(bound.loops.written)
    reaches = Reaches(bound.loops, bound.sizes, types, bound.gathered(ranges))
    for node in reaches.leaving():
        return f"only a run shows whether `{show(node)}` stays within 64 bits"
    for node in reaches.unsigned():
        return f"`{show(node)}` may be beyond 2**63"
    for use in bound.unproven(ranges):
        if use.reads & computed:
            return f"only a run shows whether {show_access(use.access)} is in bounds"
    return None
