"""A charged particle between two charges, one of which is to be placed so that the particle's path meets the origin.

The force is the gradient of a potential, the path is taken in steps of Euler's, its end is where it meets the axis, and
the place is found by descent: derivatives within a derivative, all in one text. That of the path goes along with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.workload import Arrays, Sizes

from .descent import descent, least
from .problem import Function, rows

POTENTIAL = """
def potential(p[i], w[a]) -> v:
    size(a) = 1
    near = (p[0] - 10) ** 2 + (p[1] - 10 + w[0]) ** 2
    far = (p[0] - 10) ** 2 + p[1] ** 2
    v = near ** -0.5 + far ** -0.5
"""
PATH = """
def path(w[a], flight: int) -> miss:
    size(u) = flight
    size(i) = 2
    p[0,0] = 0
    p[0,1] = 8
    q[0,0] = 0.75
    q[0,1] = 0
    for u:
        v[u], push[u] = potential.adjoint(p[u], w)
        above[u] = p[u,1] + 0.1 * q[u,1] > 0
        p[u+1,i] = p[u,i] + 0.1 * q[u,i] if above[u] else p[u,i]
        q[u+1,i] = q[u,i] - 0.1 * push[u,i] if above[u] else q[u,i]
    meet = p[flight,0] - q[flight,0] * p[flight,1] / q[flight,1]
    miss = meet ** 2
"""
DESCENT = f"""
def fall(w[a], flight: int) -> miss, slope[a]:
    along[a] = 1
    miss, slope[0] = path.tangent(w, flight, along)

steps: int
flight: int
size(s) = steps
{descent("s", "w", "fall({}, flight)", "-")}
place[a] = w[steps,a]
"""


def nested(program: Any) -> Any:
    import tensorswap as ts

    inner = f"{program.grad(of='v', wrt=['p'])}\n{PATH}"
    path = str(ts.program(inner).tangent(wrt=["w"]))
    both = path.replace("-> miss.dot:", "-> miss, miss.dot:") + "\n    miss = meet ** 2"
    return ts.program(f"{both}\n{DESCENT}", outputs=["place"])


def make_arrays(sizes: Sizes, dtype: np.dtype[Any], generator: np.random.Generator) -> Arrays:
    return {"start": np.zeros(1, dtype), "steps": sizes["steps"], "flight": sizes["flight"]}


def jax_value(jax: Any, start: Any, steps: int, flight: int) -> Any:
    """Its while loop has no reverse mode, so the descent has the derivative of the path by forward mode."""
    jnp = jax.numpy

    def potential(p: Any, w: Any) -> Any:
        return 1 / jnp.sqrt((p[0] - 10) ** 2 + (p[1] - 10 + w) ** 2) + 1 / jnp.sqrt((p[0] - 10) ** 2 + p[1] ** 2)

    def path(w: Any) -> Any:
        def going(state: Any) -> Any:
            p, q, step = state
            return (p[1] + 0.1 * q[1] > 0) & (step < flight)

        def move(state: Any) -> Any:
            p, q, step = state
            return p + 0.1 * q, q - 0.1 * jax.grad(potential)(p, w), step + 1

        p, q, _ = jax.lax.while_loop(going, move, (jnp.array([0.0, 8.0]), jnp.array([0.75, 0.0]), 0))
        return (p[0] - q[0] * p[1] / q[1]) ** 2

    def both(w: Any) -> Any:
        value, slope = jax.jvp(lambda at: path(at[0]), (w,), (jnp.ones_like(w),))
        return value, slope[None]

    return {"place": least(jax, both, start, steps)}


WORKLOADS = rows(
    "particle",
    [Function("fr", POTENTIAL, lambda arrays: {"place": (1,)}, jax_value, outputs=("place",), derive=nested)],
    sizes=[{"steps": 100, "flight": 360}],
    quick={"steps": 2, "flight": 3},
    make_arrays=make_arrays,
    c_sizes=lambda arrays: (arrays["steps"], arrays["flight"]),
    terms=lambda sizes: 10_000,
)
