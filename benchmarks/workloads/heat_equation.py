"""Heat on a plate with cold edges, in explicit steps; how the end depends on the beginning."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.cost import Cost
from harness.workload import Array, Arrays, Results, Sizes, Workload, normal

RATE = 0.2  # diffusivity times step over the square of the grid's width; stable up to a quarter

TEXT = f"""
U[0,i,j] = start[i,j]
for t:
    U[t+1,i,j] = {1 - 4 * RATE:.1f} * U[t,i,j] + {RATE} * ( \
        (U[t,i-1,j] if i > 0 else 0) + (U[t,i+1,j] if i < size(i) - 1 else 0) + \
        (U[t,i,j-1] if j > 0 else 0) + (U[t,i,j+1] if j < size(j) - 1 else 0))
loss += (U[size(t),i,j] - goal[i,j]) ** 2
"""


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    edge = sizes["edge"]
    return {
        "start": normal(generator, dtype, edge, edge),
        "goal": normal(generator, dtype, edge, edge, scale=0.1),
        "t": sizes["steps"],
    }


def evolve(field: Array, steps: int) -> Array:
    """Inside a border of zeros, so that no edge is a special case."""
    padded = np.pad(field, 1)
    inner = padded[1:-1, 1:-1]
    around = np.empty_like(inner)
    for _ in range(steps):
        np.add(padded[:-2, 1:-1], padded[2:, 1:-1], out=around)
        around += padded[1:-1, :-2]
        around += padded[1:-1, 2:]
        around *= RATE
        inner *= 1 - 4 * RATE
        inner += around
    return inner


def numpy_twin(start: Array, goal: Array, t: int) -> Results:
    """A step is linear and symmetric: backward it is the same."""
    difference = evolve(start, t) - goal
    return {"loss": np.square(difference).sum(), "start.grad": evolve(2 * difference, t)}


def jax_value(jax: Any, start: Any, goal: Any, t: int) -> Any:
    def step(field: Any, _: None) -> Any:
        padded = jax.numpy.pad(field, 1)
        around = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
        return (1 - 4 * RATE) * field + RATE * around, None

    end = jax.lax.scan(step, start, None, length=t)[0]
    return ((end - goal) ** 2).sum()


def torch_value(torch: Any, start: Any, goal: Any, t: int) -> Any:
    """One convolution is a step: fewer operations for autograd than five shifted fields."""
    cross = start.new_tensor([[0, RATE, 0], [RATE, 1 - 4 * RATE, RATE], [0, RATE, 0]])[None, None]
    field = start[None, None]
    for _ in range(t):
        field = torch.nn.functional.conv2d(field, cross, padding=1)
    return ((field[0, 0] - goal) ** 2).sum()


WORKLOAD = Workload(
    name="heat_equation",
    title="heat equation, 128 x 128, 200 steps",
    text=TEXT,
    wrt=("start",),
    sizes={"edge": 128, "steps": 200},
    quick={"edge": 6, "steps": 4},
    make_arrays=make_arrays,
    numpy_twin=numpy_twin,
    jax_value=jax_value,
    torch_value=torch_value,
    cost=lambda sizes: Cost(others=2 * 5 * sizes["steps"] * sizes["edge"] ** 2),
    terms=lambda sizes: sizes["steps"] + sizes["edge"] ** 2,
)
