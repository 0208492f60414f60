"""Stencils with edges: rows that are read beside, above and below, in slices of a recurrence, up to the last element
that may be read."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorswap as ts
from tensorswap.kernel.ir import (
    F8,
    ONE,
    WORD,
    ZERO,
    Choice,
    For,
    Load,
    Memory,
    Operation,
    Store,
    Variable,
    compare,
    number,
    word,
)
from tensorswap.kernel.lanes import Loop, fitting
from tests.test_planner import check

pytestmark = pytest.mark.compiled

LENGTHS = st.one_of(st.integers(1, 36), st.sampled_from([63, 64, 65, 66, 97, 130]))
J, T, OUT, OTHER = Variable("j", WORD), Variable("t", WORD), Memory("out", F8), Memory("other", F8)


@st.composite
def neighbours(draw: st.DrawFn, read: str) -> str:
    """A sum of what stands at some places around; at those beyond an edge, of another value."""
    terms = [read.format(i="i", j="j")]
    for _ in range(draw(st.integers(1, 4))):
        tests, place = [], {"i": "i", "j": "j"}
        for name in draw(st.sampled_from(["i", "j", "ij"])):
            shift = draw(st.integers(-3, 3))
            place[name] = f"{name}{shift:+d}" if shift else name
            if shift < 0:
                tests.append(f"{name} >= {-shift}")
            elif shift > 0:
                tests.append(f"{name} < size({name}) - {shift}")
        value = read.format(**place)
        edge = draw(st.sampled_from(["0", "0.5", "W[j]", "c[i]", read.format(i="i", j="j")]))
        terms.append(
            f"{draw(st.sampled_from(['', '0.3 * ', 'a * ']))}({value} if {' and '.join(tests)} else {edge})"
            if tests
            else value
        )
    return " + ".join(terms)


@st.composite
def texts(draw: st.DrawFn) -> str:
    step = draw(neighbours("U[t,{i},{j}]"))
    back = draw(st.sampled_from(["", " - 0.2 * (U[t-1,i,j] if t > 0 else X[i,j])"]))
    return "\n".join([
        "U[0,i,j] = X[i,j]",
        "for t:",
        f"    U[t+1,i,j] = {draw(st.sampled_from(['0.2 *', '0.2 * tanh']))} ({step}){back}",
        f"Y[i,j] = {draw(neighbours('X[{i},{j}]'))}",
        "loss += (U[size(t),i,j] - W[j]) ** 2 + Y[i,j] * c[i] * a",
    ])  # fmt: skip


@settings(max_examples=10, deadline=None)  # each compiles
@given(texts(), LENGTHS, st.integers(1, 7), st.integers(1, 5), st.sampled_from([np.float32, np.float64]))
def test_as_the_interpreter(text: str, length: int, rows: int, steps: int, dtype: type) -> None:
    numbers = np.random.default_rng(length * 31 + rows)
    program = ts.program(text).grad(of="loss", wrt=["X"])
    arrays: dict[str, Any] = {
        "X": numbers.uniform(-1, 1, (rows, length)).astype(dtype),
        "W": numbers.uniform(-1, 1, length).astype(dtype),
        "c": numbers.uniform(-1, 1, rows).astype(dtype),
        "a": 0.7,
        "t": steps,
    }
    check(program, arrays)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("begin", [1, 3, 8, 15, 17, 31])
def test_rows_that_begin_within_a_line(begin: int, dtype: type) -> None:
    """Their first vector goes as far as a line or beyond it, and the last ones go back: each element is written, and
    none beside them."""
    numbers = np.random.default_rng(begin)
    program = ts.program(f"Y[i,j] = 0.5 * X[i,j-1] + X[i,j+1] if j >= {begin} and j < size(j) - {begin}")
    text = program.source(X=numbers.standard_normal((3, 130)).astype(dtype))
    assert f"range({begin}, " in text
    for length in (*range(2 * begin + 2, 2 * begin + 40, 9), 96, 126, 127, 128, 129, 130, 150, 191, 192, 193, 194, 257):
        check(program, {"X": numbers.standard_normal((3, length)).astype(dtype)})


def test_nothing_beyond_an_edge_is_read() -> None:
    """The tensor stands between pages that nobody may read."""
    libc = ctypes.CDLL(None, use_errno=True)
    page, (rows, length) = mmap.PAGESIZE, (4, 256)
    size = rows * length * 4
    assert size % page == 0, "it begins and ends with a page"
    memory = mmap.mmap(-1, size + 2 * page)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for at in (begin, begin + page + size):
        assert libc.mprotect(ctypes.c_void_p(at), ctypes.c_size_t(page), 0) == 0
    X = np.frombuffer(memory, np.float32, rows * length, page).reshape(rows, length)
    X[:] = np.random.default_rng(3).standard_normal(X.shape)
    around = " + ".join(
        f"(X[{i},{j}] * exp(X[{i},{j}]) if {test} else 0)"  # no instruction that skips lanes does all of it
        for i, j, test in [
            ("i-1", "j", "i > 0"), ("i+1", "j", "i < size(i) - 1"), ("i", "j-1", "j > 0"),
            ("i", "j+1", "j < size(j) - 1"), ("i-2", "j+1", "i > 1 and j < size(j) - 1"),
        ]
    )  # fmt: skip
    for text in (
        f"Y[i,j] = X[i,j] + {around}",
        f"Y[i,j] = X[i,j] + {around}\nS[i] += X[i,j] * ({around})\nreturn Y, S",
    ):
        check(ts.program(text), {"X": X})
    for at in (begin, begin + page + size):
        libc.mprotect(ctypes.c_void_p(at), ctypes.c_size_t(page), mmap.PROT_READ | mmap.PROT_WRITE)


def loop_of(value: Any, to: Any = J) -> tuple[For, Loop | None]:
    loop = For(J, ZERO, word(200), ONE, (Store(OUT, to, value),))
    return loop, fitting((loop,)).get(id(loop))


def slice_of(step: Any, size: int) -> Any:
    return J + Operation("%", (step, word(2)), WORD) * size


@pytest.mark.parametrize(("shift", "size", "fits"), [(1, 400, True), (1, 65, False), (2, 400, False), (0, 400, True)])
def test_slices_of_steps(shift: int, size: int, fits: bool) -> None:
    """Two places in slices of their own never meet, if slices are long enough; in the same one they may."""
    _, found = loop_of(Load(OUT, slice_of(T + word(shift), size) + word(2)), slice_of(T, size) + word(2 * (shift == 0)))
    assert (found is not None) == fits
    assert found is None or found.again == (shift == 1), "what reads its own target runs once"


def test_what_a_branch_allows_is_read_elsewhere_otherwise() -> None:
    lazily = Choice(compare(">", T, 0), Load(OTHER, J + T), number(0, F8), lazy=True)
    _, found = loop_of(lazily)
    assert found is not None
    assert found.sure == (OUT, J)
    assert any(found.allowed.values())
    varies = Choice(compare(">", J, 0), Load(OTHER, J + T), number(0, F8), lazy=True)
    assert loop_of(varies)[1] is None, "lanes of one vector may differ"
    by_value = Choice(compare(">", Load(OTHER, T), 0), Load(OTHER, J), number(0, F8), lazy=True)
    assert loop_of(by_value)[1] is None, "what is read may not be there"
