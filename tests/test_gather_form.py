"""The adjoint of an affine read gathers: X.grad is written with bare, distinct indices, so that it runs without races.

Every program here is linear in X, so its Jacobian is built column by column from the forward program alone; the
adjoint must be the transpose of that, exactly, for the weights and seeds are small whole numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tensorswap as ts
from tensorswap.language import ir

Array = NDArray[Any]
Shapes = dict[str, tuple[int, ...] | int]  # tensors by shape; static integers and sizes by number


@dataclass(frozen=True)
class Read:
    """A program that is linear in X, and the sizes to try it with."""

    name: str
    text: str
    sizes: tuple[Shapes, ...]


def vectors(*extents: int, **others: tuple[int, ...] | int) -> tuple[Shapes, ...]:
    """X of several lengths, the rest as given."""
    return tuple({"X": (extent,), **others} for extent in extents)


READS = [
    # shifts; X of length 1 leaves Y empty where nothing says `inside`
    Read("shift", "Y[i] = X[i+1]", vectors(1, 2, 5)),
    Read("shift_two_reads", "Y[i] = X[i+1] - X[i] if inside", vectors(1, 2, 6)),
    Read("shift_three_reads", "Y[i] = X[i+1] - 2*X[i+2] + X[i+3]", vectors(3, 4, 7)),
    Read("shift_back_inside", "Y[i] += X[i-2] if inside", vectors(1, 4, i=5) + vectors(4, i=1)),
    Read("shift_conditional", "Y[i] = X[i] + (X[i-1] if i > 0 else 0)", vectors(1, 2, 5)),
    Read("shift_conditional_both", "Y[i] = X[i+2] if i % 2 == 0 else X[i+1]", vectors(3, 5, i=1) + vectors(6, 7, i=4)),
    Read("shift_by_static", "offset: int\nY[i] = X[i+offset]", vectors(3, 5, offset=0) + vectors(3, 5, offset=2)),
    Read("shift_by_size", "Y[i] += X[i+size(W, 0)-1] * W[p]", vectors(3, 5, W=(1,)) + vectors(3, 5, W=(3,))),
    # turns
    Read("turn", "Y[i] = X[(i+1)%size(i)]", vectors(1, 2, 5, i=1) + vectors(2, 5, i=2) + vectors(5, 7, i=5)),
    Read("turn_back", "Y[i] += X[(2-i)%size(i)] * W[i]", vectors(1, 2, W=(1,)) + vectors(5, 6, W=(5,))),
    Read("turn_by_an_index", "Y[i] += X[(i+p-1)%size(i)] * W[p]", vectors(4, 6, W=(3,), i=4) + vectors(9, W=(5,), i=2)),
    Read("turn_by_static", "n: int\nY[i] = X[(i+n)%size(i)]", vectors(4, i=4, n=-7) + vectors(4, i=3, n=9)),
    Read("turn_guarded", "Y[i] = X[(i-1)%size(i)] if i > 2", vectors(6, i=6) + vectors(4, i=1)),
    Read("turn_in_two_reads", "Y[i] = X[(i-1)%size(i)] - 2*X[i] + X[(i+1)%size(i)]", vectors(1, 2, 6)),
    Read("turn_of_two_axes", "Y[i,j] = X[(i+1)%size(i),(j-2)%size(j)]", ({"X": (3, 4), "i": 3, "j": 4},)),
    # a longer axis than the turn, which may have no place at all: nothing is divided by its size
    Read("turn_of_nothing", "Y[i] = X[(i+1)%size(i)] if i > 0", vectors(3, i=0) + vectors(5, i=4)),
    Read("turn_by_parity", "Y[i] = X[(i+1)%size(i)] if i % 2 == 0", vectors(3, i=0) + vectors(5, i=4)),
    Read("turn_by_data", "Y[i] += X[(i+1)%size(i)] if t[i] % 2 == 0", vectors(3, t=(0,)) + vectors(5, t=(4,))),
    Read(
        "turn_and_window",
        "size(j) = 2\nY[i,j] += X[(i+1)%size(i),2*j+p] * W[p] if i % 2 == 0 and p % 2 == 0",
        ({"X": (3, 5), "W": (3,), "i": 0}, {"X": (4, 9), "W": (3,), "i": 3}),
    ),
    # sums of two indices: convolution and its relatives
    Read("two_indices", "Y[i] += X[i+p] * W[p]", vectors(3, 4, 7, W=(3,)) + vectors(1, 4, W=(1,))),
    Read("two_indices_short", "Y[i] += X[i+p] * W[p]", vectors(1, 2, W=(3,))),
    Read(
        "two_indices_inside",
        "Y[i] += X[i+p-1] * W[p] if inside",
        vectors(1, 2, 5, W=(3,), i=5) + vectors(9, W=(3,), i=2),
    ),
    Read(
        "two_indices_padded",
        "padding: int\nY[i] += X[i+p-padding] * W[p] if inside",
        vectors(1, 4, W=(3,), i=4, padding=0) + vectors(1, 4, W=(3,), i=6, padding=2),
    ),
    Read("two_indices_weight_of_both", "Y[i] += X[i+p] * W[i,p]", vectors(4, 9, W=(3, 2))),
    Read("two_indices_twice", "Y[i] += X[i+p] * W[p] + X[i+q] * V[q]", vectors(4, 6, W=(2,), V=(3,))),
    Read("three_indices", "Y[i] += X[i+p+q] * W[p,q]", vectors(4, 7, W=(2, 3)) + vectors(1, 3, W=(1, 1))),
    Read("three_indices_weight_of_all", "Y[i] += X[i+p+q] * W[i,p,q]", vectors(6, 9, W=(3, 2, 3))),
    Read("three_indices_inside", "Y[i] += X[i+p+q-2] * W[p,q] if inside", vectors(1, 5, W=(2, 3), i=6)),
    Read("two_indices_kept", "Y[i,p] = X[i+p] * W[p]", vectors(3, 5, W=(3,)) + vectors(1, W=(1,))),
    Read("difference", "Y[i] += X[i-p] * W[p] if inside", vectors(1, 5, W=(3,), i=6)),
    Read("difference_guarded", "Y[i] += X[i-p] * W[p] if p <= i", vectors(5, W=(3,), i=5) + vectors(1, W=(4,), i=1)),
    # strides: where the image is not a whole number of steps, the last elements get no gradient
    Read("stride2", "Y[i] = X[2*i]", vectors(1, 2, 5, 6)),
    Read("stride2_odd", "Y[i] = X[2*i+1]", vectors(1, 2, 5, 6)),
    Read("stride2_window", "Y[i] += X[2*i+p] * W[p]", vectors(2, 3, 4, 7, 8, W=(3,)) + vectors(1, 5, W=(1,))),
    Read("stride3_window", "Y[i] += X[3*i+p] * W[p]", vectors(2, 5, 6, 7, W=(2,)) + vectors(9, W=(4,))),
    Read(
        "stride2_inside", "Y[i] += X[2*i+p-1] * W[p] if inside", vectors(1, 4, 5, W=(3,), i=3) + vectors(9, W=(3,), i=2)
    ),
    Read("stride3_inside", "Y[i] += X[3*i+p-2] * W[p] if inside", vectors(1, 4, 7, W=(4,), i=3)),
    Read("stride2_three_indices", "Y[i] += X[2*i+p+3*q] * W[p,q]", vectors(5, 6, 9, W=(2, 2))),
    Read(
        "stride_static",
        "stride: int\nY[i] += X[stride*i+p] * W[p]",
        vectors(2, 7, W=(2,), stride=1) + vectors(2, 7, W=(2,), stride=2) + vectors(3, 8, W=(2,), stride=3),
    ),
    Read(
        "stride_static_inside",
        "stride: int\npadding: int\nY[i] += X[stride*i+p-padding] * W[p] if inside",
        vectors(1, 6, W=(3,), i=4, stride=1, padding=1) + vectors(1, 6, W=(3,), i=4, stride=3, padding=2),
    ),
    Read(
        "stride_static_negative",
        "stride: int\nY[i] += X[stride*i+p+3] * W[p] if inside",
        vectors(1, 6, W=(2,), i=4, stride=-1) + vectors(6, W=(2,), i=4, stride=-2),
    ),
    # dilation
    Read("dilation2", "Y[i] += X[i+2*p] * W[p]", vectors(3, 4, 5, 8, W=(2,)) + vectors(1, W=(1,))),
    Read(
        "dilation_static",
        "dilation: int\nY[i] += X[i+dilation*p] * W[p]",
        vectors(3, 7, W=(3,), dilation=1) + vectors(5, 8, W=(3,), dilation=2),
    ),
    Read("stride2_dilation3", "Y[i] += X[2*i+3*p] * W[p]", vectors(4, 5, 9, 10, W=(2,))),
    Read(
        "stride_and_dilation_static",
        "stride: int\ndilation: int\nY[i] += X[stride*i-1+dilation*p] * W[p] if inside",
        vectors(1, 5, 8, W=(3,), i=4, stride=2, dilation=2) + vectors(7, W=(2,), i=3, stride=3, dilation=2),
    ),
    # reversal and negative coefficients
    Read("reversal", "Y[i] = X[size(i)-1-i]", vectors(1, 2, 5)),
    Read("reversal_by_axis", "Y[i] = X[size(X, 0)-1-i]", vectors(1, 2, 5)),
    Read("reversal_window", "Y[i] += X[size(X, 0)-1-i-p] * W[p]", vectors(2, 5, W=(2,)) + vectors(1, W=(1,))),
    Read("negative", "Y[i] += X[3-i] if inside", vectors(1, 3, 6, i=5)),
    Read("negative_window", "Y[i] += X[p-i] * W[p] if inside", vectors(1, 4, W=(4,), i=3)),
    Read("negative_stride2", "Y[i] += X[4-2*i+p] * W[p] if inside", vectors(1, 5, 6, W=(3,), i=4)),
    Read("negative_dilation2", "Y[i] += X[i+5-2*p] * W[p] if inside", vectors(1, 5, 6, W=(3,), i=4)),
    Read("negative_bare", "Y[i] += X[-i] * W[i] if inside", vectors(1, 4, W=(3,))),
    # division: every element of X is read by a run of neighbours
    Read("division", "Y[i] = X[i//2]", vectors(1, i=1) + vectors(3, i=5) + vectors(3, i=6) + vectors(4, i=3)),
    Read("division_shifted", "Y[i] = X[(i+1)//2]", vectors(1, i=1) + vectors(4, i=6)),
    Read("division_negative", "Y[i] += X[(i-3)//2] if inside", vectors(1, 4, i=8)),
    Read("division_inside", "Y[i] += X[(i+p-1)//2] * W[p] if inside", vectors(1, 3, W=(3,), i=7)),
    Read("division_of_stride", "Y[i] += X[(2*i+p)//3] * W[p] if inside", vectors(1, 4, W=(3,), i=6)),
    Read("division_static", "scale: int\nY[i] = X[i//scale]", vectors(3, i=3, scale=1) + vectors(3, i=8, scale=3)),
    # guards
    Read("guard_triangle", "Y[i] += X[i+p] * W[p] if p <= i", vectors(3, 6, W=(3,))),
    Read("guard_parity", "Y[i] += X[i+p] * W[p] if (i+p) % 2 == 0", vectors(3, 6, W=(3,))),
    Read("guard_data", "Y[i] += X[2*i+p] * W[p] if W[p] > 0 and inside", vectors(1, 6, W=(4,), i=4)),
    Read("guard_and_inside", "Y[i] += X[2*i+p-1] * W[p] if p != 1 and inside", vectors(1, 6, W=(3,), i=4)),
    # a condition that protects the next one stays before it
    Read("guard_data_parity", "size(i) = 4\nY += X[i+1] if t[i//2] % 2 == 0", vectors(6, t=(3,))),
    Read("guard_of_a_remainder", "size(i) = 4\nY[i] = X[i+1] if i > 0 and 6 % i == 0", vectors(5)),
    Read("guard_by_place", "size(i) = 4\nY += X[i+1] if i < 2 and t[i+0] % 2 == 0", vectors(6, t=(2,))),
    Read("guard_stride", "Y[i] += X[2*i+p] * W[p] if i < 2 and t[i+0] % 2 == 0", vectors(7, W=(2,), t=(2,), i=3)),
    Read("guard_or", "Y[i] += X[i+p] * W[p] if i == 0 or p == 1", vectors(2, 6, W=(2,))),
    Read(
        "conditional_window", "Y[i] += X[i+p-1] * W[p] if i+p >= 1 and i+p-1 < size(X, 0)", vectors(1, 4, W=(3,), i=5)
    ),
    Read(
        "conditional_data",
        "Y[i] += (X[i+p] if W[p] > 0 else -X[i+1]) * W[p]",
        vectors(3, 6, W=(3,), i=1) + vectors(6, W=(3,), i=4),
    ),
    Read(
        "conditional_edges",
        "Y[i] = (X[i-1] if i > 0 else X[i]) + (X[i+1] if i < size(X, 0)-1 else X[i]) - 2*X[i]",
        vectors(1, 2, 5),
    ),
    # more than one axis
    Read("plane", "Y[i,j] += X[i+p,j+q] * W[p,q]", ({"X": (3, 4), "W": (2, 3)}, {"X": (1, 1), "W": (1, 1)})),
    Read(
        "plane_strides", "Y[i,j] += X[2*i+p,3*j+q] * W[p,q]", ({"X": (4, 6), "W": (2, 3)}, {"X": (5, 7), "W": (3, 2)})
    ),
    Read(
        "plane_inside",
        "Y[i,j] += X[2*i+p-1,j-q+1] * W[p,q] if inside",
        ({"X": (3, 4), "W": (3, 2), "i": 2, "j": 4}, {"X": (1, 1), "W": (3, 2), "i": 2, "j": 3}),
    ),
    Read("plane_channels", "Y[o,i,j] += X[c,i+p,2*j+q] * W[o,c,p,q]", ({"X": (2, 3, 5), "W": (3, 2, 2, 2)},)),
    Read("plane_transposed", "Y[i,j] += X[j+q,i+p] * W[p,q]", ({"X": (3, 5), "W": (2, 3)},)),
    Read("plane_shared_index", "Y[i] += X[i,i+p] * W[p]", ({"X": (3, 5), "W": (3,)}, {"X": (1, 1), "W": (1,)})),
    Read("plane_sheared", "Y[i,j] += X[i+j,j+p] * W[p] if inside", ({"X": (3, 4), "W": (2,), "i": 3, "j": 3},)),
    Read("plane_upsampled", "Y[i,j] = X[i//2,j//3]", ({"X": (2, 2), "i": 3, "j": 6}, {"X": (1, 1), "i": 1, "j": 1})),
    Read("plane_reversed", "Y[i,j] = X[size(i)-1-i,j+1]", ({"X": (3, 4)}, {"X": (1, 2)})),
    Read("plane_and_vector", "Y[i] += X[i+p,j] * W[p,j]", ({"X": (4, 2), "W": (3, 2)},)),
]

# Not affine, or two axes that hold the same indices: these may stay scatter-adds, but they must be right.
OTHER_READS = [
    Read("turn_of_a_stride", "Y[i] = X[(3*i)%size(i)]", vectors(5, i=5) + vectors(6, i=4)),
    Read("turn_of_a_quotient", "Y[i] = X[(i//2)%size(i)]", vectors(5, i=5) + vectors(6, i=4)),
    Read("quotient_of_a_turn", "Y[i] = X[(i+1)%size(i)//2]", vectors(5, i=5) + vectors(6, i=4)),
    Read(
        "turn_inside",
        "Y[i,j] += X[(i+1)%size(i),2*j+p] * W[p] if i % 2 == 0 and p % 2 == 0 and inside",
        ({"X": (3, 4), "W": (3,), "i": 0, "j": 2}, {"X": (4, 9), "W": (3,), "i": 3, "j": 4}),
    ),
    Read(
        "turn_and_own_window",
        "Y[i] += X[(i+1)%size(i),2*i+p] * W[p] if p % 2 == 0 and inside",
        ({"X": (3, 4), "W": (3,), "i": 0}, {"X": (4, 9), "W": (3,), "i": 3}),
    ),
    Read("turn_by_a_lost_index", "Y += X[(i+p)%size(i)]", vectors(4, 6, i=4, p=3)),
    Read("turn_by_a_lost_index_of_two", "Y[q] += X[(i+p)%size(i),q+1]", ({"X": (4, 5), "i": 4, "p": 3, "q": 2},)),
    Read("turns_that_share", "Y[i,j] = X[(i+j)%size(i),(j-i)%size(j)]", ({"X": (3, 4), "i": 3, "j": 4},)),
    Read("turn_by_another_size", "Y[i] += X[(i+1)%size(j)] * W[j]", vectors(5, W=(4,), i=6)),
    Read("diagonal", "Y[i] = X[i,i]", ({"X": (1, 1)}, {"X": (4, 4)})),
    Read("diagonal_shifted", "Y[i] += X[i,i] * W[i] + X[i+1,i] if inside", ({"X": (4, 4), "W": (4,)},)),
    Read("rotated", "Y[i,j] += X[i+j,i-j+2] if inside", ({"X": (4, 5), "i": 3, "j": 3}, {"X": (1, 1), "i": 3, "j": 3})),
    Read("constant", "Y[i] += X[0] * W[i]", vectors(1, 3, W=(4,))),
    Read("remainder", "Y[i] = X[i%3]", vectors(3, i=1) + vectors(4, i=7)),
    Read("wrapped", "Y[i] += X[(i+p) % size(X, 0)] * W[p]", vectors(1, 4, W=(3,), i=6)),
    Read("clamped", "Y[i] += X[min(max(i+p-1, 0), size(X, 0)-1)] * W[p]", vectors(1, 4, W=(3,), i=6)),
    Read("reflected", "Y[i] = X[abs(i-2)]", vectors(3, 4, i=4)),
    Read("square", "Y[i] += X[i*i] if inside", vectors(1, 9, 10, i=4)),
    Read("division_window", "Y[i] += X[i//2+p] * W[p]", vectors(4, W=(2,), i=5) + vectors(2, W=(2,), i=2)),
    Read("division_then_stride", "Y[i] += X[2*(i//3)+p] * W[p] if inside", vectors(1, 6, W=(2,), i=8)),
    Read("division_static_negative", "step: int\nY[i] += X[i//step+2] if inside", vectors(1, 4, i=5, step=-2)),
    Read("division_of_data", "Y[i] += X[t[i]//2] if inside", vectors(1, 3, t=(5,))),
    Read("data", "Y[i] += X[t[i]+p] * W[p] if inside", vectors(1, 4, W=(2,), t=(6,))),
]

CASES = [
    pytest.param(read, sizes, id=f"{read.name}-{number}")
    for read in (*READS, *OTHER_READS)
    for number, sizes in enumerate(read.sizes)
]


def arguments(sizes: Shapes) -> dict[str, Any]:
    """Small whole numbers, so that every sum is exact."""
    generator = np.random.default_rng(7)
    given: dict[str, Any] = {}
    for name, value in sizes.items():
        numbers = generator.integers(-4, 5, value) if isinstance(value, tuple) else value
        given[name] = numbers.astype(np.float64) if isinstance(numbers, np.ndarray) and name != "t" else numbers
    return given


def jacobian(program: ts.Program, given: dict[str, Any]) -> Array:
    """dY/dX column by column: the program is linear in X, so a column is its value at a unit vector."""
    shape = given["X"].shape
    units = np.eye(math.prod(shape)).reshape(-1, *shape)
    return np.stack([program({**given, "X": unit}).ravel() for unit in units], axis=1)


def adjoint_matrix(adjoint: ts.Program, given: dict[str, Any], shape: tuple[int, ...]) -> Array:
    """The gradient by X for every unit seed: row by row the Jacobian, if the adjoint is right."""
    count, width = math.prod(shape), given["X"].size
    units = np.eye(count).reshape(count, *shape)
    # an index that was solved for is gone, so there is no size to give
    given = {name: value for name, value in given.items() if not isinstance(value, int) or _takes(adjoint, name)}
    if not count:
        assert not adjoint({**given, "Y.grad": np.zeros(shape)}).any()
        return np.zeros((0, width))
    return np.stack([adjoint({**given, "Y.grad": unit}).ravel() for unit in units])


def _takes(program: ts.Program, name: str) -> bool:
    return name in (*program.loops.indices, *program.loops.static_names)


def check_gathers(adjoint: ts.Program) -> None:
    """Every statement that writes X.grad writes bare indices, each on one axis only."""
    writers = [s for s in adjoint.loops.statements if s.target.tensor == "X.grad"]
    assert writers, "nothing writes X.grad"
    for statement in writers:
        places = statement.target.indices
        assert all(isinstance(place, ir.Index) for place in places), str(adjoint)
        assert len(set(places)) == len(places), str(adjoint)


@pytest.mark.parametrize("read", READS, ids=lambda read: read.name)
def test_the_adjoint_of_an_affine_read_gathers(read: Read) -> None:
    adjoint = ts.program(read.text).adjoint(wrt=["X"])
    check_gathers(adjoint)
    assert ts.program(str(adjoint)) == adjoint


@pytest.mark.parametrize(("read", "sizes"), CASES)
def test_the_gathering_adjoint_is_the_transpose(read: Read, sizes: Shapes) -> None:
    program = ts.program(read.text)
    given = arguments(sizes)
    forward = program(given)
    matrix = adjoint_matrix(program.adjoint(wrt=["X"]), given, forward.shape)
    np.testing.assert_array_equal(matrix, jacobian(program, given))


def test_a_static_stride_of_zero_is_refused_by_the_adjoint() -> None:
    """The text is solved before the number is known: dividing by it must not give a wrong gradient in silence."""
    program = ts.program("step: int\nY[i] += X[step*i+p] * W[p] if inside")
    given = {"X": np.ones(4), "W": np.ones(2), "step": 0}
    np.testing.assert_array_equal(program({**given, "i": 3}), [2, 2, 2])
    with pytest.raises(ts.SwapError, match="zero"):
        program.adjoint(wrt=["X"])({**given, "Y.grad": np.ones(3)})


@pytest.mark.parametrize("text", ["Y[i] = X[i//step]", "Y[i] = X[i%step]", "Y[i] = X[(i+1)//(step*i)]"])
def test_an_index_divided_by_zero_is_refused(text: str) -> None:
    with pytest.raises(ts.SwapError, match="zero"):
        ts.program(f"step: int\n{text}")(X=np.ones(4), i=3, step=0)


@pytest.mark.parametrize("text", ["Y[i] += X[t[i]]", "Y[i] += X[i*i] if inside"])
def test_the_check_notices_a_scatter(text: str) -> None:
    """What cannot be solved stays a scatter-add, and the check of this file tells the two apart."""
    adjoint = ts.program(text).adjoint(wrt=["X"])
    with pytest.raises(AssertionError):
        check_gathers(adjoint)


def test_the_jacobians_are_not_zero() -> None:
    """A transpose of nothing would prove nothing: only windows that never fit may have an empty Jacobian."""
    empty = {
        read.name
        for read in (*READS, *OTHER_READS)
        if not any(jacobian(ts.program(read.text), arguments(sizes)).any() for sizes in read.sizes)
    }
    assert empty == {"two_indices_short"}


# -- the texts, letter by letter

TEXTS = {
    "strided_read": (
        "Y[i] += X[2*i+p] * W[p]",
        ["X"],
        """
        size(s) = size(X, 0)
        X.grad[s] += Y.grad[(s-p)//2] * W[p] if (s-p) % 2 == 0 and inside
        """,
    ),
    "swap_rule": (
        "Y[h,i,j] += A[h,i,k] * B[h,j,k]",
        ["A", "B"],
        """
        A.grad[h,i,k] += Y.grad[h,i,j] * B[h,j,k]
        B.grad[h,j,k] += A[h,i,k] * Y.grad[h,i,j]
        """,
    ),
    "matrix_vector": (
        "y[j] += W[j,i] * x[i]",
        ["x", "W"],
        """
        x.grad[i] += W[j,i] * y.grad[j]
        W.grad[j,i] += y.grad[j] * x[i]
        """,
    ),
    "inner_product": (
        "z += x[i] * y[i]",
        ["x", "y"],
        """
        x.grad[i] += z.grad * y[i]
        y.grad[i] += x[i] * z.grad
        """,
    ),
    "scalar_product": (
        "z = x * y",
        ["x", "y"],
        """
        x.grad += z.grad * y
        y.grad += x * z.grad
        """,
    ),
}


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


@pytest.mark.parametrize("name", TEXTS)
def test_the_adjoint_reads_letter_by_letter(name: str) -> None:
    text, wrt, expected = TEXTS[name]
    assert lines(str(ts.program(text).adjoint(wrt=wrt))) == lines(expected)
