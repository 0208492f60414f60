"""Clusters: the sum of squared distances to the nearest centre, and the direction of a step of Newton's method.

The Hessian is diagonal, so that its product with a vector of ones has all of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.runners.tensorswap_program import joined
from harness.workload import Arrays, Sizes

from .problem import Function, rows

# points are the last index, so that distances run along them
COST = """
across[d,n] = points[n,d]
far[k,n] += (across[d,n] - centres[k,d]) ** 2
least[n] min= far[k,n]
loss += least[n]
"""
NEAREST = """
across[d,n] = points[n,d]
far[k,n] += (across[d,n] - centres[k,d]) ** 2
nearest[n] argmin= far[k,n]
loss += (points[n,d] - centres[nearest[n],d]) ** 2
"""


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    points = generator.uniform(size=(sizes["n"], sizes["d"])).astype(dtype)
    return {"points": points, "centres": points[-sizes["k"] :].copy()}  # so each centre is the nearest of a point


def direction(program: Any) -> Any:
    """The gradient, and its tangent along a vector of ones."""
    import tensorswap as ts

    gradient = program.grad(of="loss", wrt=["centres"])
    curvature = gradient.tangent(wrt=["centres"])
    text = joined(str(gradient), str(curvature))
    text = "ones[k,d] = 1\n" + text.replace("centres.dot", "ones")
    return ts.program(text + "\nstep[k,d] = centres.grad[k,d] / centres.grad.dot[k,d]", outputs=["step"])


def jax_cost(jax: Any, points: Any, centres: Any) -> Any:
    return ((points[:, None] - centres) ** 2).sum(axis=2).min(axis=1).sum()


def jax_direction(jax: Any, points: Any, centres: Any) -> Any:
    gradient = jax.grad(lambda at: jax_cost(jax, points, at))
    first, second = jax.jvp(gradient, (centres,), (jax.numpy.ones_like(centres),))
    return {"step": first / second}


def torch_cost(torch: Any, points: Any, centres: Any) -> Any:
    return ((points[:, None] - centres) ** 2).sum(dim=2).amin(dim=1).sum()


def torch_direction(torch: Any, points: Any, centres: Any) -> Any:
    gradient = torch.func.grad(lambda at: ((points[:, None] - at) ** 2).sum(dim=2).min(dim=1).values.sum())
    first, second = torch.func.jvp(gradient, (centres,), (torch.ones_like(centres),))
    return {"step": first / second}


WORKLOADS = rows(
    "kmeans",
    [
        Function("cost", COST, lambda arrays: {"loss": ()}, jax_cost, torch_cost),
        Function(
            "dir",
            NEAREST,
            lambda arrays: {"step": arrays["centres"].shape},
            jax_direction,
            torch_direction,
            outputs=("step",),
            derive=direction,
        ),
    ],
    sizes=[{"k": 10, "n": 1000, "d": 8}, {"k": 100, "n": 10_000, "d": 16}],
    quick={"k": 2, "n": 7, "d": 3},
    make_arrays=make_arrays,
    c_sizes=lambda arrays: (*arrays["points"].shape, len(arrays["centres"])),
    terms=lambda sizes: sizes["n"] * sizes["d"],
)
