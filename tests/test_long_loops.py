"""Long loops run in pieces, between which kernels can be stopped. Here pieces are short, so that small arrays have
several, and all arrays stand between pages that nobody may touch."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.kernel import llvm
from tensorswap.run import ahead, known_code, tuning

from . import test_planner, test_random_rows
from .daily import LONG
from .guarded_memory import guarded

pytestmark = [
    pytest.mark.compiled,
    pytest.mark.skipif(sys.platform != "linux", reason="pages are guarded by Linux's mmap"),
]

PIECE = 40


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Kernels of short pieces have keys of their own."""
    monkeypatch.setattr(llvm, "UNSTOPPED", PIECE)
    found = known_code.key_of
    for module in (known_code, ahead):
        monkeypatch.setattr(module, "key_of", lambda source: found(f"pieces of {PIECE}\n{source}"))
    with guarded():
        yield


@pytest.mark.parametrize("parallel", [0, 20_000])
@pytest.mark.parametrize("text", [
    "Y[i,j] = X[i,j]", "Y[i,j] = 2 * X[i,j] + 1", "Y[i,j] = exp(X[i,j])", "S += X[i,j]", "S[i] += X[i,j] * X[i,j]",
    "S[j] += X[i,j]", "M max= X[i,j]", "Y[i,j] = X[i,j] if j > 0", "Y[i,j] = X[i,j-1] + X[i,j] if j > 0",
    "Y[i,j] = X[i,j] if j <= i", "Y[i,j] = X[i,size(j)-1-j]", "Y[j,i] = X[i,j]",
])  # fmt: skip
def test_lengths_around_pieces(text: str, parallel: int, pieces: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "PARALLEL", parallel)
    program, numbers = ts.program(text), np.random.default_rng(5)
    for rows, columns in ((1, 39), (2, 40), (3, 41), (2, 80), (5, 87), (9, 121), (3, 400)):
        for dtype in ("float32", "float64"):
            test_planner.check(program, {"X": numbers.standard_normal((rows, columns)).astype(dtype)})


@pytest.mark.parametrize("seed", range(10_000, 10_400 if LONG else 10_040))
def test_short_rows(seed: int, pieces: None, monkeypatch: pytest.MonkeyPatch) -> None:
    test_random_rows.run(seed, monkeypatch)


@pytest.mark.parametrize("seed", range(2_000, 2_200 if LONG else 2_012))
def test_planned(seed: int, pieces: None, monkeypatch: pytest.MonkeyPatch) -> None:
    test_planner.run(seed, monkeypatch)


@pytest.mark.parametrize("shape", [(2, 2**16 + 1), (3, 2**16), (2, 3, 40_000), (1, 2**17 + 7)])
def test_pieces_as_they_are(shape: tuple[int, ...]) -> None:
    named = "ijk"[: len(shape)]
    program = ts.program(f"Y[{','.join(named)}] = 2 * X[{','.join(named)}]")
    with guarded():
        X = np.random.default_rng(random.Random(str(shape)).randrange(100)).standard_normal(shape).astype("float32")
        np.testing.assert_array_equal(program(X=X), 2 * X)


@pytest.mark.parametrize("place", [100, -1])
def test_pages_are_guarded(place: int) -> None:
    """Who touches what is beside an array is found: behind it at once, before it at the end."""
    code = (
        "import ctypes, numpy as np\nfrom tests.guarded_memory import guarded\nwith guarded():\n"
        f"    a = np.zeros(100, np.float32)\n    ctypes.c_float.from_address(a.ctypes.data + 4 * {place}).value = 1\n"
        "    del a"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if place < 0:
        assert "memory before arrays was changed" in ended.stderr
    else:
        assert ended.returncode < 0, "ended by the system"
