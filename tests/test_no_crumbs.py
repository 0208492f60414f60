"""Texts that rules make hold nothing that changes nothing: no `1*p`, no `i-1+1`, no `a + -b`."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tensorswap as ts
from tensorswap import models
from tensorswap.rules.activity import default_wrt

CRUMB = re.compile(
    r"""\b1\ ?\*            # 1*p
    | \*\ ?1\b(?![.\d])     # p*1
    | //\ ?1\b(?!\d)        # i//1
    | -\ ?0\b(?!\.)         # i-0
    | \+\ ?0\b(?![.\]])(?!,)  # i+0+1; alone in a bracket, i+0 does not claim the whole axis
    | [-+]\ -               # a + -b
    | \[[^]]*\b\d+[-+]\d   # i+1-1""",
    re.VERBOSE,
)
OPS = [
    "rope_half",
    "ctc_loss_none",
    "lp_pool2d",
    "binary_cross_entropy_none",
    "gaussian_kernel",
    "gelu_layer",
    "conv2d",
]


def check_no_crumbs(program: ts.Program) -> None:
    for line in str(program).splitlines()[bool(program.loops.header) :]:
        assert not CRUMB.search(line), line


@pytest.mark.parametrize("name", [*OPS, "cnn"])
def test_derivatives_of_the_library(name: str) -> None:
    program = models.get(name).program if name == "cnn" else ts.load(name)
    wrt = default_wrt(program.loops)
    adjoint = program.adjoint(wrt=wrt)
    for made in (program, adjoint, program.tangent(wrt=wrt), adjoint.tangent(wrt=wrt)):
        check_no_crumbs(made)


@pytest.mark.parametrize(
    "line",
    [
        "Y[i] = X[1*i+2]",
        "Y[i] = X[i+0+1]",
        "Y[i] = X[i+2-1]",
        "Y[i] = A[i] + -B[i]",
        "size(i) = 0 * 1\nY[i] = 2",
        "Y[i] = X[i//1]",
    ],
)
def test_the_check_can_fail(line: str) -> None:
    with pytest.raises(AssertionError):
        check_no_crumbs(ts.program(line))


WINDOW = """
def window(X[s], W[u], stride: int, padding: int, dilation: int) -> Y[i]:
    size(i) = (size(X, 0)+2*padding-dilation*(size(u)-1)-1) // stride + 1
    Y[i] += X[stride*i-padding+dilation*u] * W[u] if inside
    Y[i] += X[s] * 0
Y = window(A, B, {})
"""


@pytest.mark.parametrize(
    ("numbers", "size", "statement"),
    [
        ("1, 0, 1", "size(i) = size(A, 0) - size(u) + 1", "Y[i] += A[i+u] * B[u] if inside"),
        ("2, 1, 1", "size(i) = (size(A, 0) - size(u) + 2) // 2 + 1", "Y[i] += A[2*i-1+u] * B[u] if inside"),
        ("1, 0, 0", "size(i) = size(A, 0)", "Y[i] += A[i+0*u] * B[u] if inside"),
    ],
)
def test_numbers_of_a_call(numbers: str, size: str, statement: str) -> None:
    """An index that would be lost stays: a statement runs over the same points."""
    lines = str(ts.program(WINDOW.format(numbers))).splitlines()
    assert lines[:2] == [size, statement]


def test_an_index_that_was_not_bare_does_not_become_so() -> None:
    """`X[i]` would say that i runs over the whole of X."""
    program = ts.program(
        "def f(X[s], n: int, stride: int) -> Y[i]:\n    size(i) = n\n    Y[i] = X[stride*i]\nY = f(A, 2, 1)"
    )
    assert "Y[i] = A[i+0]" in str(program)
    np.testing.assert_array_equal(program(A=np.arange(5.0)), [0, 1])


def test_a_static_integer_of_the_caller_is_not_that_of_the_call() -> None:
    text = (
        "def g(X[i], c, k: int) -> Y[i]:\n    Y[i] = X[i] * c + k\ndef f(X[i], k: int) -> Y[i]:\n    Y = g(X, 2*k, 3)"
    )
    program = ts.program(text)
    np.testing.assert_array_equal(program(X=np.ones(2), k=5), [13, 13])


def test_solved_indices() -> None:
    text = "size(i) = 3\nY[i] = X[i+size(k)] * A[i+1] * B[i+1]\nZ[k] = C[k]"
    adjoint = ts.program(text).adjoint(wrt=["A"], of=["Y"])
    assert "A.grad[s] += X[s-1+size(k)] * Y.grad[s-1] * B[s+0] if inside" in str(adjoint)
