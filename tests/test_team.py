"""The threads that share kernels: every part runs once, whoever comes, and the bits are the same."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.run import call, tuning

pytestmark = pytest.mark.compiled

TEXT = """
y[i] = exp(x[i])
z[i] = y[i] * 2 + x[i]
s += z[i] * y[i]
m max= z[i] - y[i]
t[j] += A[i,j] * x[i]
return z, s, m, t
"""


def arrays(seed: int = 0) -> dict[str, Any]:
    numbers = np.random.default_rng(seed)
    return {"x": numbers.standard_normal(3001), "A": numbers.standard_normal((3001, 5))}


def same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def of_seven(monkeypatch: pytest.MonkeyPatch) -> ts.Program:
    """A program whose kernels have seven parts, however small they are."""
    monkeypatch.setattr(tuning, "PARALLEL", 0)
    monkeypatch.setattr(call, "threads", lambda: 7)
    return ts.program(TEXT)


def test_again_and_again_with_pauses_in_which_threads_fall_asleep(monkeypatch: pytest.MonkeyPatch) -> None:
    program = of_seven(monkeypatch)
    given = arrays()
    first = program(given)
    expected = program.run_reference(given)
    for name, value in expected.items():
        np.testing.assert_allclose(first[name], value, rtol=1e-9)
    for k in range(3000):
        same(program(given), first)
        if k % 300 == 0:
            time.sleep(0.02)


def test_if_nobody_comes_one_thread_does_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In a process of its own, whose team is never started."""
    expected = of_seven(monkeypatch)(arrays())
    np.savez(tmp_path / "expected.npz", **expected)
    code = (
        "import sys, numpy as np, tensorswap as ts\n"
        "from tensorswap.run import call, execute, frame, tuning\n"
        "from tests.test_team import TEXT, arrays, same\n"
        "tuning.PARALLEL, call.threads = 0, lambda: 7\n"
        "started = []\n"
        "frame.assemble = lambda: started.append(1)\n"
        "program = ts.program(TEXT)\n"
        "for _ in range(50):\n"
        "    same(program(arrays()), np.load(sys.argv[1]))\n"
        "assert started\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "expected.npz")], check=True, timeout=120)


def of_four_threads(code: str) -> None:
    """Runs it in a process of its own."""
    names = "import numpy as np, tensorswap as ts\nfrom tensorswap.run import call, execute, tuning\n"
    environment = {**os.environ, "NUMBA_NUM_THREADS": "4"}
    subprocess.run([sys.executable, "-c", names + code], check=True, timeout=120, env=environment)


def test_threads_beyond_those_of_a_kernel_stay_away() -> None:
    """Of four threads, the two that a kernel is made for take its parts: it has memory for so many."""
    code = (
        "tuning.PARALLEL, execute.PIECE, call.threads = 0, 1, lambda: 2\n"
        "program = ts.program('E[i,j] = exp(X[i,j])\\nZ[i] += E[i,j]\\nY[i,j] = E[i,j] / Z[i]\\nreturn Y')\n"
        "X = np.random.default_rng(0).standard_normal((4000, 300))\n"
        "made = program.executable(X=X)\n"
        "assert max(made.crews) == 2 < max(made.parts) and any(kernel.scratch for kernel in made.kernels)\n"
        "expected = np.exp(X) / np.exp(X).sum(axis=1, keepdims=True)\n"
        "for _ in range(40):\n"
        "    np.testing.assert_allclose(program(X=X), expected)\n"
    )
    of_four_threads(code)


def test_threads_of_one_kernel_stay_away_from_the_next() -> None:
    """Four threads run the first kernel, two the second, which begins as soon as the first is done."""
    code = (
        "tuning.PARALLEL, execute.PIECE, call.threads = 0, 1, lambda: 4\n"
        "execute.Executable.threads_for = lambda self, kernel: 2 if kernel.scratch else 4\n"
        "program = ts.program('V[k] = 2 * W[k]\\nE[i,j] = exp(X[i,j])\\n'"
        " 'Z[i] += E[i,j]\\nY[i,j] = E[i,j] / Z[i]\\nreturn V, Y')\n"
        "X, W = np.random.default_rng(0).standard_normal((64, 300)), np.ones(64)\n"
        "made = program.executable(X=X, W=W)\n"
        "assert made.crews == [4, 2], made.crews\n"
        "expected = np.exp(X) / np.exp(X).sum(axis=1, keepdims=True)\n"
        "for _ in range(6000):\n"
        "    np.testing.assert_allclose(program(X=X, W=W)['Y'], expected)\n"
    )
    of_four_threads(code)


def test_calls_from_many_threads_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    program = of_seven(monkeypatch)
    expected = [program(arrays(k)) for k in range(4)]
    wrong: list[BaseException] = []

    def calls(k: int) -> None:
        try:
            for _ in range(200):
                same(program(arrays(k)), expected[k])
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=calls, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_process_ends_while_threads_wait_for_work(tmp_path: Path) -> None:
    """Awake or asleep: they never come back."""
    code = (
        "import time, numpy as np, tensorswap as ts\n"
        "from tensorswap.run import call, execute, tuning\n"
        "tuning.PARALLEL, call.threads = 0, lambda: 4\n"
        "ts.program('y[i] = exp(x[i])')(x=np.ones(10_000))\n"
    )
    for wait in ("", "time.sleep(0.5)\n"):
        subprocess.run([sys.executable, "-c", code + wait], check=True, timeout=120)
