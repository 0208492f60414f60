"""Rolling buffers: how many slices of a recurrence are kept, where its last step makes none or others read them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.plan.prepare import prepare
from tensorswap.run.arguments import bind

pytestmark = pytest.mark.compiled
R = np.random.default_rng(5)
UP, DOWN = "G[0,i] += x[i]\nfor t:", "G[size(t)-1,i] += x[i]\nfor t down:"
STEP, BACK = "G[t+1,i] += c[t] * G[t,i] if t < size(t) - 1", "G[t-1,i] += c[t] * G[t,i] if t > 0"


def lines(first: str, *steps: str, last: str = "") -> str:
    return "\n".join([first, *(f"    {step}" for step in steps), *filter(None, [last, "return Y"])])


CASES = {  # and the slices that are kept of G; all are seven
    "read behind": (lines(UP, STEP, "Y[t] += G[t,i]"), 1),
    "read before": (lines(UP, "Y[t] += G[t,i]", STEP), 1),
    "downwards": (lines(DOWN, BACK, "Y[t] += G[t,i]"), 1),
    "a product that is read behind": (lines(UP, STEP, "Y[t] += G[t,i] * x[i]"), 7),  # it is a matrix product of all
    "the last one is asked for": (lines(UP, STEP, last="Y[i] = G[size(t)-1,i]"), 1),
    "the first one is asked for": (lines(UP, STEP, last="Y[i] = G[0,i]"), 7),
    "one that is not made is asked for": (
        lines("size(G,0) = size(t) + 1\n" + UP, STEP, last="Y[i] = G[size(t),i] + G[size(t)-1,i]"), 7),
    "the new one is read": (
        lines("size(G,0) = size(t) + 1\n" + UP, STEP, "Y[t] += G[t+1,i]"), 7),
    "a neighbour is read behind": (lines(UP, STEP, "Y[t] += G[t,i] * G[t,size(i)-1-i]"), 7),
    "two steps make none": (lines(UP, STEP.replace("- 1", "- 2"), "Y[t] += G[t,i]"), 7),
    "the first step makes none": (
        lines("G[1,i] += x[i]\nfor t:", STEP.replace("t <", "t > 0 and t <"), "Y[t] += G[t,i]"), 7),
    "some elements are not made": (lines(UP, STEP + " and i > 0", "Y[t] += G[t,i]"), 7),
    "one step in the middle makes none": (lines(UP, STEP.replace("<", "!="), "Y[t] += G[t,i]"), 7),
    "what is read behind is changed before": (
        lines(UP, STEP, "b[t] = G[t,0] * 2", "Y[t] += G[t,i] * b[t]"), 7),
    "who reads it behind needs what comes before": (
        lines(UP, STEP, "b[t] = c[t] * 2", "Y[t] += G[t,i] + b[t]"), 2),
    "who reads it behind reads what was made in between": (
        lines(UP, STEP, "b[t] += G[t,i] ** 2", "Y[t] += G[t,i] + b[t]"), 1),
    "others add to the new one": (
        lines("size(G,0) = size(t) + 1\n" + UP, "G[t+1,i] += G[t,i]", "Y[t] += G[t,i]", "G[t+1,i] += c[t] * x[i]",
              "G[t+1,i] -= c[t] if i > 1"), 1),
    "others add to the new one, from the old one": (
        lines("size(G,0) = size(t) + 1\n" + UP, "G[t+1,i] += c[t] * G[t,i]", "Y[t] += G[t,i]",
              "G[t+1,i] += G[t,i-1] if i > 0"), 2),
    "others add to the old one": (
        lines("size(G,0) = size(t) + 1\n" + UP, "G[t+1,i] += c[t] * G[t,i]", "Y[t] += G[t,i]", "G[t,i] += c[t]"), 7),
    "what is added comes first": (
        lines("size(G,0) = size(t) + 1\n" + UP, "G[t+1,i] += c[t] if i > 0", "G[t+1,i] += G[t,i]",
              last="Y[i] = G[size(t),i]"), 7),
    "all of it goes on": (
        lines("size(G,0) = size(t) + 1\n" + UP, "Y[t] += G[t,i]", "G[t+1,i] += G[t,i]",
              "G[t+1,i] += x[i] * c[t] if i > 0", "Z[t] += G[t+1,i]", last="Y[t] += Z[t]"), 1),
    "nothing else is in it": (
        "size(G,0) = size(t) + 1\nfor t:\n    G[t+1,i] += G[t,i]\n    Z[t] += c[t]\n"
        "Y[i] = G[size(t),i] + x[i] * Z[0]\nreturn Y", 1),
    "it goes on turned": (
        lines("size(G,0) = size(t) + 1\n" + UP, "Y[t] += G[t,i]", "G[t+1,i] += G[t,size(i)-1-i]",
              "G[t+1,i] += x[i] * c[t]"), 2),
}  # fmt: skip


def check(text: str, points: int, steps: int, dtype: Any = np.float64) -> None:
    program = ts.program(text)
    arrays = {"x": R.uniform(-1, 1, points).astype(dtype), "c": R.uniform(0.5, 1, steps).astype(dtype)}
    arrays = {name: arrays[name] for name in program.inputs}
    np.testing.assert_allclose(
        program(arrays), program.run_reference(arrays), rtol=1e-5 if dtype == np.float32 else 1e-12
    )


@pytest.mark.parametrize("name", CASES)
def test_slices_that_are_kept(name: str) -> None:
    text, slices = CASES[name]
    loops = ts.program(text).loops
    work = prepare(bind(loops, {"x": np.ones(40), "c": np.ones(6)}))
    assert work.sizes.shapes["G"][0] == slices
    for points, steps in ((1, 3), (5, 2), (300, 3), (300, 7)):
        check(text, points, steps)
    check(text, 70, 6, np.float32)


PARTS = {  # and the slices that are kept of m, of six
    "each in turn": (["m[t,0] += x[0] * c[t]", "m[t,1] += c[t]"], 1),
    "twice": (["m[t,0] -= c[t]", "m[t,1] += c[t]", "m[t,0] += x[0]"], 1),
    "one is left out": (["m[t,1] += c[t]", "m[t,1] += x[1]"], 1),
    "one is guarded": (["m[t,0] += c[t] if c[t] > 0.7", "m[t,1] += c[t]"], 1),
    "one is read too early": (["m[t,0] += c[t]", "m[t,1] += m[t,0] + m[t,1]"], 1),
    "a sum": (["m[t,0] += x[i]", "m[t,1] += c[t]"], 1),
}


@pytest.mark.parametrize("name", PARTS)
def test_slices_that_begin_by_parts(name: str) -> None:
    steps, slices = PARTS[name]
    text = lines("size(m, 1) = 2\nG[0] = 0\nfor t:", *steps, "G[t+1] = G[t] * 0.5 + m[t,0] - m[t,1]",
                 last="Y = G[size(t)]")  # fmt: skip
    program = ts.program(text)
    arrays = {"x": R.uniform(-1, 1, 4), "c": R.uniform(0.5, 1, 6)}
    arrays = {name: arrays[name] for name in program.inputs}
    work = prepare(bind(program.loops, arrays))
    assert work.sizes.shapes["m"][0] == slices
    np.testing.assert_allclose(program(arrays), program.run_reference(arrays), rtol=1e-12)
