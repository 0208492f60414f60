"""Loops over elements that are written in vectors: every length, every operation, and what must stay with LLVM."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorswap as ts
from tensorswap.command.main import main
from tensorswap.kernel.ir import F8, ONE, WORD, ZERO, Choice, For, Load, Memory, Store, Variable, compare, number, word
from tensorswap.kernel.lanes import fitting
from tests.test_planner import check

J = Variable("j", WORD)
OUT, OTHER = Memory("out", F8), Memory("other", F8)

pytestmark = pytest.mark.compiled

UNARY = ["exp", "tanh", "sigmoid", "gelu", "log1p", "abs", "sqrt", "floor", "relu", "silu", "erf", "sin", "sign", "-"]
LENGTHS = st.one_of(st.integers(0, 40), st.sampled_from([47, 48, 63, 64, 65, 100, 127, 128, 129, 200]))


@st.composite
def values(draw: st.DrawFn, depth: int = 2) -> str:
    if depth == 0:
        return draw(st.sampled_from(["X[i,j]", "W[j]", "c[i]", "a", "0.5", "X[i,j]", "V[i,j]", "X[i,j] * c[i]"]))
    one, other = draw(values(depth - 1)), draw(values(depth - 1))
    match draw(st.integers(0, 5)):
        case 0:
            name = draw(st.sampled_from(UNARY))
            return f"(-{one})" if name == "-" else f"{name}({one})"
        case 1:
            return f"({one} if {other} {draw(st.sampled_from(['<', '>=', '==']))} {draw(values(0))} else {other})"
        case 2:
            return f"{draw(st.sampled_from(['min', 'max']))}({one}, {other})"
        case 3:
            return f"({one} if c[i] > 0 and {other} > 0 else 1 / c[i])"
        case _:
            return f"({one} {draw(st.sampled_from(['+', '-', '*']))} {other})"


@st.composite
def texts(draw: st.DrawFn) -> str:
    guard = draw(st.sampled_from(["", "", " if j <= 3 * i + 5", " if j > i and j < 40", " if X[i,j] > 0"]))
    lines = [f"Z[i,j] = {draw(values())}", f"{draw(st.sampled_from(['S[i]', 'S[j]', 'S']))} += {draw(values())}{guard}"]
    lines.append(f"M[i] {draw(st.sampled_from(['max=', 'min=', '-=']))} {draw(values(1))}{guard}")
    lines.append("U[i,j] = X[i,j] + Z[i,j] * S" if lines[1].startswith("S +=") else "U[i,j] = X[i,j] * Z[i,j]")
    return "\n".join([*lines, "return Z, S, M, U"])


@settings(max_examples=25, deadline=None)  # each compiles
@given(texts(), LENGTHS, st.integers(1, 5), st.sampled_from([np.float32, np.float64]), st.integers(0, 2**16))
def test_as_the_interpreter(text: str, length: int, rows: int, dtype: type, seed: int) -> None:
    numbers = np.random.default_rng(seed)
    program = ts.program(text)
    arrays: dict[str, Any] = {name: numbers.uniform(-2, 2, (rows, length)).astype(dtype) for name in "XV"}
    arrays |= {
        "W": numbers.uniform(-2, 2, length).astype(dtype),
        "c": numbers.uniform(-2, 2, rows).astype(dtype),
        "a": 0.7,
    }
    if seed % 3 == 0 and length:
        arrays["X"][0, seed % length] = numbers.choice([np.nan, np.inf, -np.inf])
    with np.errstate(all="ignore"):
        check(program, {name: arrays[name] for name in program.inputs})


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("length", [1, 3, 5, 16, 40, 63, 64, 65, 130])
def test_one_tensor_at_two_places(length: int, dtype: type) -> None:
    """A step reads what the step before has written, a row before it: so far that no vector meets both, or not."""
    numbers = np.random.default_rng(length)
    program = ts.program("""
        size(Y, 0) = size(t) + 1
        Y[0,j] = W[j]
        for t:
            Y[t+1,j] = Y[t,j] * c[t] + X[t,j]
            Z[t,j] = Y[t+1,j] * Y[t,j]
        return Y, Z
    """)
    arrays = {"X": numbers.standard_normal((5, length)), "W": numbers.standard_normal(length), "c": numbers.random(5)}
    check(program, {name: array.astype(dtype) for name, array in arrays.items()})


@pytest.mark.parametrize("step", [1, 2, 3])
def test_steps_that_look_along_the_row(step: int) -> None:
    """x[j] of a step is made of x[j-1] of the same step: that is no loop for vectors."""
    program = ts.program(f"for j:\n    Y[i,j] = X[i,j] + (0.5 * Y[i,j-{step}] if j >= {step} else 0)")
    check(program, {"X": np.random.default_rng(step).standard_normal((3, 70))})


SHORT = ["S[i] max= X[i,j]", "S[i] += X[i,j]", "S[i] *= X[i,j]", "S[i,j] = X[i,j] * 2", "S[i] min= X[i,j] * X[i,j]"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("text", SHORT)
def test_rows_that_end_before_they_begin(text: str, dtype: type) -> None:
    """A guard that no element of a row meets is a loop of less than no steps."""
    numbers = np.random.default_rng(1)
    for first in (2, 40):
        for shape in ((1, 0), (1, 3), (3, 17)):
            check(ts.program(f"{text} if j >= {first}"), {"X": numbers.standard_normal(shape).astype(dtype)})


@pytest.mark.parametrize(
    "value",
    [
        "X[i,j] * (c[i-1] if i > 0 else 2)",
        "X[i,j] + W[j] * (1 if c[i] > 0 and b[i] > 0 else 2)",
        "max(X[i,j], (exp(c[i]) if i > 1 or b[i] > 0 else 1))",
    ],
)
def test_branches_that_are_the_same_in_all_steps(value: str) -> None:
    numbers = np.random.default_rng(7)
    arrays = {"X": (4, 40), "W": (40,), "b": (4,), "c": (4,)}
    program = ts.program(f"size(i) = size(X, 0)\nY[i,j] = {value}\nS[i] += {value}\nreturn Y, S")
    check(program, {name: numbers.standard_normal(arrays[name]) for name in program.inputs})


def test_what_only_a_branch_may_read() -> None:
    """It is the same in all steps, and may not be read before them: there is no such place."""
    program = ts.program("Y[i,j] = (c[i+1] if i < size(i) - 1 else X[i,j]) * X[i,j]\nreturn Y")
    loop = For(
        J,
        ZERO,
        word(100),
        ONE,
        (Store(OUT, J, Choice(compare(">", Load(OUT, J), 0), Load(OTHER, word(9)), number(0, F8), lazy=True)),),
    )
    assert not fitting((loop,))
    numbers = np.random.default_rng(2)
    check(program, {"X": numbers.standard_normal((4, 50)), "c": numbers.standard_normal(4)})


@pytest.mark.parametrize(("shift", "fits"), [(0, True), (1, False), (-5, False), (63, False), (64, True), (-100, True)])
def test_vectors_that_would_meet(shift: int, fits: bool) -> None:
    """A step writes what another one reads: so near that both are in one round of vectors, or not."""
    loop = For(J, ZERO, word(200), ONE, (Store(OUT, J, Load(OUT, J + word(shift)) + Load(OTHER, J)),))
    assert (id(loop) in fitting((loop,))) == fits


def code_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["explain", *arguments, "--stage", "llvm"]) == 0
    return capsys.readouterr().out


FITS = {
    "elements": ("Y[i,j] = exp(X[i,j]) * c[i]", True),
    "a sum": ("Y[i] += X[i,j] * W[j]**2", True),
    "a triangle": ("Y[i,j] = X[i,j] * c[i] if j <= i", True),
    "the index as a number": ("Y[i,j] = X[i,j] * j", False),
    "a branch that must not be read": ("Y[i,j] = X[i,j] if j < 3 else X[i,j-3]", False),
    "one number at a time": ("Y[i,j] = tan(X[i,j])", False),
}


@pytest.mark.optimised
@pytest.mark.parametrize("name", FITS)
def test_what_llvm_has_little_to_do_for(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text, fits = FITS[name]
    code = code_of(capsys, text, "--size", "i=30", "--size", "j=100", "--dtype", "float32")
    assert ("!tensorswap.vectors = " in code) == fits
    assert not fits or re.search(r"<\d+ x float>", code)
