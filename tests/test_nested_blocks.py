"""Blocks within blocks: what each step has for itself is kept once, and all means the same, compiled too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tensorswap as ts
from tensorswap.errors import SwapError
from tensorswap.plan.first_slices import slice_by_slice
from tensorswap.run.arguments import bind
from tensorswap.trust.validate import changed_by_plan

from .daily import LONG

check = settings(
    max_examples=600 if LONG else 25, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)
NUMBERS = np.random.default_rng(7)


def steps(*inner: str, begin: str = "", behind: str = "", first: str = "", last: str = "return Y") -> str:
    """An inner block in an outer one, with what stands before and behind each."""
    lines = [first, "for t:", *(f"    {line}" for line in begin.split("; ") if line), "    for s:"]
    lines += [f"        {line}" for line in inner]
    return "\n".join(line for line in [*lines, *(f"    {line}" for line in behind.split("; ") if line), last] if line)


CASES = {  # and the elements that are kept in between
    "a state": (
        steps("P[t,s+1,i] = 0.5 * P[t,s,i] + a[s]", begin="P[t,0,i] = x[t,i]", behind="Y[t,i] = P[t,size(s),i]"), 3),
    "two steps back": (
        steps("P[t,s+2] = P[t,s] - a[s] * P[t,s+1]", begin="P[t,0] = x[t,0]; P[t,1] = x[t,1]",
              behind="Y[t] = P[t,size(s)+1]"), 3),
    "a value of each step": (steps("G[t,s,i] = x[t,i] * a[s]", "Y[t,s,i] = G[t,s,i] ** 2"), 3),
    "a sum of each step": (steps("G[t,s] += x[t,i] * a[s]", "Y[t,s] = G[t,s] ** 2"), 1),
    "a sum over steps": (steps("G[t,i] += x[t,i] * a[s] * s", behind="Y[t,i] = G[t,i] ** 2"), 3),
    "differences": (steps("G[t,s,i] -= x[t,i] * a[s]", "Y[t,s,i] = G[t,s,i] ** 2"), 3),
    "read by another block": (
        steps("G[t,s,i] = x[t,i] * a[s]", behind="for s down:;     Y[t,s,i] = G[t,s,i] + s"), 15),
    "an outer state": (
        steps("G[t,i] += H[t,i] * a[s]", behind="H[t+1,i] = H[t,i] - 0.1 * G[t,i]", first="H[0,i] = x[0,i]",
              last="Y[i] = H[size(t),i]\nsize(t) = 4\nreturn Y"), 6),
}  # fmt: skip
SHAPES = {"x": (4, 3), "a": (5,)}


def arrays_for(program: ts.Program) -> dict[str, Any]:
    return {name: NUMBERS.standard_normal(SHAPES[name]) for name in program.inputs}


def check_compiled(program: ts.Program, arrays: dict[str, Any]) -> None:
    wanted, found = program.run_reference(arrays), program(arrays)
    for name in program.outputs:
        one, other = (r[name] if isinstance(r, dict) else r for r in (wanted, found))
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-9, err_msg=f"{name}\n{program}")


@pytest.mark.compiled
@pytest.mark.parametrize("name", CASES)
def test_what_steps_have_for_themselves_is_kept_once(name: str) -> None:
    text, elements = CASES[name]
    program = ts.program(text)
    arrays = arrays_for(program)
    lines = -(-8 * elements // 64) + 1  # of the cache; two tensors may share none
    assert program.plan(arrays).workspace <= 64 * lines
    check_compiled(program, arrays)
    derivative = program.adjoint(wrt=list(program.inputs), of=list(program.outputs))
    seeds = {f"{y}.grad": NUMBERS.standard_normal(np.shape(program.run_reference(arrays))) for y in program.outputs}
    check_compiled(derivative, {k: v for k, v in {**arrays, **seeds}.items() if k in derivative.inputs})


WIDE = """
size(t) = 6
Q[0,n] = X[n]
for t:
    P[t,0] = x0
    for s:
        P[t,s+1] = 0.5 * P[t,s] + a[s]
    m[t] += Q[t,n] * P[t,size(s)]
    Q[t+1,n] = Q[t,n] * 0.9 + tanh(m[t]) * 0.01
Y[n] = Q[size(t),n]
return Y
"""


@pytest.mark.compiled
def test_steps_that_all_threads_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a copy of a sum that begins with zero in every step."""
    monkeypatch.setattr("tensorswap.run.call.threads", lambda: 2)
    program = ts.program(WIDE)
    arrays = {"X": NUMBERS.standard_normal(100_000) * 0.01, "a": np.arange(4) * 0.1, "x0": 0.3}
    plan = str(program.plan(arrays))
    assert "m[0] = 0" in plan
    assert "the copies of m that the other parts have made are added to it" in plan
    check_compiled(program, arrays)


KEPT = {
    "read a step of the outer block later": steps(
        "G[t,s] = x[t,0] * a[s]", behind="Y[t,s] = G[t,s] + (G[t-1,s] if t > 0 else 0)"
    ),
    "read behind the blocks": steps("G[t,s] = x[t,0] * a[s]", last="Y[t] += G[t,s] ** 2\nreturn Y"),
    "read before its step has made it": steps("Y[t,s] = G[t,s] + 1", "G[t,s] += x[t,0] * a[s]"),
    "part of a slice": steps("G[t,s,i] += x[t,i] * a[s] if i > s", "Y[t,s,i] = G[t,s,i] + 1"),
    "every other step": steps("G[t,s] += x[t,0] * a[s] if (s + t) % 2 == 0", "Y[t,s] = G[t,s] + 1"),
    "in one step": steps("G[t] += x[t,0] if s == 2", "Z[t,s] = a[s] * t", behind="Y[t] = G[t] * 2", last="return Y, Z"),
    "truths": steps("q[t,s] = x[t,0] > a[s]", behind="for s:;     Y[t,s] = 1 if q[t,s] else a[s]"),
    "the largest of a step": steps("m[t,s] max= x[t,i] * a[s]", "Y[t,s] = m[t,s] + 1"),
    "the place on a diagonal": steps("G[t,s,s] += x[t,0] * a[s]", "Y[t,s] = G[t,s,s] + 1"),
}


@pytest.mark.compiled
@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT)
def test_what_others_read_stays(text: str) -> None:
    program = ts.program(text)
    check_compiled(program, arrays_for(program))


# -- slices that are written first by one statement

SUM = "Y[i] += G[s,i]"
ALL = "Y[i] += G[k,i]"
SLICES = {
    "one behind the other": (
        f"size(G, 0) = 5\nG[0,i] -= x[0,i]\nfor s:\n    G[s+1,i] += a[s] * G[s,i] if s < size(s) - 1\n{SUM}"
    ),
    "downwards": "G[size(s),i] += x[0,i]\nfor s down:\n    G[s,i] -= a[s] * G[s+1,i]\nY[i] = G[0,i] + G[2,i]",
    "twice": f"G[0,i] += x[0,i]\nfor s:\n    G[s+1,i] += a[s] * G[s,i]\n    G[s+1,i] -= 2 * a[s]\n{SUM}",
    "the second more often": (
        f"for s:\n    G[s,i] += a[s] * x[0,i] if s < 4\n    G[s,i] -= 2 * a[s]\nG[4,i] += x[0,i]\n{SUM}"
    ),
    "a gap": f"size(G, 0) = 7\nG[0,i] += x[0,i]\nfor s:\n    G[s+2,i] += a[s] + G[s,i]\n{ALL}",
    "a slice twice": f"G[1,i] += x[0,i]\nG[0,i] += x[1,i]\nfor s:\n    G[s+1,i] += a[s] * G[s,i]\n{ALL}",
    "read too early": "G[0,i] += x[0,i]\nfor s:\n    Y[s,i] = G[s+1,i] * 2\n    G[s+1,i] += a[s] * x[0,i]\nreturn Y",
}


@pytest.mark.compiled
@pytest.mark.parametrize("text", SLICES.values(), ids=SLICES)
def test_slices_that_are_written_one_after_the_other(text: str) -> None:
    program = ts.program(text)
    check_compiled(program, arrays_for(program))


FIRST = {"one behind the other": {0, 1}, "downwards": {0, 1}, "twice": {0, 1}, "a slice twice": set(), "a gap": set()}
FIRST |= {"the second more often": set(), "read too early": set()}


@pytest.mark.parametrize("name", SLICES)
def test_statements_that_store_where_they_would_add(name: str) -> None:
    program = ts.program(SLICES[name])
    bound = bind(program.loops, arrays_for(program))
    assert slice_by_slice(bound.loops, bound.sizes, "G") == FIRST[name]


# -- programs that nobody has thought of

VALUES = ["x[t,i] * a[s]", "x[t,i] + s", "0.5 * a[s]", "x[t,i] - t"]
GUARDS = ["", "", "", " if s > 0", " if i > 0", " if (s + t) % 2 == 0", " if s < size(s) - 1", " if t > 0"]
READS = [
    "A[t,s,i]", "A[t,s+1,i]", "B[t,s,i]", "C[t,s]", "D[t,i]", "H[t,i]", "(B[t,s-1,i] if s > 0 else 0)",
    "(B[t-1,s,i] if t > 0 else 0)", "(D[t-1,i] if t > 0 else 0)", "(C[t,s+1] if s < size(s) - 1 else 0)",
]  # fmt: skip
WRITES = ["A[t,s+1,i]", "B[t,s,i]", "C[t,s]", "D[t,i]", "B[t,s,i]", "C[t,s]"]


SIZES = {"x": (3, 2), "a": (4,), "A": (3, 5, 2), "B": (3, 4, 2), "C": (3, 4), "D": (3, 2)}


@st.composite
def nested(draw: st.DrawFn) -> str:
    """Two inner blocks in an outer one. The language refuses about a third."""
    set_by = {name: draw(st.sampled_from(["=", "+", "+"])) for name in "AB"}

    def value() -> str:
        terms = [draw(st.sampled_from(VALUES)), *draw(st.lists(st.sampled_from(READS), max_size=2))]
        return " + 0.3 * ".join(terms)

    def statement() -> str:
        target = draw(st.sampled_from(WRITES))
        operator = "=" if set_by.get(target[0]) == "=" else draw(st.sampled_from(["+=", "-=", "+="]))
        return f"{target} {operator} {value()}{draw(st.sampled_from(GUARDS))}"

    def block() -> list[str]:
        way = draw(st.sampled_from(["", "", " down"]))
        return [f"    for s{way}:", *(f"        {statement()}" for _ in range(draw(st.integers(1, 4))))]

    first = "=" if set_by["A"] == "=" else "+="
    lines = ["size(t) = 3", "size(s) = 4", "size(i) = 2", "H[0,i] = x[0,i]", "for t:", f"    A[t,0,i] {first} x[t,i]"]
    lines += block()
    lines += draw(st.sampled_from([[], ["    Z[t,i] = D[t,i] * 2"], ["    Z[t,i] = A[t,size(s),i]"]]))
    lines += block() if draw(st.booleans()) else []
    read = draw(st.sampled_from(["D[t,i]", "A[t,size(s),i]", "B[t,0,i]", "C[t,1]"]))
    lines += [f"    H[t+1,i] = 0.5 * H[t,i] + {read}"]
    lines += draw(st.sampled_from([[], ["V[s] += B[t,s,i]"], ["V[s] += C[t,s]"], ["V[i] += D[t,i]"]]))
    asked = ["Y", *(name for name in "ZV" if any(line.strip().startswith(name) for line in lines))]
    return "\n".join([*lines, "Y[i] = H[size(t),i]", f"return {', '.join(asked)}"])


@check
@given(nested())
def test_programs_that_nobody_has_thought_of(text: str) -> None:
    try:
        program = ts.program(text)
        arrays = {name: NUMBERS.standard_normal(SIZES[name]) for name in program.inputs}
        program.run_reference(arrays)
    except SwapError:
        return  # it reads what is not complete, or writes twice
    for made in (program, *derived(program)):
        given = {**arrays, "Y.grad": np.ones(2)}
        changed = changed_by_plan(bind(made.loops, {name: given[name] for name in made.inputs}), {})
        assert changed is None, changed.error()


def derived(program: ts.Program) -> list[ts.Program]:
    try:
        return [program.adjoint(wrt=list(program.inputs), of=["Y"])]
    except SwapError:
        return []
