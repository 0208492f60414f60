"""Every model trains as its hand-written numpy twin does: the same losses from the same start and batches, in float64.

The numpy twins were held against JAX and PyTorch, whose twins stand beside them in benchmarks/training; `make bench`
does so before it times them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorswap as ts
from tensorswap import library, models
from tensorswap.errors import ArgumentError
from tensorswap.training.shuffle import shuffled

from .daily import share

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
sys.path.append(str(BENCHMARKS))  # the twins are no part of the package

from training import ALL, BY_NAME, run_numpy  # noqa: E402 (found on the path above)
from training.problem import Problem, problem  # noqa: E402

LONG = {"mlp": 1e-8, "cnn": 1e-8, "lstm": 1e-8, "gpt": 1e-6}  # 200 steps, to this relative error
STEPS, SHORT = 200, 20


def made(name: str, steps: int) -> Problem:
    twin = BY_NAME[name]
    each = twin.small.data["examples"] // twin.small.batch
    return problem(twin, twin.small, np.float64, epochs=-(-steps // each))


def trained(given: Problem, **changes: Any) -> Any:
    model, twin = models.get(given.name), given.twin
    options = {"optimizer": twin.optimizer, "lr": twin.lr, "batch_size": given.rows.shape[2], "progress": False}
    sizes = model.sizes(given.data, **given.settings)
    epochs = len(given.rows)
    return ts.fit(model.program, given.start, given.data, sizes=sizes, epochs=epochs, **{**options, **changes})


def losses_of_twin(given: Problem) -> np.ndarray[Any, Any]:
    twin = run_numpy.prepare(given, 1)
    return np.concatenate([twin.epoch(number) for number in range(len(given.rows))])


def check_losses(found: Any, expected: Any, tolerance: float) -> None:
    assert len(found) == len(expected)
    np.testing.assert_allclose(found, expected, rtol=tolerance)


@pytest.mark.compiled
@pytest.mark.parametrize("name", share([twin.name for twin in ALL], 3))
def test_losses_are_those_of_the_numpy_twin(name: str) -> None:
    given = made(name, STEPS if name in LONG else SHORT)
    expected = losses_of_twin(given)
    assert len(expected) >= (STEPS if name in LONG else SHORT)
    check_losses(trained(given).history.loss, expected, LONG.get(name, 1e-8))


def test_a_wrong_twin_would_be_found() -> None:
    given = made("mlp", SHORT)
    expected = losses_of_twin(given)
    with pytest.raises(AssertionError):
        check_losses(expected * (1 + 1e-7), expected, 1e-8)


def test_batches_are_those_that_fit_makes() -> None:
    given = made("mlp", SHORT)
    count = len(given.data["label"])
    assert sorted(given.rows[1].ravel()) == list(range(count))
    np.testing.assert_array_equal(given.rows[1].ravel(), shuffled(np.arange(count), count, seed=0, epoch=1))


@pytest.mark.parametrize("name", [twin.name for twin in ALL])
def test_gradient_of_the_twin_by_differences(name: str) -> None:
    given = made(name, 1)
    twin, generator = given.twin, np.random.default_rng(1)
    batch = given.batch(given.data, given.rows[0, 0])
    start = {n: array + 0.1 * generator.standard_normal(array.shape) for n, array in given.start.items()}
    along = {n: generator.standard_normal(array.shape) for n, array in start.items()}

    def loss(step: float) -> float:
        return float(twin.numpy_gradient({n: array + step * along[n] for n, array in start.items()}, batch)[0])

    slope = sum(np.vdot(grad, along[n]) for n, grad in twin.numpy_gradient(start, batch)[1].items())
    assert (loss(1e-6) - loss(-1e-6)) / 2e-6 == pytest.approx(slope, rel=1e-5)


@pytest.mark.parametrize("name", [twin.name for twin in ALL])
def test_definition(name: str) -> None:
    """The interpreter and the twin agree on the loss of a batch; metrics are there, and no parameter is forgotten."""
    given, model = made(name, 1), models.get(name)
    batch = given.batch(given.data, given.rows[0, 0])
    arguments = {**given.start, **{n: batch[n] for n in given.data}, **model.sizes(given.data, **given.settings)}
    result = model.program.run_reference(arguments)
    found = result if isinstance(result, dict) else {"loss": result}
    assert found["loss"] == pytest.approx(given.twin.numpy_gradient(given.start, batch)[0], rel=1e-12)
    assert set(found) == {"loss", *model.metrics}
    assert {*model.starts, *given.data} <= {*model.program.inputs} <= {*model.starts, *given.data, "decay"}
    text = library.models()[name].read_text()
    assert text.startswith("# ")
    assert all(len(line) <= 120 for line in text.splitlines())


def test_every_file_has_a_model_and_a_twin() -> None:
    assert set(models.MODELS) == set(library.models()) == set(BY_NAME)
    assert not {"mlp", "cnn", "gpt"} & set(ts.ops())


def test_parameters_are_those_that_fit_makes() -> None:
    data = BY_NAME["mlp"].data(BY_NAME["mlp"].small, np.float32)
    model = models.get("mlp")
    words = model.params(data, width=5, layers=3)
    assert words["W"] == ("he", (2, 5, 5))
    assert words["W_out"] == ("xavier", (4, 5))
    step = ts.step(model.program, words, seed=3)
    start = model.initial(data, seed=3, width=5, layers=3)
    assert step.params.keys() == start.keys()
    for name, array in start.items():
        assert array.dtype == np.float32
        np.testing.assert_array_equal(step.params[name], array)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("mlq", {}, "there is no model 'mlq'"),
        ("mlp", {"widht": 3}, "the model mlp has no setting 'widht'"),
        ("mlp", {"width": 0}, "width is a whole number of 1 or more, not 0"),
        ("mlp", {"width": 2.5}, "width is a whole number of 1 or more, not 2.5"),
        ("gpt", {"width": 10, "heads": 4}, "a width of 10 cannot be shared among 4 heads"),
        ("cnn", {}, "the data has no array image"),
    ],
)
def test_mistakes(name: str, settings: dict[str, Any], message: str) -> None:
    data = {"x": np.ones((3, 2)), "label": np.arange(3), "tokens": np.arange(9), "start": np.arange(3)}
    with pytest.raises(ArgumentError, match=message):
        models.get(name).params(data, **settings)


def test_data_that_does_not_tell_the_sizes() -> None:
    with pytest.raises(ts.SwapError, match="how large i is"):
        models.get("mlp").params({"X": np.ones((5, 8)), "label": np.zeros(5, int)})
    with pytest.raises(ts.SwapError, match="a dict of arrays by name, not int"):
        models.get("mlp").params(5)  # type: ignore[arg-type]


def test_labels_are_whole_numbers() -> None:
    with pytest.raises(ArgumentError, match="label is not an array of whole numbers"):
        models.get("mlp").params({"x": np.ones((3, 2)), "label": np.ones(3)})


def test_benchmark_runs(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCHMARKS / "training" / "bench.py"), "--quick", "--output", str(tmp_path)]
    command += ["--only", "mlp", "--peers", "numpy", "tensorswap"]
    command += ["--cache", str(Path(os.environ["TENSORSWAP_CACHE"]) / "benchmarks")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "training.json").read_text())
    assert results["finished"]
    assert {name: found["status"] for name, found in results["rows"][0]["peers"].items()} == {
        "numpy": "ok",
        "tensorswap": "ok",
    }
    assert "| MLP 64-128-10, batch 64 |" in (tmp_path / "training.md").read_text()
