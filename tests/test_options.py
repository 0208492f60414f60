"""Options with a number for each axis: `stride: int[stride_h,stride_w]`, given as `stride=2` or `stride=(2, 1)`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorswap as ts

TEXT = """
def f(x[i], k: int[k_h,k_w], s: int[s_h,s_w] = k, d: int[d_h,d_w] = 7) -> y[i]:
    y[i] = x[i] * k_h + 10 * k_w + 100 * s_h + 1000 * s_w + 10000 * d_h + 100000 * d_w
"""


def digits(**options: Any) -> tuple[int, int]:
    """What a call and the interpreter make of them: one digit for each part."""
    program = ts.program(TEXT)
    return int(program(x=np.ones(1), **options)[0]), int(program.run_reference(x=np.ones(1), **options)[0])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"k": 2}, 772222),
        ({"k": (2, 3)}, 773232),  # the default follows each part
        ({"k": [2, 3], "s": 1}, 771132),
        ({"k": np.array([2, 3]), "s": (4, 5), "d": np.int64(6)}, 665432),
        ({"k": 2, "s_w": 9}, 779222),  # one number for all, and another for one part
        ({"k_h": 2, "k_w": 3}, 773232),
        ({"s_w": 1, "s": 4, "k": 2}, 771422),  # whatever their order
    ],
)
def test_an_option_is_one_number_or_one_for_each_axis(options: dict[str, Any], expected: int) -> None:
    assert digits(**options) == (expected, expected)


@pytest.mark.compiled
def test_a_compiled_call_sees_another_option() -> None:
    """The numbers are part of what is compiled: the second call must not run the kernels of the first."""
    program, x = ts.load("max_pool2d"), np.arange(48.0).reshape(6, 8)
    for options in ({"kernel_size": 2}, {"kernel_size": (2, 4)}, {"kernel_size": 2}, {"kernel_size": [3, 2]}):
        np.testing.assert_array_equal(program(input=x, **options), program.run_reference(input=x, **options))
        size = np.broadcast_to(options["kernel_size"], 2)
        assert program(input=x, **options).shape == (6 // size[0], 8 // size[1])


def test_derivatives_take_the_same_options() -> None:
    program = ts.program(TEXT)
    assert str(program).startswith("def f(x[i], k: int[k_h,k_w], s: int[s_h,s_w] = k, d: int[d_h,d_w] = 7) -> y[i]:")
    assert ts.program(str(program)) == program
    adjoint = program.adjoint(wrt=["x"])
    assert ts.program(str(adjoint)) == adjoint
    assert adjoint({"x": np.ones(1), "y.grad": np.ones(1), "k": (4, 5)}) == 4
    ts.gradcheck(program, x=np.ones(2), k=(2, 3))


def test_a_plan_and_a_source_take_them_beside_shapes() -> None:
    program = ts.load("conv2d")
    assert "parallel over" in str(program.plan(input=(2, 3, 8, 8), weight=(4, 3, 3, 3), stride=(2, 1), padding=1))
    assert "def " in program.source(input=(2, 3, 8, 8), weight=(4, 3, 3, 3), stride=(2, 1))


def test_calls_in_a_text_pass_them_on() -> None:
    outer = """
def g(x[i], k: int[a,b]) -> y[i]:
    first = f(x, k)
    second = f(x, (b, 8), s=(1, 2), s_w=3)
    y[i] = first[i] + second[i] / 2
"""
    program = ts.program(TEXT + outer + "z = g(x, k=(2, 4))")
    assert program(x=np.ones(1)) == 774242 + 773184 / 2
    assert ts.program(TEXT + outer + "z = g(x, 2)")(x=np.ones(1)) == 772222 + 773182 / 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "the static integer k is missing"),
        ({"k": (1, 2, 3)}, "k is one number, or one for each of k_h, k_w, not 3"),
        ({"k": ()}, "not 0"),
        ({"k": (1, 2.5)}, "k_w must be a whole number"),
        ({"k": 1, "ss": 2}, "did you mean `s`"),
    ],
)
def test_a_wrong_number_of_them_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ts.SwapError, match=message):
        digits(**options)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(x[i], s: int[a,b] = 1) -> y[i]:\n    y[i] = x[i] * s", "s has a number for each axis"),
        ("def f(x[i], s: int[s,b] = 1) -> y[i]:\n    y[i] = x[i] * b", "the argument s stands twice"),
        ("def f(x[i], k: int[c,d,e], s: int[a,b] = k) -> y[i]:\n    y[i] = x[i] * a", "no static integer before it"),
        ("def f(x[i], s: int[a,b] = 1.5) -> y[i]:\n    y[i] = x[i] * a", "its default is not"),
        ("y[i] = max((1, 2), x[i])", "takes single values"),
        ("y = softmax((x, z))", "argument input of softmax is one value, not 2"),
        ("y = max_pool1d(x, kernel_size=(2, 3))", "argument kernel_size of max_pool1d is one value, not 2"),
        ("y = conv2d(x, w, stride=(1, 2, 3))", "or one for each of stride_h, stride_w, not 3"),
        ("y = conv2d(x, w, w, 2, 3, 4, 5)", "conv2d takes 6 arguments, not 7"),
        ("y = conv2d(x, w, strid=2)", "conv2d has no argument strid"),
    ],
)
def test_a_text_that_mixes_them_up_is_refused(text: str, message: str) -> None:
    with pytest.raises(ts.SwapError, match=message):
        ts.program(text)


@pytest.mark.compiled
def test_an_exported_file_takes_them(tmp_path: Path) -> None:
    ts.load("max_pool2d").export(tmp_path / "pool.py")
    text = (
        "import numpy as np, pool\n"
        "print(pool.forward(input=np.arange(16.0).reshape(4, 4), kernel_size=(2, 4)).tolist())"
    )
    found = subprocess.run([sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[[7.0], [15.0]]"


def test_training_takes_them_as_sizes() -> None:
    model = ts.program("""
def model(X[b,c,h,w], W[o,c,u,v], target[b,o], stride: int[stride_h,stride_w] = 1) -> loss:
    y = conv2d(X, W, stride=stride)
    mean = global_avg_pool2d(y)
    loss += (mean[b,o] - target[b,o]) ** 2
""")
    data = {"X": np.ones((4, 1, 6, 6), np.float32), "target": np.ones((4, 2), np.float32)}
    weights = {"W": np.zeros((2, 1, 2, 2), np.float32)}
    result = ts.fit(model, weights, data, sizes={"stride": (2, 1)}, epochs=1)
    assert result.params["W"].shape == (2, 1, 2, 2)
