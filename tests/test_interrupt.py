"""Ctrl-C during long work: within a second Python goes on, and later calls are right."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.run import products, tuning
from tensorswap.run.chunk import Chunk
from tensorswap.run.interrupt import STOP

pytestmark = [
    pytest.mark.compiled,
    pytest.mark.skipif(sys.platform == "win32", reason="a process cannot send itself Ctrl-C there"),
]

MINUTE = 10**11  # points that take minutes
LONG = {
    "one loop": ("n: int\nsize(i) = n\ns += sin(1.0*i)", {"n": MINUTE}),
    "two loops": ("n: int\nm: int\nsize(i) = n\nsize(j) = m\ns += sin(1.0*i + j)", {"n": 10**5, "m": 10**7}),
    "scatter": ("n: int\nsize(i) = n\nY[i%1000] += sin(1.0*i)", {"n": MINUTE}),
    "position": ("n: int\nsize(i) = n\ns argmax= sin(1.0*i)", {"n": MINUTE}),
    "recurrence": (
        "n: int\nm: int\nsize(t) = n\nsize(j) = m\nfor t:\n    c[t] += sin(1.0*j + t)\n"
        "    H[t] = (H[t-1] if t > 0 else 0)*0.5 + c[t]",
        {"n": 10**5, "m": 10**7},
    ),
    "short steps": (
        "n: int\nsize(t) = n\nA[0] = 1\nfor t:\n    b[t] = sin(A[t])\n    A[t+1] = b[t] * 0.5 + t\nY = A[n]",
        {"n": MINUTE},
    ),
    "short steps down": (
        "n: int\nsize(t) = n\nfor t down:\n    b[t] = sin(A[t+1] if t < n - 1 else 0)\n"
        "    A[t] = b[t] * 0.5 + t\nY = A[0]",
        {"n": MINUTE},
    ),
    "product": ("Y[i,j] += exp(A[i,k] * A[k,j])", {"A": (4000, 4000)}),
}
FIT = "n: int\nsize(i) = n\nloss += W * X[b] * sin(1.0*i + W)"


def interrupted(run: Any, pressing: threading.Timer) -> str:
    """What comes of work during which Ctrl-C is pressed."""
    try:
        run()
        return "it ran to its end"
    except KeyboardInterrupt:
        return ""
    finally:
        pressing.cancel()


def press(times: int) -> threading.Timer:
    """Presses Ctrl-C soon."""

    def pressed() -> None:
        for _ in range(times):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.3)

    pressing = threading.Timer(0.4, pressed)
    pressing.start()
    return pressing


def main() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for parallel in (10**30, 10_000):
        tuning.PARALLEL = parallel
        for name, (text, sizes) in LONG.items():
            program = ts.program(text)
            large = {n: np.zeros(v) if isinstance(v, tuple) else v for n, v in sizes.items()}
            small = {n: np.zeros((40, 40)) if isinstance(v, tuple) else 40 for n, v in sizes.items()}
            before = program(small)
            program.plan(large)
            told = interrupted(lambda program=program, large=large: program(large), press(1))
            if told:
                print(f"{name}: {told}")
            np.testing.assert_equal(program(small), before)
    run, timers = Chunk.run, []

    def pressed_while_it_runs(self: Chunk, arrays: Any, steps: int) -> None:
        timers.append(press(2))  # the first one asks for an end after the steps at hand
        run(self, arrays, steps)

    Chunk.run = pressed_while_it_runs  # type: ignore[method-assign]  # in this process only
    model, sizes = ts.program(FIT), {"n": MINUTE}
    told = interrupted(
        lambda: ts.fit(model, {"W": np.array(1.0)}, {"X": np.ones(8)}, batch_size=4, sizes=sizes),
        threading.Timer(0, int),
    )
    if told or len(timers) != 1:
        print(f"fit: {told}, {timers}")
    print("done")


def test_long_kernels_are_interrupted() -> None:
    """The kernels would run for minutes: the time-out is what tells."""
    environment = {**os.environ, "NUMBA_NUM_THREADS": "2"}
    ran = subprocess.run(
        [sys.executable, "-m", "tests.test_interrupt"], capture_output=True, text=True, env=environment, timeout=400
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "done\n"


def test_long_work_in_other_threads_gives_its_results() -> None:
    """Only the main thread hears signals; work of others is done where it is asked for."""
    program = ts.program("n: int\nsize(i) = n\ns += 1.0 + 0*i")
    results: list[float] = []
    threads = [threading.Thread(target=lambda: results.append(float(program(n=10**8)))) for _ in range(2)]
    for thread in threads:
        thread.start()
    here = float(program(n=10**8))
    for thread in threads:
        thread.join()
    assert [here, *results] == [1e8] * 3


def test_a_long_product_of_a_library_stops_between_its_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "PIECE", 1)
    a, b = np.random.default_rng(0).standard_normal((2, 300, 300))
    np.testing.assert_allclose(products._product(a, b), a @ b, atol=1e-10)
    monkeypatch.setattr(np, "matmul", lambda *_, **__: pytest.fail("it went on"))
    STOP.value = 1
    try:
        products._product(a, b)
    finally:
        STOP.value = 0


if __name__ == "__main__":
    main()
