"""Many at once: processes that compile into one empty cache, threads that call, and a fork after a parallel run."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.program import Program
from tensorswap.run import call, tuning

from .daily import LONG

pytestmark = pytest.mark.compiled

PROCESSES = 32 if LONG else 5

WORKER = """
import os, sys, time
import numpy as np, tensorswap as ts
texts = ["Y[i,j] += A[i,k] * B[k,j]", "Y[i] max= A[i,k] - 0.5", "Y += A[i,k] ** 2 if k <= i"]
random = np.random.default_rng(0)
arrays = {"A": random.standard_normal((9, 11)), "B": random.standard_normal((11, 10))}
open(os.path.join(sys.argv[1], str(os.getpid())), "w").close()
deadline = time.monotonic() + 60
while len(os.listdir(sys.argv[1])) < int(sys.argv[2]) and time.monotonic() < deadline:
    time.sleep(0.02)  # all start together
for text in texts:
    program = ts.program(text)
    mine = {name: arrays[name] for name in program.inputs}
    np.testing.assert_allclose(program(mine), program.run_reference(mine), rtol=1e-12)
print("right")
"""


def start(code: str, folder: Path, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], env={**os.environ, "TENSORSWAP_CACHE": str(folder), **variables},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finish(process: subprocess.Popen[str], seconds: float) -> str:
    with process:
        try:
            out, err = process.communicate(timeout=seconds)
        finally:
            process.kill()
    assert process.returncode == 0, err
    return out


def test_many_processes_compile_the_same_programs(tmp_path: Path) -> None:
    kernels, ready = tmp_path / "kernels", tmp_path / "ready"
    ready.mkdir()
    processes = [start(WORKER, kernels, str(ready), str(PROCESSES)) for _ in range(PROCESSES)]
    try:
        for process in processes:
            assert finish(process, 300) == "right\n"
    finally:
        for process in processes:
            with process:
                process.kill()
    files = sorted(kernels.iterdir())
    assert files
    assert all(file.suffix in (".kernel", ".object", ".plan", ".verdict") for file in files), "a temporary file is left"
    for file in files[::2]:  # what was written at once is whole: and what is damaged later does no harm
        file.write_bytes(file.read_bytes()[:-100])
    assert finish(start(WORKER, kernels, str(ready), "1"), 60) == "right\n"


# -- threads of Python


@pytest.fixture
def two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call, "threads", lambda: 2)
    monkeypatch.setattr(tuning, "PARALLEL", 0)


def at_once(tasks: list[tuple[Program, dict[str, Any]]], rounds: int) -> None:
    """Each task in a thread of its own, again and again; every result must be right."""
    expected = [program.run_reference(arrays) for program, arrays in tasks]
    wrong: list[str] = []
    barrier = threading.Barrier(len(tasks))

    def work(number: int) -> None:
        program, arrays = tasks[number]
        try:
            barrier.wait()
            for _ in range(rounds):
                np.testing.assert_allclose(program(arrays), expected[number], rtol=1e-9, atol=1e-9)
        except BaseException as error:
            wrong.append(f"thread {number}: {error!r}")

    threads = [threading.Thread(target=work, args=(k,), daemon=True) for k in range(len(tasks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    assert not wrong, wrong


@pytest.mark.usefixtures("two_threads")
def test_threads_that_call_one_program() -> None:
    """Values differ from thread to thread, and so do some shapes: nothing of one call may show in another."""
    program = ts.program("H[b,h] += X[b,i] * W[h,i]\nP[b,h] = tanh(H[b,h])\nY[h] += P[b,h]\nreturn Y")
    random = np.random.default_rng(1)
    tasks = []
    for k in range(8):
        shapes = {"X": (40 + 8 * (k % 3), 9), "W": (13, 9)}
        tasks.append((program, {name: random.standard_normal(shape) for name, shape in shapes.items()}))
    at_once(tasks, 200)


@pytest.mark.usefixtures("two_threads")
def test_threads_that_call_different_programs() -> None:
    texts = ["Y[i,j] += A[i,k] * B[k,j]", "Y[i] max= A[i,k] + 1", "Y += A[i,k] * C[i,k]", "Y[k,i] = tanh(A[i,k])",
             "Y[j] += B[k,j] ** 2", "M[i] max= A[i,k]\nY[i,k] = exp(A[i,k] - M[i])", "Y[i] *= 1 + 0.1 * A[i,k]",
             "Z[i] += A[i,k]\nY[k] += A[i,k] * Z[i]"]  # fmt: skip
    random = np.random.default_rng(2)
    arrays = {
        name: random.standard_normal(shape) for name, shape in {"A": (33, 17), "B": (17, 9), "C": (33, 17)}.items()
    }
    programs = [ts.program(text) for text in texts]
    at_once([(p, {name: arrays[name] for name in p.inputs}) for p in programs], 200)


# -- processes that fork

FORK = """
import os, sys, time
import numpy as np, tensorswap as ts
from tensorswap.run import call, execute, tuning
call.threads, tuning.PARALLEL = lambda: int(sys.argv[1]), 0
program = ts.program("Y[i,j] += A[i,k] * B[k,j]\\nZ[i] += tanh(Y[i,j])\\nreturn Z")
A, B = np.ones((64, 40)), np.ones((40, 33))
wanted = program.run_reference(A=A, B=B)
assert np.allclose(program(A=A, B=B), wanted)
child = os.fork()
if child == 0:
    try:
        right = np.allclose(program(A=A, B=B), wanted)
    except Exception as error:
        print("exception:", error, flush=True)
        os._exit(0)
    print("right" if right else "wrong", flush=True)
    os._exit(0)
deadline = time.monotonic() + 30
while time.monotonic() < deadline:
    done, status = os.waitpid(child, os.WNOHANG)
    if done:
        break
    time.sleep(0.02)
else:
    os.kill(child, 9)
    print("hangs")
    sys.exit()
if status:
    print("ends with status", status)
assert np.allclose(program(A=A, B=B), wanted), "the parent goes on"
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("layer", ["omp", "workqueue"])
@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_fork_after_a_run(tmp_path: Path, threads: str, layer: str) -> None:
    """The child has the right result, or an exception that it can catch: it never hangs and is never killed."""
    out = finish(start(FORK, tmp_path, threads, NUMBA_THREADING_LAYER=layer), 90).strip()
    assert out == "right" or out.startswith("exception:"), out
