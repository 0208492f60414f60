"""Blocks whose steps are a few assignments: one function, and the values of the interpreter."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorswap as ts
from tensorswap.kernel import ir
from tensorswap.lower import short_blocks

pytestmark = pytest.mark.compiled

TEXTS = {
    "up": "A[0] = a\nfor t:\n    b[t] = sin(A[t]) * x[t]\n    A[t+1] = b[t] * 0.5 + x[t]\nreturn A",
    "down": (
        "for t down:\n    b[t] = x[t] * (A[t+1] if t < size(t) - 1 else 1)\n    A[t] = b[t] - 0.3 * x[t]\nreturn A, b"
    ),
    "only the last is kept": "A[0] = a\nfor t:\n    b[t] = A[t] ** 2\n    A[t+1] = b[t] * 0.5 + x[t]\nY = A[size(t)]",
    "two steps back": "A[0] = a\nA[1] = 2*a\nfor t:\n    A[t+2] = A[t+1] - 0.4 * A[t] + x[t]\nreturn A",
    "a guard": (
        "A[0] = a\nfor t:\n    A[t+1] = A[t] + x[t] if x[t] > 0 else A[t]\n    c[t] = A[t+1] if t > 1\nreturn A, c"
    ),
    "whole numbers": "n[0] = 3\nfor t:\n    n[t+1] = n[t] * 3 % 7\n    s[t] = n[t+1] * x[t]\nreturn n, s",
    "a few components": (
        "size(i) = 3\np[0,i] = a + i\nfor t:\n    v[t] += p[t,i] ** 2\n"
        "    p[t+1,i] = p[t,i] - 0.1 * x[t] * (p[t,i] if v[t] > 1 else 1)\nreturn p, v"
    ),
    "in a block": (
        "size(s) = 3\nw[0] = a\nfor s:\n    z[s,0] = w[s]\n    for t:\n        y[s,t] = tanh(z[s,t])\n"
        "        z[s,t+1] = y[s,t] + x[t]\n    w[s+1] = z[s,size(t)] * 0.5\nreturn w, z"
    ),
    "sums": "A[0] += a\nfor t:\n    A[t+1] += A[t] * x[t]\n    A[t+1] += x[t]\n    A[t+1] -= 0.5 * A[t]\nreturn A",
    "the best": "m[0] max= a\nfor t:\n    m[t+1] max= x[t] - 0.1\n    m[t+1] max= m[t] * 0.9\nreturn m",
}


def arguments(text: str, size: int, seed: int) -> dict[str, Any]:
    arrays: dict[str, Any] = {"x": np.random.default_rng(seed).standard_normal(size)}
    return {**arrays, "a": 0.7} if "a" in ts.program(text).inputs else arrays


def check(program: ts.Program, arrays: dict[str, Any]) -> None:
    made, expected = program(arrays), program.run_reference(arrays)
    pairs = [(made[n], expected[n]) for n in made] if isinstance(made, dict) else [(made, expected)]
    for found, wanted in pairs:
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@given(size=st.integers(1, 40), seed=st.integers(0, 1000))
@settings(max_examples=8, deadline=None)
def test_compiled_and_interpreted_agree(text: str, size: int, seed: int) -> None:
    check(ts.program(text), arguments(text, size, seed))


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_and_so_do_their_adjoints(text: str) -> None:
    program, arrays = ts.program(text), arguments(text, 7, 1)
    values = program.run_reference(arrays)
    values = values if isinstance(values, dict) else {program.outputs[0]: values}
    seeds = {
        f"{name}.grad": np.cos(np.arange(v.size)).reshape(v.shape) for name, v in values.items() if v.dtype == float
    }
    of = [name.removesuffix(".grad") for name in seeds]
    check(program.adjoint(wrt=["x"], of=of), {**arrays, **seeds})


@pytest.mark.parametrize("name", ["up", "down", "a guard", "whole numbers", "a few components", "the best"])
def test_such_a_block_is_one_function(name: str) -> None:
    source = ts.program(TEXTS[name]).source(arguments(TEXTS[name], 9, 0))
    assert not [text for text in source.split("@in_parts")[1:] if re.search(r"for i\d+ in", text.split("@compiled")[0])]


def assigned(count: int) -> ir.For:
    """A loop with a step of so many assignments."""
    memory, t = ir.Memory("a", ir.F8), ir.Variable("t", ir.WORD)
    stores = tuple(ir.Store(memory, t + k, ir.number(k, ir.F8)) for k in range(count))
    return ir.For(t, ir.ZERO, ir.Variable("n", ir.WORD), ir.ONE, (ir.Step(0, "", stores),))


def test_long_ones_stay_as_they_are() -> None:
    short = short_blocks.as_one(assigned(short_blocks.MOST))
    assert short is not None
    assert short.plain
    assert len(short.body) == short_blocks.MOST
    assert short_blocks.as_one(assigned(short_blocks.MOST + 1)) is None


def test_and_those_with_long_loops_or_names_of_two_types() -> None:
    loop = assigned(1)
    many = ir.Step(0, "", (assigned(1),))
    assert short_blocks.as_one(replace(loop, body=(*loop.body, many))) is None
    two = [ir.Set(ir.Variable("total", kind), ir.number(0, kind)) for kind in (ir.F8, ir.WORD)]
    steps = tuple(ir.Step(k, "", (statement,)) for k, statement in enumerate(two))
    assert short_blocks.as_one(replace(loop, body=steps)) is None
    assert short_blocks.as_one(replace(loop, body=steps[:1])) is not None


BEYOND = {  # places that a tensor of one or two elements does not have, in branches that are not taken
    "a place beyond": ("for t:\n    a[0] = a[0] + 1 + (a[7] if size(a, 0) > 7 else 0)", {"a": np.zeros(1), "t": 3}),
    "on the last axis": (
        "for t:\n    a[0,0] = a[0,0] + 1 + (a[0,7] if size(a, 1) > 7 else 0)", {"a": np.zeros((1, 1)), "t": 3}),
    "an empty one": ("for t:\n    a[0] = a[0] + 1 if size(a, 0) > 0", {"a": np.zeros(0), "t": 3}),
    "a number that is given": (
        "m: int\nfor t:\n    a[m] = a[m] + 1\n    a[0] = a[m] + (a[6] if m > 6 else 0)",
        {"a": np.ones(2), "m": 1, "t": 3}),
    "a slice that rolls": (
        "x[i]: array\nfor t:\n    p[t,i] = x[i] * t\n    q[t] = p[t,0] + (p[t,5] if size(i) > 5 else 0)\nreturn q",
        {"x": np.ones(2), "t": 3}),
}  # fmt: skip


@pytest.mark.parametrize("name", BEYOND)
def test_registers_hold_no_more_than_there_is(name: str) -> None:
    """They would be filled from beyond the tensor, and go back there."""
    text, arrays = BEYOND[name]
    program = ts.program(text)
    size = max(array.size for array in arrays.values() if isinstance(array, np.ndarray))
    held = re.findall(r"held\d+ = np.empty\((\d+),", program.source(arrays))
    assert all(int(count) <= size for count in held)
    check(program, arrays)


def test_and_as_much_as_is_named() -> None:
    program = ts.program("for t:\n    a[1] = a[0] + 1\n    a[0] = a[1] * 2")
    assert "held0 = np.empty(2," in program.source(a=np.zeros(100), t=3)
    check(program, {"a": np.arange(100.0), "t": 4})
