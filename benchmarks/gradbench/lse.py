"""The logarithm of a sum of exponentials, without overflow."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.workload import Arrays, Sizes

from .problem import Function, rows

TEXT = """
top max= x[i]
total += exp(x[i] - stop(top))
loss = stop(top) + log(total)
"""


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    return {"x": generator.uniform(size=sizes["n"]).astype(dtype)}


def jax_value(jax: Any, x: Any) -> Any:
    top = jax.lax.stop_gradient(x.max())
    return top + jax.numpy.log(jax.numpy.exp(x - top).sum())


def torch_value(torch: Any, x: Any) -> Any:
    top = x.max().detach()
    return top + (x - top).exp().sum().log()


WORKLOADS = rows(
    "lse",
    [
        Function("primal", TEXT, lambda arrays: {"loss": ()}, jax_value, torch_value),
        Function(
            "gradient",
            TEXT,
            lambda arrays: {"loss": (), "x.grad": arrays["x"].shape},
            jax_value,
            torch_value,
            wrt=("x",),
        ),
    ],
    sizes=[{"n": 10_000}, {"n": 1_280_000}],
    quick={"n": 7},
    make_arrays=make_arrays,
    c_sizes=lambda arrays: arrays["x"].shape,
    terms=lambda sizes: sizes["n"],
)
