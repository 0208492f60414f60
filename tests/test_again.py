"""A call like the last one takes a short way through compiled code: what is not like it must not."""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.run import again, frame, objects

pytestmark = pytest.mark.compiled

PROGRAM = "Y[n,d] = E[label[n],d] * X[n,d] * rate\nZ[d] += Y[n,d]\nreturn Y, Z"
ARRAYS = "Y[n,d] = E[label[n],d] * X[n,d]\nZ[d] += Y[n,d]\nreturn Y, Z"  # these take the shortest way of all


def arguments(text: str = PROGRAM) -> dict[str, Any]:
    numbers = np.random.default_rng(1)
    arrays = {
        "E": numbers.standard_normal((5, 4)),
        "label": np.array([0, 4, 2, 1, 1, 3]),
        "X": numbers.standard_normal((6, 4)),
    }
    return {**arrays, "rate": 0.5} if "rate" in text else arrays


def prepared(text: str = PROGRAM, kind: Any = dict) -> tuple[ts.Program, dict[str, Any]]:
    """A program that has been called three times: the third call took the short way."""
    program, given = ts.program(text), arguments(text)
    for _ in range(3):
        program(kind(given))
    assert program._caller.again is not None
    assert program._caller.again(program._caller.plain(kind(given))) is not None
    return program, given


def same(program: ts.Program, given: dict[str, Any]) -> None:
    expected = program.run_reference(given)
    for name, value in program(given).items():
        assert value.dtype == expected[name].dtype
        np.testing.assert_allclose(value, expected[name], rtol=1e-6)


class Own(np.ndarray[Any, Any]):
    """An array that is not numpy's own."""


OTHERS: dict[str, Any] = {
    "values": lambda a: {**a, "X": a["X"] + 1},
    "order of names": lambda a: dict(reversed(a.items())),
    "labels within the range": lambda a: {**a, "label": np.array([4, 3, 2, 1, 0, 0])},
    "labels beyond the range": lambda a: {**a, "label": np.array([0, 1, 1, 1, 1, 1]), "E": a["E"][:2].copy()},
    "batch": lambda a: {**a, "X": a["X"][:3].copy(), "label": a["label"][:3].copy()},
    "strides": lambda a: {**a, "X": np.asfortranarray(a["X"])},
    "every other": lambda a: {**a, "X": np.repeat(a["X"], 2, axis=1)[:, ::2]},
    "type": lambda a: {k: v.astype(np.float32) if k in "EX" else v for k, v in a.items()},
    "type of labels": lambda a: {**a, "label": a["label"].astype(np.int32)},
    "byte order": lambda a: {**a, "X": a["X"].astype(">f8")},
    "subclass": lambda a: {**a, "X": a["X"].view(Own)},
    "list": lambda a: {**a, "X": a["X"].tolist()},
    "whole number": lambda a: {**a, "rate": 2},
    "array of no axes": lambda a: {**a, "rate": np.array(2.0)},
    "number of numpy": lambda a: {**a, "rate": np.float64(2.0)},
    "infinite": lambda a: {**a, "rate": float("inf")},
    "read-only": lambda a: {**a, "X": np.broadcast_to(a["X"], a["X"].shape)},
}


def both(cases: dict[str, Any]) -> list[Any]:
    """Every case for both programs, those about the number for the one that has it."""
    return [
        pytest.param(text, case, id=f"{name}, {'with a number' if text is PROGRAM else 'arrays alone'}")
        for name, case in cases.items()
        for text in (PROGRAM, ARRAYS)
        if text is PROGRAM or "rate" not in case(arguments(ARRAYS))
    ]


@pytest.mark.parametrize(("text", "other"), both(OTHERS))
def test_another_call_is_as_right_as_the_first(text: str, other: Any) -> None:
    program, given = prepared(text)
    for _ in range(3):
        same(program, other(given))
    same(program, given)


WRONG: dict[str, Any] = {
    "label above": lambda a: {**a, "label": np.array([0, 4, 5, 1, 1, 3])},
    "label below": lambda a: {**a, "label": np.array([0, 4, -1, 1, 1, 3])},
    "one missing": lambda a: {k: v for k, v in a.items() if k != "X"},
    "one too many": lambda a: {**a, "W": a["X"]},
    "another name": lambda a: {("W" if k == "X" else k): v for k, v in a.items()},
    "too few rows": lambda a: {**a, "X": a["X"][:5]},
    "an axis more": lambda a: {**a, "X": a["X"][None]},
    "text": lambda a: {**a, "rate": "fast"},
    "nothing": lambda a: {**a, "X": None},
    "a mapping that makes up values": lambda a: defaultdict(
        lambda: a["X"], {("W" if k == "X" else k): v for k, v in a.items()}
    ),
}


@pytest.mark.parametrize(("text", "wrong"), both(WRONG))
def test_what_was_refused_before_is_refused_again(text: str, wrong: Any) -> None:
    program, given = prepared(text)
    with pytest.raises(ts.SwapError):
        program(wrong(given))
    same(program, given)


class Foreign:
    """An array of another library."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.array, dtype)


FIRST = {
    **{name: OTHERS[name] for name in ("strides", "every other", "type of labels", "byte order", "number of numpy")},
    "array of another library": lambda a: {**a, "X": Foreign(a["X"]), "label": Foreign(a["label"])},
    "list": lambda a: {**a, "X": np.asarray(a["X"]).tolist()},
    "several": lambda a: {**a, "X": a["X"][::-1, ::-1], "label": a["label"].astype(np.uint8), "E": Foreign(a["E"])},
}
LATER = ("values", "order of names", "labels within the range", "labels beyond the range", "batch", "infinite")


@pytest.mark.parametrize(("text", "kind"), both(FIRST))
def test_calls_that_begin_with_another_kind(text: str, kind: Any) -> None:
    """Arrays that are copied, and labels whose range compiled code does not look at."""
    for name in LATER if text == PROGRAM else LATER[:-1]:
        program, given = prepared(text, kind)
        for _ in range(2):
            same(program, kind(OTHERS[name](given)))
        same(program, given)
    for label in (5, -1) if kind is not FIRST["several"] else (5,):  # which has unsigned ones
        program, given = prepared(text, kind)
        with pytest.raises(ts.SwapError, match="label"):
            program(kind({**given, "label": np.array([0, 4, label, 1, 1, 3])}))
        with pytest.raises(ts.SwapError):
            program(kind({**given, "X": given["X"][:5]}))
        same(program, kind(given))


def test_a_number_beyond_single_precision_is_infinite() -> None:
    program = ts.program("Y[i] = rate * X[i]")
    X = np.ones(3, np.float32)
    inf, nan = float("inf"), float("nan")
    for rate, found in ((2.0, 2), (2.0, 2), (2.0, 2), (1e300, inf), (nan, nan), (-1e300, -inf), (inf, inf)):
        np.testing.assert_array_equal(program(X=X, rate=rate), np.full(3, found, np.float32))


def test_numbers_that_are_left_out_take_the_short_way_too() -> None:
    program = ts.program("def f(X[i], rate=2.0) -> Y[i]:\n    Y[i] = rate * X[i]")
    for _ in range(3):
        np.testing.assert_array_equal(program(X=np.ones(3)), np.full(3, 2.0))
    np.testing.assert_array_equal(program(X=np.ones(3), rate=3.0), np.full(3, 3.0))
    np.testing.assert_array_equal(program(X=np.ones(3)), np.full(3, 2.0))


def test_inputs_that_are_updated_stay_as_they_are() -> None:
    program = ts.program("W[i] = W[i] - 0.5 * G[i]")
    given = {"W": np.arange(4.0), "G": np.ones(4)}
    results = [program(given) for _ in range(4)]
    np.testing.assert_array_equal(given["W"], np.arange(4.0))
    for result in results:
        np.testing.assert_array_equal(result, np.arange(4.0) - 0.5)
    assert program._caller.again is not None
    assert program._caller.again({"W": "text", "G": given["G"]}) is None


def test_results_of_two_calls_share_no_memory() -> None:
    program, given = prepared()
    first, second = program(given), program(given)
    assert not np.shares_memory(first["Y"], second["Y"])


KEEPS = (
    "T[k] += X[n,d] ** 2 * w[k]\nU[k] = T[k] + 1\nY[label[n],d] += X[n,d] * U[0]\nZ[d] += Y[d,0] * U[d]\nreturn Y, Z"
)


def test_what_is_kept_between_short_calls_is_made_anew() -> None:
    """Memory for T and U waits for the next call, and Y begins with zeros each time."""
    program, numbers = ts.program(KEEPS), np.random.default_rng(3)

    def check(seed: int) -> None:
        own = np.random.default_rng(seed)
        given = {"X": own.standard_normal((6, 4)), "w": own.standard_normal(4), "label": own.integers(0, 4, 6)}
        expected = program.run_reference(given)
        for _ in range(20):
            dirt = [np.full((4, 4), np.nan) for _ in range(4)]  # memory that the next result may get
            del dirt
            for name, value in program(given).items():
                np.testing.assert_allclose(value, expected[name], rtol=1e-12, atol=1e-12, err_msg=name)

    for seed in range(3):
        check(seed)
    assert program._caller.again is not None
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(check, numbers.integers(0, 1000, 12)))


def test_where_objects_are_laid_out_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the addresses of arrays are asked of numpy, and no call is checked in compiled code."""
    monkeypatch.setattr(again, "object_layout", lambda: None)
    monkeypatch.setattr(frame, "object_layout", lambda: None)
    program, given = ts.program(PROGRAM), arguments()
    for _ in range(3):
        same(program, given)
    assert program._caller.again is None


def test_the_layout_of_objects_is_found_here() -> None:
    assert objects.object_layout() is not None
