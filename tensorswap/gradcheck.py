"""gradcheck: a program's derivatives against central differences, and against each other: <Jv, w> = <v, J'w>."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arrays import Array
from .errors import ArgumentError, DtypeError, GradientMismatch
from .language.given_numbers import positive, whole
from .program import Program
from .rules.activity import default_wrt, integer_uses, names_of
from .rules.derived_names import next_suffix
from .run.arguments import as_array, defaults, merged


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
    random_seed: int = 0,
    **arrays: Any,
) -> Report:
    """Checks every derivative of a program at one point, in float64; raises GradientMismatch where one is wrong.

    At most `entries` entries of each input are perturbed, chosen by `random_seed`. A point on a kink of abs, max or a
    conditional has no derivative: central differences disagree there, and so does this check.
    """
    if not isinstance(program, Program):
        raise ArgumentError(
            f"gradcheck takes a program, not {type(program).__name__}", hint="gradcheck(ts.program(text), X=x)"
        )
    step, tolerance = positive("step", step), positive("tolerance", tolerance)
    entries, random_seed = whole("entries", entries, 1), whole("random_seed", random_seed, 0)
    check = _Check(program, merged(mapping, arrays), wrt, np.random.default_rng(random_seed))
    worst, count = 0.0, 0
    for x in check.wrt:
        for at in check.entries(x, entries):
            count += 1
            worst = max(worst, check.compare(x, at, step, tolerance))
    return Report(worst, check.product_error(), count)


class _Check:
    def __init__(
        self, program: Program, values: Mapping[str, Any], wrt: Sequence[str] | None, random: np.random.Generator
    ) -> None:
        self.program, self.random = program, random
        values = {**{k: v for k, v in defaults(program.loops).items() if k not in values}, **values}
        self.values = {k: _double(k, v) if k in program.inputs else v for k, v in values.items()}
        found = [n for n in default_wrt(program.loops) if n in values] if wrt is None else names_of("wrt", wrt)
        self.wrt = [n for n in found if wrt is not None or self._is_floating(n)]
        if not self.wrt:
            raise ArgumentError("no input has a derivative here", hint="gradcheck needs a floating-point input")
        for name in self.wrt:
            if name in self.values and not self._is_floating(name):
                raise DtypeError(
                    f"{name} holds {self.values[name].dtype}, which has no derivative",
                    hint=f"pass floating-point numbers, or leave {name} out of wrt",
                )
        self.of = [name for name in program.outputs if name not in integer_uses(program.loops)]
        result = self.run(program, {})
        for y in self.of:
            if not np.isfinite(result[y]).all():
                at = ",".join(str(int(k)) for k in np.argwhere(~np.isfinite(result[y]))[0])
                raise ArgumentError(
                    f"{y}{f'[{at}]' if at else ''} is not finite here: differences tell nothing of its derivative",
                    hint="check at another point, or without that output: ts.program(text, outputs=[...])",
                )
        self.weights = {y: random.standard_normal(result[y].shape) for y in self.of}
        self.scale_of_outputs = sum(float(np.sum(np.abs(result[y] * self.weights[y]))) for y in self.of)
        suffix = next_suffix(program.loops, "grad")
        adjoint = program.adjoint(wrt=self.wrt, of=self.of)
        pulled = self.run(adjoint, {f"{y}.{suffix}": w for y, w in self.weights.items()})
        self.gradient = {x: pulled[f"{x}.{suffix}"] for x in self.wrt}

    def _is_floating(self, name: str) -> bool:
        return name not in self.values or self.values[name].dtype.kind == "f"

    def run(self, program: Program, more: Mapping[str, Array]) -> dict[str, Array]:
        result = program.run_reference({**self.values, **more})
        return result if isinstance(result, dict) else {program.outputs[0]: result}

    def entries(self, x: str, most: int) -> Iterator[tuple[int, ...]]:
        flat = np.arange(self.values[x].size)
        if len(flat) > most:
            flat = self.random.choice(flat, most, replace=False)
        for k in flat:
            yield tuple(int(i) for i in np.unravel_index(k, self.values[x].shape))

    def compare(self, x: str, at: tuple[int, ...], step: float, tolerance: float) -> float:
        """The error of one entry, relative to the largest of its tensor; the rounding of a difference is forgiven."""
        sides = []
        for sign in (1, -1):
            moved = self.values[x].copy()
            moved[at] += sign * step
            sides.append(self.run(self.program, {x: moved}))
        expected = sum(float(np.sum((sides[0][y] - sides[1][y]) * self.weights[y])) for y in self.of) / (2 * step)
        actual = float(self.gradient[x][at])
        rounding = 4 * np.finfo(np.float64).eps * self.scale_of_outputs / step
        scale = max(1.0, float(np.max(np.abs(self.gradient[x]))))
        error = abs(actual - expected) / scale
        if not error <= tolerance + rounding / scale:
            place = f"{x}[{','.join(map(str, at))}]" if at else x
            raise GradientMismatch(
                f"the derivative by {place} is {actual:.8g}, central differences give {expected:.8g}",
                hint="a point on a kink (abs, max, a conditional) has no derivative: try another point",
            )
        return error

    def product_error(self) -> float:
        """How far <Jv,w> and <v,J'w> are apart, relative to the sum of their terms."""
        directions = {x: self.random.standard_normal(self.values[x].shape) for x in self.wrt}
        suffix = next_suffix(self.program.loops, "dot")
        tangent = self.program.tangent(wrt=self.wrt)
        pushed = self.run(tangent, {f"{x}.{suffix}": v for x, v in directions.items()})
        parts = [pushed[f"{y}.{suffix}"] * self.weights[y] for y in self.of]
        left = sum(float(np.sum(p)) for p in parts)
        right = sum(float(np.sum(directions[x] * self.gradient[x])) for x in self.wrt)
        error = abs(left - right) / max(1.0, sum(float(np.sum(np.abs(p))) for p in parts))
        if not error <= 1e-9:
            raise GradientMismatch(
                f"<Jv,w> and <v,J'w> differ by {error:.1e}: tangent and adjoint disagree",
                hint="one of the two is wrong: please report the program",
            )
        return error


def _double(name: str, value: Any) -> Array:
    array = as_array(name, value)
    return array.astype(np.float64) if array.dtype.kind == "f" else array
