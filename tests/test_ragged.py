"""Guards that bound an index by values: loops run between the bounds, whatever those are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorswap as ts

from .test_run_checks import check_same, programs

pytestmark = pytest.mark.compiled
R = np.random.default_rng(11)
SPARSE = "size(i) = size(row, 0) - 1\nY[i,c] += v[e] * B[col[e],c] if row[i+0] <= e and e < row[i+1]"
AT_MOST = "size(i) = size(row, 0) - 1\nY[i] += v[e] if e - 1 >= row[i+0] and e <= row[i+1]"
PADDED = "Y[b,d] += X[b,j,d] if j < length[b]"
ATTENTION = """S[b,i,j] += Q[b,i,d] * K[b,j,d] if j < length[b]
m[b,i] max= S[b,i,j] if j < length[b]
E[b,i,j] = exp(S[b,i,j] - m[b,i]) if j < length[b]
z[b,i] += E[b,i,j]
Y[b,i,d] += E[b,i,j] / z[b,i] * V[b,j,d] if j < length[b]
return Y"""
EDGES, COLUMNS = 30, R.integers(0, 5, 30)
ROWS = {
    "sorted": [0, 3, 3, 10, 30], "one": [0, 30], "overlapping": [0, 20, 10, 30, 5], "outside": [-7, 3, 90, 12, 2**40],
    "at the ends": [-(2**63), 2**63 - 1, -(2**63), 2**63 - 1], "empty": [5, 5, 5], "none": [4],
}  # fmt: skip


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("columns", [7, 20])  # from 16 on, several terms are added at a time
def test_rows_of_a_sparse_matrix(rows: list[int], dtype: Any, columns: int) -> None:
    arrays = {"row": np.array(rows), "v": R.random(EDGES).astype(dtype), "col": COLUMNS,
              "B": R.random((5, columns)).astype(dtype)}  # fmt: skip
    for program, given in programs(SPARSE, ["v", "B"], arrays):
        tolerance = 1e-12 if dtype is np.float64 else 1e-5
        found, wanted = program(given), program.run_reference(given)
        for name in wanted if isinstance(wanted, dict) else [None]:
            a, b = (found, wanted) if name is None else (found[name], wanted[name])
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_bounds_that_are_computed_do_not_wrap_around(rows: list[int]) -> None:
    arrays = {"row": np.array(rows), "v": R.random(EDGES)}
    for program, given in programs(AT_MOST, ["v"], arrays):
        check_same(program(given), program.run_reference(given))


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.int8, np.uint8, np.uint64, np.float64])
def test_lengths_of_any_type(kind: Any) -> None:
    """Those of floating-point numbers, too, which no loop can take for bounds."""
    length = np.array([0, 3, 6, 4], kind)
    if kind is np.float64:
        length[1:] += [0.5, np.nan, np.inf]
    for program, given in programs(PADDED, ["X"], {"X": R.random((4, 6, 5)), "length": length}):
        check_same(program(given), program.run_reference(given))


PROGRAMS: dict[str, tuple[str, list[str], dict[str, Any]]] = {
    "segments": ("size(Y, 0) = 4\nY[s,d] += X[e,d] if seg[e] == s\nsize(s) = 4", ["X"],
                 {"X": R.random((9, 3)), "seg": np.array([0, 3, 1, 1, 7, -2, 3, 0, 2])}),
    "the largest of each": ("size(s) = 4\nm[s] max= X[e] if seg[e] == s", ["X"],
                            {"X": R.random(9), "seg": np.array([0, 3, 1, 1, 7, -2, 3, 0, 2])}),
    "attention": (ATTENTION, ["Q", "K", "V"],
                  {"Q": R.random((2, 3, 4)), "K": R.random((2, 5, 4)), "V": R.random((2, 5, 4)),
                   "length": np.array([5, 2])}),
    "behind a start": ("Y[b] += X[b,j] if j >= start[b] and j - 2 < start[b]", ["X"],
                       {"X": R.random((3, 8)), "start": np.array([0, 5, 7])}),
    "backwards": ("Y[b] += X[b,j] if 4 - j <= start[b]", ["X"],
                  {"X": R.random((3, 8)), "start": np.array([-9, 2, 7])}),
    "a triangle of values": ("Y[i] += X[i,j] if j < n[i] and j <= i", ["X"],
                             {"X": R.random((6, 6)), "n": np.array([6, 0, 2, 9, 1, 4])}),
    "bounds that are computed": ("n[i] = k[i] + 1\nY[i] += X[i,j] if j < n[i]", ["X"],
                                 {"X": R.random((6, 6)), "k": np.array([6, 0, 2, 9, 1, 4])}),
    "in a block": ("for t:\n    H[t,b] = (H[t-1,b] if t > 0 else 0) * 0.5 + X[t,b] if t < n[b]", ["X"],
                   {"X": R.random((6, 3)), "n": np.array([6, 0, 2])}),
    "the label": ("L[b] += P[b,k] if k == label[b]", ["P"], {"P": R.random((4, 3)), "label": np.array([0, 2, 3, -1])}),
    "bounds under a condition": ("Y[i] += X[j] if i < 3 and j < n[i]", ["X"],
                                 {"X": R.random(5), "n": np.array([1, 9, 3, 2])}),
    "an index that two bound": ("Y[b,c] += X[j] if j < n[b] and j >= k[c]", ["X"],
                                {"X": R.random(5), "n": np.array([1, 9, 3]), "k": np.array([0, 2])}),
    "in a circle": ("s += X[i,j] if i <= a[j] and j <= c[i]", ["X"],
                    {"X": R.random((4, 5)), "a": R.integers(0, 4, 5), "c": R.integers(0, 5, 4)}),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_forward_and_back(name: str) -> None:
    text, wrt, arrays = PROGRAMS[name]
    for program, given in programs(text, wrt, arrays):
        check_same(program(given), program.run_reference(given))


def test_loops_run_between_the_bounds() -> None:
    program = ts.program(SPARSE)
    arrays = {"row": np.array([0, 3, 30]), "v": R.random(EDGES), "col": COLUMNS, "B": R.random((5, 7))}
    assert " if " not in program.source(arrays).split("def step")[1].split("# ")[1].split("\n", 1)[1].split("def ")[0]


TILED = {
    "rows": "Y[b,i,j] += Q[b,i,d] * K[b,j,d] if i < length[b]",
    "columns": "Y[b,i,j] += Q[b,i,d] * K[b,j,d] if j < length[b]",
    "both": "Y[b,i,j] += s * Q[b,i,d] * K[b,j,d] if i < length[b] and j < length[b]",
    "the sum": "Y[b,i,d] += P[b,i,j] * K[b,j,d] if j < length[b]",
    "the sum and rows": "Y[b,i,d] -= P[b,i,j] * K[b,j,d] if i < length[b] and j < length[b]",
    "from a value on": "Y[b,i,d] += P[b,i,j] * K[b,j,d] if j >= length[b] and i >= length[b]",
    "between values": "Y[b,i,d] += P[b,i,j] * K[b,j,d] if 20 - length[b] <= j and j < length[b]",
    "with an index beside it": "Y[b,i,j] += Q[b,i,d] * K[b,j,d] if j <= i and j + 1 < length[b]",
    "of all": "Y[b,i,j] += Q[b,i,d] * K[b,j,d] if i < most and j < length[b]",
    "of rows": "Y[b,i,j] += Q[b,i,d] * K[b,j,d] if j < span[i]",
    "added to": "Y[b,i,j] += Q[b,i,j%16] * 2\nY[b,i,j] += Q[b,i,d] * K[b,j,d] if i < length[b]",
}
LENGTHS = {
    "some": [0, 1, 7, 8, 17, 33, 40], "beyond": [-5, 41, 2**40, -(2**40), 40, 39, 9],
    "at the ends": [-(2**63), 2**63 - 1, -(2**63) + 1, 40, 0, 2**62, 8],
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize("name", TILED)
def test_tiles_end_where_values_say(name: str, lengths: list[int], dtype: Any) -> None:
    """What lies beyond may be anything: it is read, and neither added nor written."""
    length = np.array(lengths)
    Q, K = (R.standard_normal((7, 40, 16)).astype(dtype) for _ in range(2))
    given: dict[str, Any] = {"Q": Q, "K": K, "P": R.standard_normal((7, 40, 40)).astype(dtype), "length": length,
                             "s": 0.5, "most": np.int64(21), "span": np.arange(40) % 31}  # fmt: skip
    program = ts.program(TILED[name])
    given = {key: array for key, array in given.items() if key in program.inputs}
    wanted = program.run_reference(given)
    np.testing.assert_allclose(program(given), wanted, rtol=1e-4 if dtype is np.float32 else 1e-11, atol=1e-4)
    if name in ("rows", "both", "the sum"):
        beyond = np.arange(40)[None, :, None] >= length[:, None, None]
        for key in ("Q", "P") if name != "the sum" else ("K",):
            if key in given:
                given[key] = np.where(beyond, np.nan, given[key])
        np.testing.assert_allclose(program(given), wanted, rtol=1e-4, atol=1e-4)


def test_tiles_are_used_for_them() -> None:
    shapes = {"Q": (7, 40, 16), "K": (7, 40, 16), "P": (7, 40, 40), "length": np.arange(7)}
    for name in ("rows", "both", "the sum and rows"):
        program = ts.program(TILED[name].replace("s * ", ""))
        source = program.source(**{key: shape for key, shape in shapes.items() if key in program.inputs})
        assert "_f8_" in source, name
