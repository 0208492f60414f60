"""Programs against PyTorch's stored answers: the forward value and the gradient by every floating-point input.

The answers lie in oracles/*.npz, made by oracles/make_oracles.py; nothing here imports torch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tensorswap as ts

Array = NDArray[Any]

TOLERANCE = 1e-10
LIBRARY = ("attention", "causal_attention", "conv2d", "layer_norm", "linear", "log_softmax", "softmax")

TEXTS = {
    "conv1d": """
        def conv1d(X[n,c,h], W[o,c,u], b[o], stride: int, padding: int, dilation: int) -> Y[n,o,i]:
            size(i) = (size(h) + 2*padding - dilation*(size(u)-1) - 1) // stride + 1
            Y[n,o,i] += X[n,c,stride*i-padding+dilation*u] * W[o,c,u] if inside
            Y[n,o,i] += b[o]
    """,
    "conv3d": """
        def conv3d(X[n,c,f,h,w], W[o,c,t,u,v], b[o], stride: int, padding: int, dilation: int) -> Y[n,o,k,i,j]:
            size(k) = (size(f) + 2*padding - dilation*(size(t)-1) - 1) // stride + 1
            size(i) = (size(h) + 2*padding - dilation*(size(u)-1) - 1) // stride + 1
            size(j) = (size(w) + 2*padding - dilation*(size(v)-1) - 1) // stride + 1
            Y[n,o,k,i,j] += X[n,c,stride*k-padding+dilation*t,stride*i-padding+dilation*u,stride*j-padding+dilation*v] * W[o,c,t,u,v] if inside
            Y[n,o,k,i,j] += b[o]
    """,  # noqa: E501 (a statement is one line)
    "conv_transpose2d": """
        stride: int
        padding: int
        dilation: int
        output_padding: int
        size(Y, 2) = (size(h)-1)*stride - 2*padding + dilation*(size(u)-1) + output_padding + 1
        size(Y, 3) = (size(w)-1)*stride - 2*padding + dilation*(size(v)-1) + output_padding + 1
        size(i) = size(Y, 2)
        size(j) = size(Y, 3)
        Y[n,o,stride*h-padding+dilation*u,stride*w-padding+dilation*v] += X[n,c,h,w] * W[c,o,u,v] if inside
        Y[n,o,i,j] += b[o]
    """,
    "max_pool2d": """
        def max_pool2d(X[n,c,h,w], kernel_height: int, kernel_width: int, stride: int, padding: int) -> Y[n,c,i,j]:
            size(u) = kernel_height
            size(v) = kernel_width
            size(i) = (size(h) + 2*padding - kernel_height) // stride + 1
            size(j) = (size(w) + 2*padding - kernel_width) // stride + 1
            Y[n,c,i,j] max= X[n,c,stride*i-padding+u,stride*j-padding+v] if inside
    """,
    "avg_pool2d": """
        def avg_pool2d(X[n,c,h,w], kernel_height: int, kernel_width: int, stride: int, padding: int) -> Y[n,c,i,j]:
            size(u) = kernel_height
            size(v) = kernel_width
            size(i) = (size(h) + 2*padding - kernel_height) // stride + 1
            size(j) = (size(w) + 2*padding - kernel_width) // stride + 1
            Y[n,c,i,j] += X[n,c,stride*i-padding+u,stride*j-padding+v] / (kernel_height*kernel_width) if inside
    """,
    "avg_pool2d_valid": """
        def averages(X[n,c,h,w], kernel_height: int, kernel_width: int, stride: int, padding: int) -> Y[n,c,i,j]:
            size(u) = kernel_height
            size(v) = kernel_width
            size(i) = (size(h) + 2*padding - kernel_height) // stride + 1
            size(j) = (size(w) + 2*padding - kernel_width) // stride + 1
            rows[i] += 1 if stride*i-padding+u >= 0 and stride*i-padding+u < size(h)
            columns[j] += 1 if stride*j-padding+v >= 0 and stride*j-padding+v < size(w)
            Y[n,c,i,j] += X[n,c,stride*i-padding+u,stride*j-padding+v] / (rows[i]*columns[j]) if inside
    """,
    "unfold": """
        kernel_height: int
        kernel_width: int
        stride: int
        padding: int
        dilation: int
        size(u) = kernel_height
        size(v) = kernel_width
        size(i) = (size(X, 2) + 2*padding - dilation*(kernel_height-1) - 1) // stride + 1
        size(j) = (size(X, 3) + 2*padding - dilation*(kernel_width-1) - 1) // stride + 1
        Y[n,c,u,v,i,j] = X[n,c,stride*i-padding+dilation*u,stride*j-padding+dilation*v] if inside
    """,
    "upsample_nearest": """
        scale: int
        size(i) = scale * size(X, 2)
        size(j) = scale * size(X, 3)
        Y[n,c,i,j] = X[n,c,i//scale,j//scale]
    """,
    "reflection_pad": """
        padding: int
        size(i) = size(X, 2) + 2*padding
        size(j) = size(X, 3) + 2*padding
        R[n,c,i,w] = X[n,c,size(X, 2)-1-abs(size(X, 2)-1-abs(i-padding)),w]
        Y[n,c,i,j] = R[n,c,i,size(X, 3)-1-abs(size(X, 3)-1-abs(j-padding))]
    """,
    "replication_pad": """
        padding: int
        size(i) = size(X, 2) + 2*padding
        size(j) = size(X, 3) + 2*padding
        Y[n,c,i,j] = X[n,c,min(max(i-padding, 0), size(X, 2)-1),min(max(j-padding, 0), size(X, 3)-1)]
    """,
    "circular_pad": """
        padding: int
        size(i) = size(X, 2) + 2*padding
        size(j) = size(X, 3) + 2*padding
        Y[n,c,i,j] = X[n,c,(i-padding) % size(X, 2),(j-padding) % size(X, 3)]
    """,
    "cross_entropy": """
        def cross_entropy(X[n,c], t[n]) -> Y:
            L = log_softmax(X)
            Y -= L[n,t[n]] / size(n)
    """,
    "cross_entropy_ignored": """
        def cross_entropy(X[n,c], t[n], ignored: int) -> Y:
            L = log_softmax(X)
            count += 1 if t[n] != ignored
            Y -= L[n,t[n]] / count if t[n] != ignored
    """,
    "embedding": "Y[b,i,d] = E[t[b,i],d]",
    "prod": "Y[i] *= X[i,j]",
    "cumprod": """
        size(j) = size(k)
        Y[i,j] *= X[i,k] if k <= j
    """,
}

# The same ops said in another way; they must give the same answers.
SECOND_TEXTS = {
    "conv_transpose2d": """
        def gathered(X[n,c,h,w], W[c,o,u,v], b[o],
                     stride: int, padding: int, dilation: int, output_padding: int) -> Y[n,o,i,j]:
            size(i) = (size(h)-1)*stride - 2*padding + dilation*(size(u)-1) + output_padding + 1
            size(j) = (size(w)-1)*stride - 2*padding + dilation*(size(v)-1) + output_padding + 1
            R[n,o,h,j,u] += X[n,c,h,w] * W[c,o,u,v] if stride*w-padding+dilation*v == j
            Y[n,o,i,j] += R[n,o,h,j,u] if stride*h-padding+dilation*u == i
            Y[n,o,i,j] += b[o]
    """,
    "cumprod": """
        for j:
            Y[i,j] = X[i,j] * (Y[i,j-1] if j > 0 else 1)
    """,
    "softmax": """
        M[...] max= X[...,k]
        S[...] += exp(X[...,k] - M[...])
        Y[...,k] = exp(X[...,k] - M[...]) / S[...]
    """,
    "upsample_nearest": """
        scale: int
        size(r) = scale
        size(s) = scale
        Y[n,c,scale*h+r,scale*w+s] = X[n,c,h,w]
    """,
}


@dataclass
class Oracle:
    """What is stored of one case."""

    op: str = ""
    option: dict[str, int] = field(default_factory=dict)
    input: dict[str, Array] = field(default_factory=dict)
    output: dict[str, Array] = field(default_factory=dict)
    seed: dict[str, Array] = field(default_factory=dict)
    grad: dict[str, Array] = field(default_factory=dict)


def _read(path: Path) -> dict[str, Oracle]:
    cases: dict[str, Oracle] = {}
    with np.load(path) as stored:
        for key in stored.files:
            case, kind, *name = key.split("/")
            oracle = cases.setdefault(case, Oracle())
            if kind == "op":
                oracle.op = str(stored[key])
            elif kind == "option":
                oracle.option[name[0]] = int(stored[key])
            else:
                getattr(oracle, kind)[name[0]] = stored[key]
    return cases


CASES = {
    name: oracle
    for path in sorted((Path(__file__).parent / "oracles").glob("*.npz"))
    for name, oracle in _read(path).items()
}


@cache
def _program(op: str) -> ts.Program:
    return ts.load(op) if op in LIBRARY else ts.program(TEXTS[op])


@cache
def _second_program(op: str) -> ts.Program:
    return ts.program(SECOND_TEXTS[op])


@cache
def _adjoint(program: ts.Program, wrt: tuple[str, ...]) -> ts.Program:
    return program.adjoint(wrt=list(wrt))


def _results(program: ts.Program, arguments: dict[str, Any]) -> dict[str, Array]:
    result = program(arguments)
    return {program.outputs[0]: result} if len(program.outputs) == 1 else result


def check_close(actual: Array, expected: Array, name: str) -> None:
    """The same shape, in double precision, and every element right to the tolerance."""
    assert actual.shape == expected.shape, name
    assert actual.dtype == np.float64, name
    np.testing.assert_allclose(actual, expected, rtol=TOLERANCE, atol=TOLERANCE, err_msg=name)


def check_case(program: ts.Program, oracle: Oracle) -> None:
    """The forward value and every gradient of one case."""
    arguments: dict[str, Any] = {**oracle.input, **oracle.option}
    (expected,) = oracle.output.values()
    (seed,) = oracle.seed.values()
    (output,) = program.outputs  # PyTorch's Y may have another name in the library
    check_close(np.asarray(_results(program, arguments)[output]), expected, output)
    adjoint = _adjoint(program, tuple(oracle.grad))
    gradients = _results(adjoint, {**arguments, f"{output}.grad": seed})
    assert set(gradients) == {f"{name}.grad" for name in oracle.grad}
    for name, gradient in oracle.grad.items():
        check_close(gradients[f"{name}.grad"], gradient, f"{name}.grad")


@pytest.mark.parametrize("case", CASES)
def test_the_program_agrees_with_torch(case: str) -> None:
    check_case(_program(CASES[case].op), CASES[case])


@pytest.mark.parametrize("case", [name for name, oracle in CASES.items() if oracle.op in SECOND_TEXTS])
def test_the_same_op_said_otherwise_agrees_with_torch(case: str) -> None:
    check_case(_second_program(CASES[case].op), CASES[case])


def test_every_program_has_a_case() -> None:
    asked = {oracle.op for oracle in CASES.values()}
    assert asked == {*LIBRARY, *TEXTS}
    assert asked >= set(SECOND_TEXTS)


def test_every_case_differentiates_every_floating_point_input() -> None:
    for name, oracle in CASES.items():
        assert set(oracle.grad) == {n for n, array in oracle.input.items() if array.dtype == np.float64}, name
        assert oracle.grad, name


def test_max_pool_cases_overlap_and_hold_no_ties() -> None:
    pools = [oracle for oracle in CASES.values() if oracle.op == "max_pool2d"]
    assert any(o.option["stride"] < o.option["kernel_height"] for o in pools)
    for oracle in pools:
        assert len(np.unique(oracle.input["X"])) == oracle.input["X"].size


def test_a_wrong_gradient_is_noticed() -> None:
    oracle = CASES["linear.rank2"]
    wrong = Oracle(
        oracle.op,
        oracle.option,
        oracle.input,
        oracle.output,
        oracle.seed,
        {**oracle.grad, "W": oracle.grad["W"] + 1e-8},
    )
    check_case(_program("linear"), oracle)
    with pytest.raises(AssertionError, match=r"W\.grad"):
        check_case(_program("linear"), wrong)
