"""A derivative has the shape and the type of what it is the derivative of: with `...`, with optional tensors left out,
where it folds to zero, at every order; and its text alone says so."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

import tensorswap as ts

from .daily import LONG
from .derivatives import check_like_primals, check_text_runs_alike, next_order, start
from .library.rows import all_rows
from .library.table import arrays_of, options_of

ROWS = all_rows()
FAULTY = (  # their tangents could not be run, or their second derivatives ended in a KeyError
    "khatri_rao", "pixel_shuffle", "histogram", "max_unpool1d", "conv_transpose1d", "interpolate_area1d",
    "binary_cross_entropy_with_logits",
)  # fmt: skip

PROGRAMS = {
    "flat": "out[...] = floor(x[...])",
    "flat with a last axis": "out[...,c] = round(x[...,c])",
    "flat and summed": "out[...] += sign(x[...,c])",
    "sum": "y[...,c] = x[...,c] + z[...,c]",
    "sum of all": "loss += x[...,c]",
    "mean": "loss += x[...,c] / (size(...) * size(c))",
    "square": "y[...] += x[...,c] ** 2",
    "product": "y[...,c] += x[...,c] * w[c]",
    "number of points": "y[...,c] += size(...) * x[...,c] + size(x, 1)",
    "position": "y[...,c] = x[...,c] * ...",
    "window": "y[...,i] += x[...,i+p] * w[p]",
    "window that is flat": "y[...,i] += ceil(x[...,i+p]) * w[p]",
    "padded": "size(i) = size(x, -1)\ny[...,i] += x[...,i+p-1] * w[p] if inside",
    "padded, and a factor that goes": "size(i) = size(x, -1)\ny[...,i] += x[...,i+p-1] * u[i] * w[p] if inside",
    "copy": "y[...,c] = x[...,c]\nz[...,c] = 2 * y[...,c]\nreturn y, z",
    "two statements": "t[...,c] = x[...,c] * w[c]\nloss += t[...,c]",
    "no batch": "y[i] += floor(x[i,c]) * w[c]",
}
INPUTS = {
    "x": np.linspace(-1.7, 1.9, 24, dtype=np.float32).reshape(2, 3, 4),
    "z": np.linspace(0.3, 1.1, 24, dtype=np.float32).reshape(2, 3, 4),
    "w": np.array([0.5, 1.5, -1.0, 2.0], np.float32),
    "u": np.array([0.25, 1.0, -2.0, 3.0], np.float32),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_up_to_the_third_order_have_the_shape_and_type_of_their_primals(name: str) -> None:
    program = ts.program(PROGRAMS[name])
    arrays = {n: a[0] if name == "no batch" and a.ndim == 3 else a for n, a in INPUTS.items() if n in program.inputs}
    orders = [[start(program, arrays)]]
    for _ in range(3):
        orders.append([new for old in orders[-1] for new in next_order(old, list(arrays))])
        for derived in orders[-1]:
            check_like_primals(derived)
            if len(orders) < 4:
                check_text_runs_alike(derived)
    assert len(orders[3]) == 8


def test_second_adjoint_by_an_input_that_the_first_no_longer_reads() -> None:
    x = INPUTS["x"]
    first = ts.program("y[...] = a[...] + b[...]").adjoint(wrt=["a", "b"])
    second = first.adjoint(wrt=["a"])
    seeds = {"a.grad.grad2": x, "b.grad.grad2": x}
    result = second.run_reference({"a": x, "b": x, "y.grad": x, **seeds})
    assert (result.shape, result.dtype) == (x.shape, x.dtype)
    assert str(second) == "a[...]: array\na.grad2[...] = 0.0"


@pytest.mark.compiled
@pytest.mark.parametrize("text", [PROGRAMS["flat"], PROGRAMS["sum of all"], PROGRAMS["flat and summed"]])
def test_compiled_zero_derivatives_have_the_shape_of_their_primals(text: str) -> None:
    program = ts.program(text)
    for derived in next_order(start(program, {"x": INPUTS["x"]})):
        check_like_primals(derived)
        compiled = derived.program(derived.arguments)
        np.testing.assert_array_equal(compiled, derived.program.run_reference(derived.arguments))
        assert compiled.dtype == np.float32


def test_grad_and_hessian_vector_of_a_program_with_leading_axes() -> None:
    x = INPUTS["x"]
    for text in ("loss += x[...,c]", "loss += floor(x[...,c])", "loss += x[...,c] ** 2"):
        program = ts.program(text)
        gradient = program.grad(wrt=["x"])
        assert gradient.run_reference(x=x)["x.grad"].shape == x.shape
        assert gradient.run_reference(x=x)["x.grad"].dtype == x.dtype
        product = program.hessian_vector(wrt=["x"])
        result = product.run_reference({"x": x, "x.dot": x})
        assert (result.shape, result.dtype) == (x.shape, x.dtype), str(product)
        assert ts.program(str(product)) == product


def test_batch_of_derivatives() -> None:
    arrays = {"w": np.ones(3, np.float32), "x": np.ones((2, 3), np.float32)}
    for text in ("loss += floor(w[i]) * x[i]", "loss += w[i] * x[i]"):
        batched = ts.program(text).grad(wrt=["w"]).batch("n", over=["x"])
        assert ts.program(str(batched)) == batched
        depends = "floor" not in text  # what does not depend on x has no index more
        assert batched.run_reference(arrays)["w.grad"].shape == ((2, 3) if depends else (3,))
        assert batched.run_reference(arrays)["w.grad"].dtype == np.float32


OPTIONAL = """
def f(x[...,c], w[...,c]=0, b[c]=2) -> y[c], z[...,c], s:
    y[c] += w[...,c] * x[...,c]
    y[c] += w[...,c]
    z[...,c] = w[...,c] * x[...,c] + b[c]
    s += w[...,c] * b[c]
"""


@pytest.mark.parametrize("missing", [(), ("w",), ("b",), ("w", "b")])
def test_optional_tensors_left_out_change_no_shape_and_no_type(missing: tuple[str, ...]) -> None:
    program = ts.program(OPTIONAL)
    x = INPUTS["x"]
    whole = {"x": x, "w": np.zeros_like(x), "b": np.full(4, 2, np.float32)}
    given = {name: value for name, value in whole.items() if name not in missing}
    expected, found = start(program, whole), start(program, given)
    for name, value in expected.primals.items():
        np.testing.assert_array_equal(found.primals[name], value, err_msg=name)
        assert found.primals[name].shape == value.shape, name
        assert found.primals[name].dtype == np.float32, name
    for first in next_order(found):
        check_like_primals(first)
        for second in next_order(first):
            check_like_primals(second)


@pytest.mark.compiled
def test_zeros_left_out_do_what_zeros_given_do() -> None:
    program = ts.program("def f(x[i], w[i]=0) -> y[i]:\n    y[i] = w[i] * x[i]")
    x = np.array([1.0, np.inf, np.nan, -2.0], np.float32)
    given = program(x=x, w=np.zeros(4, np.float32))
    for left_out in (program(x=x), program.run_reference(x=x)):
        np.testing.assert_array_equal(np.isnan(left_out), np.isnan(given))
        assert left_out.dtype == np.float32


def test_a_call_whose_definition_reads_nothing_keeps_the_shape() -> None:
    program = ts.program("def zeros(x[...,c]) -> y[...,c]:\n    y[...,c] = 0.0\nY = zeros(X)")
    assert str(program).startswith("X[...,c]: array\n")
    assert program.run_reference(X=INPUTS["x"]).shape == (2, 3, 4)
    assert ts.program(str(program)) == program


def test_declared_arrays_are_checked() -> None:
    with pytest.raises(ts.SwapError, match="the program writes it"):
        ts.program("Y[i]: array\nY[i] = X[i]")
    with pytest.raises(ts.SwapError, match="plain indices only"):
        ts.program("X[i+1]: array\nY[i] = 2 * i")
    with pytest.raises(ts.SwapError, match="declared twice"):
        ts.program("X[i]: array\nX[j]: array\nY[i] = 2 * i")
    with pytest.raises(ts.SwapError, match="among its arguments"):
        ts.program("def f(x[i]) -> y[i]:\n    x[i]: array\n    y[i] = x[i]")
    with pytest.raises(ts.SwapError, match="the input X is missing"):
        ts.program("X[i]: array\nY[i] = 2 * i").run_reference(i=3)
    with pytest.raises(ts.SwapError, match="static integer, not an index"):
        ts.program("i: int\ni: index\nY = 2.0 * i")
    assert ts.program("X[i]: array\nY[i] = 2 * i").run_reference(X=np.ones(3)).tolist() == [0, 2, 4]
    assert ts.program("i: index\ny += 2 * i").run_reference(i=4) == 12


def sampled() -> list[str]:
    """The ops that were faulty and a few of the short ones; all of them where TENSORSWAP_LONG is set."""
    some = [name for name in ROWS if LONG or zlib.crc32(name.encode()) % 16 == 3]
    loops = {name: ts.load(name).loops for name in some}
    # what an optimiser updates has no derivative
    loops = {name: each for name, each in loops.items() if not each.updated}
    return list(loops) if LONG else [*FAULTY, *(name for name, each in loops.items() if len(each.statements) < 5)]


@pytest.mark.parametrize("op", sampled())
def test_library_derivatives_have_the_shape_and_type_of_their_primals(op: str) -> None:
    program, row = ts.load(op), ROWS[op]
    # the first case, and the one that leaves out the most
    for case in dict.fromkeys([row.cases[0], min(row.cases, key=lambda c: len(arrays_of(op, c)))]):
        arrays = {n: a.astype(np.float32) if a.dtype.kind == "f" else a for n, a in arrays_of(op, case).items()}
        arguments: dict[str, Any] = {**arrays, **options_of(case)}
        for first in next_order(start(program, arguments)):
            check_like_primals(first)
            for second in next_order(first, list(arrays)):
                check_like_primals(second)
