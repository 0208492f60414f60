"""A plan speaks the user's language: what it prints are statements, and names that no pass takes for a sign."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.plan.table import PlanTable
from tensorswap.program import Program
from tests.test_planner import check

CONVOLUTION = "size(i) = (size(X, 2) - 1) // 2 + 1\nY[n,o,i] += X[n,c,2*i+u-1] * W[o,c,u] if inside"

MADE: dict[str, tuple[Program, dict[str, Any]]] = {
    "sum": (ts.program("Y[n,k] += S[k,d] * size(n)"), {"S": (40, 50), "n": 30}),
    "value": (ts.program("Y[i] = exp(X[i]) * A[i]\nZ[i] = exp(X[i]) * B[i]"), dict.fromkeys("XAB", (64,))),
    "product": (ts.program("Y[i,l] += A[i,j] * B[j,k] * C[k,l]"), dict.fromkeys("ABC", (30, 30))),
    "operand": (ts.program("Y[i,l] += exp(A[i,k]) * B[k,l]"), dict.fromkeys("AB", (64, 64))),
    "old": (ts.program("A[i] = A[size(i) - 1 - i]"), {"A": (9,)}),
    "transposed": (ts.program("Y[j,k] += G[i,j] * (P[i,k] - P[j,k])"), {"G": (67, 67), "P": (67, 5)}),
    "padded": (ts.program(CONVOLUTION), {"X": (4, 16, 64), "W": (8, 16, 3)}),
    "windows": (
        ts.program("size(u) = 3\nsize(v) = 2\nW[o,c,u,v] += X[n,c,i+u,j+v] * G[n,o,i,j]"),
        {"X": (3, 16, 12, 10), "G": (3, 16, 9, 8)},
    ),
    "quotient": (
        ts.program(CONVOLUTION).adjoint(wrt=["X", "W"]),
        {"X": (4, 16, 64), "W": (8, 16, 3), "Y.grad": (4, 8, 32)},
    ),
}

NAME = r"[a-zA-Z_]\w*(\.\w+)*(:\d+)?"  # W:1 is an axis of W that no index has to itself
FACTOR = rf"(\d+|{NAME}|\(parts-1\))"


def check_plan_is_readable(plan: PlanTable) -> None:
    """Every statement of a plan is one of the language, and the lines about it hold no name that is not."""
    for row in plan.rows:
        if not row.statements[0].startswith("the copies of "):
            ts.program("\n".join(re.sub(r"\.(grad|dot)", r"_\1", statement) for statement in row.statements))
        assert re.fullmatch(rf"serial|parallel over {NAME}( by \d+)?(, {NAME} by \d+)?", row.how), row.how
        for term in (*row.operations_formula.split(" + "), *row.bytes_formula.split(" + ")):
            assert re.fullmatch(rf"{FACTOR}(\*{FACTOR})*", term), term
            assert not term.startswith("1*"), term
    for name in (*plan.saved, *(name for row in plan.rows for name in row.local)):
        assert re.fullmatch(NAME, name), name


@pytest.mark.parametrize("made", MADE)
def test_what_passes_make_has_a_readable_name(made: str) -> None:
    program, shapes = MADE[made]
    plan = program.plan(shapes)
    assert f"{made}_1" in str(plan)
    check_plan_is_readable(plan)


def test_copies_of_threads_are_told_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensorswap.run.call.threads", lambda: 2)
    program = ts.program("Y[b,o] += X[b,i] * W[o,i]\nloss += Y[b,o] ** 2").grad(wrt=["W"])
    plan = program.plan(X=(4000, 60), W=(30, 60))
    assert "the copies of W.grad that the other parts have made are added to it" in str(plan)
    check_plan_is_readable(plan)


def test_the_check_can_fail() -> None:
    with pytest.raises(ts.SwapError):
        check_plan_is_readable(_with_statement("sum 1[k] += S[k,d]"))
    plan = _with_statement("Y[k] += S[k,d]", "2*axis 0 of W")
    with pytest.raises(AssertionError):
        check_plan_is_readable(plan)


def _with_statement(text: str, formula: str = "2*k*d") -> PlanTable:
    row = ts.program("Y[k] += S[k,d]").plan(S=(3, 4)).rows[0]
    return PlanTable((type(row)((text,), row.how, row.why, 1, 1, formula, "0"),))


NAMED = {
    "transposed": "transposed[n,c] = X[n,c] * 2\nZ[n,c] += transposed[n,c] * W[c]",
    "sum 1": "sum_1[n] += X[n,c] * W[c]\nZ[n,k] += X[k,c]\nZ[n,k] += sum_1[n] * W[c]",
    "indices": "Z[axis_1,old_1] += X[axis_1,old_1] * W[old_1]",
}


@pytest.mark.compiled
@pytest.mark.parametrize("text", NAMED.values(), ids=NAMED)
def test_a_user_may_have_the_names_that_passes_would_take(text: str) -> None:
    """They mean nothing: a tensor called `transposed` is fused like any other."""
    program = ts.program(text)
    numbers = np.random.default_rng(1)
    arrays = {"X": numbers.standard_normal((60, 60)), "W": numbers.standard_normal(60)}
    check(program, arrays)
    plain = ts.program(re.sub(r"transposed|sum_1", "T", text).replace("axis_1", "i").replace("old_1", "j"))
    assert len(program.plan(arrays).rows) == len(plain.plan(arrays).rows)
