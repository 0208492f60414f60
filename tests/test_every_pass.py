"""Every pass of a plan leaves a sound program: over the adjoints of the whole library, each in its first case.

What a pass gives must be a program of the language, with a size for every index and a shape for every tensor, and the
caller's inputs and outputs. That it means the same is asked in test_trust.py and, compiled, in test_passes.py.
"""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from tensorswap.language.check import RULES, one_operator, whole_assignment
from tensorswap.language.sizes import Sizes
from tensorswap.language.stages import Stage, watch
from tensorswap.plan.prepare import PASSES, prepare
from tensorswap.plan.work import Draft, Work
from tensorswap.run.arguments import Bound, bind

from .daily import share
from .library.table import options_of
from .test_library import FAMILIES, ROWS, Answer, adjoint, answers, rows_of


def bound_adjoint(op: str, answer: Answer) -> Bound:
    """The adjoint of an op as a call has it."""
    given: dict[str, Any] = {**answer.input, **options_of(ROWS[op].cases[0])}
    given |= {f"{name}.grad": seed for name, seed in answer.seed.items()}
    derivative = adjoint(op, tuple(answer.grad), tuple(answer.seed))._for_call(given)
    return bind(derivative.loops, {name: value for name, value in given.items() if name in derivative.loops.names})


def verify(stage: Stage, bound: Bound) -> None:
    """Raises if what a pass has left is no program, or lacks a size."""
    loops, sizes = stage.loops, stage.sizes
    assert sizes is not None
    rolled = stage.name in (
        "roll_buffers",
        "settle",
    )  # a slice is set to zero, or written again when its values are used up
    rules = [rule for rule in RULES if not (rolled and rule in (whole_assignment, one_operator))]
    assert not [fault for rule in rules for fault in rule(loops)]
    assert {*loops.indices} <= {*sizes.index}
    assert loops.outputs == bound.loops.outputs
    assert {*loops.inputs} <= {*bound.arrays}
    for statement in loops.statements:
        for access in (statement.target, *statement.reads):
            assert len(sizes.shapes[access.tensor]) == len(access.indices), access


@pytest.mark.parametrize("family", share(FAMILIES, 3))
def test_each_pass_leaves_a_sound_program(family: str) -> None:
    for row in rows_of(family):
        answer = answers(family)[row.name, 0]
        if not answer.grad:
            continue
        bound = bound_adjoint(row.name, answer)
        with watch() as stages:
            prepare(bound, dict.fromkeys(bound.sizes.index, 512))
        assert [stage.name for stage in stages] == [run.__name__ for run in PASSES]
        before = None
        for stage in stages:
            if stage.loops != before:
                verify(stage, bound)
            before = stage.loops


def test_a_pass_changes_nothing_that_it_was_given() -> None:
    """What a draft adds is not in the work that it was made of, and no field can be set."""
    bound = bound_adjoint("conv2d", answers("convolution")["conv2d", 0])
    work = Work(bound.loops, bound.sizes)
    for run in PASSES:
        loops, index, shapes, copies = work.loops, dict(work.sizes.index), dict(work.sizes.shapes), work.copies
        made = run(work)
        assert (work.loops, work.sizes.index, work.sizes.shapes, work.copies) == (loops, index, shapes, copies)
        work = made
    assert len(work.sizes.index) > len(bound.sizes.index)
    draft = Draft(work)
    assert draft.index("n", 3).name not in work.sizes.index
    with pytest.raises(FrozenInstanceError):
        work.loops = bound.loops  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        Sizes({}, {}, {}).index = {}  # type: ignore[misc]


def test_verification_can_fail() -> None:
    bound = bound_adjoint("conv2d", answers("convolution")["conv2d", 0])
    sizes = Sizes({}, bound.sizes.shapes, {})
    with pytest.raises(AssertionError):
        verify(Stage("", bound.loops, sizes), bound)
