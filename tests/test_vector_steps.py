"""Recurrences of one number for each element of a batch: their steps run over several elements at once, in vectors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.run import machine_code
from tests.test_planner import check

pytestmark = pytest.mark.compiled

NUMBERS = np.random.default_rng(5)
RECURRENCES = {
    "a filter": "for t:\n    y[b,t] = tanh(x[b,t] + (y[b,t-1] * w if t > 0 else 0))\nloss += y[b,t] ** 2",
    "downwards": "for t down:\n    y[b,t] = sigmoid(x[b,t]) * (y[b,t+1] if t < size(t) - 1 else 1)\n"
    "m[b] max= y[b,t]\nloss += m[b]",
    "with products around it": "U[b,t] += x[b,k] * V[t,k]\n"
    "for t:\n    y[b,t] = tanh(U[b,t] + (y[b,t-1] * w if t > 0 else 0))\n"
    "Q[b,k] += y[b,t] * V[t,k]\nloss += Q[b,k] ** 2",
    "in two directions": "for i:\n    for j:\n"
    "        H[b,i+1,j+1] = log(exp(H[b,i,j] + x[b,i] * V[j,i]) + exp(H[b,i,j+1] - w) + exp(H[b,i+1,j] - w))\n"
    "loss += H[b,i,j]",
    "beside wider steps": "for t:\n    y[b,t] = exp(-(x[b,t] ** 2) - (q[b,t-1] if t > 0 else 0))\n"
    "    h[b,t,c] = y[b,t] * V[t,c]\n    q[b,t] += h[b,t,c] * w\nloss += q[b,t]",
    "of various lengths": "for t:\n    y[b,t] = tanh(x[b,t] + (y[b,t-1] if t > 0 else 0)) if t < length[b]\n"
    "loss += y[b,t]",
}


@pytest.mark.parametrize("batch", [8, 21])
@pytest.mark.parametrize("text", RECURRENCES.values(), ids=RECURRENCES)
def test_steps_in_vectors(text: str, batch: int) -> None:
    program = ts.program(f"{text}\nreturn loss").grad()
    arrays = {
        "x": NUMBERS.standard_normal((batch, 6)),
        "V": NUMBERS.standard_normal((6, 6)),
        "w": np.array(0.4),
        "length": NUMBERS.integers(0, 7, batch),
    }
    check(program, {name: array for name, array in arrays.items() if name in program.inputs})


def test_a_step_says_that_it_runs_in_vectors() -> None:
    program = ts.program(f"{RECURRENCES['a filter']}\nreturn loss").grad()
    assert "lane" in program.source(x=NUMBERS.standard_normal((16, 6)), w=np.array(0.4))


def test_a_short_loop_over_elements_becomes_a_vector(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Eight elements beside each other are written out by LLVM before it looks for vectors, if it may."""
    made: list[str] = []
    optimised = machine_code.optimised

    @contextmanager
    def watched(text: str) -> Iterator[Any]:
        with optimised(text) as module:
            made.append(str(module))
            yield module

    monkeypatch.setattr(machine_code, "optimised", watched)
    monkeypatch.setenv("TENSORSWAP_CACHE", str(tmp_path))
    text = "size(Y, 0) = 9\nY[node[e],h,o] += x[e,h] * Z[source[e],h,o]"
    places = NUMBERS.integers(0, 9, (2, 3000))
    Z = NUMBERS.standard_normal((9, 4, 8))
    ts.program(text)(x=NUMBERS.random((3000, 4)), Z=Z, node=places[0], source=places[1])
    assert any(re.search(r"= fmul [a-z ]*<\d+ x double>", one) for one in made)
