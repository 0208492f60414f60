"""Sizes: inference, declarations, agreement, and the in-bounds proof."""

from __future__ import annotations

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.errors import BoundsError, ShapeError
from tensorswap.language.bounds import unproven
from tensorswap.language.ir import Number
from tensorswap.language.sizes import infer
from tensorswap.run.arguments import bind


def shape(text: str, **shapes: tuple[int, ...]) -> tuple[int, ...]:
    return ts.program(text)({name: np.ones(s) for name, s in shapes.items()}).shape


@pytest.mark.parametrize(
    ("text", "shapes", "expected"),
    [
        ("Y[i] = X[i+2]", {"X": (7,)}, (5,)),
        ("Y[i] = X[2*i+1]", {"X": (7,)}, (3,)),
        ("Y[i] = X[2*i+1]", {"X": (8,)}, (4,)),
        ("Y[i] += X[2*i+p] * W[p]", {"X": (9,), "W": (3,)}, (4,)),
        ("Y[i] += X[i+2*p] * W[p]", {"X": (9,), "W": (3,)}, (5,)),
        ("Y[i] = X[size(i)-1-i]", {"X": (6,)}, (6,)),
        ("Y[i] = X[i+1] + Z[i+3]", {"X": (9,), "Z": (6,)}, (3,)),
        ("Y[i] += X[i+p]*W[p]", {"X": (2,), "W": (5,)}, (0,)),
        ("Y[i+1] = X[i]", {"X": (4,)}, (5,)),
        ("Y[2*i] = X[i]", {"X": (4,)}, (7,)),
        ("Y[i//2] += X[i]", {"X": (5,)}, (3,)),
        ("Y[i%3] += X[i]", {"X": (5,)}, (3,)),
        ("Y[i+j] += X[i] * Z[j]", {"X": (5,), "Z": (3,)}, (7,)),
        ("Y[max(i-2,0)] += X[i]", {"X": (5,)}, (3,)),
        ("H[i] = X[i]\nY[j] = H[j+1]", {"X": (5,)}, (4,)),
        ("H[i] = X[i]\nY[j,i] = H[j] + X[i]", {"X": (5,)}, (5, 5)),
        ("Y[i] = X[3-i]", {"X": (9,)}, (4,)),
        ("size(i) = size(X, 0) // 2\nY[i] = X[2*i+1]", {"X": (7,)}, (3,)),
        ("size(Y, 0) = 9\nY[i+1] = X[i]", {"X": (4,)}, (9,)),
        ("size(Y, -1) = 9\nY[j,i+1] = X[j,i]", {"X": (2, 4)}, (2, 9)),
        ("size(Y, -1) = 9\nY[...,i] = X[...,i]", {"X": (2, 3, 4)}, (2, 3, 9)),
        ("size(Y, -2) = 9\nY[...,i+1,j] = X[...,i,j]", {"X": (2, 3, 4)}, (2, 9, 4)),
    ],
)
def test_inference(text: str, shapes: dict[str, tuple[int, ...]], expected: tuple[int, ...]) -> None:
    assert shape(text, **shapes) == expected


def test_the_largest_range_is_the_largest() -> None:
    """One more in the inferred size would leave the tensor."""
    text = "Y[i] += X[3*i+2*p-1] * W[p]"
    for n in range(5, 20):
        X, W = np.ones(n), np.ones(2)
        size = ts.program("Y[i] += X[3*i+2*p+1] * W[p]")(X=X, W=W).shape[0]
        assert 3 * (size - 1) + 2 + 1 <= n - 1 < 3 * size + 2 + 1
    with pytest.raises(BoundsError, match=r"position -1"):
        ts.program(text)(X=np.ones(9), W=np.ones(2))


def test_sums_of_two_unknown_indices_must_be_declared() -> None:
    with pytest.raises(ShapeError, match=r"size of index i cannot be found.*X"):
        ts.program("Y[i,j] = X[i+j]")(X=np.ones(5))
    assert shape("size(i) = 2\nY[i,j] = X[i+j]", X=(5,)) == (2, 4)


def test_disagreement_names_index_tensors_axes_and_sizes() -> None:
    with pytest.raises(ShapeError) as caught:
        ts.program("Y[i,j] += A[i,k] * B[k,j]")(A=np.ones((2, 3)), B=np.ones((4, 5)))
    message = str(caught.value)
    for part in ("index k", "3 on A (axis 1)", "4 on B (axis 0)", "^"):
        assert part in message


def test_bare_index_on_a_computed_tensor_covers_it() -> None:
    text = "H[i] = X[i]\nY += H[j] * W[j]"
    with pytest.raises(ShapeError, match="index j"):
        ts.program(text)(X=np.ones(5), W=np.ones(3))
    assert ts.program("H[i] = X[i]\nY += H[j+0] * W[j]")(X=np.ones(5), W=np.ones(3)) == 3


def proven(text: str, **arrays: np.ndarray) -> bool:
    bound = bind(ts.program(text).loops, arrays)
    return not unproven(bound.loops, bound.sizes, {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Y[i] = X[i]", True),
        ("size(i) = 4\nY[i] = X[i+1]", True),
        ("size(i) = 5\nY[i] = X[i+1]", False),
        ("size(i) = 5\nY[i] += X[i+1] if i < 4", True),
        ("size(i) = 6\nY[i] = X[i-1] if i > 0", True),
        ("size(i) = 6\nY[i] = X[i-1] if i >= 0", False),
        ("size(i) = 5\nsize(j) = 5\nY[i,j] = X[i-j] if j <= i", True),
        ("size(i) = 5\nsize(j) = 5\nY[i,j] = X[i-j]", False),
        ("size(i) = 5\nsize(j) = 5\nY[i,j] = X[j-i-1] if j > i", True),
        ("size(i) = 5\nsize(j) = 5\nY[i,j] = X[i+j] if i + j < 5", True),
        ("size(i) = 9\nY[i] = X[i//2]", True),
        ("size(i) = 99\nY[i] = X[i%5]", True),
        ("size(i) = 99\nY[i] = X[min(i,4)]", True),
        ("size(i) = 5\nY[i] = X[abs(i-4)]", True),
        ("size(i) = 7\nY[i] = X[i-1] if i > 0 and i < 6", True),
        ("size(i) = 6\nY[i] = (X[i-1] if i > 0 else 0)", True),
        ("size(i) = 6\nY[i] = (0 if i == 0 else X[i-1])", False),
    ],
)
def test_interval_proof(text: str, expected: bool) -> None:
    assert proven(text, X=np.ones(5)) is expected


def test_what_intervals_cannot_prove_is_enumerated() -> None:
    program = ts.program("size(i) = 6\nY[i] = (0 if i == 0 else X[i-1])")
    np.testing.assert_array_equal(program(X=np.ones(5)), [0, 1, 1, 1, 1, 1])


def test_out_of_bounds_names_the_point() -> None:
    with pytest.raises(BoundsError) as caught:
        ts.program("size(i) = 5\nY[i,j] = X[i+1,j]")(X=np.ones((5, 2)))
    assert "X[i+1,j] at i=4, j=0 asks for position 5 of axis 0, which has size 5" in str(caught.value)


def test_gathered_indices_are_checked_before_anything_runs() -> None:
    program = ts.program("Y[n] = log(X[n])\nZ[n] = E[tok[n]] * Y[n]")
    with pytest.raises(BoundsError, match=r"E\[tok\[n\]\] at n=1 asks for position 7"):
        program(X=np.ones(3), E=np.ones(5), tok=np.array([0, 7, 1]))


def test_a_guard_keeps_bad_indices_out() -> None:
    program = ts.program("Y[n] = E[tok[n]] if tok[n] >= 0")
    np.testing.assert_array_equal(program(E=np.arange(3.0), tok=np.array([2, -1, 1])), [2, 0, 1])


def test_formulas_are_symbolic() -> None:
    rules = infer(ts.program("Y[i] += X[2*i+p] * W[p]").loops)
    assert ts.program("Y[i] += X[2*i+p] * W[p]\nN = size(i)").adjoint(wrt=["W"]).outputs == ("W.grad",)
    assert set(rules.index) == {"i", "p"}
    assert not rules.missing


def test_absurd_sizes_are_refused_before_allocation() -> None:
    with pytest.raises(ts.SwapError, match="memory"):
        ts.program("Y[i,j,k,l] = X[i]")(X=np.ones(65536), j=65536, k=65536, l=65536)


def test_a_difference_of_two_gathered_positions_is_as_wide_as_both() -> None:
    a = np.array([0, 4])
    bound = bind(ts.program("Y[n] = X[a[n]-b[n]]").loops, {"X": np.ones(5), "a": a, "b": a[::-1]})
    between = (Number(0), Number(4))
    assert unproven(bound.loops, bound.sizes, {"a": between, "b": between})
    assert not unproven(bound.loops, bound.sizes, {"a": between, "b": (Number(0), Number(0))})
