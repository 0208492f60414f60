"""Training of programs whose indices are computed: steps are compiled, and a bad one is refused by the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorswap as ts

pytestmark = pytest.mark.compiled
R = np.random.default_rng(3)
EXPERTS = """e[b] argmax= g[b,k] if g[b,k] > low[b]
Y[b] += X[b,i] * W[e[b],i]
loss += (Y[b] - t[b]) ** 2 / size(b)"""


def data(low: float) -> dict[str, Any]:
    X = R.standard_normal((64, 5))
    return {"X": X, "t": X.sum(1), "g": R.random((64, 3)), "low": np.full(64, low)}


def test_experts_that_are_chosen_by_values_learn() -> None:
    result = ts.fit(
        ts.program(EXPERTS), {"W": np.zeros((3, 5))}, data(-1e9), lr=0.05, batch_size=8, epochs=40, progress=False
    )
    losses = result.history.steps["loss"]
    assert np.mean(losses[-8:]) < 0.1 * np.mean(losses[:8])


def test_a_step_without_a_winner_is_refused_with_its_number_and_keeps_what_was_learned() -> None:
    given = data(-1e9)
    given["low"][40:] = 1e9  # the sixth batch of eight
    with pytest.raises(ts.SwapError, match=r"step 6, on the examples 40, 41(.|\n)*position -1 of axis 0") as error:
        ts.fit(
            ts.program(EXPERTS), {"W": np.zeros((3, 5))}, given,
            batch_size=8, epochs=2, shuffle=False, progress=False,
        )  # fmt: skip
    assert error.value.result.step == 5
    assert np.isfinite(error.value.result.params["W"]).all()
