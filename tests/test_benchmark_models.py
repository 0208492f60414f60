"""The models among the benchmarks: values and all gradients of the interpreter against JAX, in float64."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest

sys.path.append(str(Path(__file__).parent.parent / "benchmarks"))  # bench.py is a script, and finds what is beside it

import models
from harness import check
from harness.runners.jax_jit import JaxJit
from harness.runners.tensorswap_program import TensorswapProgram
from harness.workload import Row, Workload


@pytest.fixture
def float64() -> Iterator[str]:
    before = jax.config.jax_enable_x64
    yield "float64"
    jax.config.update("jax_enable_x64", before)  # the runner has changed it


@pytest.mark.parametrize("model", models.ALL, ids=lambda model: model.name)
def test_interpreter_agrees_with_jax(model: Workload, float64: str) -> None:
    row = Row(model, float64, quick=True)
    ours, twin = (
        runner.results(runner.prepare(model, row.arrays(), row.dtype)())
        for runner in (TensorswapProgram("interpreter", 1), JaxJit("jax", 1))
    )
    assert check.compare(row, ours, twin).wrong == ""
