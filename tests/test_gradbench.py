"""The problems of GradBench: values and derivatives of the interpreter against JAX, and of both against known answers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

sys.path.append(str(Path(__file__).parent.parent / "benchmarks"))  # bench.py is a script, and finds what is beside it

import gradbench
from gradbench import gmm, particle, saddle
from harness import check
from harness.runners.tensorswap_program import TensorswapProgram, build
from harness.workload import Row, Workload

from tests.test_benchmark_models import options, twin

__all__ = ["options"]  # a fixture

SMALL = {tuple(w.quick.items()) + (w.name.split("_")[0], w.name.split("_")[-1]): w for w in reversed(gradbench.ALL)}


def found(workload: Workload, peer: str) -> dict[str, np.ndarray]:
    row = Row(workload, "float64", quick=True)
    runner = TensorswapProgram(peer, 1)
    return runner.results(runner.prepare(workload, row.arrays(), row.dtype)())


@pytest.mark.parametrize("problem", [w for w in SMALL.values() if w.quick.get("l") not in (7, 9)], ids=lambda w: w.name)
def test_interpreter_agrees_with_jax(problem: Workload, options: dict[str, Any]) -> None:
    row = Row(problem, "float64", quick=True)
    assert check.compare(row, found(problem, "interpreter"), twin(problem, row.arrays(), options)).wrong == ""
