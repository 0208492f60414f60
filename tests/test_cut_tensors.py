"""Products of a large tensor: every thread reads its own part of it, and what reads it too joins, so that it comes from
memory once. Here what counts as large is small, so that the interpreter can tell what is right."""

from __future__ import annotations

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.plan import nest
from tensorswap.run import tuning
from tests.test_planner import check

pytestmark = pytest.mark.compiled

SIZES = {"i": 24, "j": 20, "k": 17, "r": 3}
MTTKRP = "M[i,r] += X[i,j,k] * B[j,r] * C[k,r]\nloss += sin(M[i,r])\nreturn loss, M"


@pytest.fixture(autouse=True)
def _small_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nest, "CACHE", 1024)
    monkeypatch.setattr(tuning, "PARALLEL", 100)


def arrays(**axes: str) -> dict[str, np.ndarray]:
    numbers = np.random.default_rng(7)
    return {name: numbers.standard_normal([SIZES[i] for i in of]) for name, of in axes.items()}


JOINING = {
    "two products": ("U[i,r] += X[i,j] * B[j,r]\nV[i,r] += X[i,j] * C[j,r]", {"X": "ij", "B": "jr", "C": "jr"}),
    "a product and a sum": ("U[i,r] += X[i,j] * B[j,r]\nS[i] += X[i,j] ** 2", {"X": "ij", "B": "jr"}),
    "an element of what the product makes": (
        "U[i,r] += X[i,j] * B[j,r]\nS[i,j] = X[i,j] * 2 - U[i,0]",
        {"X": "ij", "B": "jr"},
    ),
    "what adds to another axis": (
        "U[i,r] += X[i,j] * B[j,r]\nV[j,r] += X[i,j] * A[i,r]",
        {"X": "ij", "B": "jr", "A": "ir"},
    ),
    "a product of what the first one makes": (
        "U[i,r] += X[i,j] * B[j,r]\nV[j,r] += X[i,j] * U[i,r]",
        {"X": "ij", "B": "jr"},
    ),
}


@pytest.mark.parametrize("name", JOINING)
def test_what_reads_a_large_tensor_joins(name: str) -> None:
    text, axes = JOINING[name]
    program, given = ts.program(text), arrays(**axes)
    (reading,) = [row for row in program.plan(given).rows if any("X[" in s for s in row.statements)]
    assert len(reading.statements) == 2
    assert reading.how.startswith("parallel over i"), "each thread reads its own part of X"
    check(program, given)


def test_what_would_not_cut_the_large_tensor_stays_apart() -> None:
    """Threads over the columns could share both statements, but every one would read all of X."""
    program = ts.program("D[r,j] = exp(C[r,j])\nU[r,i] += D[r,j] * X[i,j]")
    given = {"X": np.random.default_rng(1).standard_normal((96, 64)), "C": np.ones((8, 64))}
    making, reading = program.plan(given).rows
    assert making.how.startswith("parallel over r")
    assert reading.how.startswith("parallel over i")
    check(program, given)


def test_mttkrp_with_its_gradients_reads_the_tensor_once() -> None:
    given = arrays(X="ijk", B="jr", C="kr")
    program = ts.program(MTTKRP).grad(of="loss", wrt=["B", "C"])
    assert sum(any("X[" in s for s in row.statements) for row in program.plan(given).rows) == 1
    check(program, given)
