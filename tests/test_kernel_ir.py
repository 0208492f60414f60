"""The kernel IR: what verify refuses, constants that fold, and the two printers on the same kernels."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.kernel import ir, llvm
from tensorswap.kernel.verify import verify
from tensorswap.program import Program
from tensorswap.run.arguments import defaults
from tensorswap.run.launch import launch
from tensorswap.run.machine_code import target
from tests.daily import LONG, share
from tests.library.rows import FAMILIES, rows_of
from tests.library.table import options_of
from tests.test_library import ROWS, answers

A, B = ir.Memory("a", ir.F8), ir.Memory("b", ir.F4)
N, X = ir.Variable("n", ir.WORD), ir.Variable("x", ir.F8)
WORDS = (ir.Word(A, ir.Role.TENSOR, "A"), ir.Word(B, ir.Role.TENSOR, "B"), ir.Word(N, ir.Role.SIZE, 3))


K = ir.Variable("k", ir.WORD)


def loop(*body: ir.Statement) -> ir.For:
    return ir.For(K, ir.ZERO, N, ir.ONE, body)


GOOD: dict[str, ir.Body] = {
    "a copy": (loop(ir.Store(A, K, ir.cast(ir.Load(B, K), ir.F8))),),
    "a sum": (ir.Set(X, ir.number(0, ir.F8)), loop(ir.Set(X, X + ir.Load(A, K))), ir.Store(A, ir.ZERO, X)),
    "a turned copy": (ir.Turn(A, ir.ZERO, N, A, N, N, N, 8),),
    "a laid copy": (ir.Lay(A, ir.ZERO, N, A, N, N, N, 2, 8),),
    "a step": (ir.Step(0, "", (loop(ir.If(ir.compare("<", K, 2), (ir.Skip(),))),)),),
}
WRONG: dict[str, tuple[ir.Body, str]] = {
    "a variable that nothing sets": ((ir.Store(A, ir.ZERO, X),), "x of f8 is not known"),
    "a variable of a loop behind it": ((loop(ir.Set(X, ir.number(0, ir.F8))), ir.Store(A, ir.ZERO, X)), "x of f8"),
    "memory that is not there": ((ir.Store(ir.Memory("c", ir.F8), ir.ZERO, ir.number(0, ir.F8)),), "c of f8"),
    "a number of another type": ((ir.Store(A, ir.ZERO, ir.Load(B, ir.ZERO)),), "of f4 stands where f8"),
    "two types in a sum": ((ir.Set(X, ir.Operation("+", (ir.Load(A, ir.ZERO), ir.Load(B, ir.ZERO)), ir.F8)),), "f4"),
    "a turned copy of another type": ((ir.Turn(A, ir.ZERO, N, B, ir.ZERO, N, N, 8),), "f4 is turned into f8"),
    "a turned copy of nothing": ((ir.Turn(A, ir.ZERO, N, A, ir.ZERO, N, N, 0),), "no lanes"),
    "a laid copy of another type": ((ir.Lay(A, ir.ZERO, N, B, N, N, N, 2, 8),), "f4 is laid as f8"),
    "a laid copy of nothing": ((ir.Lay(A, ir.ZERO, N, A, N, N, N, 0, 8),), "no panels"),
    "a skip in no loop": ((ir.Skip(),), "no loop"),
    "an offset that is no word": ((ir.Store(A, ir.number(0, ir.F8), ir.number(0, ir.F8)),), "where i8 is wanted"),
    "a loop that never ends": ((ir.For(K, ir.ZERO, N, ir.ZERO, ()),), "never ends"),
    "an unknown function": ((ir.Set(X, ir.Call("cosine", (ir.Load(A, ir.ZERO),), ir.F8)),), "no function cosine"),
    "a truth as a number": ((ir.Set(X, ir.compare("<", N, 1)),), "where f8 is wanted"),
    "a fraction of whole numbers": ((ir.Set(N, ir.Operation("/", (N, N), ir.WORD)),), "no quotient"),
    "a number beyond its type": ((ir.Set(N, ir.Number(2**63, ir.WORD)),), "is no i8"),
}


@pytest.mark.parametrize("body", GOOD.values(), ids=GOOD)
def test_what_is_right_is_accepted(body: ir.Body) -> None:
    verify(ir.Kernel(WORDS, body))


@pytest.mark.parametrize(("body", "why"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_refused(body: ir.Body, why: str) -> None:
    with pytest.raises(AssertionError, match=why):
        verify(ir.Kernel(WORDS, body))


@pytest.mark.parametrize(
    ("made", "value"),
    [
        (lambda: ir.word(3) + 4, 7),
        (lambda: ir.word(-7) // 2, -4),
        (lambda: N * 0, 0),
        (lambda: ir.word(2**62) * 4, 0),
        (lambda: ir.least(3, 5, 4), 3),
        (lambda: -ir.word(-(2**63)), -(2**63)),
        (lambda: ir.cast(ir.word(-1), ir.U8), 2**64 - 1),
    ],
)
def test_constants_fold_as_machines_count(made: Callable[[], ir.Value], value: int) -> None:
    assert ir.constant(made()) == value


def test_what_changes_nothing_is_left_out() -> None:
    assert N + 0 is N
    assert N * 1 is N
    assert ir.joined("and", []) is ir.TRUE
    assert ir.least(N) is N


# -- LLVM


def llvm_text(body: ir.Body) -> str:
    """Of a kernel, all its modules."""
    return "\n".join(llvm.texts(*llvm.entry(ir.Kernel(WORDS, body)), launch, target()))


def test_a_variable_that_is_set_once_needs_no_memory() -> None:
    once = ir.Set(X, ir.number(2, ir.F8))
    assert "alloca" not in llvm_text((once, loop(ir.Store(A, K, X))))
    assert "alloca double" in llvm_text((once, loop(ir.Set(X, X + ir.Load(A, K))), ir.Store(A, ir.ZERO, X)))


def test_steps_that_do_the_same_are_one_function() -> None:
    other = ir.Memory("other", ir.F8)
    twin = ir.Step(1, "under other names", (ir.For(K, ir.ZERO, N, ir.ONE, (ir.Store(other, K, ir.number(1, ir.F8)),)),))
    step = ir.Step(0, "", (loop(ir.Store(A, K, ir.number(1, ir.F8))),))
    different = ir.Step(2, "", (loop(ir.Store(A, K, ir.number(2, ir.F8))),))
    body = (step, ir.Choose(other, ir.TRUE, A, A), twin, different)
    text = llvm_text(body)
    assert text.count("call void") == 3
    assert re.findall(r'^define .*@"kernel_1_step(\d)"', text, re.MULTILINE) == ["0", "2"]


# -- the Python text of kernels runs under Numba alone

NUMBERS = np.random.default_rng(3)
SOFTMAX = "m[b] max= X[b,i]\nE[b,i] = exp(X[b,i] - m[b])\nz[b] += E[b,i]\nY[b,i] = E[b,i] / z[b]"
PROGRAMS: dict[str, tuple[str, dict[str, Any]]] = {
    "a product": ("Y[i,j] += A[i,k] * B[k,j]", {"A": (37, 21), "B": (21, 30)}),
    "softmax": (SOFTMAX, {"X": (19, 33)}),
    "functions": ("Y[i] = sin(X[i]) + erf(X[i]) * gelu(X[i]) - tan(X[i]) // 0.5", {"X": (50,)}),
    "guards": ("Y[i,j] += A[i,k] * B[k,j] if k <= i and j < 9", {"A": (20, 20), "B": (20, 20)}),
    "winners": ("best[b] argmax= X[b,i]\ntop[b] max= X[b,i]", {"X": (7, 23)}),
    "a scatter": ("size(H, 0) = 5\nH[g[n]] += w[n]", {"g": NUMBERS.integers(0, 5, 40), "w": (40,)}),
    "random numbers": ("Y[i] = normal(7, i) + uniform(3, i)", {"i": 9}),
    "a recurrence": ("for t:\n    H[t,i] = tanh(X[t,i] + (H[t-1,i] if t > 0 else 0))", {"X": (6, 5)}),
}


def arrays_of(shapes: dict[str, Any], kind: Any = np.float64) -> dict[str, Any]:
    return {k: NUMBERS.standard_normal(v).astype(kind) if isinstance(v, tuple) else v for k, v in shapes.items()}


def run_by_numba(program: Program, arrays: dict[str, Any], parallel: bool = False) -> list[Any]:
    """The outputs by the file that `source` prints, and by nothing of ours. Numba takes long to make loops parallel."""
    text = program.source(arrays)
    assert "tensorswap" not in text
    space: dict[str, Any] = {}
    exec(text if parallel else text.replace("njit(parallel=True, ", "njit("), space)
    given = {**defaults(program.loops), **arrays}
    found: list[Any] = space["run"]([given[name] for name in program._for_call(arrays).inputs])
    return found


def check_source(program: Program, arrays: dict[str, Any], parallel: bool = False) -> None:
    wanted = program(arrays)
    wanted = wanted if isinstance(wanted, dict) else {program.outputs[0]: wanted}
    for found, (name, array) in zip(run_by_numba(program, arrays, parallel), wanted.items(), strict=True):
        assert found.dtype == array.dtype, name
        rtol = 1e-4 if array.dtype == np.float32 else 1e-9
        np.testing.assert_allclose(found, array, rtol=rtol, atol=rtol, err_msg=name)


@pytest.mark.compiled
@pytest.mark.parametrize("name", share(PROGRAMS, 4))
def test_the_source_of_a_call_runs_under_numba_alone(name: str) -> None:
    text, shapes = PROGRAMS[name]
    check_source(ts.program(text), arrays_of(shapes))


@pytest.mark.compiled
def test_source_of_a_program_that_looks_at_values() -> None:
    """The checks are in it: they change neither the order of the inputs nor the number of results, and they refuse."""
    program = ts.program("Y[i] = X[i] // d[i]")
    arrays = {"X": np.array([7, -5]), "d": np.array([2, 3])}
    check_source(program, arrays)
    with pytest.raises(IndexError, match="a divisor"):
        run_by_numba(program, {**arrays, "d": np.array([2, 0])})


LAYER = "H[b,h] += X[b,i] * W[h,i]\nloss += tanh(H[b,h]) ** 2"
PARALLEL = {  # Numba takes long for it
    "the gradient of a layer": (ts.program(LAYER).grad(wrt=["W"]), {"X": (4000, 6), "W": (3, 6)}),
    "rows": (ts.program("Y[i] += tanh(X[i,j])"), {"X": (4000, 60)}),
    "a sum": (ts.program("s += X[i,j] ** 2"), {"X": (4000, 60)}),
}


@pytest.mark.compiled
@pytest.mark.parametrize("name", share(PARALLEL, 3))
def test_the_source_of_a_call_runs_in_parallel(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensorswap.run.call.threads", lambda: 2)
    program, shapes = PARALLEL[name]
    check_source(program, arrays_of(shapes, np.float32), parallel=True)


OPS = ["linear", "conv2d", "layer_norm", "cross_entropy"]
MORE = sorted({row.name for family in FAMILIES for row in rows_of(family) if row.smooth})[::9][:40]


@pytest.mark.compiled
@pytest.mark.parametrize("op", MORE if LONG else share(OPS, 4))
def test_the_source_of_an_op_runs_under_numba_alone(op: str) -> None:
    family = next(family for family in FAMILIES if any(row.name == op for row in rows_of(family)))
    case = answers(family)[op, 0]
    arrays = {**case.input, **options_of(ROWS[op].cases[0])}
    check_source(ts.load(op), arrays)
