"""Blocks at rest: which blocks end as soon as a step has changed nothing, and that their results stay the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorswap as ts
from tensorswap.language import ir
from tensorswap.language.render import expression
from tensorswap.plan.at_rest import at_rest
from tensorswap.plan.prepare import prepare
from tensorswap.run.arguments import bind

pytestmark = pytest.mark.compiled


def block(*steps: str, first: str = "x[0] = a", last: str = "y = x[steps]") -> str:
    body = "\n".join(f"    {step}" for step in steps)
    return f"steps: int\nsize(t) = steps\n{first}\nfor t:\n{body}\n{last}\nreturn y"


FAR = "far[t] = abs(x[t] * x[t] - b)"
ROOT = "x[t+1] = 0.5 * (x[t] + b / x[t]) if far[t] > 1e-9 else x[t]"
WAY = "way[t] = 0 if x[t] > b else 1 if x[t] > 0.5 * b else 2"

CASES = {  # and when the block is at rest
    "a root": (block(FAR, ROOT), "not far[0] > 1e-09"),
    "the other way round": (
        block("near[t] = x[t] > b", "x[t+1] = x[t] if near[t] else x[t] + 0.25"), "near[0]"),
    "two states": (
        block(FAR, ROOT, "n[t+1] = n[t] + a if far[t] > 1e-9 else n[t]",
              first="x[0] = a\nn[0] = a", last="y = n[steps]"),
        "not far[0] > 1e-09"),
    "several ways": (
        block(WAY, "x[t+1] = x[t] + 0.5 if way[t] == 1 else 2 * x[t] + 1 if way[t] == 2 else x[t]"),
        "way[0] != 1 and way[0] != 2"),
    "a vector that goes together": (
        block("far[t] += p[t,i] ** 2", "p[t+1,i] = 0.5 * p[t,i] if far[t] > b else p[t,i]",
              first="size(i) = 3\np[0,i] = a + i", last="y += p[steps,i]"), "not far[0] > b"),
    "by parts": (
        block("m[t,0] = p[t,1] * 0.5", "m[t,1] = p[t,0] * 0.5", "go[t] = p[t,0] + p[t,1] > b",
              "p[t+1,i] = m[t,i] if go[t] else p[t,i]", first="size(i) = 2\np[0,i] = a + i", last="y += p[steps,i]"),
        "not go[0]"),
    "a condition on what a step changes": (block("x[t+1] = 0.5 * x[t] if x[t] > b else x[t]"), None),
    "a condition that is made behind": (
        block("x[t+1] = 0.5 * x[t] if (go[t-1] if t > 0 else 1) > 0 else x[t]", "go[t] = 1 if x[t+1] > b else 0"),
        None),
    "every step counts": (block(FAR, ROOT, "n[t+1] = n[t] + 1", first="x[0] = a\nn[0] = 0", last="y = n[steps]"), None),
    "the step itself is asked": (block(FAR, ROOT.replace("> 1e-9", "> 1e-9 * t")), None),
    "each step asks for something else": (
        block("go[t] = sin(2 * t) > 0", "x[t+1] = 0.5 * x[t] + b if go[t] else x[t]"), None),
    "a step is added up": (block(FAR, ROOT, "y += x[t+1]", last=""), None),
    "all steps are kept": (block(FAR, ROOT, last="y[t] = x[t]"), None),
    "each for itself": (
        block("p[t+1,i] = 0.5 * p[t,i] if p[t,i] > b else p[t,i]", first="size(i) = 3\np[0,i] = a + i",
              last="y += p[steps,i]"), None),
    "one goes on": (
        block(FAR, ROOT, "z[t+1] = 0.9 * z[t]", first="x[0] = a\nz[0] = a", last="y = x[steps] + z[steps]"), None),
}  # fmt: skip


def arguments(a: float = 7.0, b: float = 2.0, steps: int = 40) -> dict[str, Any]:
    return {"a": a, "b": b, "steps": steps}


def given_to(program: ts.Program, arrays: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arrays.items() if name in program.inputs or name == "steps"}


@pytest.mark.parametrize("name", CASES)
def test_when_a_block_is_at_rest(name: str) -> None:
    text, expected = CASES[name]
    program = ts.program(text)
    work = prepare(bind(program.loops, given_to(program, arguments())))
    (found,) = [item for item in work.loops.body if isinstance(item, ir.Block)]
    rest = at_rest(found, work.sizes, ())
    assert (None if rest is None else expression(rest)) == expected
    told = [line for row in program.plan(given_to(program, arguments())).rows for line in row.ends]
    ends = "the steps of t end with the first that changes nothing: where "
    assert told == ([] if expected is None else [ends + expected])


@pytest.mark.parametrize("name", CASES)
@given(a=st.floats(0.1, 50), b=st.floats(0.1, 50), steps=st.integers(1, 60))
@settings(max_examples=3, deadline=None)
def test_compiled_and_interpreted_agree(name: str, a: float, b: float, steps: int) -> None:
    program = ts.program(CASES[name][0])
    arrays = given_to(program, arguments(a, b, steps))
    np.testing.assert_allclose(program(arrays), program.run_reference(arrays), rtol=1e-9)


@pytest.mark.parametrize("name", [name for name, (_, rest) in CASES.items() if rest])
def test_derivatives_of_such_blocks(name: str) -> None:
    program = ts.program(CASES[name][0])
    gradient = program.grad(of="y", wrt=["a"])
    arrays = given_to(gradient, {**arguments(steps=12), "a": np.float64(7.0)})
    found, expected = gradient(arrays), gradient.run_reference(arrays)
    assert found.keys() == expected.keys() == {"y", "a.grad"}
    for result in found:
        np.testing.assert_allclose(found[result], expected[result], rtol=1e-9)


def test_a_block_that_is_at_rest_ends() -> None:
    """So many steps would take minutes."""
    program = ts.program(CASES["a root"][0])
    assert program(arguments(steps=10**10)) == pytest.approx(np.sqrt(2.0))


def test_also_within_a_block() -> None:
    text = """
steps: int
size(s) = 5
size(t) = steps
x[0] = 9
for s:
    z[s,0] = x[s]
    for t:
        far[s,t] = abs(z[s,t] * z[s,t] - s - 1)
        z[s,t+1] = 0.5 * (z[s,t] + (s + 1) / z[s,t]) if far[s,t] > 1e-9 else z[s,t]
    x[s+1] = z[s,steps] + 1
y = x[5]
return y
"""
    program = ts.program(text)
    expected = program.run_reference({"steps": 30})
    assert program(steps=30) == pytest.approx(expected, rel=1e-9)
    assert program(steps=10**10) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_zero_that_changes_its_sign_is_a_change(sign: float) -> None:
    """Only a statement that says so keeps its value: `0 * x` may be another zero each time."""
    program = ts.program(block("z[t+1] = -z[t] if go > 0 else z[t]", first="z[0] = 0.0 * a", last="y = 1 / z[steps]"))
    arrays = {"a": sign, "go": 1, "steps": 3}
    with np.errstate(divide="ignore"):
        assert program(arrays) == program.run_reference(arrays) == -sign * np.inf
