"""Ways through the code that few programs take, each against another way to the same answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.jacobian import sparsity
from tensorswap.pictures.curves import Curve, curves_svg
from tensorswap.rules.written_once import shown_by_text
from tensorswap.training.history import History

R = np.random.default_rng(8)


# -- patterns of Jacobians, by conditions of every kind


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("Y[i] += X[j] if j == i or j == 0", 5),
        ("Y[i] += X[j] if (i < 3 and j == i) or j == 4", 5),
        ("Y[i] += X[j] if not (j <= i and i <= j)", 4),
        ("Y[i] = X[-i+4]", 5),
        ("Y[i] += X[j] if i - j % 2", 4),
        ("Y[i] = X[min(i, 2)]", 4),
        ("Y[i] += X[j] if j < 1.5", 4),
    ],
)
def test_a_pattern_holds_what_a_jacobian_does(text: str, size: int) -> None:
    program = ts.program(f"size(i) = {size}\n{text}")
    given = {"X": R.standard_normal(size)}
    exact = program.jacobian("Y", "X")(given)
    pattern = sparsity(program, "Y", "X").pattern(given)
    found = pattern.dense()
    assert found[exact != 0].all()
    assert "1.5" in text or np.array_equal(found, exact != 0)  # where numbers are no whole ones, any place may be one


# -- `=` that the text shows to write each element once


@pytest.mark.parametrize(
    ("text", "once"),
    [
        ("size(i) = 3\nsize(j) = 4\nY[4*i+j] = X[i,j]", True),
        ("size(i) = 3\nsize(j) = 4\nY[5*i+j] = X[i,j]", True),
        ("size(i) = 3\nsize(j) = 4\nY[3*i+j] = X[i,j]", False),
        ("size(i) = 3\nsize(j) = 4\nY[i+3*j] = X[i,j]", True),
        ("Y[i*size(j)+j] = X[i,j]", True),
        ("Y[2*i+2*j] = X[i,j]", False),
        ("def f(X[i,j], n: int) -> Y[k]:\n    size(Y, 0) = 99\n    Y[n*i+j] = X[i,j]", False),
        ("def f(X[i], n: int) -> Y[k]:\n    size(Y, 0) = 99\n    Y[n*i] = X[i]", False),
        ("W[i//2] = W[i//2] + X[i]\nreturn W", False),
        ("Y[k//3,k%3] = X[k]", True),
    ],
)
def test_what_the_text_shows_of_an_assignment(text: str, once: bool) -> None:
    assert shown_by_text(ts.program(text).loops) == once


# -- settings of einsum


def test_settings_that_are_left_to_numpy() -> None:
    A, B = R.standard_normal((2, 3)), R.standard_normal((3, 4))
    path = np.einsum_path("ij,jk->ik", A, B)[0]
    for more in ({"order": None}, {"dtype": None}, {"optimize": path}, {"optimize": ("greedy", 1e6)}):
        wanted = np.einsum("ij,jk->ik", A, B, **{k: v for k, v in more.items() if k != "order"})
        np.testing.assert_allclose(ts.einsum("ij,jk->ik", A, B, **more), wanted)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"casting": 3}, "casting is a text, not int"),
        ({"optimize": ["einsum_path", "ab"]}, "tuple of whole numbers"),
        ({"optimize": ["einsum_path", (0, 5)]}, "does not fit 2 operands"),
        ({"optimize": ["einsum_path", (0,)]}, "leaves 2 operands"),
        ({"optimize": 5}, "optimize is '5'"),
        ({"dtype": "fun"}, "numpy does not know"),
    ],
)
def test_settings_that_are_no_settings(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(ts.SwapError, match=message):
        ts.einsum("ij,jk->ik", np.ones((2, 3)), np.ones((3, 4)), **setting)


# -- eager scalars beside what is no number of Python's


def test_a_scalar_meets_arrays() -> None:
    array = np.array([1.0, -2.0, 3.0])
    for of in (
        lambda s: array + s, lambda s: s + array, lambda s: array - s, lambda s: s - array,
        lambda s: array * s, lambda s: s * array, lambda s: array / s, lambda s: s / array,
        lambda s: np.float64(2.5) * s, lambda s: np.float32(2.5) - s, lambda s: s / np.float64(0.5),
    ):  # fmt: skip
        s = ts.tensor(1.5)
        out = of(s)
        total = out.sum() if np.ndim(out.value) else out
        total.backward()
        near = [of(np.float64(1.5 + h)) for h in (1e-6, -1e-6)]
        slope = (np.sum(near[0]) - np.sum(near[1])) / 2e-6
        np.testing.assert_allclose(s.grad, slope, rtol=1e-6)


# -- pictures


def test_curves_of_every_kind() -> None:
    flat = curves_svg([Curve("flat", [0, 1], [2.0, 2.0])])
    assert 'class="curve"' in flat
    ys = np.abs(R.standard_normal(5000))
    ys[100:140] = np.nan
    ys[2000:2100] = np.inf
    long = curves_svg([Curve("long", range(5000), list(ys))])
    assert long.count(" M") >= 1  # a gap
    wide = curves_svg([Curve("wide", [0, 1, 2], [0.3, 4.0, 60.0])])
    assert ">10<" in wide


def test_a_plot_of_a_long_training(tmp_path: Any) -> None:
    pytest.importorskip("matplotlib", reason="a plot needs it")
    losses = list(np.geomspace(100, 0.01, 500))
    history = History({"loss": losses}, [{"epoch": 1, "step": 500, "validation loss": 0.02}])
    (axes,) = history.plot(tmp_path / "loss.png").axes
    assert axes.get_yscale() == "log"
    assert [line.get_label() for line in axes.lines] == ["loss of a step", "mean of 10 steps", "validation"]
    assert (tmp_path / "loss.png").stat().st_size > 1000
    (axes,) = History({"loss": [1.0, 0.9]}, []).plot().axes
    assert axes.get_yscale() == "linear"


# -- what a limit of memory cannot part


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("for t:\n    H[t,i] = tanh(x[t,i] + (H[t-80,i] if t > 79 else 0))\nloss += H[t,i] ** 2", "80 steps back"),
        ("for t:\n    H[2*t,i] = tanh(x[t,i] + (H[2*t-2,i] if t > 0 else 0))\nloss += H[k,i] ** 2", "at places"),
    ],
)
def test_what_cannot_be_parted_is_told(text: str, message: str) -> None:
    limited = ts.program(f"{text}\nreturn loss").grad(wrt=["x"], memory="12 KB")
    with pytest.raises(ts.SwapError, match=message):
        limited(x=R.standard_normal((900, 8)))
