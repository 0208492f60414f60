"""error_table: how far each way to a derivative is off, for many steps, in single and double precision."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import ArgumentError
from ...program import Program
from .numerical import METHODS, numerical, steps

TYPES = (np.float32, np.float64)


@dataclass(frozen=True)
class ErrorTable:
    """Prints as a table: a line for each step, a column for each method and type. `errors` holds the numbers."""

    by: str
    exact: float
    steps: tuple[float, ...]
    errors: dict[tuple[str, str], tuple[float, ...]]  # (method, type) -> the error for each step
    adjoint: dict[str, float]  # type -> the error of the adjoint program, which has no step

    def __str__(self) -> str:
        columns = list(self.errors)
        head = "  ".join(f"{f'{method} {kind}':>16}" for method, kind in columns)
        lines = [f"errors of the derivative by {self.by}, which is {self.exact:.10g}", f"{'step':<8}{head}"]
        for k, step in enumerate(self.steps):
            lines.append(f"{step:<8.0e}" + "  ".join(f"{self.errors[c][k]:>16.3e}" for c in columns))
        lines += [f"adjoint, {kind}: {error:.3e}" for kind, error in self.adjoint.items()]
        return "\n".join(lines)

    __repr__ = __str__


def error_table(
    function: Program | Callable[..., Any],
    at: Mapping[str, Any],
    by: str,
    exact: float | None = None,
    steps: Iterable[float] = tuple(steps()),
    methods: Iterable[str] = METHODS,
) -> ErrorTable:
    """The absolute errors of a derivative by one scalar input.

    `exact` is the derivative; without it, it is that of the program's adjoint in double precision.
    """
    adjoint = {}
    if isinstance(function, Program):
        for kind in TYPES:
            adjoint[np.dtype(kind).name] = _adjoint(function, at, by, kind)
    if exact is None:
        if not adjoint:
            raise ArgumentError("the derivative of a Python function is not known", hint="pass exact=...")
        exact = adjoint["float64"]
    chosen = tuple(steps)
    errors = {}
    for method in methods:
        for kind in TYPES if method != "complex" else (np.float64,):
            found = (numerical(function, at, [by], method, h, kind).gradient[by] for h in chosen)
            errors[method, np.dtype(kind).name] = tuple(abs(float(value) - exact) for value in found)
    return ErrorTable(by, exact, chosen, errors, {k: abs(v - exact) for k, v in adjoint.items()})


def _adjoint(program: Program, at: Mapping[str, Any], by: str, kind: type[np.floating[Any]]) -> float:
    gradient = program.grad(of=program.outputs[0], wrt=[by])
    result = gradient.run_reference({name: np.asarray(value, kind) for name, value in at.items()})
    return float(result[next(name for name in gradient.outputs if name not in program.loops.written)])
