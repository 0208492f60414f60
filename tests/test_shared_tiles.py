"""Tiles as functions that kernels share, and where they end: strips with and without a rest, sums under guards."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.kernel.registers import Registers, assuming, registers
from tensorswap.plan import nest
from tests.test_planner import check

pytestmark = pytest.mark.compiled

TWO_LAYERS = """
H[b,i,j] += X[b,i,j]
H[b,i,j] += X[b,i,k] * W[k,j] / 8
Z[b,i,j] = tanh(H[b,i,j])
Y[b,i,j] += H[b,i,j]
Y[b,i,j] += Z[b,i,k] * V[k,j]
loss += Y[b,i,j] ** 2
"""


def layers(rows: int) -> tuple[ts.Program, dict[str, np.ndarray]]:
    numbers = np.random.default_rng(rows)
    arrays = {"X": numbers.random((3, rows, 64)), "W": numbers.random((64, 64)), "V": numbers.random((64, 64)) / 8}
    return ts.program(TWO_LAYERS).grad(of="loss", wrt=["W", "V", "X"]), arrays


@pytest.mark.parametrize("grain", [8, 4, 12])
@pytest.mark.parametrize("rows", [8, 20, 31, 48, 57, 72, 100])
def test_strips_with_and_without_a_rest(rows: int, grain: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tile that has moved back over another adds to its own elements only."""
    monkeypatch.setattr(nest, "CACHE", 2**14)
    monkeypatch.setattr(nest, "GRAIN", grain)
    check(*layers(rows))


def test_strips_without_a_rest_need_no_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nest, "CACHE", 2**14)
    for rows in (64, 60):
        program, arrays = layers(rows)
        even = 8 % registers().outer[0] == 0 and rows % 8 == 0
        assert ("if aside" in program.source(arrays)) == (not even)


BANDS = {
    "up to the row": "k <= i",
    "below the row": "k < i",
    "from the row on": "k >= i",
    "up to a falling line": "k < 50 - i",
    "from a falling line on": "k + i >= 30",
    "a band": "k >= i - 3 and k <= i + 9",
    "a narrow band": "k >= i - 1 and k <= i + 2",  # no value that all rows of a tile have in common
    "a falling band": "k + i >= 20 and k + i < 70",
    "up to the column": "k <= j",
    "row and column": "k <= i and j <= i",
    "between row and column": "k <= i and k >= j",
}


@pytest.mark.parametrize("size", [16, 33, 48, 64])
@pytest.mark.parametrize("guard", BANDS.values(), ids=BANDS)
def test_sums_under_guards(guard: str, size: int) -> None:
    """Rows of a tile have different ranges: what they do not share is left over, below, above or on both sides."""
    numbers = np.random.default_rng(size)
    arrays = {name: numbers.standard_normal((size, size)) for name in "AB"}
    check(ts.program(f"Y[i,j] += A[i,k] * B[k,j] * 0.5 if {guard}"), arrays)
    check(ts.program(f"Y[h,i,j] -= A[i,k] * B[k,j] * C[h] if {guard}"), {**arrays, "C": numbers.standard_normal(3)})
    check(ts.program(f"Y[i,j] += A[j,i]\nY[i,j] += A[i,k] * B[k,j] if {guard}"), arrays)  # tiles add to it


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_of_one_process_that_differ_in_one_number(dtype: type) -> None:
    """They share what is the same, and no more: strides, numbers of steps, factors, whether they add."""
    numbers = np.random.default_rng(3)

    def matrix(*shape: int) -> np.ndarray:
        return numbers.standard_normal(shape).astype(dtype)

    for rows, summed, columns in ((64, 64, 64), (64, 64, 72), (64, 72, 64), (72, 64, 64), (64, 15, 64), (64, 48, 17)):
        for text in (
            "Y[i,j] += A[i,k] * B[k,j]",
            "Y[i,j] += A[i,k] * B[k,j] * 3",
            "Y[i,j] -= A[i,k] * B[k,j] * s",
            "Y[i,j] += C[i,j]\nY[i,j] += A[i,k] * B[k,j]",
            "Y[j,i] += A[i,k] * B[k,j]",
            "Y[i,j] += A[i,k] * D[j,k]",
        ):
            program = ts.program(text)
            given = {
                "A": matrix(rows, summed), "B": matrix(summed, columns), "C": matrix(rows, columns),
                "D": matrix(columns, summed), "s": dtype(0.7),
            }  # fmt: skip
            arrays = {name: given[name] for name in program.inputs}
            found, wanted = program(arrays), program.run_reference(arrays)
            error = 2e-4 if dtype is np.float32 else 1e-11
            np.testing.assert_allclose(found, wanted, rtol=error, atol=error * summed)


FORMS = ["Y[i,j] += A[i,k] * B[k,j]", "Y[i,j] += A[k,i] * B[j,k]", "size(h) = 2\nY[h,i,j] += A[i,k] * B[k,j]"]


@pytest.mark.parametrize(("tiny", "dtype"), [(False, np.float32), (True, np.float64)])
@pytest.mark.parametrize("text", FORMS)
def test_every_number_of_steps_and_columns(text: str, dtype: type, tiny: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several steps stand between two jumps, and tiles are as wide as whole vectors: with all that is left over. As if
    the cache of a core were tiny, too, so that panels come in blocks and sums in pieces."""
    if tiny:
        small = replace(registers(), cache=2**13)
        for module in ("roles", "tiling"):
            monkeypatch.setattr(f"tensorswap.lower.{module}.registers", lambda: small)
        monkeypatch.setattr("tensorswap.lower.tiling.STEPS", 16)
    numbers = np.random.default_rng(5)
    program = ts.program(text)
    for steps, columns in (
        (1, 27),
        (2, 28),
        (3, 31),
        (4, 33),
        (5, 35),
        (7, 64),
        (15, 65),
        (33, 97),
        (50, 70),
        (75, 150),
    ):
        sizes = {"i": 13 + steps % 7, "j": columns, "k": steps}
        places = {access.tensor: access.indices for access in program.loops.statements[-1].reads}
        arrays = {name: numbers.standard_normal([sizes[i.name] for i in indices]) for name, indices in places.items()}
        check(program, {name: array.astype(dtype) for name, array in arrays.items()})


OTHERS = {"own": registers(), "AVX-512": Registers(64, 32, by_lane=False), "AVX2": Registers(32, 16, by_lane=False)}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("assumed", OTHERS.values(), ids=list(OTHERS))
def test_few_columns_and_short_rows(assumed: Registers, dtype: str) -> None:
    """What fills no vector is some of its lanes: nothing beside them is read, added or written."""
    numbers = np.random.default_rng(9)
    with assuming(assumed):
        for few in (2, 3, 5, 7, 9, 10, 13, 15, 17, 30):
            given = {"A": numbers.random((21, 40)).astype(dtype), "B": numbers.random((40, few)).astype(dtype)}
            check(ts.program("Y[i,j] += A[i,k] * B[k,j]\nZ[i,j] += Y[i,j]\nZ[i,j] += A[i,k] * B[k,j] / 2"), given)
            given = {"X": numbers.random((3, 9, few + 2)).astype(dtype), "G": numbers.random((3, 7, few)).astype(dtype)}
            check(ts.program("D[c,u,v] += X[c,i+u,j+v] * G[c,i,j]"), given)
