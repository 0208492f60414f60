"""Axes without elements: what no point evaluates can be no fault."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.errors import BoundsError, ShapeError

Arrays = dict[str, Any]

EMPTY: list[tuple[str, Arrays, tuple[int, ...]]] = [
    ("size(j) = size(X, 1)\nY[i,j] = X[i,(j-1)%size(j)]", {"X": np.ones((2, 0))}, (2, 0)),
    ("Y[i,j] = X[i,j] + j // size(j)", {"X": np.ones((2, 0))}, (2, 0)),
    ("Y[i] += X[i,j] * (i % size(j))", {"X": np.ones((2, 0))}, (2,)),
    ("for t:\n    Y[t,i] = X[t,i] * (i // size(i) + t % size(i))", {"X": np.ones((2, 0))}, (2, 0)),
]

OPS: list[tuple[str, Arrays]] = [
    ("roll", {"input": np.ones((2, 0)), "shifts": 3}),
    ("circular_pad1d", {"input": np.ones((2, 0)), "left": 0, "right": 0}),
    ("circular_pad1d", {"input": np.ones((2, 3)), "left": -1, "right": -2}),
    ("circular_pad2d", {"input": np.ones((0, 3)), "left": 1, "right": 0, "top": 0, "bottom": 0}),
    ("channel_shuffle", {"input": np.ones((2, 0, 3, 3)), "groups": 2}),
    ("group_norm", {"input": np.ones((2, 0, 3)), "num_groups": 2}),
    ("flip", {"input": np.ones((2, 0))}),
    ("constant_pad1d", {"input": np.ones((2, 0)), "left": 1, "right": 1}),
    ("max_pool2d", {"input": np.ones((0, 3, 4, 4)), "kernel_size": 2}),
    ("unfold", {"input": np.ones((0, 3, 4, 4)), "kernel_size": 2}),
]


@pytest.mark.parametrize(("text", "arrays", "shape"), EMPTY)
def test_nothing_is_divided_where_there_are_no_points(text: str, arrays: Arrays, shape: tuple[int, ...]) -> None:
    assert ts.program(text)(arrays).shape == shape


@pytest.mark.compiled
@pytest.mark.parametrize(("text", "arrays", "shape"), EMPTY)
def test_nothing_is_divided_where_compiled_loops_have_no_points(
    text: str, arrays: Arrays, shape: tuple[int, ...]
) -> None:
    assert ts.program(text)(arrays).shape == shape


@pytest.mark.parametrize(("op", "arguments"), OPS)
def test_ops_and_their_gradients_take_empty_axes(op: str, arguments: Arrays) -> None:
    program = ts.load(op)
    out = program(arguments)
    gradient = program.adjoint(wrt=["input"])({**arguments, "out.grad": np.ones(out.shape)})
    assert gradient.shape == arguments["input"].shape


def test_a_divisor_of_0_is_refused_where_there_is_a_point() -> None:
    with pytest.raises(BoundsError, match=r"`j % size\(i\)` divides by zero"):
        ts.program("Y[j] = X[j%size(i)] + Z[j]\nW[i] = V[i]\nreturn Y, W")(X=np.ones(2), Z=np.ones(2), V=np.ones(0))
    with pytest.raises(BoundsError, match="divides by zero"):
        ts.load("circular_pad1d")(input=np.ones(3), left=2, right=-3)


def test_a_ring_cannot_lose_more_than_it_has() -> None:
    with pytest.raises(ShapeError, match="index ring would have the negative size -1"):
        ts.load("circular_pad1d")(input=np.ones(3), left=-4, right=3)
