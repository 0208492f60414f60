"""Large results: the memory of those that nobody holds any more is taken again, and of no others."""

from __future__ import annotations

import gc
import pickle
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.run import lent, ready

pytestmark = pytest.mark.compiled
TEXT = "Y[i,j] = 2 * X[i,j] + i\nZ[j] += X[i,j]\nT[i,j] += X[i,j] if i > j\nreturn Y, Z, T"


@pytest.fixture(autouse=True)
def all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lent, "LARGE", 1)


def numbers(seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal((70, 30))


def expected(X: np.ndarray[Any, Any]) -> dict[str, Any]:
    return {"Y": 2 * X + np.arange(70)[:, None], "Z": X.sum(axis=0), "T": np.tril(X, -1)}


def check(found: dict[str, Any], X: np.ndarray[Any, Any]) -> None:
    for name, value in expected(X).items():
        np.testing.assert_allclose(found[name], value, rtol=1e-12, atol=1e-13)


def test_results_that_are_held_stay() -> None:
    program = ts.program(TEXT)
    held = [program(X=numbers(k)) for k in range(6)]
    for k, found in enumerate(held):
        check(found, numbers(k))


def test_what_is_held_of_a_result_keeps_all_of_it() -> None:
    program = ts.program(TEXT)
    parts = [program(X=numbers(k))["Y"][3:].T[::2] for k in range(5)]
    gc.collect()
    for k, part in enumerate(parts):
        np.testing.assert_allclose(part, expected(numbers(k))["Y"][3:].T[::2])


def test_memory_comes_back() -> None:
    program = ts.program(TEXT)
    places = set()
    for k in range(30):
        found = program(X=numbers(k))
        check(found, numbers(k))
        places.add(found["Y"].ctypes.data)
        assert found["Y"].ctypes.data % 64 == 0
    assert len(places) <= lent.MOST + 1


def test_a_caller_may_write_into_a_result_and_send_it() -> None:
    program = ts.program(TEXT)
    found = program(X=numbers(1))
    found["T"][...] = 7
    assert pickle.loads(pickle.dumps(found["T"])).sum() == 7 * 2100
    del found
    check(program(X=numbers(2)), numbers(2))


def test_what_waits_is_given_up() -> None:
    program = ts.program(TEXT)
    program(X=numbers(1))
    gc.collect()
    (known,) = program._caller.prepared.values()
    assert isinstance(known.runs, ready.Ready)
    assert sum(map(len, known.runs.returned.values())) == 3
    program._caller.release()
    assert not any(known.runs.returned.values())


def test_large_ones_alone_are_lent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lent, "LARGE", 70 * 30 * 8)
    found = ts.program(TEXT)(X=numbers(3))
    assert isinstance(found["Y"].base, lent.Loan)
    assert found["Z"].base is None
    monkeypatch.setattr(lent, "HUGE", 70 * 30 * 8)
    assert ts.program(TEXT)(X=numbers(3))["Y"].base is None
