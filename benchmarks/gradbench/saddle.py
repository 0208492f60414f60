"""A saddle point of f(x, y) = |x|^2 - |y|^2: descent in x of the largest value in y, which is found by ascent.

All of it is one text. The ascent has the gradient of f, and the descent that of the ascent: derivatives are definitions
like any other, and a text calls them.
"""

from __future__ import annotations

from textwrap import indent
from typing import Any

import numpy as np
from harness.workload import Arrays, Sizes

from .descent import descent, least
from .problem import Function, rows

OBJECTIVE = """
def objective(x[a], y[b]) -> f:
    f += x[a] ** 2
    f -= y[b] ** 2
"""
ASCENT = f"""
def largest(x[a], start[a], steps: int) -> top, end[a]:
    size(s) = steps
{indent(descent("s", "y", "objective.adjoint(x, {})", "+"), "    ")}
    end[a] = y[steps,a]
    there[a] = stop(end[a])
    top = objective(x, there)
"""
DESCENT = f"""
steps: int
size(t) = steps
{descent("t", "x", "largest.adjoint({}, start, steps)", "-")}
best[a] = x[steps,a]
top, worst = largest(best, start, steps)
"""


def nested(program: Any) -> Any:
    import tensorswap as ts

    inner = f"{program}\n{program.grad(of='f', wrt=['y'])}\n{ASCENT}"
    outer = ts.program(inner).grad(of="top", wrt=["x"])
    return ts.program(f"{inner}\n{outer}\n{DESCENT}", outputs=["best", "worst"])


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    return {"start": np.ones(2, dtype), "steps": sizes["steps"]}


def jax_value(jax: Any, start: Any, steps: int) -> Any:
    """While loops, which end when they are done: JAX differentiates the value at the end, by the gradient there."""

    def objective(x: Any, y: Any) -> Any:
        return (x**2).sum() - (y**2).sum()

    def highest(x: Any) -> Any:
        return least(jax, jax.value_and_grad(lambda y: -objective(x, y)), start, steps)

    def outer(x: Any) -> Any:
        y = jax.lax.stop_gradient(highest(x))
        return objective(x, y)

    best = least(jax, jax.value_and_grad(outer), start, steps)
    return {"best": best, "worst": highest(best)}


WORKLOADS = rows(
    "saddle",
    [
        Function(
            "rr",
            OBJECTIVE,
            lambda arrays: {"best": (2,), "worst": (2,)},
            jax_value,
            outputs=("best", "worst"),
            derive=nested,
        )
    ],
    sizes=[{"steps": 180}],
    quick={"steps": 5},
    make_arrays=make_arrays,
    c_sizes=lambda arrays: (arrays["steps"],),
    terms=lambda sizes: sizes["steps"],
)
