"""The guess of how long a statement takes: right to a small factor, and the same on every machine that is assumed."""

from __future__ import annotations

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.kernel.registers import Registers, assuming
from tensorswap.run.expected_time import nanoseconds, without_vectors
from tensorswap.run.tuning import PARALLEL

WIDE, NARROW = Registers(64, 32, by_lane=False), Registers(16, 32, by_lane=True)


def guess(text: str, registers: Registers = WIDE, itemsize: int = 4, **sizes: int) -> float:
    (statement,) = ts.program(text)._loops.statements
    with assuming(registers):
        return nanoseconds(statement, statement.indices, sizes, itemsize)


# microseconds as they were measured on a core with AVX-512, without what a call costs
@pytest.mark.parametrize(
    ("text", "sizes", "measured"),
    [
        ("Y[i,j] += A[i,k] * B[k,j]", {"i": 64, "j": 64, "k": 64}, 5.7),
        ("Y[i,j] += A[i,k] * B[k,j]", {"i": 96, "j": 96, "k": 96}, 31),
        ("y[i] = x[i] * x[i] + 1", {"i": 64_000}, 11),
        ("y[i] = exp(x[i])", {"i": 64_000}, 58),
        ("s += x[i] * x[i]", {"i": 64_000}, 4.9),
    ],
)
def test_it_is_right_to_a_factor_of_three(text: str, sizes: dict[str, int], measured: float) -> None:
    assert measured / 3 < guess(text, **sizes) / 1000 < measured * 3


def test_threads_are_asked_for_large_products_and_not_for_small_ones() -> None:
    text = "Y[i,j] += A[i,k] * B[k,j]"
    assert guess(text, i=64, j=64, k=64) < PARALLEL < guess(text, i=128, j=128, k=128)
    assert guess(text, NARROW, i=64, j=64, k=64) > PARALLEL, "shorter vectors take longer"


def test_what_has_no_vectors_takes_as_long_everywhere() -> None:
    for text in ("y[i] = x[c[i]]", "y argmax= x[i] * 2"):
        assert guess(text, WIDE, i=1000) == guess(text, NARROW, i=1000)
        assert guess(text, i=1000) >= guess("y[i] = x[i]", i=1000)


def test_steps_of_a_block_count_though_a_statement_does_not_name_them() -> None:
    (statement,) = ts.program("s += x[i]")._loops.statements
    assert without_vectors(statement, ["t"], {"i": 10, "t": 7}) == 7 * without_vectors(statement, [], {"i": 10})


def test_steps_of_blocks_count() -> None:
    """A statement of a step runs as often as there are steps, whether it names them or not."""
    text = "size(t) = 5\nfor t:\n    for s:\n        G[t,s,i] = x[i] * a[s]\n        Y[t,s,i] = G[t,s,i] + 1\nreturn Y"
    plan = ts.program(text).plan(x=np.ones(3), a=np.ones(4))
    assert "G[0,0,i]" in str(plan)
    assert "operations: 2*i*s*t" in str(plan)
