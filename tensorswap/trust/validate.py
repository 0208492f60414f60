"""Validate: each pass of a derivation and of a plan, by running the program before and after it in the interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import LimitError, SwapError, TrustError
from ..interpret import reference
from ..language import ir
from ..language.bound import Bound
from ..language.render import statement as show
from ..language.sizes import infer
from ..language.stages import Stage, watch
from ..language.types import infer_types
from ..plan.prepare import prepare
from ..rules.derivation import Derivation
from ..run.arguments import bind
from ..run.call import threads
from ..run.execute import Executable
from ..run.safe import needs_interpreter
from ..run.steps import derived_in_steps
from ..run.words import ready
from .agree import Difference, difference
from .inputs import Inputs
from .small import POINTS, nearby, points, small_calls

Results = dict[str, Array]

REPORT = "this is a fault of tensorswap: please report it with the program's text"


@dataclass(frozen=True)
class Change:
    """The pass that changed what a program computes, with the statements that it took away and put in their place."""

    name: str
    gone: tuple[str, ...]
    new: tuple[str, ...]
    difference: Difference

    def error(self) -> TrustError:
        lines = [f"the pass {self.name} changes what the program computes: {self.difference}"]
        lines += [f"    before: {line}" for line in self.gone]
        lines += [f"    after:  {line}" for line in self.new]
        return TrustError("\n".join(lines), hint=REPORT)


def run_planned(loops: ir.Loops, stage: Stage, bound: Bound) -> Results:
    """The program of a plan, whose own tensors keep the types of the program that it was made of."""
    assert stage.sizes is not None
    types = infer_types(stage.loops, bound.kinds, {**infer_types(loops, bound.kinds).tensors, **stage.kinds})
    running = reference.Interpreter(stage.loops, bound.arrays, stage.sizes, types, again=True)
    with np.errstate(all="ignore"):
        running.run(stage.loops.body, {})
    return {name: running.result(name, bound.dtype) for name in loops.outputs}


def derivation_stages(origin: ir.Loops, derivation: Derivation) -> list[Stage]:
    with watch() as stages:
        derivation(origin)
    return stages


def plan_stages(bound: Bound, weights: Mapping[str, int]) -> list[Stage]:
    with watch() as stages:
        prepare(bound, weights)
    return [Stage("program", bound.loops, bound.sizes), *stages]


def changed_by_derivation(stages: Sequence[Stage], arguments: Mapping[str, Any]) -> Change | None:
    """The first pass of a derivation behind which the program gives other results, for arguments of the last one."""
    wanted: Results | None = None
    before: Stage | None = None
    for stage in stages:
        own = {n: v for n, v in arguments.items() if n in stage.loops.names or n in stage.loops.known}
        if stage.name in ("swap", "tangent"):  # a new chain of passes: of a gradient, and then of its tangent, say
            wanted = before = None
        try:
            found = reference.run(bind(stage.loops, own))
        except SwapError as error:
            if wanted is not None and before is not None and not isinstance(error, LimitError):
                raise TrustError(
                    f"the pass {stage.name} made a program that is refused: {error}", hint=REPORT
                ) from error
            continue  # the first form of a derivative may lack what makes it run: sizes, or bounds
        if wanted is not None and before is not None:
            different = difference(wanted, found)
            if different is not None:
                return _change(before, stage, different)
        wanted, before = found, stage
    return None


def is_steady(bound: Bound) -> bool:
    """Whether the program gives nearly the same for nearly the same numbers. If not, as with the last digits of a large
    number, rounding in another order shows, and two right programs differ."""
    taken = {*bound.sizes.index} - infer(bound.loops).index.keys()
    given = {**bound.arrays, **bound.sizes.statics, **{name: bound.sizes.index[name] for name in taken}}
    wanted = reference.run(bound)
    return difference(wanted, reference.run(nearby(Inputs(given, bound)).bound)) is None


def changed_by_plan(bound: Bound, weights: Mapping[str, int]) -> Change | None:
    """The first pass of a plan behind which the program gives other results."""
    stages = plan_stages(bound, weights)
    wanted = reference.run(bound)
    before = stages[0]
    for stage in stages[1:]:
        if (stage.loops, stage.sizes) != (before.loops, before.sizes):
            different = difference(wanted, run_planned(bound.loops, stage, bound))
            if different is not None:
                return _change(before, stage, different) if is_steady(bound) else None
        before = stage
    return None


def changed_by_steps(
    origin: ir.Loops, derivation: Derivation, bound: Bound, weights: Mapping[str, int]
) -> Change | None:
    """Whether a derivative of the program in steps of two is another one."""
    stepped = derived_in_steps(origin, derivation, bound, weights)
    if stepped is bound:
        return None
    different = difference(reference.run(bound), reference.run(stepped))
    if different is None:
        return None
    return _change(Stage("", bound.loops), Stage("derived_in_steps", stepped.loops), different)


def validate(origin: ir.Loops | None, derivation: Derivation | None, bound: Bound, call: Mapping[str, Any]) -> int:
    """Checks every pass that leads to a call, at tiny sizes and, if they are not large, at its own; then the kernels
    that come of it. Gives the number of calls that were made for it; raises where a pass changes the meaning."""
    weights = dict(bound.sizes.index)
    types = {name: array.dtype for name, array in bound.arrays.items()}
    own = [Inputs(dict(call), bound)] if points(bound.loops, bound.sizes) <= POINTS else []
    count = 0
    for made in (*own, *small_calls(bound.loops, bound.sizes.statics, types)):
        try:
            wanted = reference.run(made.bound)
        except SwapError:  # out of bounds, or written twice: what the call itself does is its caller's to hear
            continue
        count += 1
        changed = changed_by_plan(made.bound, {}) or changed_by_plan(made.bound, weights)
        if changed is None and origin is not None and derivation is not None:
            changed = changed_by_derivation(derivation_stages(origin, derivation), made.arguments)
            changed = changed or changed_by_steps(origin, derivation, made.bound, weights)
        if changed is None and needs_interpreter(made.bound) is None:
            different = difference(wanted, ready(Executable(made.bound, threads())).run(made.bound.arrays))
            changed = None if different is None else Change("of kernels", (), (), different)
        if changed is not None:
            raise changed.error()
    return count


def _change(before: Stage, after: Stage, different: Difference) -> Change:
    """What changed between two programs, statement by statement."""
    old, new = ([show(s) for s in stage.loops.statements] for stage in (before, after))
    gone, made = [line for line in old if line not in new], [line for line in new if line not in old]
    return Change(after.name, tuple(gone), tuple(made), different)
