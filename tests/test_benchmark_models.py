"""Models and sparse sums among the benchmarks: values and all gradients of the interpreter against JAX, in float64."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import pytest

from .daily import share

sys.path.append(str(Path(__file__).parent.parent / "benchmarks"))  # bench.py is a script, and finds what is beside it

import models
import sparse_sums
from harness import check
from harness.runners.base import split
from harness.runners.jax_jit import step
from harness.runners.tensorswap_program import TensorswapProgram
from harness.workload import Arrays, Results, Row, Workload

MODELS = [*models.ALL, *(w for w in sparse_sums.ALL if w.kind != "model")]

# a fifth of the time to compile; the results are those of the same operations
HASTE = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}


@pytest.fixture(scope="module")
def options() -> Iterator[dict[str, Any]]:
    """How JAX compiles, in float64: in haste, if this version of it knows how."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        jax.jit(lambda x: x).lower(1.0).compile(compiler_options=HASTE)
        yield HASTE
    except jax.errors.JaxRuntimeError:
        yield {}
    finally:
        jax.config.update("jax_enable_x64", before)


def twin(model: Workload, arrays: Arrays, options: dict[str, Any]) -> Results:
    inputs = split(model, arrays)

    def value(parameters: Arrays, data: Arrays) -> Any:
        return model.jax_value(jax, **parameters, **data, **inputs.numbers)

    given = jax.device_put((inputs.parameters, inputs.data, inputs.seed))
    found = jax.jit(step(model, value)).lower(*given).compile(compiler_options=options)(*given)
    return jax.device_get(found)


@pytest.mark.parametrize("model", share(MODELS, 3), ids=lambda model: model.name)
def test_interpreter_agrees_with_jax(model: Workload, options: dict[str, Any]) -> None:
    row = Row(model, "float64", quick=True)
    runner = TensorswapProgram("interpreter", 1)
    found = runner.results(runner.prepare(model, row.arrays(), row.dtype)())
    assert check.compare(row, found, twin(model, row.arrays(), options)).wrong == ""
