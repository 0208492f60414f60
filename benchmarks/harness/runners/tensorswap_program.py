"""tensorswap: one program for the value and all gradients, compiled, or interpreted to see where a fault lies."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import tensorswap as ts

from ..workload import Arrays, Results, Workload


class TensorswapProgram:
    def __init__(self, name: str, threads: int) -> None:
        self.versions = {"tensorswap": ts.__version__, "numpy": np.__version__}
        self.eager = False
        self.interpreted = name == "interpreter"
        if not self.interpreted:
            warnings.filterwarnings("error", "a call is interpreted", ts.SwapWarning)

    def prepare(self, workload: Workload, arrays: Arrays, dtype: str) -> Callable[[], Results]:
        program = build(workload)
        arguments = {**arrays, "rate": workload.rate} if workload.update else arrays
        call = program.run_reference if self.interpreted else program

        def several() -> Any:
            return call(arguments)

        def one() -> Any:
            return {workload.results[0]: call(arguments)}

        return several if len(program.outputs) > 1 else one

    def results(self, raw: Results) -> Results:
        return {name: np.asarray(value) for name, value in raw.items()}


def build(workload: Workload) -> ts.Program:
    """All that one timed call does, as one program."""
    program = ts.program(workload.text)
    if workload.derive:
        derived: ts.Program = workload.derive(program)
        return derived
    if not workload.wrt:
        return program
    if workload.seed:
        adjoint = program.adjoint(wrt=workload.wrt, of=[workload.output])
        return ts.program(joined(str(program), str(adjoint)), outputs=workload.results)
    gradient = program.grad(of=workload.output, wrt=workload.wrt)
    if workload.update:
        return ts.program(f"{gradient}\n{workload.update}", outputs=workload.results)
    return gradient


def joined(forward: str, adjoint: str) -> str:
    """Both texts one behind the other. A statement that the adjoint repeats, to have its value, stands once."""
    lines = forward.splitlines()
    return "\n".join(lines + [line for line in adjoint.splitlines() if line not in lines])


make = TensorswapProgram
