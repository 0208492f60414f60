"""The dot-product test: <Jv, w> = <v, J'w> for an adjoint and the tangent of the same program, at one random point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array
from ..interpret import reference
from ..language import ir
from ..rules.activity import check_of, integer_uses
from ..rules.derivation import Adjoint, Derivation, Gradient, HessianVector, Tangent, Without
from ..rules.derived_names import next_suffix
from ..rules.optional import without
from ..run.arguments import bind, defaults

RELATIVE = 1e-7  # of the sum of absolute terms, in float64
WRONG = 1e-3  # of the same: what lies between may be rounding of large numbers that cancel


@dataclass(frozen=True)
class Products:
    """The two products, and what rounding may make of them."""

    adjoint: float
    tangent: float
    scale: float

    @property
    def finite(self) -> bool:
        return bool(np.isfinite([self.adjoint, self.tangent, self.scale]).all())

    @property
    def agree(self) -> bool:
        return self.finite and abs(self.adjoint - self.tangent) <= RELATIVE * self.scale + 1e-12

    def differ(self, nearby: Products) -> bool:
        """Whether they are certainly not the same: they differ by more than rounding makes of them. A derivative that
        is 0 because large terms cancel moves by as much as it differs when the point moves a little."""
        if not (self.finite and nearby.finite) or self.agree:
            return False
        apart = abs(self.adjoint - self.tangent)
        noise = max(abs(self.adjoint - nearby.adjoint), abs(self.tangent - nearby.tangent))
        return apart > WRONG * self.scale and apart > 1000 * noise


def dot_test(
    origin: ir.Loops, derivation: Derivation, derived: ir.Loops, arguments: Mapping[str, Any], seed: int
) -> Products | None:
    """For a derivative of `origin`, at arguments of it; None for one that has no such test."""
    missing: frozenset[str] = frozenset()
    while isinstance(derivation, Without):
        missing |= derivation.missing
        derivation = derivation.derivation
    generator = np.random.default_rng(seed)
    arguments = {**defaults(origin), **arguments}
    shorter = without(origin, missing) if missing else origin
    with np.errstate(all="ignore"):  # a point where something overflows says nothing
        if isinstance(derivation, HessianVector):
            return _symmetry(derivation, shorter, derived, arguments, generator)
        if isinstance(derivation, Tangent):
            named = derivation.only or origin.outputs
            wrt, of = derivation.wrt, tuple(name for name in named if name not in integer_uses(origin))
            partner = Adjoint(wrt, of)(origin)
        elif isinstance(derivation, Adjoint | Gradient):
            given = (derivation.of,) if isinstance(derivation, Gradient) else derivation.of
            wrt, of = derivation.wrt, check_of(origin, given)
            partner = Tangent(wrt, of)(origin)
        else:
            return None
        partner = without(partner, missing) if missing else partner
        backward, forward = (partner, derived) if isinstance(derivation, Tangent) else (derived, partner)
        grad, dot = next_suffix(origin, "grad"), next_suffix(origin, "dot")
        wrt = tuple(name for name in wrt if name not in missing)
        if any(x not in arguments for x in wrt):
            return None  # the program does not read it: no call made for its text has one
        directions = {f"{x}.{dot}": generator.standard_normal(np.shape(arguments[x])) for x in wrt}
        along = _run(forward, {**arguments, **directions})
        if isinstance(derivation, Gradient):  # its seed is 1, and not given
            seeds: dict[str, Array] = {}
        else:
            seeds = {f"{y}.{grad}": generator.standard_normal(along[f"{y}.{dot}"].shape) for y in of}
        back = _run(backward, {**arguments, **seeds})
        left = [directions[f"{x}.{dot}"] * back[f"{x}.{grad}"] for x in wrt]
        return _compared(left, [seeds.get(f"{y}.{grad}", 1.0) * along[f"{y}.{dot}"] for y in of])


def _symmetry(
    derivation: HessianVector,
    origin: ir.Loops,
    derived: ir.Loops,
    arguments: Mapping[str, Any],
    generator: np.random.Generator,
) -> Products | None:
    """<u, Hv> = <v, Hu>: a Hessian is its own adjoint."""
    if set(derivation.along) != set(derivation.gradient.wrt) or any(x not in arguments for x in derivation.along):
        return None
    grad, names = next_suffix(origin, "grad"), derivation.along
    dot = next_suffix(derivation.gradient(origin), "dot")
    one, two = ({x: generator.standard_normal(np.shape(arguments[x])) for x in names} for _ in range(2))
    first, second = (_run(derived, {**arguments, **{f"{x}.{dot}": v[x] for x in names}}) for v in (one, two))
    left = [two[x] * first[f"{x}.{grad}.{dot}"] for x in names]
    return _compared(left, [one[x] * second[f"{x}.{grad}.{dot}"] for x in names])


def _compared(left: list[Array], right: list[Array]) -> Products:
    return Products(_sum(left), _sum(right), _sum(map(np.abs, [*left, *right])))


def _run(loops: ir.Loops, arguments: Mapping[str, Any]) -> dict[str, Array]:
    taken = {*loops.inputs, *loops.static_names, *loops.indices, *loops.known}
    return reference.run(bind(loops, {name: value for name, value in arguments.items() if name in taken}))


def _sum(parts: Any) -> float:
    return float(sum(np.sum(part) for part in parts))
