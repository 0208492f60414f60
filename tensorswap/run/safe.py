"""What must be known before kernels may run; what only values can show, they look at themselves. Else a program is
interpreted."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..language import ir
from ..language.bound import Bound, Ranges
from ..language.render import expression as show
from ..language.word import WORD, Reaches
from ..plan.run_checks import Checked, Impossible, checks_in_front, with_checks
from ..rules.activity import integer_uses

DEEP = 150  # levels of an expression that kernels hold; each is a pair of parentheses, and Python reads 200

COUNTED = 2**56  # whole numbers of an exported call that kernels count with
CURE = "bound it, for example by `min(max(k[i], 0), size(j)-1)` or `k[i] % size(j)`"


@dataclass(frozen=True)
class Secured:
    """A call that kernels may run. If one of `scalars`, which are among its outputs, is above zero, the interpreter
    must decide."""

    bound: Bound
    scalars: tuple[str, ...] = ()
    checked: Checked | None = None


def secured(bound: Bound, ranges: Ranges | None = None) -> Secured | str:
    """The call as kernels may run it on any whole numbers within `ranges`, or why they cannot. Without ranges they are
    those of the arrays at hand."""
    for name, array in bound.arrays.items():
        if array.dtype == np.uint64 and array.size and int(array.max()) > WORD:
            return f"{name} holds whole numbers beyond 2**63; kernels compute with smaller ones"
    for statement in bound.loops.statements:
        if max(ir.depth(statement.value), 0 if statement.guard is None else ir.depth(statement.guard)) > DEEP:
            name = statement.target.tensor
            return f"an expression of {name} is nested more than {DEEP} levels deep; give parts of it names"
    for name in integer_uses(bound.loops):
        if bound.types.tensors[name].dtype.kind not in "iu":
            return f"{name} is used as an integer, but is computed as {bound.types.tensors[name].dtype}"
    reaches = Reaches(bound.loops, bound.sizes, bound.types, bound.gathered(ranges))
    for node in reaches.leaving():
        return f"only a run shows whether `{show(node)}` stays within 64 bits; {CURE}"
    for node in reaches.unsigned():
        return f"`{show(node)}` may be beyond 2**63; pass signed whole numbers: astype(np.int64)"
    try:
        made: Checked = with_checks(bound.loops, bound.sizes, bound.types, reaches)
    except Impossible as reason:
        return f"{reason}; {CURE}"
    if not made.scalars:
        return Secured(bound)
    return Secured(replace(bound, loops=made.loops, sizes=made.sizes), made.scalars, made)


def needs_interpreter(bound: Bound, ranges: Ranges | None = None) -> str | None:
    """Why kernels cannot run a call without looking at values."""
    made = secured(bound, ranges)
    if isinstance(made, str):
        return made
    return "only a run shows whether it is in bounds, and writes each element once" if made.scalars else None


def joined(made: Secured, origin: Bound, ranges: Ranges) -> Secured | None:
    """A derivative with the checks of its program in front of its own; None if they cannot stand there."""
    found = secured(origin, {name: reach for name, reach in ranges.items() if name in origin.arrays})
    if isinstance(found, str):
        return None
    if found.checked is None:
        return made
    try:
        checks = checks_in_front(made.checked or Checked(made.bound.loops, made.bound.sizes), found.checked)
    except Impossible:
        return None
    scalars = (*made.scalars, *checks.scalars)
    return Secured(replace(made.bound, loops=checks.loops, sizes=checks.sizes), scalars, checks)


def ranges_of_types(bound: Bound) -> dict[str, tuple[int, int]]:
    """What whole numbers the inputs of a program may hold that somebody else calls."""
    found: dict[str, tuple[int, int]] = {}
    for name, array in bound.arrays.items():
        if array.dtype.kind in "iu":
            limits = np.iinfo(array.dtype)
            found[name] = (max(int(limits.min), -COUNTED), min(int(limits.max), COUNTED))
    return found


def deciding(loops: ir.Loops) -> frozenset[str]:
    """The tensors whose whole numbers may decide where an access goes, or what a divisor is."""
    found: set[str] = set()
    for statement in loops.statements:
        for node in statement.nodes:
            match node:
                case ir.Access(indices=parts):
                    pass
                case ir.Compare(left=left, right=right):
                    parts = (left, right)
                case ir.Binary(operator="//" | "%", right=right):
                    parts = (right,)
                case _:
                    continue
            found |= {n.tensor for part in parts for n in ir.walk(part) if isinstance(n, ir.Access)}
    while True:
        more = {a.tensor for s in loops.statements if s.target.tensor in found for a in s.reads} - found
        if not more:
            return frozenset(found)
        found |= more
