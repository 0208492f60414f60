"""A direct call goes from Python into machine code: it must be as right, as careful and as patient as any other."""

from __future__ import annotations

import copy
import gc
import inspect
import os
import pickle
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.run import direct, tuning
from tensorswap.run.again import Again
from tensorswap.run.interrupt import LOCK, STOP
from tests.test_many_processes import finish, start

pytestmark = pytest.mark.compiled

SCALED = "shift: int = 0\nY[i] = rate * X[i+shift]\nsize(i) = 3"
TWO = "Y[i] = A[i] * B[i]\nz += Y[i]\nreturn Y, z"


def is_direct(program: ts.Program) -> bool:
    return program._way != program._called


def called(text: str, **given: Any) -> ts.Program:
    """A program whose calls with such arguments are direct."""
    program = ts.program(text)
    for _ in range(2):
        program(given)
    assert is_direct(program)
    return program


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> ts.Program:
    """One whose kernels run on two threads, while other threads of Python go on."""
    monkeypatch.setattr(tuning, "PARALLEL", 0)
    monkeypatch.setattr("tensorswap.run.call.threads", lambda: 2)
    program = called("Y[i] = A[i] * B[i]", A=np.ones(64), B=np.ones(64))
    assert program._caller.again is not None
    assert program._caller.again.frame.threads
    return program


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The calls that are not direct."""
    seen: list[Any] = []

    def call(self: Again, arguments: Any) -> Any:
        seen.append(arguments)
        return taken(self, arguments)

    taken = Again.__call__
    monkeypatch.setattr(Again, "__call__", call)
    return seen


@pytest.mark.parametrize("how", ["names", "mapping"])
def test_both_ways_to_pass_arrays_are_direct(how: str, others: list[Any]) -> None:
    A, B = np.arange(3.0), np.arange(3.0) + 1
    program = called(TWO, A=A, B=B)
    found = program(A=A, B=B) if how == "names" else program({"B": B, "A": A})
    assert list(found) == ["Y", "z"]
    np.testing.assert_array_equal(found["Y"], A * B)
    assert found["z"] == (A * B).sum()
    assert not others


def test_one_output_comes_without_its_name(others: list[Any]) -> None:
    program = called("Y[i] = 2 * A[i]", A=np.ones(3))
    found = program(A=np.arange(3.0))
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, [0, 2, 4])
    assert not others


NUMBERS: list[tuple[type, Any, Any]] = [
    (np.float64, 0.5, 0.25),
    (np.float32, 0.1, 1e300),
    (np.float32, 0.1, -1e39),
    (np.float32, 1.0, float("nan")),
    (np.float64, 1.0, float("-inf")),
    (np.float64, 3, -7),
    (np.float32, 3, 2**24 + 1),
    (np.float32, 3, 2**31),
    (np.float64, 3, -(2**31)),
]


@pytest.mark.parametrize(("dtype", "first", "later"), NUMBERS)
def test_numbers_become_what_numpy_makes_of_them(dtype: type, first: Any, later: Any, others: list[Any]) -> None:
    X = np.arange(3, dtype=dtype) + 1
    program = called("Y[i] = rate * X[i]", X=X, rate=first)
    with np.errstate(over="ignore"):
        expected = np.array(later, dtype) * X
    found = program(X=X, rate=later)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, expected)
    assert not others


@pytest.mark.parametrize("rate", [2, True, np.float64(2), np.array(2.0), 2**31 + 1, 2**62])
def test_numbers_of_another_kind_go_the_other_way(rate: Any, others: list[Any]) -> None:
    X = np.arange(3.0)
    program = called("Y[i] = rate * X[i]", X=X, rate=0.5)
    np.testing.assert_allclose(program(X=X, rate=rate), float(rate) * X)
    assert others


@pytest.mark.parametrize("rate", [2**31 + 1, -(2**31) - 1, 2**62, 2.0, False])
def test_large_whole_numbers_go_the_other_way(rate: Any, others: list[Any]) -> None:
    X = np.arange(3.0)
    program = called("Y[i] = rate * X[i]", X=X, rate=3)
    np.testing.assert_allclose(program(X=X, rate=rate), float(rate) * X)
    assert others


def test_static_integers_are_part_of_what_is_known(others: list[Any]) -> None:
    X = np.arange(6.0)
    program = called(SCALED, X=X, rate=1.0, shift=1)
    np.testing.assert_array_equal(program(X=X, rate=2.0, shift=1), 2 * X[1:4])
    assert not others
    for shift in (0, 3, np.int64(2)):
        np.testing.assert_array_equal(program(X=X, rate=2.0, shift=shift), 2 * X[int(shift) :][:3])
    for wrong in (4, True, 1.0, 2**70):
        with pytest.raises(ts.SwapError):
            program(X=X, rate=2.0, shift=wrong)
    np.testing.assert_array_equal(program(X=X, rate=2.0, shift=1), 2 * X[1:4])


def test_what_is_wrong_is_told_as_ever() -> None:
    A = np.ones(3)
    program = called(TWO, A=A, B=A)
    for given, said in (
        ({}, "missing"),
        ({"A": A}, "missing"),
        ({"A": A, "C": A}, "C"),
        ({"A": A, "B": A, "C": A}, "C"),
        ({"A": A, "B": None}, "B"),
        ({"A": A, "B": np.ones(4)}, "i"),
    ):
        with pytest.raises(ts.SwapError, match=said):
            program(given)
    with pytest.raises(ts.SwapError, match="twice"):
        program({"A": A, "B": A}, A=A)
    with pytest.raises(ts.SwapError, match="mapping"):
        program([A, A])
    with pytest.raises(ts.SwapError, match="2 came without"):
        program({"A": A}, {"B": A})
    assert is_direct(program)
    np.testing.assert_array_equal(program(A=A, B=A)["Y"], A)


def test_no_reference_is_lost_or_kept() -> None:
    A, B = np.ones(3), np.ones(3)
    names = dict.fromkeys(("A", "B"))
    program = called("w = rate\n" + TWO, A=A, B=B, rate=1234.5)
    rate = 777.25
    kept = (A, B, rate, A.dtype, np.ndarray, dict, *names, *program.outputs)

    def counts() -> list[int]:
        gc.collect()
        return [sys.getrefcount(thing) for thing in kept]

    wrong = np.ones(4)
    before = counts()
    for _ in range(1000):
        program(A=A, B=B, rate=rate)
        program({"A": A, "B": B, "rate": rate})
    assert counts() == before
    for _ in range(20):
        with pytest.raises(ts.SwapError):
            program(A=A, B=wrong, rate=rate)
        with pytest.raises(ts.SwapError):
            program(A=A, C=B, rate=rate)
        program(A=A, B=B, rate=rate)
    assert max(abs(a - b) for a, b in zip(counts(), before, strict=True)) <= 2


def test_memory_does_not_grow() -> None:
    program = called("Y[i,j] = A[i] * B[j]", A=np.ones(100), B=np.ones(100))
    A = np.ones(100)
    addresses = {program(A=A, B=A).ctypes.data for _ in range(1000)}
    assert len(addresses) < 10  # what nobody holds is given back


class Odd:
    """A key that looks like a name, and does something when it is compared."""

    def __init__(self, name: str, act: Any) -> None:
        self.name, self.act = name, act

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        self.act()
        return other == self.name


def test_keys_that_run_code_do_no_harm() -> None:
    A, B = np.arange(3.0), np.arange(3.0)
    program = called(TWO, A=A, B=B)
    given: dict[Any, Any] = {}

    def empty() -> None:
        given.clear()
        gc.collect()

    def again() -> None:
        program(A=A + 5, B=B)

    given.update({"A": A.copy()})
    given[Odd("B", again)] = B
    np.testing.assert_array_equal(program(given)["Y"], A * B)
    given.clear()
    given.update({"A": A.copy()})
    given[Odd("B", empty)] = B.copy()
    with pytest.raises((ts.SwapError, RuntimeError, KeyError)):
        program(given)
    given.clear()
    given.update({"A": A.copy()})
    given[Odd("B", lambda: 1 // 0)] = B
    with pytest.raises(ZeroDivisionError):
        program(given)
    np.testing.assert_array_equal(program(A=A, B=B)["Y"], A * B)


def test_switches_are_seen() -> None:
    program = called("Y[i] = log(X[i])", X=np.ones(3))
    bad = np.array([1.0, -1.0, 1.0])
    assert np.isnan(program(X=bad)[1])
    with ts.debug(nan=True), pytest.raises(ts.SwapError, match="log"):
        program(X=bad)
    assert np.isnan(program(X=bad)[1])
    with ts.debug(validate=True):
        np.testing.assert_array_equal(program(X=np.ones(3)), np.zeros(3))


@pytest.mark.parametrize("kind", ["light", "shared"])
def test_while_kernels_are_stopped_calls_are_not_direct(kind: str, shared: ts.Program, others: list[Any]) -> None:
    """The word that stops other kernels would stop these too."""
    A = np.ones(64)
    program = shared if kind == "shared" else called("Y[i] = A[i] * B[i]", A=A, B=A)
    STOP.value = 1
    try:
        program(A=A, B=A)
    finally:
        STOP.value = 0
    assert len(others) == 1


def test_while_other_kernels_run_a_shared_call_waits(shared: ts.Program, others: list[Any]) -> None:
    A, found = np.arange(64.0), []
    thread = threading.Thread(target=lambda: found.append(shared(A=A, B=A)))
    with LOCK:
        thread.start()
        thread.join(0.2)
        assert not found
    thread.join()
    np.testing.assert_array_equal(found[0], A * A)
    assert len(others) == 1
    np.testing.assert_array_equal(shared(A=A, B=A), A * A)
    assert len(others) == 1
    assert not LOCK.locked()


def test_a_call_that_is_refused_opens_the_lock(shared: ts.Program) -> None:
    for wrong in (np.ones(63), np.ones(64, np.float32), None):
        with pytest.raises(ts.SwapError):
            shared(A=np.ones(64), B=wrong) if wrong is None or len(wrong) == 63 else shared(A=wrong, C=wrong)
        assert not LOCK.locked()


@pytest.mark.parametrize("kind", ["light", "shared"])
def test_threads_do_not_disturb_each_other(kind: str, shared: ts.Program) -> None:
    """Those that go another way use other memory."""
    text = "T[i] = rate * A[i]\nS += T[i]\nY[i] = T[i] * S\nreturn Y"
    A = np.arange(64.0)
    program = called(text, A=A, rate=1.0)

    def check(number: int) -> None:
        own = np.random.default_rng(number).standard_normal(64)
        rate = np.float64(number) if number % 3 == 0 else float(number)  # of numpy's: not direct
        for _ in range(200):
            np.testing.assert_allclose(program(A=own, rate=rate), own * own.sum() * number**2, rtol=1e-9, atol=1e-9)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(check, range(12)))


FORK = """
import os
import numpy as np, tensorswap as ts
from tensorswap.run import call, execute, tuning
from tensorswap.run.interrupt import LOCK
tuning.PARALLEL, call.threads = 0, lambda: 2
A = np.arange(64.0)
shared = ts.program("Y[i] = A[i] * B[i]")
for _ in range(3):
    shared(A=A, B=A)
with LOCK:  # nobody would open it in the child
    child = os.fork()
    if not child:
        right = all(np.array_equal(shared(A=A, B=A), A * A) for _ in range(3))
        os._exit(0 if right else 1)
assert shared._way != shared._called
assert np.array_equal(shared(A=A, B=A), A * A)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
def test_a_child_has_its_own_lock_and_threads() -> None:
    assert finish(start(FORK, Path(os.environ["TENSORSWAP_CACHE"])), 60) == "0\n"


@pytest.mark.parametrize("reason", ["no lock", "layout"])
def test_where_it_cannot_be_it_is_not(reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "means", direct.means.__wrapped__)
    if reason == "no lock":  # of Python's
        monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    else:
        monkeypatch.setattr(direct, "object_layout", lambda: None)
    program = ts.program(TWO)
    for _ in range(4):
        np.testing.assert_array_equal(program(A=np.ones(3), B=np.ones(3))["Y"], np.ones(3))
    assert not is_direct(program)


def test_a_program_is_a_callable_as_ever() -> None:
    program = called("Y[i] = 2 * A[i]", A=np.ones(3))
    for p in (program, ts.program("Y[i] = 2 * A[i]")):
        assert callable(p)
        assert str(inspect.signature(p)) == "(mapping: 'Mapping[str, Any] | None' = None, /, **arrays: 'Any') -> 'Any'"
        assert "One output" in (p.__call__.__doc__ or "")
        np.testing.assert_array_equal(p.__call__(A=np.ones(3)), [2, 2, 2])
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(p))(A=np.ones(3)), [2, 2, 2])
        assert copy.deepcopy(p) is p
    assert "loops" in str(inspect.signature(ts.Program))


def test_a_program_that_nobody_holds_goes() -> None:
    program = called("Y[i] = 2 * A[i]", A=np.ones(3))
    way, gone = program._way, weakref.ref(program)
    del program
    gc.collect()
    np.testing.assert_array_equal(way(A=np.ones(3)), [2, 2, 2])  # it holds what it needs
    del way
    gc.collect()
    assert gone() is None


def test_a_program_of_the_users_own() -> None:
    class Counted(ts.Program):
        count = 0

        def __call__(self, *given: Any, **arrays: Any) -> Any:
            self.count += 1
            return super().__call__(*given, **arrays)

    program = Counted(ts.program("Y[i] = 2 * A[i]").loops)
    for _ in range(4):
        np.testing.assert_array_equal(program(A=np.ones(3)), [2, 2, 2])
    assert program.count == 4


def test_calls_of_two_kinds_in_turn() -> None:
    program = ts.program("Y[i,j] += A[i,k] * B[k,j]")
    for n in (2, 3, 2, 3, 2, 2, 3, 3, 3, 2):
        A = np.random.default_rng(n).standard_normal((n, n)).astype(np.float64 if n % 2 else np.float32)
        np.testing.assert_allclose(program(A=A, B=A), A @ A, rtol=1e-5)
    assert is_direct(program)


FIRST = {  # what results and memory begin with
    "zeros of a result": "size(Y, 0) = 4\nY[label[n]] += X[n]",
    "others of a result": "size(Y, 0) = 4\nsize(Z, 0) = 5\nY[label[n]] max= X[n]\nZ[label[n]] min= X[n]\nreturn Y, Z",
    "zeros in between": "size(T, 0) = 4\nT[label[n]] += X[n]\nY[n] = T[label[n]] * X[n]\nreturn Y",
    "others in between": (
        "size(T, 0) = 4\nsize(U, 0) = 4\nT[label[n]] min= X[n]\nU[label[n]] max= X[n]\n"
        "Y[n] = T[label[n]] - U[label[n]]\nreturn Y"
    ),
    "whole numbers": (
        "size(T, 0) = 4\nsize(Y, 0) = 4\nT[label[n]] max= label[n]\nY[label[n]] += T[label[n]]\nreturn Y"
    ),
}


@pytest.mark.parametrize("text", FIRST.values(), ids=FIRST)
@pytest.mark.parametrize("threads", [1, 2])
def test_what_results_and_memory_begin_with(text: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if threads > 1:
        monkeypatch.setattr(tuning, "PARALLEL", 0)
        monkeypatch.setattr("tensorswap.run.call.threads", lambda: threads)
    numbers = np.random.default_rng(0)
    program = ts.program(text)
    for _ in range(30):
        given = {"X": numbers.standard_normal(9), "label": np.append(numbers.integers(0, 4, 8), 3)}
        given = {name: array for name, array in given.items() if name in program.inputs}
        found, expected = program(given), program.run_reference(given)
        for name in program.outputs if isinstance(found, dict) else [None]:
            one = found if name is None else found[name]
            np.testing.assert_allclose(one, expected if name is None else expected[name], rtol=1e-12)
    assert is_direct(program)


def test_kernels_that_cannot_decide_leave_it_to_the_interpreter(others: list[Any]) -> None:
    program = ts.program("size(Y, 0) = 4\nY[place[i]] = X[i]")  # each element once
    X, place = np.arange(3.0) + 1, np.array([0, 3, 2])
    for _ in range(3):
        np.testing.assert_array_equal(program(X=X, place=place), [1, 0, 3, 2])
    assert is_direct(program)
    assert program._caller.again is not None
    assert program._caller.again.known.scalars
    seen = len(others)
    np.testing.assert_array_equal(program(X=X, place=np.array([3, 0, 2])), [2, 0, 3, 1])
    assert len(others) == seen
    for _ in range(2):
        with pytest.raises(ts.SwapError, match="more than once"):
            program(X=X, place=np.array([0, 2, 2]))
    np.testing.assert_array_equal(program(X=X, place=place), [1, 0, 3, 2])


def test_updates_begin_as_a_copy_of_what_they_update(others: list[Any]) -> None:
    program = called("W[i] = W[i] - rate * G[i]", W=np.arange(4.0), G=np.ones(4), rate=0.5)
    W, G = np.arange(4.0) + 7, np.arange(4.0)
    found = program(W=W, G=G, rate=0.25)
    np.testing.assert_array_equal(found, np.arange(4.0) + 7 - 0.25 * G)
    np.testing.assert_array_equal(W, np.arange(4.0) + 7)
    assert not np.shares_memory(found, W)
    assert not others
    for wrong in ("text", None, np.ones(5), np.array([None] * 4), np.ones(4, ">f8")[:3], 3.0):
        with pytest.raises(ts.SwapError):
            program(W=wrong, G=G, rate=0.25)
    for other in (np.ones(4, np.float32), np.ones(8)[::2], [1.0, 1.0, 1.0, 1.0], np.ones(4, ">f8")):
        np.testing.assert_array_equal(program(W=other, G=G, rate=0.5), 1 - 0.5 * G)


MADE = {  # numpy lets other threads run while it makes these
    "updated": ("W[i] = W[i] - rate * G[i]", {"W": np.zeros(10_000), "G": np.ones(10_000)}),
    "zeros": ("size(Y, 0) = 20000\nY[at[i]] += -rate * G[i]", {"at": np.array([0, 19_999]), "G": np.ones(2)}),
}


@pytest.mark.parametrize("kind", MADE)
def test_threads_have_their_own_numbers(kind: str) -> None:
    text, given = MADE[kind]
    before = sys.getswitchinterval()
    program = called(text, **given, rate=1.0)
    assert program._caller.again is not None
    assert not program._caller.again.frame.threads  # nothing but Python's lock keeps calls apart

    def check(number: int) -> None:
        for _ in range(1500):
            found = program(**given, rate=float(number))
            assert found[0] == found[-1] == -number

    sys.setswitchinterval(1e-4)
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(check, range(4)))
    finally:
        sys.setswitchinterval(before)


class Circle:
    """Garbage that calls a program when it is collected."""

    def __init__(self, call: Any) -> None:
        self.itself, self.call = self, call

    def __del__(self) -> None:
        self.call()


def test_garbage_may_be_collected_in_a_call(shared: ts.Program) -> None:
    A = np.ones(64)
    two = called("Y[i] = A[i] * B[i]\nZ[i] = A[i] + B[i]\nreturn Y, Z", A=A, B=A)
    asked: list[Any] = []
    results = []
    for k in range(2000):  # their dicts are what is counted until garbage is collected
        if k % 100 == 0:
            Circle(lambda: asked.append(two(A=A, B=A)["Z"][0]))
        results.append(two(A=A, B=A))
    gc.collect()
    assert len(asked) == 20
    assert set(asked) == {2.0}


SHUTDOWN = """
import sys
import numpy as np, tensorswap as ts
from tensorswap.run import call, execute, tuning
tuning.PARALLEL, call.threads = 0, lambda: 2
A = np.arange(64.0)
p = ts.program("Y[i] = A[i] * B[i]\\nZ[i] = A[i] + B[i]\\nreturn Y, Z")
for _ in range(4):
    p(A=A, B=A)
class Late:
    def __init__(self):
        self.p, self.given, self.write = p, {"A": A, "B": A}, sys.stdout.write
    def __del__(self):
        self.write("right" if self.p(self.given)["Z"].tolist()[-1] == 126.0 else "wrong")
sys.late = Late()
"""


def test_calls_while_python_comes_to_its_end() -> None:
    """Freed memory is filled with something else, so that who uses it sees that."""
    for fill in ("90", "0"):
        process = start(SHUTDOWN, Path(os.environ["TENSORSWAP_CACHE"]), MALLOC_PERTURB_=fill)
        assert finish(process, 60) == "right"


def test_the_call_of_the_class_and_of_a_program() -> None:
    program = called("Y[i] = 2 * A[i]", A=np.ones(3))
    for p in (program, ts.program("Y[i] = 2 * A[i]")):
        np.testing.assert_array_equal(ts.Program.__call__(p, A=np.ones(3)), [2, 2, 2])
        np.testing.assert_array_equal(ts.Program.__call__(p, {"A": np.ones(3)}), [2, 2, 2])
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(p.__call__))(A=np.ones(3)), [2, 2, 2])
    mock.create_autospec(ts.Program)
