"""Threads, forks and pools: what one thread does is never half seen by another, and no child waits for ever."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.errors import ArgumentError, BoundsError
from tensorswap.lazy import cached_property
from tensorswap.run import call, compile, kept, known_code
from tensorswap.run.arguments import bind
from tensorswap.run.shared_work import SharedWork
from tests.test_many_processes import finish, start

pytestmark = pytest.mark.compiled

KERNELS = Path(os.environ["TENSORSWAP_CACHE"])  # what these tests compile is the same in every run


# -- threads


def test_a_check_is_seen_whole_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """One call's verdict (`no value need be looked at`) with the ranges of another would let anything through."""
    program = ts.program("Y[i] = X[g[i]-h[i]]")
    x, plain = np.arange(10.0), np.array([12, 12])
    given = {"X": x, "g": np.array([0, 9]), "h": np.array([0, 9])}  # in bounds by its values alone
    outside = {"X": x, "g": np.array([0, 9]), "h": np.array([9, 0])}
    program(given)
    told: list[str] = []
    ranges_of = call.ranges_of

    def meanwhile(arguments: Mapping[str, Any], names: Any = None) -> dict[str, tuple[int, int]]:
        """Another thread's call, between two lines of this one's."""
        if not told:
            told.append("asked")
            with pytest.raises(BoundsError):
                program(outside)
            told.append("refused")
        return ranges_of(arguments, names)

    monkeypatch.setattr(call, "ranges_of", meanwhile)
    program({"X": x, "g": plain, "h": plain})  # numbers beyond those of the first call
    assert told == ["asked", "refused"]


def run_at_once(count: int, work: Any) -> None:
    """work(number) in as many threads, all started together; the first exception is raised."""
    wrong: list[BaseException] = []
    barrier = threading.Barrier(count)

    def one(number: int) -> None:
        try:
            barrier.wait()
            work(number)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=one, args=(k,), daemon=True) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    if wrong:
        raise wrong[0]


def test_first_calls_at_the_same_time_compile_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def counted(batch: compile.Batch, key: str, function: Any) -> None:
        made.append(key)
        add(batch, key, function)

    add = compile.Batch.add
    monkeypatch.setattr(compile.Batch, "add", counted)
    monkeypatch.setattr(known_code, "found", lambda key: False)
    program = ts.program("H[i] += tanh(A[i,k]) * 0.8125\nY[i] = exp(H[i]) + 0.4375\nreturn Y")
    arrays = [np.random.default_rng(k).standard_normal((6, 5)) for k in range(8)]
    run_at_once(8, lambda k: np.testing.assert_allclose(program(A=arrays[k]), program.run_reference(A=arrays[k])))
    assert len(made) == len(set(made)) > 0


def kernels_of(text: str, **given: np.ndarray[Any, Any]) -> tuple[kept.Plans, list[str]]:
    """Plans of a call that were never asked for, and the keys of its kernels."""
    plans = ts.program(text)._caller.prepare(bind(ts.program(text).loops, given), looking=True).plans
    assert plans is not None
    return plans, [known_code.key_of(source) for source, _ in plans.executable.functions]


def test_a_plan_that_is_refused_leaves_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are compiled while the plan is looked at: if it is wrong, nothing is kept, and nobody waits for them."""
    monkeypatch.setattr(known_code, "found", lambda key: False)
    plans, keys = kernels_of("Y[i] = tanh(0.40625 * X[i]) - 0.59375", X=np.ones(5))

    def refuses(loops: Any) -> None:
        assert all(known_code.making[key].thread == threading.get_ident() for key in keys), "they have begun"
        raise ts.SwapError("wrong")

    with pytest.raises(ts.SwapError, match="wrong"):
        plans.ready(refuses)
    assert not known_code.making
    assert not any(key in known_code.kernels for key in keys)
    plans.ready(lambda loops: None)
    assert all(key in known_code.kernels for key in keys)


def test_a_handler_that_needs_the_kernels_of_the_call_it_interrupts(monkeypatch: pytest.MonkeyPatch) -> None:
    """It compiles its own and does not wait for those: what it interrupts goes on only when it ends."""
    monkeypatch.setattr(known_code, "found", lambda key: False)
    plans, keys = kernels_of("Y[i] = tanh(0.28125 * X[i]) - 0.71875", X=np.ones(5))
    wanted = plans.executable.functions
    found: list[int] = []
    plans.ready(lambda loops: found.extend(code.address for code in known_code.functions(wanted)))
    assert found == [known_code.kernels[key].address for key in keys], "the first to come stay"


def test_ctrl_c_while_a_helper_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end is told to that helper too, or it takes the word that is meant for another one, which waits for ever."""
    busy, over = threading.Event(), threading.Event()

    def do(text: str) -> bytes:
        busy.set()
        over.wait(60)
        return b""

    def interrupted(thread: threading.Thread) -> None:
        begin(thread)
        time.sleep(0.2)  # it waits for work
        raise KeyboardInterrupt

    def hands_out(_: int) -> None:
        with SharedWork(do, 1) as work:
            work.add("long")
            busy.wait(60)
            monkeypatch.setattr(threading.Thread, "start", interrupted)
            try:
                work.begin_helper()
            finally:
                monkeypatch.undo()
                work.waiting.clear()
                threading.Timer(0.5, over.set).start()

    begin = threading.Thread.start
    with pytest.raises(KeyboardInterrupt):
        run_at_once(1, hands_out)


def test_the_end_of_what_a_thread_makes_waits_for_nobody() -> None:
    """Ctrl-C could end that wait, and others would then wait for what is never made."""
    made = known_code.Making(threading.get_ident(), threading.Event())
    known_code.making["a key"] = made
    with known_code.COMPILING:
        run_at_once(1, lambda _: known_code.ends(made))
    assert made.over.is_set()
    assert "a key" not in known_code.making


@pytest.mark.parametrize(
    "late", ["threading.Thread(target=lambda: (time.sleep(0.5), call())).start()", "atexit.register(call)"]
)
def test_a_first_call_after_the_main_thread_has_ended(late: str, tmp_path: Path) -> None:
    code = f"""
import atexit, threading, time
import numpy as np, tensorswap as ts
program = ts.program("Y[i,j] += A[i,k] * A[j,k]\\nZ[i] max= tanh(Y[i,j])")
def call():
    print(program(A=np.ones((9, 7))).shape)
{late}
"""
    environment = {**os.environ, "TENSORSWAP_CACHE": str(tmp_path / "empty")}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=120)
    assert ran.stdout == "(9,)\n", ran.stderr


def test_threads_that_parse_at_the_same_time() -> None:
    """Brackets and indentation are counted for each text: none is refused, or read as another, for its neighbour."""
    texts = [
        "for t:\n    for s:\n        H[t,s] = (x[t] + (y[s] * (2 + t)))\n    K[t] = x[t]\nreturn H, K",
        "Y[i] = (X[i])",
    ]
    expected = [str(ts.program(text)) for text in texts]

    def parse(number: int) -> None:
        for k in range(15):
            assert str(ts.program(texts[(number + k) % 2])) == expected[(number + k) % 2]

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        run_at_once(4, parse)
    finally:
        sys.setswitchinterval(before)


def derive_and_call(number: int, rounds: int = 1) -> None:
    """What a thread may do all at once: parse, derive, print, compile, call, interpret, switch."""
    for k in range(rounds):
        program = ts.program(f"H[b,h] += X[b,i] * W[h,i]\nloss += tanh(H[b,h]) ** 2 * {number + k % 3}.5")
        gradient = program.grad(wrt=["W"])
        assert ts.program(str(gradient)).outputs == gradient.outputs
        random = np.random.default_rng(number)
        given = {"X": random.standard_normal((4 + number % 2, 3)), "W": random.standard_normal((5, 3))}
        expected = gradient.run_reference(given)
        for _ in range(3):
            found = gradient(given)
            for name, value in expected.items():
                np.testing.assert_allclose(found[name], value, rtol=1e-9, atol=1e-12)


def test_threads_that_derive_compile_and_call() -> None:
    run_at_once(6, derive_and_call)


def test_a_lazy_value_is_one_for_all_threads() -> None:
    class Holder:
        @cached_property
        def value(self) -> list[int]:
            """A list."""
            started.wait()
            return []

    started = threading.Barrier(4)
    holder, found = Holder(), []
    run_at_once(4, lambda _: found.append(holder.value))
    assert all(value is holder.value for value in found)
    assert Holder.value.__doc__ == "A list."


# -- numbers of threads

POOL = """
import os, sys
if sys.argv[1] == "affinity":
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
else:
    import numba
    os.environ["NUMBA_NUM_THREADS"] = sys.argv[1]  # too late for Numba's pool
import numpy as np, tensorswap as ts
from tensorswap.run import execute, tuning
tuning.PARALLEL = 0
program = ts.program("Y[i,j] += A[i,k] * B[k,j]\\nZ[i] += tanh(Y[i,j])\\nreturn Z")
A, B = np.ones((64, 40)), np.ones((40, 33))
for _ in range(3):
    assert np.allclose(program(A=A, B=B), program.run_reference(A=A, B=B))
print("right")
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="a process cannot be kept to one core here")
@pytest.mark.parametrize("setting", ["affinity", "7"])
def test_a_pool_smaller_than_the_machine(setting: str) -> None:
    """Numba's simplest pool waits for ever for a thread that it does not have."""
    assert finish(start(POOL, KERNELS, setting, NUMBA_THREADING_LAYER="workqueue"), 60) == "right\n"


@pytest.mark.parametrize("asked", ["abc", "0", "-2", "", "1.5"])
def test_a_number_of_threads_that_is_none(monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    monkeypatch.setenv("NUMBA_NUM_THREADS", asked)
    with pytest.raises(ArgumentError, match="NUMBA_NUM_THREADS"):
        call.threads()


BITS = """
import hashlib, sys
import numpy as np, tensorswap as ts
from tensorswap.run import execute, tuning
tuning.PARALLEL = 0
random = np.random.default_rng(0)
arrays = {"A": random.standard_normal((29, 37)), "B": random.standard_normal((37, 29)).astype(np.float32),
          "g": random.integers(0, 5, 29), "w": random.standard_normal((37, 37)) / 9}
texts = [
    "Y[i,j] += A[i,k] * B[k,j]",
    "size(H, 0) = 5\\nH[g[i],k] += A[i,k]",  # a scatter
    "loss += tanh(A[i,k]) ** 2",  # private sums
    "for t:\\n    P[t,h] += w[h,k] * (R[t-1,k] if t > 0 else 0.5)\\n"
    "    R[t,h] = tanh(P[t,h] + A[t,h])\\nloss += R[t,h]",
]
programs = [ts.program(text) for text in texts]
programs[3] = programs[3].grad(wrt=["w"])
results = []
for program in programs:
    given = {name: arrays[name] for name in program.inputs}
    runs = [program(given) for _ in range(int(sys.argv[2]))]
    runs = [run if isinstance(run, dict) else {"Y": run} for run in runs]
    for run in runs[1:]:
        assert all(np.array_equal(run[name], runs[0][name]) for name in run), f"other bits in:\\n{program}"
    results += runs[0].values()
np.savez(sys.argv[1], *results)
print(hashlib.sha256(b"".join(r.tobytes() for r in results)).hexdigest())
"""


def check_bits(folder: Path, threads: str, processes: int, runs: int) -> list[Any]:
    """Every process and every run gives the same bits at one number of threads; gives the arrays."""
    kept = [folder / f"{threads}-{k}.npz" for k in range(processes)]
    begun = [start(BITS, KERNELS, str(file), str(runs), NUMBA_NUM_THREADS=threads) for file in kept]
    told = [finish(process, 120) for process in begun]
    assert len(set(told)) == 1, f"{threads} threads: {told}"
    with np.load(kept[0]) as arrays:
        return [arrays[name] for name in arrays.files]


def test_the_same_bits_at_the_same_number_of_threads(tmp_path: Path) -> None:
    found = {threads: check_bits(tmp_path, threads, 2, 4) for threads in ("1", "2", "7")}
    for threads in ("2", "7"):
        for one, other in zip(found["1"], found[threads], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


# -- forks and pools

FORKS = """
import os, sys, threading, time
import numpy as np, tensorswap as ts
stop = []
def busy():
    k = 0
    while not stop:
        k += 1
        ts.program(f"Y[i] += tanh(A[i,k]) * {k}.5\\nZ[i] = exp(Y[i])*{k}.25")(A=np.ones((5, 7)))
ts.program("Y[i] += A[i,k]")(A=np.ones((3, 4)))
threading.Thread(target=busy, daemon=True).start()
for n in range(int(sys.argv[1])):
    time.sleep(0.13)
    child = os.fork()
    if child == 0:
        found = ts.program(f"Y[i] += sin(A[i,k]) * {n}.75")(A=np.ones((5, 7)))
        os._exit(0 if np.allclose(found, 7 * np.sin(1) * (n + 0.75)) else 1)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.01)
    else:
        os.kill(child, 9)
        print("child", n, "hangs")
        break
    if status:
        print("child", n, "ends with status", status)
        break
else:
    print("right")
sys.stdout.flush()
os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_forks_while_another_thread_compiles(tmp_path: Path) -> None:
    """A child whose parent was compiling can compile: the locks are open, and the compiler is in order."""
    assert finish(start(FORKS, tmp_path, "3"), 200) == "right\n"


POOLS = """
import concurrent.futures, multiprocessing, pickle, sys
import numpy as np, tensorswap as ts
TEXT = "Y[i,j] += A[i,k] * B[k,j]\\nZ[i] += tanh(Y[i,j])\\nreturn Z"
A, B = np.ones((64, 40)), np.ones((40, 33))
def run(program, factor):
    return program(A=A * factor, B=B)
if __name__ == "__main__":
    from tensorswap.run import execute, tuning
    tuning.PARALLEL = 0
    program = ts.program(TEXT)
    program(A=A, B=B)
    context = multiprocessing.get_context(sys.argv[1])
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        found = list(pool.map(run, [program] * 3, range(3), timeout=100))
    for factor, result in enumerate(found):
        np.testing.assert_allclose(result, program.run_reference(A=A * factor, B=B))
    print("right")
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_programs_in_pools_of_processes(tmp_path: Path, method: str) -> None:
    """A program that has run goes to other processes and runs there."""
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"there is no {method} here")
    script = tmp_path / "pools.py"
    script.write_text(POOLS)
    code = "import runpy, sys; sys.argv[:] = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    assert finish(start(code, KERNELS, str(script), method), 120) == "right\n"


GUARDED = """
import sys, threading
import numpy as np, tensorswap as ts
from llvmlite.binding import ffi
from tensorswap.forks import NO_FORK
bare = []

def inside():
    helper = threading.current_thread().name == "tensorswap"  # of somebody who is inside, and waits for it
    return helper or threading.get_ident() in NO_FORK.depths

class Imports:
    def find_spec(self, name, path=None, target=None):
        if not inside():
            bare.append(name)

def watched(function, *arguments, call=ffi._lib_fn_wrapper.__call__):
    if not inside():
        bare.append(function._cfn.__name__)
    return call(function, *arguments)

sys.meta_path.insert(0, Imports())
ffi._lib_fn_wrapper.__call__ = watched
X = np.ones((3, 3))

def user():
    program = ts.program("Y[i,j] += X[i,k] * X[k,j]\\nloss += Y[i,j] * Y[i,j]")
    for made in (program, program.grad(wrt=["X"])):
        for _ in range(4):
            made(X=X)
    program.plan(X=X), program.source, program.explain()
    ts.einsum("ij,jk->ik", X, X)

thread = threading.Thread(target=user)
thread.start()
thread.join()
print(bare or "right")
"""


@pytest.mark.parametrize("kept", [False, True])
def test_first_calls_import_and_compile_where_forks_wait(tmp_path: Path, kept: bool) -> None:
    """No module is imported, and nothing of LLVM's is used, where another thread could fork."""
    for _ in range(1 + kept):
        told = finish(start(GUARDED, tmp_path), 120)
    assert told == "right\n"


INSIDE = """
import os, threading, time
from tensorswap.forks import NO_FORK
import logging  # after it, as most do
entered, ended = threading.Event(), []

def work():
    with NO_FORK:
        entered.set()
        time.sleep(0.3)
        other = threading.Thread(target=deeper, daemon=True)
        other.start()
        other.join(20)
        logging.getLogger("somebody's").info("said")
        ended.append(not other.is_alive())

def deeper():
    with NO_FORK, NO_FORK:
        pass

worker = threading.Thread(target=work)
worker.start()
entered.wait()
child = os.fork()
if not child:
    os._exit(0 if ended == [True] and not NO_FORK.depths else 1)
assert os.waitpid(child, 0)[1] == 0
worker.join()
lock, entered = threading.Lock(), threading.Event()

def waits():
    with NO_FORK:
        entered.set()
        with lock:
            pass

worker = threading.Thread(target=waits)
with NO_FORK, lock:  # who forks inside, in a handler of signals, may be who others wait for
    worker.start()
    entered.wait()
    child = os.fork()
    if not child:
        os._exit(0 if list(NO_FORK.depths) == [threading.get_ident()] else 1)
    assert os.waitpid(child, 0)[1] == 0
worker.join()
print("right")
"""
INTERRUPTED = """
import os, signal, threading, time
from tensorswap.forks import NO_FORK
entered, ended, told = threading.Event(), [], []

def work():
    with NO_FORK:
        entered.set()
        time.sleep(0.8)
        ended.append(True)

threading.Thread(target=work).start()
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
entered.wait()
child = None
try:
    child = os.fork()
    if not child:
        again = os.fork()
        if again:
            os.waitpid(again, 0)
        os._exit(0 if ended and not NO_FORK.depths else 1)
    time.sleep(20)
except KeyboardInterrupt:
    told.append(True)
assert os.waitpid(child, 0)[1] == 0
print("right" if told else "Ctrl-C was not heard")
"""
HOOKS = """
import os

def hook(number):
    def work():
        found.append(programs[number](A=A).sum())
        functions([named(filling_kernel(np.dtype(float), number + 2))])  # without a program, as training has them
    return work

os.register_at_fork(before=hook(0), after_in_parent=hook(1), after_in_child=hook(2))  # before others do
import numpy as np, tensorswap as ts
from tensorswap.lower.kernel import filling_kernel
from tensorswap.run.kernel_code import named
from tensorswap.run.known_code import functions
A, found = np.ones((9, 9)), []
programs = [ts.program(f"Y[i,j] += A[i,k] * A[k,j] * {n} + tanh(A[i,k] * {n})") for n in (2, 3, 4)]
child = os.fork()
if not child:
    os._exit(0 if len(found) == 2 else 1)
assert os.waitpid(child, 0)[1] == 0 and len(found) == 2
print("right")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forks_wait_for_who_is_inside(tmp_path: Path) -> None:
    """Who is inside can wait for others that come in, and can use what locks itself before a fork."""
    assert finish(start(INSIDE, tmp_path), 60) == "right\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_that_is_interrupted_waits_on(tmp_path: Path) -> None:
    """Ctrl-C is heard when it is done; its child is in order."""
    assert finish(start(INTERRUPTED, tmp_path), 60) == "right\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_hooks_of_forks_make_first_calls(tmp_path: Path) -> None:
    """Also such as were registered before tensorswap, and run in the middle of its own."""
    assert finish(start(HOOKS, tmp_path), 60) == "right\n"


FORKED = """
import os, signal, sys, threading, time
import numpy as np, tensorswap as ts
program, X = ts.program("Y[i] = X[i] * 2\\nloss += Y[i] * Y[i]").grad(wrt=["X"]), np.ones(3)
first = threading.Thread(target=lambda: program(X=X))
first.start()
time.sleep(float(sys.argv[1]))
child = os.fork()
if not child:
    signal.alarm(60)
    assert program(X=X)["X.grad"][0] == 8
    os._exit(0)
first.join()
assert os.waitpid(child, 0)[1] == 0, "the child waits for a lock that nobody opens"
print("right")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_forks_while_another_thread_makes_the_first_call(tmp_path: Path) -> None:
    """Whatever it is at: imports, a plan, LLVM, or nothing but what lies on disk."""
    for delay in (0.02, 0.1, 0.3, 0.05, 0.1):
        assert finish(start(FORKED, tmp_path, str(delay)), 120) == "right\n", delay
