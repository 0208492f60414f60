"""Derivations: how a program became a derivative, as values that can be run again, compared and pickled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ..language import ir
from .adjoint import Note, derive
from .optional import without
from .tangent import tangent


class Derivation(Protocol):
    def __call__(self, loops: ir.Loops, /) -> ir.Loops: ...


@dataclass(frozen=True)
class Adjoint:
    """By `wrt`, with a seed for each of `of`."""

    wrt: tuple[str, ...]
    of: tuple[str, ...] | None

    def __call__(self, loops: ir.Loops) -> ir.Loops:
        return derive(loops, self.wrt, self.of)[0]

    def notes(self, loops: ir.Loops) -> list[Note]:
        """Which rule made which statement."""
        return derive(loops, self.wrt, self.of)[1]


@dataclass(frozen=True)
class Gradient:
    """By `wrt`, of a scalar, whose seed is 1; the scalar is an output too."""

    of: str
    wrt: tuple[str, ...]

    def __call__(self, loops: ir.Loops) -> ir.Loops:
        return derive(loops, self.wrt, [self.of], unit=True, keep=[self.of])[0]

    def notes(self, loops: ir.Loops) -> list[Note]:
        """Which rule made which statement."""
        return derive(loops, self.wrt, [self.of], unit=True, keep=[self.of])[1]


@dataclass(frozen=True)
class ValueAndGradient:
    """All outputs, and the gradient by `wrt` of `of`, as a training step has them; `unit`: of the sum of scalars."""

    of: tuple[str, ...]
    wrt: tuple[str, ...]
    unit: bool

    def __call__(self, loops: ir.Loops) -> ir.Loops:
        return derive(loops, self.wrt, self.of, unit=self.unit, keep=loops.outputs)[0]


@dataclass(frozen=True)
class Tangent:
    """Along `wrt`, of all outputs or those of `only`."""

    wrt: tuple[str, ...]
    only: tuple[str, ...] | None = None

    def __call__(self, loops: ir.Loops) -> ir.Loops:
        return tangent(loops, self.wrt, self.only)


@dataclass(frozen=True)
class HessianVector:
    """The tangent of a gradient, along `along`."""

    gradient: Gradient
    along: tuple[str, ...]

    def __call__(self, loops: ir.Loops) -> ir.Loops:
        gradient = self.gradient(loops)
        only = [name for name in gradient.outputs if name not in loops.written]
        return tangent(gradient, self.along, only=only)


@dataclass(frozen=True)
class Without:
    """Another derivation, then the program for a call that leaves optional tensors out."""

    derivation: Derivation
    missing: frozenset[str]

    def __call__(self, loops: ir.Loops) -> ir.Loops:
        return without(self.derivation(loops), self.missing)
