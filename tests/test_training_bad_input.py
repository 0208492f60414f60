"""ts.fit and ts.step with what people (or programs) pass by mistake: a clear error before time is spent, no other."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorswap as ts

MODEL = ts.program("Y[b] += X[b,d] * W[d]\nloss += (Y[b] - t[b]) ** 2 / size(b)")
X = np.random.default_rng(0).standard_normal((40, 3))
DATA: dict[str, Any] = {"X": X, "t": X @ np.array([1.0, -2.0, 3.0])}
PARAMS: dict[str, Any] = {"W": np.zeros(3)}


def fit(data: Any = DATA, params: Any = PARAMS, program: Any = MODEL, **options: Any) -> Any:
    return ts.fit(program, params, data, **{"batch_size": 8, "progress": False, **options})


class NoWords:
    def __repr__(self) -> str:
        raise RuntimeError("an object that cannot be shown")


def with_nan(array: Any) -> Any:
    changed = np.array(array)
    changed.flat[-1] = np.nan
    return changed


HUGE = 10**400
CALLS: dict[str, tuple[Any, ...]] = {
    "lr": (0, -1, np.nan, np.inf, -np.inf, "fast", None, 1j, np.complex128(1), True, HUGE, [0.1], NoWords()),
    "batch_size": (0, -1, 1.5, None, "8", True, NoWords()),
    "epochs": (0, -1, 1.5, None, "one"),
    "seed": (None, 1.5, "zero", True, [1]),
    "clip": (0, -1, np.nan, np.inf, "a", True, HUGE),
    "loss": (None, 5, ["loss"], "Y", "los", ""),
    "batch": (None, 5, ["b"], "zz", ""),
    "metrics": ("loss", None, 5, [None], [["loss"]], ["Y"]),
    "sizes": ([1], {"d": -1}, {"d": 1.5}, {"zz": 3}, {5: 1}, "d", {"d": True}),
    "optimizer": (
        "adan", None, 5, ["adam"], {}, {"name": "adam", 3: 1}, {"name": "adam", "beta": 0.9},
        {"name": "adam", "beta1": np.nan}, {"name": "adam", "beta1": np.inf}, {"name": "adam", "beta1": 1.0},
        {"name": "adam", "beta1": -0.1}, {"name": "adam", "beta1": "a"}, {"name": "adam", "beta2": HUGE},
        {"name": "adam", "eps": -1}, {"name": "sgd", "weight_decay": -1}, {"name": "momentum", "dampening": np.nan},
        {"name": "rmsprop", "alpha": 2}, {"name": "adafactor", "d": 0},
    ),
    "schedule": (
        "cosin", 5, ["cosine"], {}, {"nam": "cosine"}, {"name": "cosine", "warmup": "a"},
        {"name": "cosine", "warmup": np.nan}, {"name": "cosine", "warmup": -3}, {"name": "step", "factor": -1},
        lambda: 1, lambda step: 1 / 0, lambda step: "fast", lambda step: "0.5", lambda step: None,
        lambda step: [1, 2], lambda step: np.nan, lambda step: np.inf, lambda step: -1, lambda step: HUGE,
    ),
    "checkpoint": (".", "/", "/dev/null/run", 5, b"run", "", "a\0b", "x" * 300),
    "checkpoint_seconds": (np.nan, None, "often", -1),
    "shuffle": ("x", 3, None),
    "same_noise": (3, None),
    "progress": ("x", None),
    "resume": (5, ".", b"run", "nowhere.safetensors", "a\0b", True),
    "validation": (
        5, "text", {}, [DATA], {"X": X}, {**DATA, "W": np.zeros(3)}, {**DATA, "X": X[:, :2]},
        {**DATA, "X": with_nan(X)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_an_option_that_makes_no_sense_is_refused_at_once(name: str, tmp_path: Path) -> None:
    for value in CALLS[name]:
        with pytest.raises(ts.SwapError) as told:
            fit(**{"optimizer": "sgd", name: value})
        assert not hasattr(told.value, "result") or told.value.result is None, value
        assert len(str(told.value)) < 700


DATAS: list[tuple[str, Any]] = [
    ("iterable|function", None), ("iterable|function", 5), ("iterable|function", NoWords()),
    ("dict of arrays", [1, 2]), ("dict of arrays", "text"), ("dict of arrays", X), ("gives nothing", []),
    ("iterable", lambda: 5), ("division", lambda: 1 / 0), ("dict of arrays", [None]),
    ("batch index b", {}), ("no input 3", {**DATA, 3: X}), ("no input 'x'", {**DATA, "x": X}),
    ("W is among the parameters", {**DATA, "W": np.ones(3)}),
    ("dtype object", {**DATA, "X": X.astype(object)}), ("dtype complex", {**DATA, "X": X.astype(complex)}),
    ("dtype <U", {**DATA, "X": np.array([["a"] * 3] * 40)}), ("differ in length", {**DATA, "X": [[1, 2], [3]]}),
    ("X is None", {**DATA, "X": None}), ("float16", {**DATA, "X": X.astype(np.float16)}),
    (r"X\[39, 2\] is NaN", {**DATA, "X": with_nan(X)}), ("number of examples", {**DATA, "t": X[:5, 0]}),
    ("no example", {name: array[:0] for name, array in DATA.items()}), ("neither among", {"X": X}),
    ("mask", {**DATA, "X": np.ma.masked_array(X, X > 1)}), ("index d has size", {**DATA, "X": X[:, :2]}),
    ("3 axes", {**DATA, "X": X[:, :, None]}),
]  # fmt: skip


@pytest.mark.parametrize(("message", "data"), DATAS)
def test_data_that_cannot_be_trained_on_is_refused(message: str, data: Any) -> None:
    with pytest.raises(ts.SwapError, match=message):
        fit(data)


PARAMETERS: list[tuple[str, Any]] = [
    ("dict of arrays", None), ("dict of arrays", [1]), ("name 1", {1: np.zeros(3)}), ("no parameter", {}),
    ("axis 0 of W", {"W": ("he", (-5,))}), ("shape of W is 5", {"W": ("he", 5)}), ("shape of W", {"W": ("he", "ab")}),
    ("axis 0 of W", {"W": ("he", (3.0,))}), ("more than any memory", {"W": ("he", (10**15,))}),
    ("2 axes", {"W": ("he", (3, 3))}), ("no known way", {"W": "x" * 1000}),
    ("dtype complex", {"W": np.zeros(3, "c16")}), ("dtype object", {"W": np.array([None] * 3)}),
    ("dtype object", {"W": None}), ("inhomogeneous", {"W": [[1, 2], [3]]}),
    ("NaN", {"W": np.full(3, np.nan)}), ("a_W twice", {"a": {"W": np.zeros(3)}, "a_W": np.zeros(3)}),
]  # fmt: skip


@pytest.mark.parametrize(("message", "params"), PARAMETERS)
def test_parameters_that_cannot_be_trained_are_refused(message: str, params: Any) -> None:
    with pytest.raises(ts.SwapError, match=message):
        fit(params=params)
    with pytest.raises(ts.SwapError, match=message):
        ts.step(MODEL, params, sizes={"d": 3})


@pytest.mark.parametrize("program", [None, 5, "Y[b] = X[b]", NoWords()])
def test_what_is_no_program_is_refused(program: Any) -> None:
    with pytest.raises(ts.SwapError, match="what is trained is a program"):
        fit(program=program)
    with pytest.raises(ts.SwapError, match="what is trained is a program"):
        ts.step(program, PARAMS)


def test_numbers_of_numpy_are_numbers() -> None:
    options = {"name": "adam", "beta1": np.float64(0.9), "beta2": np.float32(0.5), "eps": np.float64(1e-8)}
    result = fit(optimizer=options, clip=np.float32(1), lr=np.float32(0.1), seed=np.int32(3), batch_size=np.int64(8))
    assert result.step == 5


@pytest.mark.parametrize("options", [{"name": "adam", "beta1": 0}, {"name": "momentum", "momentum": 0.0}])
def test_an_option_of_zero_leaves_a_state_that_is_only_written(options: dict[str, Any]) -> None:
    result = fit(optimizer=options, shuffle=False, lr=0.1)
    step = ts.step(MODEL, PARAMS, optimizer=options, lr=0.1)
    losses = [step({name: array[k : k + 8] for name, array in DATA.items()}) for k in range(0, 40, 8)]
    np.testing.assert_allclose(result.history.loss, losses, rtol=1e-12)


def test_a_batch_of_ones_own_loop_does_not_replace_the_parameters() -> None:
    step = ts.step(MODEL, PARAMS)
    for name in ("W", "W_m", "lr", "step"):
        with pytest.raises(ts.SwapError, match=f"{name} belongs to the training step"):
            step({**DATA, name: np.ones(3)})
    assert step.count == 0


# -- what went wrong on the way loses nothing


def parts() -> list[dict[str, Any]]:
    return [{name: array[k : k + 16] for name, array in DATA.items()} for k in (0, 16, 32)]


def broken() -> Iterator[dict[str, Any]]:
    yield from parts()[:2]
    raise OSError("the disk is gone")


def late(step: int) -> float:
    return 1.0 if step < 4 else 1 / 0


@pytest.mark.parametrize(
    ("message", "data", "options"),
    [
        ("the disk is gone", broken, {}),
        ("the data lacks t", [*parts()[:2], {"X": X}], {}),
        ("index d has size 2", [*parts()[:2], {**DATA, "X": X[:, :2]}], {}),
        ("is NaN", [*parts()[:2], {**DATA, "X": with_nan(X)}], {}),
        ("no number for step 4", parts(), {"schedule": late}),
    ],
)
def test_an_error_in_the_middle_comes_with_what_was_learned(
    message: str, data: Any, options: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "run.safetensors"
    with pytest.raises(ts.SwapError, match=message) as told:
        fit(data, checkpoint=path, shuffle=False, **options)
    kept = told.value.result
    assert kept.step == 4
    wanted = fit(parts()[:2], shuffle=False)
    np.testing.assert_array_equal(kept.params["W"], wanted.params["W"])
    assert kept.history.loss == wanted.history.loss
    resumed = fit(parts(), checkpoint=path, resume=True, shuffle=False)
    assert resumed.history == fit(parts(), shuffle=False).history


def test_a_loss_that_is_no_number_comes_with_the_steps_before_it() -> None:
    program = ts.program("Z[b] += X[b,d] * W[d]\nloss += log(Z[b]) / size(b)")
    given = {"X": np.array([[1.0, 1.0], [2.0, 1.0], [1.0, -9.0], [1.0, 1.0]])}
    options: dict[str, Any] = {"batch_size": 1, "shuffle": False, "lr": 1e-3, "progress": False}
    with pytest.raises(ts.SwapError, match="step 3 is no finite") as told:
        ts.fit(program, {"W": np.ones(2)}, given, **options)
    wanted = ts.fit(program, {"W": np.ones(2)}, {"X": given["X"][:2]}, **options)
    assert told.value.result.step == 2
    assert told.value.result.history.loss == wanted.history.loss
    np.testing.assert_array_equal(told.value.result.params["W"], wanted.params["W"])


def test_a_checkpoint_that_cannot_be_written_is_told_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tensorswap.training import tensorfile

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tensorfile, "_sync_folder", full)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        result = fit(checkpoint=tmp_path / "run.safetensors", checkpoint_seconds=0)
    assert result.step == 5
    assert {warning.category for warning in told} == {ts.SwapWarning}


# -- what can be gone through once


class Shared:
    """Gives the same iterator again."""

    def __init__(self) -> None:
        self.parts = iter(parts())

    def __iter__(self) -> Iterator[Any]:
        return self.parts


@pytest.mark.parametrize("made", [lambda: iter(parts()), lambda: (part for part in parts()), Shared, lambda: parts])
def test_one_epoch_of_an_iterator_is_whole(made: Callable[[], Any]) -> None:
    assert fit(made()).history == fit(parts()).history


def test_more_epochs_take_more_than_an_iterator() -> None:
    wanted = fit(parts(), epochs=3)
    assert wanted.step == 15
    assert fit(parts, epochs=3).history == wanted.history  # a function gives a fresh one for each
    for once in (iter(parts()), (part for part in parts())):
        with pytest.raises(ts.SwapError, match="gone through once, and there are to be 3 epochs"):
            fit(once, epochs=3)
    with pytest.raises(ts.SwapError, match="gives nothing more") as told:
        fit(Shared(), epochs=3)
    assert told.value.result.step == 5


# -- names, types and sizes that kernels trust in


def test_no_name_of_the_data_meets_a_name_of_the_machinery() -> None:
    wanted = fit().history
    for name in ("X_all", "rows"):
        program = ts.program(str(MODEL).replace("t[b]", f"{name}[b]"))
        assert fit({"X": X, name: DATA["t"]}, program=program).history == wanted
    program = ts.program(str(MODEL).replace("W[d]", "W[d] * rows[d]"))
    assert fit({**DATA, "rows": np.ones(3)}, program=program).history == wanted


def test_parameters_keep_their_type() -> None:
    data = {"X": X.astype(np.float32), "t": DATA["t"].astype(np.float32)}
    start = {"W": np.zeros(3, np.float32)}
    wanted = fit(data, start)
    program = ts.program(str(MODEL).replace("W[d]", "W[d] * scale[d]"))
    scaled = fit({**data, "scale": np.ones(3)}, start, program)
    assert scaled.params["W"].dtype == wanted.params["W"].dtype == np.float32
    np.testing.assert_allclose(scaled.params["W"], wanted.params["W"], rtol=1e-6)  # another program rounds otherwise
    whole = np.arange(120).reshape(40, 3) % 5
    with pytest.raises(ts.SwapError, match=r"computes it in float64\n.*X.astype\(np.float32\)"):
        fit({**data, "X": whole}, start)
    small = fit({**data, "X": whole.astype(np.uint8)}, start)
    np.testing.assert_array_equal(small.params["W"], fit({**data, "X": whole.astype("f4")}, start).params["W"])


@pytest.mark.parametrize(
    ("text", "data", "message"),
    [
        ("loss += T[g[b] * (4 - g[b])] * W", {"g": np.array([0, 4, 1, 2] * 8)}, r"asks for position 4"),
        ("loss += T[g[b] - h[b]] * W", {"g": np.array([0, 3] * 8), "h": np.array([3, 0] * 8)}, "asks for position -3"),
        ("loss += T[5 - size(b)] * x[b] * W", {"x": np.ones(17)}, "asks for position 4"),
        ("loss += T[b + g[b]] * W", {"g": np.array([3, 2, 1, 0] * 4)}, r"asks for position \d"),
        ("loss += T[g[b]] * W", {"g": np.array([0] * 63 + [2**63], np.uint64)}, "beyond 2"),
        (
            "c[b] = 2 * g[b]\nloss += T[c[b]] * W",
            {"g": np.array([0] * 63 + [4])},
            "position . of axis 0",
        ),
    ],
)
def test_no_order_of_the_examples_reads_outside(text: str, data: dict[str, Any], message: str) -> None:
    """Each of these is in bounds for the least and for the greatest numbers, or for the first batch, or in order."""
    table = {"T": np.arange(4.0)}
    with pytest.raises(ts.SwapError, match=message):
        ts.fit(ts.program(text), {"W": 1.0}, {**table, **data}, batch_size=4, progress=False, optimizer="sgd")
