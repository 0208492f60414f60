"""The problems of GradBench at small sizes: the interpreter and the twins in C against JAX; two with known answers."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parent.parent / "benchmarks"))  # bench.py is a script, and finds what is beside it

import gradbench
from gradbench import gmm, particle, saddle
from harness import check
from harness.runners.base import NotApplicable, Runner
from harness.runners.c_twin import CFunction
from harness.runners.tensorswap_program import TensorswapProgram
from harness.workload import Results, Row, Workload

from tests.daily import share
from tests.test_benchmark_models import options, twin

__all__ = ["options"]  # a fixture

# each function of each problem once, since all sizes are small here; but a gradient comes with its value
FUNCTIONS = {
    f"{workload.name.split('_')[0]}_{workload.name.split('_')[-1]}": workload
    for workload in reversed(gradbench.ALL)
    if workload.wrt or workload.output != "loss" or workload.outputs or workload.name.startswith("kmeans")
}


@pytest.fixture(scope="module")
def in_c() -> CFunction:
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    return CFunction("c", 1, speed=("-O0",))  # compiled in less time


def results(runner: Runner, row: Row) -> Results:
    return runner.results(runner.prepare(row.workload, row.arrays(), row.dtype)())


def test_there_are_eleven_problems() -> None:
    assert len({name.split("_")[0] for name in FUNCTIONS}) == 11


@pytest.mark.parametrize("name", share(FUNCTIONS, 3))
def test_interpreter_and_c_agree_with_jax(name: str, options: dict[str, Any], request: pytest.FixtureRequest) -> None:
    row = Row(FUNCTIONS[name], "float64", quick=True)
    expected = twin(row.workload, row.arrays(), options)
    assert check.compare(row, results(TensorswapProgram("interpreter", 1), row), expected).wrong == ""
    in_c = request.getfixturevalue("in_c")  # after the interpreter, since it may not be there
    assert check.compare(row, results(in_c, row), expected).wrong == ""


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("problem", "answers"),
    [(particle.WORKLOADS[0], {"place": 0.2071918746486116}), (saddle.WORKLOADS[0], {"best": 8.246324826140356e-06})],
    ids=["particle", "saddle"],
)
def test_descents_end_where_gradbench_says(problem: Workload, answers: dict[str, float]) -> None:
    found = results(TensorswapProgram("tensorswap", 1), Row(problem, "float64", quick=False))
    for name, answer in answers.items():
        np.testing.assert_allclose(found[name], answer, rtol=1e-9)


def test_c_has_nothing_for_other_workloads(in_c: CFunction) -> None:
    import workloads

    with pytest.raises(NotApplicable):
        results(in_c, workloads.SMALLEST)


def test_a_wrong_twin_is_found(options: dict[str, Any]) -> None:
    row = Row(gmm.WORKLOADS[0], "float64", quick=True)
    expected = twin(row.workload, row.arrays(), options)
    found = results(TensorswapProgram("interpreter", 1), row)
    assert check.compare(row, {**found, "loss": found["loss"] * (1 + 1e-9)}, expected).wrong != ""
