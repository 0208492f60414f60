"""Unpooling where several values have one place: the last one stands there, and the derivative is that of its value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.errors import BoundsError

Arrays = dict[str, Any]

VALUES = np.array([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
PLACES = np.array([[0, 5, 5, 0], [2, 2, 2, 7]])


@pytest.mark.compiled
def test_unpooling_keeps_the_last_value_of_each_place() -> None:
    unpool = ts.load("max_unpool1d")
    arguments: Arrays = {"input": VALUES, "indices": PLACES, "kernel_size": 2}
    expected = [[4.0, 0, 0, 0, 0, 3.0, 0, 0], [0, 0, 7.0, 0, 0, 0, 0, 8.0]]
    for run in (unpool, unpool.run_reference):
        np.testing.assert_array_equal(run(arguments), expected)
    assert "interpreted" not in str(unpool.plan(arguments))
    upstream = np.arange(16.0).reshape(2, 8)
    adjoint = unpool.adjoint(wrt=["input"])
    np.testing.assert_array_equal(
        adjoint({**arguments, "out.grad": upstream}), [[0.0, 0.0, 5.0, 0.0], [0.0, 0.0, 10.0, 15.0]]
    )
    ts.gradcheck(unpool, arguments, wrt=["input"])


def test_pooled_and_unpooled_values_stand_where_they_stood() -> None:
    """Overlapping windows share their maximum: it comes back once, and so does its gradient."""
    text = """
    pooled, places = max_pool2d_with_indices(X, kernel_size=3, stride=1)
    Y = max_unpool2d(pooled, places, kernel_size=3, stride=1)
    """
    image = np.random.default_rng(3).permutation(30).reshape(1, 5, 6) + 1.0
    back = ts.program(text)(X=image)
    kept = back != 0
    assert 1 < kept.sum() < 12
    np.testing.assert_array_equal(back[kept], image[kept])
    upstream = np.random.default_rng(4).standard_normal(back.shape)
    gradient = ts.program(text).adjoint(wrt=["X"])({"X": image, "Y.grad": upstream})
    np.testing.assert_array_equal(gradient, np.where(kept, upstream, 0))


@pytest.mark.parametrize("place", [-1, 8, 2**31, 2**63 - 1])
@pytest.mark.parametrize("op", ["max_unpool1d", "max_unpool2d", "max_unpool3d"])
@pytest.mark.compiled
def test_places_outside_are_refused(op: str, place: int) -> None:
    axes = int(op[-2])
    indices = np.zeros((1,) * axes + (2,), np.int64)
    indices[..., 1] = place
    values = np.ones((1,) * axes + (2,))
    with pytest.raises(BoundsError, match=f"position {place} of axis 1"):
        ts.load(op)({"input": values, "indices": indices, "kernel_size": 1})
