"""Memory: what does not fit is refused before anything is allocated, compiled and interpreted."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import tensorswap as ts
from tensorswap import room
from tensorswap.errors import LimitError
from tensorswap.language import limits

ONES = np.ones(4)


def wide(*shape: int) -> np.ndarray:
    """An array of any shape, without its memory."""
    return np.broadcast_to(np.float64(1), shape)


@pytest.mark.compiled
def test_a_result_that_no_memory_holds_is_refused_with_its_name_shape_and_size() -> None:
    program = ts.program("n: int\nsize(i) = n\nsize(j) = n\nY[i,j] = X[0] + 0*i + 0*j")
    told = r"8\.0 TiB of memory, and .* are free: Y of shape \(1048576, 1048576\) takes 8\.0 TiB"
    with pytest.raises(ts.SwapError, match=told):
        program(X=ONES, n=2**20)
    with pytest.raises(ts.SwapError, match=told):
        program.run_reference(X=ONES, n=2**20)
    assert program(X=ONES, n=2).shape == (2, 2)
    assert "8" in str(program.plan(X=ONES, n=2**20)), "a plan allocates nothing"


@pytest.mark.compiled
def test_inputs_that_must_be_copied_count() -> None:
    with pytest.raises(ts.SwapError, match=r"X of shape \(1048576, 1048576\) takes 8\.0 TiB"):
        ts.program("s += X[i,j]")(X=wide(2**20, 2**20))


@pytest.mark.compiled
def test_the_largest_of_what_is_kept_in_between_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    program = ts.program("T[i,j] += A[i,k] * A[k,j]\nU[i,j] += T[i,k] * A[k,j]\ns += T[i,j] * U[j,i]")
    a = np.eye(64)
    monkeypatch.setenv(room.SETTING, "1 KB")
    with pytest.raises(ts.SwapError, match=r"more than the 1,000 bytes that TENSORSWAP_MEMORY allows: what is kept"):
        program(A=a)
    monkeypatch.setenv(room.SETTING, "1 GB")
    assert program(A=a) == 64
    monkeypatch.setenv(room.SETTING, "plenty")
    with pytest.raises(ts.SwapError, match="TENSORSWAP_MEMORY is 'plenty'"):
        program(A=a)


@pytest.mark.parametrize(
    ("text", "count"),
    [("17", 17), ("600 B", 600), ("9" * 400, int(1e30)), ("8 GB", 8 * 10**9), ("1.5KiB", 1536), ("2 mib", 2**21)],
)
def test_a_limit_is_a_number_of_bytes(monkeypatch: pytest.MonkeyPatch, text: str, count: int) -> None:
    monkeypatch.setenv(room.SETTING, text)
    room.check_room([room.Needed("X", count)])
    with pytest.raises(LimitError):
        room.check_room([room.Needed("X", count + 1)])


def test_the_limit_of_a_group_of_processes_counts(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(room, "GROUP", tmp_path)
    alone = room.available()
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("1000\n")
    (tmp_path / "memory.stat").write_text("anon 300\ninactive_file 500\n")
    assert alone is None or room.available() is not None
    (tmp_path / "memory.max").write_text("4000\n")
    assert room.available() == 3500


@pytest.mark.compiled
@pytest.mark.parametrize("shape", [(2**32, 2**32, 0), (2**50, 0)])
def test_an_empty_array_that_numpy_cannot_make_is_refused(shape: tuple[int, ...]) -> None:
    indices = "ijk"[: len(shape)]
    sizes = "".join(f"size({i}) = {n}\n" for i, n in zip(indices, shape, strict=True))
    program = ts.program(f"{sizes}Y[{','.join(indices)}] = X[0]")
    for run in (program, program.run_reference):
        with pytest.raises(ts.SwapError, match="Y would have the shape"):
            run(X=ONES)


def test_an_index_with_more_values_than_days_suffice_for_is_refused() -> None:
    with pytest.raises(ts.SwapError, match="index i would have the size 281474976710656"):
        ts.program("size(i) = 281474976710656\ns += X[0] + 0*i")(X=ONES)


def test_derivatives_have_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    program = ts.program("y = x * sin(x) * exp(x)\nz = y * tanh(y) * x").tangent(["x"])
    monkeypatch.setattr(limits, "PARTS", 50)
    with pytest.raises(LimitError, match="numbers, names and operators; at most 50 are taken"):
        program.tangent(["x"])


def test_the_largest_of_nothing_says_so() -> None:
    empty = ts.tensor(np.zeros((2, 0)))
    for run in (empty.max, lambda: empty.max(axis=1), lambda: copy.copy(empty).max(axis=(0, 1))):
        with pytest.raises(ts.SwapError, match=r"no element is the largest: axis 1 of shape \(2, 0\) is empty"):
            run()
    with pytest.raises(ts.SwapError, match="no element is the smallest"):
        empty.min()
    assert empty.max(axis=0).value.shape == (0,)
