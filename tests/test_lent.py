"""Large results: the memory of those that nobody holds any more is taken again, and of no others."""

from __future__ import annotations

import gc
import pickle
import threading
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.run import lent

pytestmark = pytest.mark.compiled
TEXT = "Y[i,j] = 2 * X[i,j] + i\nZ[j] += X[i,j]\nT[i,j] += X[i,j] if i > j\nreturn Y, Z, T"


@pytest.fixture(autouse=True)
def all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lent, "LARGE", 1)
    gc.collect()
    lent.forget()


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
    assert len(places) <= 4  # Y and T are of one size, and the last ones are held


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
    assert len(lent._waiting) == 3
    program._caller.release()
    assert not lent._waiting


def test_the_oldest_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lent, "ROOM", 3 * 70 * 30 * 8)
    program = ts.program(TEXT)
    held = [program(X=numbers(k)) for k in range(4)]
    del held
    gc.collect()
    assert 2 <= sum(piece.size == 70 * 30 * 8 for piece in lent._waiting) <= 3
    assert sum(piece.size for piece in lent._waiting) <= lent.ROOM


def test_threads_take_pieces_of_their_own() -> None:
    program = ts.program(TEXT)
    wrong: list[BaseException] = []

    def calls(first: int) -> None:
        try:
            for k in range(first, first + 150):
                check(program(X=numbers(k)), numbers(k))
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=calls, args=(1000 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_large_ones_alone_are_lent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lent, "LARGE", 70 * 30 * 8)
    found = ts.program(TEXT)(X=numbers(3))
    assert isinstance(found["Y"].base, lent.Loan)
    assert found["Z"].base is None
    monkeypatch.setattr(lent, "HUGE", 70 * 30 * 8)
    assert ts.program(TEXT)(X=numbers(3))["Y"].base is None
