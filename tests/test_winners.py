"""Positions of the best among many candidates: in two loops of vectors, with the rules of one loop."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.run import tuning

pytestmark = pytest.mark.compiled

TEXTS = [
    "a[n] {} X[n,k]",
    "a[n] {} X[n,k] - c[n]",
    "a {} X[n,k]",
    "a[n] {} X[n,k]\na[n] {} Z[n,k]",
    "a[n] {} X[n,k] if k > 3",
    "a[n] {} X[n,k] if c[n] > 0",
]


def numbers(generator: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Few values, so that equals are many; NaN, infinities and both zeros among them."""
    made = generator.integers(-3, 4, shape).astype(dtype)
    if made.dtype.kind == "f":
        for value in (np.nan, np.inf, -np.inf, -0.0):
            made[generator.random(shape) < generator.choice([0, 0.02, 0.5])] = value
    return made


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int16])
@pytest.mark.parametrize("operator", ["argmin=", "argmax="])
@pytest.mark.parametrize("text", TEXTS)
def test_the_first_of_the_best_wins(text: str, operator: str, dtype: Any) -> None:
    program = ts.program(text.replace("{}", operator))
    generator = np.random.default_rng(7)
    for size in (1, 15, 16, 37):
        for _ in range(5):
            given = {"X": numbers(generator, (3, size), dtype), "Z": numbers(generator, (3, size), dtype)}
            given["c"] = generator.integers(-1, 2, 3).astype(dtype)
            given = {name: array for name, array in given.items() if name in program.inputs}
            np.testing.assert_array_equal(program(given), program.run_reference(given))


ALONG = ["a[n] {} X[k,n]", "a[n] {} X[k,n] - c[n]", "a[n] {} X[k,n]\na[n] {} Z[k,n]", "a[n] {} X[k,n] * Z[j,n]"]


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        (text, dtype)
        for text in ALONG
        for dtype in (np.float64, np.float32, np.int64, np.int16, np.bool_)
        if dtype is not np.bool_ or "-" not in text  # numpy subtracts no truth values
    ],
)
@pytest.mark.parametrize("operator", ["argmin=", "argmax="])
def test_candidates_are_met_several_at_a_time_along_the_target(text: str, operator: str, dtype: Any) -> None:
    program = ts.program(text.replace("{}", operator))
    generator = np.random.default_rng(8)
    for count, size in ((1, 5), (7, 4), (8, 17), (19, 3), (33, 16)):
        given = {"X": numbers(generator, (count, size), dtype), "Z": numbers(generator, (count + 1, size), dtype)}
        if "j" not in text:
            given["Z"] = given["Z"][1:]
        given["c"] = generator.integers(-1, 2, size).astype(dtype)
        given = {name: array for name, array in given.items() if name in program.inputs}
        np.testing.assert_array_equal(program(given), program.run_reference(given))
    assert "leader" in ts.program("a[n] argmin= X[k,n]").source(X=(40, 50))


PLACES = ["g[k],n", "k//2,n", "k%3,n", "n,g[k]", "(k+n)%4,n", "g[k],n//2"]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("operator", ["argmin=", "argmax=", "max=", "min=", "+=", "*="])
def test_places_that_an_index_chooses(operator: str, place: str) -> None:
    """Candidates that follow each other are not for the same element."""
    axis = 1 if place.startswith("n,") else 0
    program = ts.program(f"size(a, {axis}) = 21\na[{place}] {operator} X[k,n]")
    generator = np.random.default_rng(9)
    for count, size in ((1, 5), (8, 2), (8, 17), (19, 3), (40, 16)):
        given = {"X": numbers(generator, (count, size), np.float64), "g": generator.integers(0, 5, count)}
        given = {name: array for name, array in given.items() if name in program.inputs}
        np.testing.assert_allclose(program(given), program.run_reference(given), rtol=1e-12)


QUIET = """
import numpy as np, tensorswap as ts
for dtype in (np.uint16, np.float32, np.float64):
    for count, rows, size in ((0, 2, 8), (9, 2, 4), (9, 3, 17)):
        assert ts.program("a[n,m] argmax= X[k,m,n]")(X=np.ones((count, rows, size), dtype)).shape == (size, rows)
"""


def test_the_compiler_says_nothing(tmp_path: Path) -> None:
    """LLVM, as it runs outside of tests, tells the user of each loop that was to become vectors and cannot."""
    os.chmod(tmp_path, 0o700)
    said = {**os.environ, "TENSORSWAP_CACHE": str(tmp_path), "TENSORSWAP_LEVEL": str(tuning.FULL)}
    made = subprocess.run([sys.executable, "-c", QUIET], env=said, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    assert made.stderr == ""
    assert list(tmp_path.rglob("*"))


def test_candidates_side_by_side_are_met_in_two_loops() -> None:
    program = ts.program("a[n] argmin= X[n,k]")
    assert "top" in program.source(X=(50, 40))
    assert "top" not in program.source(X=(50, 4))  # few
    assert "top" not in ts.program("a[n] argmin= X[k,n]").source(X=(40, 50))  # apart


ROUTED = {
    "distances": "D[n,k] += (X[n,d] - C[k,d])**2\nm[n] min= D[n,k]\nloss += m[n]",
    "a root between": "S[n,k] += (X[n,d] - C[k,d])**2\nD[n,k] = sqrt(S[n,k] + 1)\nm[n] min= D[n,k]\nloss += m[n]**2",
    "a guard": "D[n,k] += X[n,d] * C[k,d]\nm[n] max= D[n,k] if k != n\nloss += m[n] if n > 0",
    "read twice": "D[n,k] += X[n,d] * C[k,d]\nm[n] max= D[n,k]\nloss += m[n] * D[n,0]",
    "a square": "D[n,k] += X[n,d] * C[k,d]\nE[n,k] = D[n,k] * D[n,k]\nm[n] max= E[n,k]\nloss += m[n]",
    "two candidates": "D[n,k] += X[n,d] * C[k,d]\nm max= D[n,k]\nloss += m * X[n,d]",
    "an output": "D[n,k] += X[n,d] * C[k,d]\nm[n] max= D[n,k]\nloss += m[n]\nreturn loss, D",
    "a sum of it": (
        "A[n,k] += X[n,d] * C[k,d]\nB[n,k] += X[n,d]\nD[n,k] = A[n,k] - B[n,k]\nm[n] min= D[n,k]\nloss += m[n]"
    ),
}


@pytest.mark.parametrize("name", ROUTED)
def test_what_follows_a_winner_is_right(name: str) -> None:
    random = np.random.default_rng(3)
    arrays = {"X": random.standard_normal((5, 3)), "C": random.standard_normal((4, 3))}
    program = ts.program(ROUTED[name])
    gradient = program.grad(of="loss", wrt=["X", "C"])
    ts.gradcheck(program, arrays, wrt=["X", "C"])  # raises where one is wrong
    found, wanted = gradient(arrays), gradient.run_reference(arrays)
    for key, array in wanted.items():
        np.testing.assert_allclose(found[key], array, rtol=1e-10, err_msg=key)
    empty = {"X": arrays["X"], "C": np.zeros((0, 3))}
    if name == "distances":
        assert (gradient.run_reference(empty)["X.grad"] == 0).all()
        assert (gradient(empty)["X.grad"] == 0).all()


def test_a_row_without_a_candidate_has_no_winner() -> None:
    """Also where candidates are many enough for two loops."""
    X = np.random.default_rng(1).standard_normal((40, 40))
    row = np.arange(40) % 3
    for text in ("b[i] argmax= X[i,j] if j < i", "b[i] argmin= X[i,j] if j < r[i]",
                 "b[i] argmax= X[i,j] if j < r[i] and j >= 1"):  # fmt: skip
        program = ts.program(text)
        arrays = {name: value for name, value in {"X": X, "r": row}.items() if name in program.inputs}
        expected = program.run_reference(arrays)
        assert (expected == -1).any()
        np.testing.assert_array_equal(program(arrays), expected)


APART = {
    "places": "m[i] max= X[i,j] if j < 2\nm[i] max= Z[i,j] if j >= 2\nloss += m[i]",
    "values": "m[i] min= X[i,j] if Z[0,j] > 0\nm[i] min= Z[i,j] if not Z[0,j] > 0\nloss += m[i]",
    "a diagonal": "m max= X[i,j] if i == j\nm max= Z[i,j] if i != j\nloss += m",
    "products": "m[i] *= X[i,j] if j < 2\nm[i] *= Z[i,j] if j >= 2\nloss += m[i]",
    "elements": "m[i] max= X[i,j] if i < 2\nm[i] max= Z[i,j] if i >= 2\nloss += m[i]",
}


@pytest.mark.parametrize("name", APART)
def test_statements_with_opposite_guards_may_meet(name: str) -> None:
    random = np.random.default_rng(5)
    arrays = {"X": random.standard_normal((4, 4)), "Z": random.standard_normal((4, 4))}
    program = ts.program(f"{APART[name]}\nreturn loss")
    ts.gradcheck(program, arrays, wrt=["X", "Z"])


@pytest.mark.parametrize("operator", ["max=", "min=", "*="])
def test_what_every_step_does_again_has_no_derivative(operator: str) -> None:
    program = ts.program(f"for t:\n    m[i] {operator} w[i]\n    C[t,i] = X[t,i]\nreturn m, C")
    with pytest.raises(ts.SwapError, match="in every step of `for t`"):
        program.adjoint(wrt=["w"], of=["m"])


def test_readers_of_a_winners_adjoint_look_at_the_winner_alone() -> None:
    text = str(ts.program(ROUTED["a root between"]).grad(wrt=["X", "C"]))
    assert "D.grad" not in text
    assert "S.grad" not in text
    assert text.count("if k == m.arg[n]") == 2
    assert "D.grad[n,k]" in str(ts.program(ROUTED["read twice"]).grad(wrt=["X", "C"]))  # it has another part
