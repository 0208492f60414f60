"""Where plans and kernels are easily wrong: updates in between, guards, edges of tiles, ties, and threads that meet."""

from __future__ import annotations

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.run.memory import ALIGN, Buffer, place
from tests.test_planner import check

pytestmark = pytest.mark.compiled

CHANGED = {
    "a product": "P[i] += A[m]*W[m]*D[i]\nW[m] = 2 * W[m]\nQ[i] += A[m]*W[m]*D[i]*V[i]\nreturn P, Q, W",
    "a copy": "B[m] = W[m]\nW[m] = 2 * W[m]\nY[m] = B[m] + W[m]\nreturn Y, W",
    "a function": "B[m] = exp(W[m]) + 1\nW[m] = 0.5 * W[m]\nY[m] = exp(W[m]) * 2\nreturn B, Y, W",
}


@pytest.mark.parametrize("text", CHANGED.values(), ids=CHANGED)
def test_what_an_update_changes_is_computed_again(text: str) -> None:
    numbers = np.random.default_rng(1)
    program, shapes = ts.program(text), {"A": 32, "W": 32, "D": 5, "V": 5}
    check(program, {name: numbers.uniform(0.5, 1.5, shapes[name]) for name in program.inputs})


EDGES = {
    "a lifted sum under a guard of its target": "Y[n,i] += X[i,j] if j <= n",
    "a strict guard": "Y[i] += X[i,j] if j < i\nZ[i] += X[i,j] if i > j",
    "a scale beside two operands": "Y[i,j] += 3 * exp(X[i,k]) * G[k,j] * s",
    "a contraction that adds to another": "Y[i,j] += X[i,k] * G[k,j]\nY[i,j] += G[i,k] * X[k,j]",
    "the first value of a difference": "Y[i,j] -= X[i,j] * 2\nZ[i] -= X[i,0]\nZ[i] += X[i,1]",
    "elements that a guard leaves out": "Y[i] max= X[i,j] if i > 2\nZ[i] *= X[i,j] if i > 2",
    "ties": "B[i,j] = floor(X[i,j])\nY[i] argmax= B[i,j]\nZ[i] argmin= B[i,j]\nV[j] argmax= B[i,j]\nreturn Y, Z, V",
    "a statement that must not overtake": "A[i] = X[i,0] * 2\nB[k] += G[k,l] * G[k,l]\nC[i] = A[i] * B[0]",
    "two steps back beside the new one": (
        "for t:\n    F[t,i] = X[t,i] + (F[t-1,i] if t > 0 else 0) / 2 + (F[t-2,i-1] if t > 1 and i > 0 else 0)\n"
        "Y[i] = F[size(t)-1,i]"
    ),
    "a sum that two kernels add to": "r += V[k]\nr += X[i,j]",
    "read before its statement": "for t:\n    Y[t,j] = A[t,j] + X[t,j]\n    A[t,j] += G[t,j]\nreturn Y",
}  # fmt: skip


@pytest.mark.parametrize("text", EDGES.values(), ids=EDGES)
def test_programs_at_their_edges(text: str) -> None:
    numbers = np.random.default_rng(2)
    program = ts.program(text)
    shapes = {"X": (21, 21), "G": (21, 21), "V": (30,), "s": ()}
    arrays = {name: numbers.standard_normal(shapes[name]) for name in program.inputs}
    if "n" in program.loops.indices:
        arrays["n"] = 7
    check(program, arrays)


def test_inside_that_only_a_point_can_tell() -> None:
    around = np.ones(80)
    around[40:] = 1e6
    program = ts.program("Y[i] += (X[i+1] if Z[i] > 0 else X[i]) if inside")
    check(program, {"X": around[:40], "Z": np.ones(40)})


MEETING = {
    "a sum over all": "s += X[i,j]\nY[i] = X[i,0] * s",
    "another thread's rows": "A[i] += X[i,j]\nY[i] = A[size(i)-1-i] * X[i,0]\nreturn Y",
}


@pytest.mark.parametrize("text", MEETING.values(), ids=MEETING)
def test_statements_that_must_wait_for_all_threads(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensorswap.run.tuning.PARALLEL", 0)
    monkeypatch.setattr("tensorswap.run.call.threads", lambda: 2)
    numbers = np.random.default_rng(3)
    for _ in range(10):  # memory that is used again holds the values of the last round, which are others
        check(ts.program(text), {"X": numbers.standard_normal((64, 64))})


def test_buffers_that_live_together_lie_apart() -> None:
    numbers = np.random.default_rng(4)
    for _ in range(100):
        firsts = numbers.integers(0, 6, 8)
        sizes, lives = numbers.integers(1, 400, 8), numbers.integers(0, 3, 8)
        buffers = [Buffer(str(k), int(sizes[k]), int(firsts[k]), int(firsts[k] + lives[k])) for k in range(8)]
        starts, total = place(buffers)
        for a in buffers:
            assert starts[a.name] % ALIGN == 0
            assert starts[a.name] + a.size <= total
            for b in buffers:
                if a is not b and a.first <= b.last and b.first <= a.last:
                    low, high = sorted((a, b), key=lambda buffer: starts[buffer.name])
                    assert starts[low.name] + low.size <= starts[high.name]


HELD = {  # what holds the value comes before what needs it, behind it, turned, under a guard, with more indices
    "before": ("H[i,j] = exp(X[i,j])\nY[i,j] = 2 * exp(X[i,j])\nreturn Y, H", 1),
    "behind": ("Y[i,j] = 2 * exp(X[i,j])\nH[i,j] = exp(X[i,j])\nreturn Y, H", 1),
    "turned": ("Y[i,j] = 2 * exp(X[i,j])\nH[j,i] = exp(X[i,j])\nreturn Y, H", 1),
    "guarded": ("Y[i] = 2 * exp(X[i,0]) if i > 1\nH[i] = exp(X[i,0]) if i > 1\nreturn Y, H", 2),
    "wider": ("Y[i] = 2 * exp(v[i])\nH[i,j] = exp(v[i])\nG[j] = X[0,j]\nreturn Y, H, G", 2),
    "written twice": ("Y[i] = 2 * exp(v[i])\nH[i] = exp(v[i])\nH[i+5] = v[i]\nreturn Y, H", 2),
    "changed": ("Y[i] = 2 * exp(v[i])\nv[i] = 2 * v[i]\nH[i] = exp(v[i])\nreturn Y, H, v", 2),
    "updated": ("Y[i] = w[i] * exp(v[i])\nw[i] = exp(v[i])\nreturn Y, w", 2),
    "two": ("Y[i,j] = 2 * exp(X[i,j])\nH[i,j] = exp(X[i,j])\nG[i,j] = exp(X[i,j])\nreturn Y, H, G", 1),
}


@pytest.mark.parametrize(("text", "times"), HELD.values(), ids=HELD)
def test_a_tensor_that_is_a_value_holds_it_for_others(text: str, times: int) -> None:
    program, numbers = ts.program(text), np.random.default_rng(4)
    shapes = {"X": (5, 7), "v": (5,), "w": (5,)}
    arguments = {name: numbers.normal(size=shapes[name]) for name in program.inputs}
    check(program, arguments)
    assert str(program.plan(arguments)).count("exp(") == times


@pytest.mark.parametrize("columns", [9, 13, 17, 28, 31, 33, 40, 47, 48, 49, 63, 97, 530, 1031])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_vectors_of_a_tile_overlap_where_the_columns_are_no_multiple(columns: int, dtype: type) -> None:
    """A tile stores first and another adds: what two vectors share is added once. Through panels as well."""
    numbers = np.random.default_rng(columns)
    A, B, C = (numbers.integers(-4, 5, shape).astype(dtype) for shape in ((11, 20), (20, columns), (columns, 20)))
    both = ts.program("Y[i,j] += A[i,k] * B[k,j]\nY[i,j] += A[i,k] * C[j,k]")
    assert np.array_equal(both(A=A, B=B, C=C), A @ B + A @ C.T)
