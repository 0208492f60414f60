"""Training on mapped files that others change: an error or the same numbers, never a signal."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.training import data as module
from tensorswap.training import mapped

MODEL = ts.program("S[b,c] += X[b,d] * W[c,d]\nL = log_softmax(S)\nloss -= L[b,label[b]] / size(b)")
PARAMS = {"W": np.zeros((3, 4), np.float32)}
NUMBERS = np.random.default_rng(3)
WHOLE: dict[str, Any] = {
    "X": NUMBERS.standard_normal((300, 4)).astype(np.float32),
    "label": NUMBERS.integers(0, 3, 300),
}


def fit(data: Any, **options: Any) -> Any:
    return ts.fit(MODEL, PARAMS, data, **{"batch_size": 32, "epochs": 3, "progress": False, **options})


@cache
def wanted() -> Any:
    """What the same arrays in memory give."""
    return fit(WHOLE).history


@pytest.fixture(params=["held", "windows"])
def reading(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Files are read once, or a window at a time as large ones are."""
    if request.param == "windows":
        monkeypatch.setattr(module, "WHOLE", 100)
        monkeypatch.setattr(module, "WINDOW", 2000)
        monkeypatch.setattr(mapped, "GAP", 20)
        monkeypatch.setattr(mapped, "BLOCK", 333)
    return str(request.param)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Any]:
    for name, array in WHOLE.items():
        np.save(tmp_path / f"{name}.npy", array)
    return {name: np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in WHOLE}


@pytest.mark.parametrize("shuffle", [True, False])
def test_a_file_gives_the_same_numbers_as_memory(reading: str, files: dict[str, Any], shuffle: bool) -> None:
    usual = fit(WHOLE, shuffle=shuffle, validation=WHOLE)
    mixed = {**WHOLE, "X": files["X"]}
    views = {"X": np.asarray(files["X"]), "label": files["label"][:]}
    for given in (files, mixed, views):
        assert fit(given, shuffle=shuffle, validation=given).history == usual.history


def test_files_of_another_type_or_layout_are_read_as_arrays_are(reading: str, tmp_path: Path) -> None:
    for name, array in {
        "wide": WHOLE["X"].astype(">f8"),
        "columns": np.asfortranarray(WHOLE["X"]),
        "more": np.concatenate([WHOLE["X"], WHOLE["X"]]),
    }.items():
        np.save(tmp_path / name, array)
        given = np.load(tmp_path / f"{name}.npy", mmap_mode="r")[:300]
        assert fit({**WHOLE, "X": given}).history == wanted()
    private = np.load(tmp_path / "more.npy", mmap_mode="c")[300:]
    private[:] = -WHOLE["X"]  # in memory alone
    assert fit({**WHOLE, "X": private}).history == fit({**WHOLE, "X": -WHOLE["X"]}).history


def test_a_time_axis_before_the_examples(reading: str, tmp_path: Path) -> None:
    program = ts.program("Y[t,b] += X[t,b,d] * W[d]\nloss += (Y[t,b] - 1) ** 2 / size(b)")
    X = NUMBERS.standard_normal((5, 50, 3))
    np.save(tmp_path / "x.npy", X)
    found, usual = (
        ts.fit(program, {"W": np.zeros(3)}, {"X": given}, batch_size=7, progress=False).history
        for given in (np.load(tmp_path / "x.npy", mmap_mode="r"), X)
    )
    assert found == usual


def out_of_range(folder: Path) -> None:
    labels = np.load(folder / "label.npy", mmap_mode="r+")
    labels[:] = 10**12
    labels.flush()


def cut(folder: Path) -> None:
    os.truncate(folder / "label.npy", 300)


def not_numbers(folder: Path) -> None:
    rows = np.load(folder / "X.npy", mmap_mode="r+")
    rows[:] = np.nan
    rows.flush()


@pytest.mark.parametrize(
    ("change", "message"), [(out_of_range, "position 1000000000000"), (cut, "has become shorter"), (not_numbers, "NaN")]
)
def test_a_file_that_changes_during_a_run_is_checked_again(
    reading: str, files: dict[str, Any], tmp_path: Path, change: Callable[[Path], None], message: str
) -> None:
    def schedule(step: int) -> float:
        if step == 3:
            change(tmp_path)
        return 1.0

    if reading == "held":
        assert fit(files, schedule=schedule).history == wanted()
        return
    with pytest.warns(ts.SwapWarning, match="changes while"), pytest.raises(ts.SwapError, match=message) as told:
        fit(files, schedule=schedule)
    assert told.value.result.step >= 3


def test_a_change_that_does_no_harm_is_told(reading: str, files: dict[str, Any], tmp_path: Path) -> None:
    def schedule(step: int) -> float:
        if step == 3:
            rows = np.load(tmp_path / "X.npy", mmap_mode="r+")
            rows[:] = 1
            rows.flush()
        return 1.0

    if reading == "windows":
        with pytest.warns(ts.SwapWarning, match="the file of X changes"):
            assert fit(files, schedule=schedule).step == 30
    else:
        assert fit(files, schedule=schedule).step == 30


def test_a_file_cut_before_the_run_is_refused(reading: str, files: dict[str, Any], tmp_path: Path) -> None:
    cut(tmp_path)
    with pytest.raises(ts.SwapError, match="shorter than its map"):
        fit(files)
    with pytest.raises(ts.SwapError, match="shorter than its map"):
        ts.fit(MODEL, {"W": files["label"][-12:].reshape(3, 4)}, WHOLE, progress=False)


def test_a_file_without_a_name_is_held(reading: str, files: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "label.npy").unlink()
    assert fit(files).history == wanted()
    np.save(tmp_path / "label.npy", WHOLE["label"][::-1])  # another file of that name
    assert fit(files).history == wanted()


def test_labels_in_memory_may_change_during_a_run() -> None:
    labels, table = WHOLE["label"].copy(), np.arange(3)
    program = ts.program(str(MODEL).replace("label[b]", "to[label[b]]"))

    def schedule(step: int) -> float:
        labels[:] = 10**12
        table[:] = 10**12
        return 1.0

    found = ts.fit(
        program, PARAMS, {**WHOLE, "label": labels, "to": table}, batch_size=32, epochs=3, progress=False,
        schedule=schedule,
    )  # fmt: skip
    assert found.history == wanted()
