"""Random inputs that a program takes: shapes that agree, and whole numbers in bounds."""

from __future__ import annotations

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.language import ir
from tensorswap.trust.inputs import random_inputs

from .running_command import MATMUL

pytestmark = pytest.mark.compiled


@pytest.mark.parametrize(
    ("text", "sizes", "shapes"),
    [
        (MATMUL, {"i": 2}, {"A": (2, 64), "B": (64, 64)}),
        ("Y[i] += X[i+u] * W[u]", {"i": 5, "u": 3}, {"X": (7,), "W": (3,)}),
        ("Y[i] = X[3*i] + X[i+40]", {"i": 10}, {"X": (50,)}),
        ("Y[i] = X[size(i)-1-i]", {"i": 10}, {"X": (10,)}),
        ("Y[i] = X[i//2] + Z[i%3]", {"i": 10}, {"X": (5,), "Z": (3,)}),
        ("Y[i] = X[3,i]", {"i": 2}, {"X": (4, 2)}),
        ("size(i) = size(X, 0)\nY[i] += X[i+p-1] * W[p] if inside", {"p": 3}, {"X": (64,), "W": (3,)}),
        ("size(i) = size(X, 0) // stride\nY[i] = X[stride*i]", {"stride": 3, "i": 7}, {"X": (21,)}),
        ("size(j) = 2 * size(i)\nY[i,j] = X[j] * Z[i]", {"i": 3}, {"X": (6,), "Z": (3,)}),
        ("size(j) = 3 * size(Z, 0)\nZ[2*i] = X[i]\nY[j] = W[j]", {"i": 3}, {"X": (3,), "W": (15,)}),
        ("Z[i,j] = A[i,j] + A[j,i]", {"j": 3}, {"A": (3, 3)}),
        ("Z[i] = X[i]\nY[j] = Z[j] * W[j]", {"j": 3}, {"X": (3,), "W": (3,)}),
        ("Y[b,d] = E[tok[b],d]", {"b": 2, "d": 3}, {"E": (64, 3), "tok": (2,)}),
        ("Y[...,o] += X[...,i] * W[o,i]", {"...": 2, "o": 3, "i": 4}, {"X": (2, 4), "W": (3, 4)}),
        ("for step:\n    x[i] = 0.5 * x[i] + b[i]", {"step": 3, "i": 2}, {"x": (2,), "b": (2,)}),
        ("Y[i] = a * X[i]", {"i": 2}, {"X": (2,)}),
    ],
)  # fmt: skip
def test_shapes(text: str, sizes: dict[str, int], shapes: dict[str, tuple[int, ...]]) -> None:
    program = ts.program(text)
    made = random_inputs(program.loops, sizes, {}, np.dtype(np.float32)).arguments
    assert {name: value.shape for name, value in made.items() if isinstance(value, np.ndarray)} == shapes
    assert {value.dtype for name, value in made.items() if name in shapes and name != "tok"} == {np.dtype(np.float32)}
    program.run_reference(made)  # in bounds, and nothing is missing


@pytest.mark.parametrize(
    ("text", "shapes", "name", "low", "high"),
    [
        ("Y[b] = E[tok[b]]", {"E": (5,), "tok": (999,)}, "tok", 0, 4),
        ("Y[b] = E[tok[b]-1] + E[tok[b]]", {"E": (5,), "tok": (999,)}, "tok", 1, 4),
        ("Y[b] = E[2*tok[b]+1]", {"E": (6,), "tok": (999,)}, "tok", 0, 2),
        ("Y[b,i] = E[tok[b]+i] * W[i]", {"E": (6,), "W": (4,), "tok": (999,)}, "tok", 0, 2),
        ("size(H, 0) = 3\nH[bin[n]] += w[n]", {"bin": (999,)}, "bin", 0, 2),
    ],
)  # fmt: skip
def test_whole_numbers_are_in_bounds(
    text: str, shapes: dict[str, tuple[int, ...]], name: str, low: int, high: int
) -> None:
    program = ts.program(text)
    made = random_inputs(program.loops, {}, shapes, np.dtype(np.float64)).arguments
    assert (made[name].dtype, made[name].min(), made[name].max()) == (np.dtype(np.int64), low, high)
    program.run_reference(made)


def test_an_index_stops_where_it_is_told_to() -> None:
    program = ts.program("Y[i] += X[i+u] * W[u]")
    made = random_inputs(program.loops, {"i": 5, "u": 3}, {"X": (20,)}, np.dtype(np.float64)).arguments
    assert program.run_reference(made).shape == (5,)  # where 18 would fit


def test_what_is_scattered_by_assignment_does_not_meet() -> None:
    program = ts.program("size(Z, 0) = 50\nZ[p[i]] = X[i]")
    made = random_inputs(program.loops, {"i": 40}, {}, np.dtype(np.float64)).arguments
    assert len(np.unique(made["p"])) == 40
    program.run_reference(made)


@pytest.mark.parametrize("name", ["conv2d", "attention", "embedding_bag", "lstm", "max_pool2d", "ctc_loss"])
def test_ops_take_what_is_made_for_them(name: str) -> None:
    loops = ts.load(name).loops
    declared = {d.subject.index for d in loops.sizes if isinstance(d.subject, ir.Size)}
    sizes = {index: 5 for index in loops.indices if index not in declared}
    sizes |= {static: 2 for static in loops.static_names if static not in loops.static_defaults}
    ts.load(name).run_reference(random_inputs(ts.load(name).loops, sizes, {}, np.dtype(np.float64)).arguments)
