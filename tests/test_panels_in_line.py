"""Products whose second matrix is larger than the cache of a core: its panels are packed once, for all threads, and
read block by block, in pieces of a long sum. Here the cache is small, so that matrices need not be large."""

from __future__ import annotations

import random

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.kernel.registers import Registers, assuming
from tensorswap.language import ir
from tensorswap.lower import tiling
from tensorswap.run import tuning
from tests.test_planner import check

from .daily import LONG

pytestmark = pytest.mark.compiled

WIDE = Registers(64, 32, by_lane=False, cache=1 << 13)
OTHERS = [WIDE, Registers(32, 16, by_lane=False, cache=1 << 13), Registers(16, 32, by_lane=True, cache=1 << 13)]
TEXTS = [
    "Y[i,j] += A[i,k] * B[k,j]",
    "Y[i,j] -= 0.5 * A[i,k] * B[k,j]",
    "Y[i,j] += A[i,k] * B[k,j] / 3\nY[i,j] += D[i,j]",
    "P[i,j] += A[i,k] * B[k,j]\nY[i,j] = tanh(P[i,j] + c[j])",
    "Y[i,j] += A[i,k] * B[k,j] if j <= i",
    "Y[i,j] += A[i,k] * B[k,j] if k <= i",
    "Y[j,i] += A[i,k] * B[k,j]",
    "Y[i,j] += A[k,i] * B[k,j]",
    "Y[i,j] += A[i,k] * B[j,k]",
    "Y[i,j] += G[i,k,l] * H[k,l,j]",
    "Y[b,i,j] += G[b,i,k] * B[k,j]",
]


@pytest.fixture(autouse=True)
def pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiling, "IN_LINE", 96)
    monkeypatch.setattr(tuning, "PARALLEL", 0)


def sizes_of(seed: int) -> dict[str, int]:
    """Many rows, and sums that come to several pieces or to none."""
    choose = random.Random(seed).choice
    long = choose([31, 64, 96, 193, 400])
    return {
        "i": choose([128, 129, 150, 200]), "j": choose([48, 64, 97, 130]), "k": long, "l": choose([1, 2, 3]), "b": 2,
    }  # fmt: skip


def arrays(text: str, sizes: dict[str, int], dtype: str, seed: int) -> dict[str, np.ndarray]:
    program, numbers = ts.program(text), np.random.default_rng(seed)
    shapes = {
        access.tensor: [sizes[ir.bare(e) or ""] for e in access.indices]
        for statement in program.loops.statements for access in statement.reads if access.indices
    }  # fmt: skip
    return {name: numbers.standard_normal(shapes[name]).astype(dtype) for name in program.inputs}


@pytest.mark.parametrize("seed", range(200 if LONG else 12))
@pytest.mark.parametrize("text", TEXTS)
def test_as_the_interpreter(text: str, seed: int) -> None:
    chosen = random.Random(f"{text} {seed}")
    registers, dtype = OTHERS[seed % len(OTHERS)], chosen.choice(["float32", "float64"])
    with assuming(registers):
        check(ts.program(text), arrays(text, sizes_of(chosen.randrange(10**6)), dtype, seed))


def test_panels_are_packed_for_all_threads_and_read_in_pieces() -> None:
    text = TEXTS[0]
    with assuming(WIDE):
        source = ts.program(text).source(arrays(text, sizes_of(0) | {"k": 400}, "float32", 0))
    assert "panels, packed ahead" in source
    assert source.index("for block in") < source.index("for chunk in"), "sums in the block that stays near"
