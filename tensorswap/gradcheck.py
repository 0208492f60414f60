"""gradcheck: a program's derivatives against central differences, and against each other: <Jv, w> = <v, J'w>."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import ArgumentError, DtypeError, GradientMismatch
from .language import ir
from .program import Program, merged
from .rules.activity import default_wrt, integer_uses, names_of
from .run.arguments import as_array

Array = NDArray[Any]


@dataclass(frozen=True)
class Report:
    """What gradcheck saw: the largest errors, relative to the size of what was compared."""

    difference_error: float
    product_error: float
    entries: int

    def __str__(self) -> str:
        return (
            f"gradient right: {self.entries} entries, {self.difference_error:.1e} from central differences, "
            f"<Jv,w> = <v,J'w> to {self.product_error:.1e}"
        )


def gradcheck(
    program: Program,
    mapping: Mapping[str, Any] | None = None,
    /,
    *,
    wrt: Sequence[str] | None = None,
    step: float = 1e-6,
    tolerance: float = 1e-4,
    entries: int = 200,
    seed: int = 0,
    **arrays: Any,
) -> Report:
    """Checks every derivative of a program at one point, in float64; raises GradientMismatch where one is wrong.

    At most `entries` entries of each input are perturbed, chosen by `seed`. A point on a kink of abs, max or a
    conditional has no derivative: central differences disagree there, and so does this check.
    """
    if not isinstance(program, Program):
        raise ArgumentError(
            f"gradcheck takes a program, not {type(program).__name__}", hint="gradcheck(ts.program(text), X=x)"
        )
    values = merged(mapping, arrays)
    names = [n for n in default_wrt(program.loops) if n in values] if wrt is None else names_of("wrt", wrt)
    if not names:
        raise ArgumentError("no input has a derivative here", hint="gradcheck needs a floating-point input")
    values = {k: _double(k, v) if k in program.inputs else v for k, v in values.items()}
    for name in names:
        if name in values and not np.issubdtype(values[name].dtype, np.floating):
            raise DtypeError(
                f"{name} holds {values[name].dtype}, which has no derivative",
                hint=f"pass floating-point numbers, or leave {name} out of wrt",
            )
    of = [name for name in program.outputs if name not in integer_uses(program.loops)]
    generator = np.random.default_rng(seed)
    result = _outputs(program, program.run_reference(values))
    weights = {y: generator.standard_normal(result[y].shape) for y in of}
    adjoint = program.adjoint(wrt=names, of=of)
    gradient = _outputs(adjoint, adjoint.run_reference({**values, **_seeds(adjoint.loops, of, weights)}))
    by_input = {x: gradient[_derived(adjoint.loops.outputs, x)] for x in names}

    worst, count = 0.0, 0
    scale = max(1.0, *(float(np.max(np.abs(g), initial=0.0)) for g in by_input.values()))
    for x in names:
        flat = np.arange(values[x].size)
        if len(flat) > entries:
            flat = generator.choice(flat, entries, replace=False)
        for k in flat:
            at = np.unravel_index(k, values[x].shape)
            high, low = (_perturbed(program, values, x, at, sign * step) for sign in (1, -1))
            expected = sum(float(np.sum((high[y] - low[y]) * weights[y])) for y in of) / (2 * step)
            actual = float(by_input[x][at])
            error = abs(actual - expected) / scale
            count += 1
            worst = max(worst, error)
            if not error <= tolerance:
                place = f"{x}[{','.join(map(str, at))}]" if at else x
                raise GradientMismatch(
                    f"the derivative by {place} is {actual:.8g}, central differences give {expected:.8g}",
                    hint="a point on a kink (abs, max, a conditional) has no derivative: try another point",
                )
    product = _product_error(program, values, names, of, weights, by_input, generator)
    if not product <= 1e-9:
        raise GradientMismatch(f"<Jv,w> and <v,J'w> differ by {product:.1e}: tangent and adjoint disagree")
    return Report(worst, product, count)


def _double(name: str, value: Any) -> Array:
    array = as_array(name, value)
    return array.astype(np.float64) if np.issubdtype(array.dtype, np.floating) else array


def _outputs(program: Program, result: Any) -> dict[str, Array]:
    return result if isinstance(result, dict) else {program.outputs[0]: result}


def _derived(names: Sequence[str], tensor: str) -> str:
    """The derivative's own name for a tensor, among the names of a derived program."""
    return next(n for n in reversed(names) if n.rpartition(".")[0] == tensor)


def _seeds(loops: ir.Loops, tensors: Sequence[str], values: Mapping[str, Array]) -> dict[str, Array]:
    given = {*loops.inputs, *loops.known}
    found = {}
    for tensor in tensors:
        names = [n for n in given if n.rpartition(".")[0] == tensor]
        if names:
            found[max(names, key=len)] = values[tensor]
    return found


def _perturbed(program: Program, values: Mapping[str, Any], name: str, at: Any, step: float) -> dict[str, Array]:
    moved = values[name].copy()
    moved[at] += step
    return _outputs(program, program.run_reference({**values, name: moved}))


def _product_error(
    program: Program,
    values: Mapping[str, Any],
    names: Sequence[str],
    of: Sequence[str],
    weights: Mapping[str, Array],
    gradient: Mapping[str, Array],
    generator: np.random.Generator,
) -> float:
    directions = {x: generator.standard_normal(values[x].shape) for x in names}
    tangent = program.tangent(wrt=names)
    moved = _outputs(tangent, tangent.run_reference({**values, **_seeds(tangent.loops, names, directions)}))
    parts = [moved[_derived(tangent.outputs, y)] * weights[y] for y in of]
    left = sum(float(np.sum(p)) for p in parts)
    right = sum(float(np.sum(directions[x] * gradient[x])) for x in names)
    size = max(1.0, sum(float(np.sum(np.abs(p))) for p in parts))
    return abs(left - right) / size
