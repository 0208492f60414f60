"""Random functions in a training: their numbers differ from step to step, or the training is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorswap as ts

TEXT = "E[b] = normal({})\nY[b] += X[b,d] * W[d]\nloss += (Y[b] + E[b]) ** 2 / size(b)"
DATA: dict[str, Any] = {"X": np.zeros((40, 3))}  # the loss is the mean square of the noise alone
PARAMS = {"W": np.zeros(3)}


def losses(arguments: str, data: Any = DATA, **options: Any) -> list[float]:
    usual: dict[str, Any] = {"batch_size": 8, "progress": False, "optimizer": "sgd"}
    found: list[float] = ts.fit(ts.program(TEXT.format(arguments)), PARAMS, data, **{**usual, **options}).history.loss
    return found


def drawn(step: int, arguments: str) -> float:
    program = ts.program(f"E[b] = normal({arguments})\nloss += E[b] ** 2 / size(b)")
    given = {"step": step, "seed": 5, "b": 8}
    return float(program.run_reference({n: given[n] for n in ("b", *program.inputs)}))


@pytest.mark.parametrize(
    ("arguments", "optimizer"), [("step, b", "sgd"), ("seed, step, b", "adam"), ("2 * step + 1, b", "sgd")]
)
def test_each_step_has_noise_of_its_own(arguments: str, optimizer: str) -> None:
    data = {**DATA, "seed": 5} if "seed" in arguments else DATA
    found = losses(arguments, data, epochs=2, optimizer=optimizer)
    assert len(set(found)) == 10
    np.testing.assert_allclose(found, [drawn(step, arguments) for step in range(1, 11)], rtol=1e-12)


def test_float32_stays_float32_with_a_step() -> None:
    program = ts.program(TEXT.format("step, b"))
    result = ts.fit(program, {"W": np.zeros(3, "f4")}, {"X": np.ones((40, 3), "f4")}, progress=False)
    assert result.params["W"].dtype == np.float32


def test_a_step_of_ones_own_loop_counts_too() -> None:
    step = ts.step(ts.program(TEXT.format("step, b")), PARAMS, optimizer="sgd")
    found = [step(X=np.zeros((8, 3))) for _ in range(3)]
    np.testing.assert_allclose(found, [drawn(k, "step, b") for k in (1, 2, 3)], rtol=1e-12)


@pytest.mark.parametrize(("arguments", "data"), [("3, b", {}), ("seed, b", {"seed": 3}), ("size(b), b", {})])
def test_the_same_noise_in_every_step_is_refused(arguments: str, data: dict[str, Any]) -> None:
    with pytest.raises(ts.SwapError, match="gives the same numbers in every step"):
        losses(arguments, {**DATA, **data})
    assert len(set(losses(arguments, {**DATA, **data}, same_noise=True))) == 1


def test_it_is_refused_behind_calls_and_other_tensors() -> None:
    text = "def m(X[b,d], W[d], {0}) -> loss:\n    D = dropout(X, {0})\n    loss += (D[b,d] * W[d]) ** 2 / size(b)"
    data = {"X": np.ones((40, 3))}
    with pytest.raises(ts.SwapError, match=r"uniform\(seed, b, d\)` gives the same"):
        ts.fit(ts.program(text.format("seed")), {"W": np.ones(3)}, {**data, "seed": 4}, progress=False)
    result = ts.fit(ts.program(text.format("step")), {"W": np.ones(3)}, data, batch_size=40, epochs=3, progress=False)
    assert len(set(result.history.loss)) == 3
    through = "k[b] = seed + b\nE[b] = normal(k[b])\nloss += (E[b] + X[b,d] * W[d]) ** 2"
    with pytest.raises(ts.SwapError, match="same numbers"):
        ts.fit(ts.program(through), PARAMS, {**DATA, "seed": 3}, progress=False)
    with pytest.raises(ts.SwapError, match="same numbers"):
        ts.step(ts.program(TEXT.format("3, b")), PARAMS)


def test_noise_by_the_data_is_the_users_own() -> None:
    assert len(set(losses("id[b]", {**DATA, "id": np.arange(40)}))) == 5
    chunks = [{"X": np.zeros((8, 3)), "seed": k} for k in range(5)]
    assert len(set(losses("seed, b", chunks))) == 5
    for wrong in ([{**part, "seed": 3} for part in chunks], [{**part, "X": np.zeros((9, 3))} for part in chunks]):
        with pytest.raises(ts.SwapError, match="same numbers"):
            losses("seed, b", wrong)


@pytest.mark.parametrize("text", ["step = 2.0\nloss += X[b,d] * W[d] * step", "loss += X[b,d] * W[d] * step[d]"])
def test_the_name_step_means_the_number_of_the_step(text: str) -> None:
    with pytest.raises(ts.SwapError, match="number of a training step"):
        ts.fit(ts.program(text), PARAMS, DATA, progress=False)


def test_the_step_is_not_given_and_not_learned() -> None:
    with pytest.raises(ts.SwapError, match="step is the number of a training step"):
        losses("step, b", {**DATA, "step": 3})
    with pytest.raises(ts.SwapError, match="number of a training step"):
        ts.fit(ts.program("loss += X[b,d] * W[d] * step"), {**PARAMS, "step": 1.0}, DATA, progress=False)


def test_noise_goes_on_where_a_run_stopped(tmp_path: Any) -> None:
    path = tmp_path / "run.safetensors"
    losses("step, b", epochs=1, checkpoint=path)
    assert losses("step, b", epochs=2, checkpoint=path, resume=True) == losses("step, b", epochs=2)
    assert ts.program(TEXT.format("step, b")).inputs == ("step", "X", "W")
