"""Recurrences of one number for each element of a batch: their steps run over several elements at once, in vectors."""

from __future__ import annotations

import numpy as np
import pytest

import tensorswap as ts
from tensorswap.plan import nest
from tensorswap.run import cache, machine_code
from tests.daily import share
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
@pytest.mark.parametrize("name", share(RECURRENCES, 2))
def test_steps_in_vectors(name: str, batch: int) -> None:
    program = ts.program(f"{RECURRENCES[name]}\nreturn loss").grad()
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


def test_a_short_loop_over_elements_is_not_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM would do so before it looks for vectors."""
    made: list[str] = []

    def watched(text: str) -> bytes:
        made.append(text)
        return object_code(text)

    object_code = machine_code.object_code
    monkeypatch.setattr(machine_code, "object_code", watched)
    monkeypatch.setattr(cache, "load", lambda source, linked: None)  # as in the first run
    ts.program("Y[n,o] = x[n] * Z[n,o]")(x=NUMBERS.random(30), Z=NUMBERS.random((30, 8)))
    (step,) = [part for text in made for part in text.split("\ndefine")[1:] if "_step0" in part.splitlines()[0]]
    assert step.count("!llvm.loop") == 1


def test_a_long_recurrence_along_memory_keeps_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """What lives within a strip is more than the cache likes: strips are as long as a vector nevertheless."""
    program = ts.program(
        """
for t:
    for l:
        f[t,l,i] = x[t,i] * w[l,i] + (c[t-1,l,i] if t > 0 else 0)
        c[t,l,i] = f[t,l,i] * v[l,i]
loss += c[t,l,i] ** 2
"""
    ).grad(of="loss", wrt=["w", "v"])
    plan = program.plan(x=(20_000, 14), w=(4, 14), v=(4, 14))
    assert [row.how for row in plan.rows if "f.grad" in row.local] == ["parallel over i by 8"]
    monkeypatch.setattr(nest, "CACHE", 256)  # so that five steps are as long
    check(
        program, {"x": NUMBERS.standard_normal((5, 14)), "w": NUMBERS.standard_normal((4, 14)), "v": np.ones((4, 14))}
    )
