"""Training of programs whose indices are computed: steps are compiled, and a bad one is refused by the interpreter."""

from __future__ import annotations

from pathlib import Path
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


WHOLE, PARTS = {"id": np.arange(10)}, [{"id": np.arange(7)}, {"id": np.arange(7, 10)}]


@pytest.mark.parametrize("data", [WHOLE, [WHOLE], PARTS], ids=["whole", "one part", "two parts"])
@pytest.mark.parametrize("stop", range(1, 6))
def test_a_run_that_stopped_at_any_step_visits_each_example_once(tmp_path: Path, data: Any, stop: int) -> None:
    """The batch that is left over at the end of the data is a stretch of its own: it stopped between the two."""
    broken = True

    def schedule(step: int) -> float:
        if step == stop and broken:
            raise KeyError(step)
        return 1.0

    def run(**more: Any) -> Any:
        return ts.fit(
            ts.program("loss += w[id[b]]"), {"w": np.zeros(10)}, data, batch_size=4, epochs=2, lr=1.0, optimizer="sgd",
            progress=False, checkpoint=tmp_path / "run.safetensors", schedule=schedule, **more,
        )  # fmt: skip

    with pytest.raises(ts.SwapError):
        run()
    broken = False
    np.testing.assert_array_equal(run(resume=True).params["w"], -2)
