"""Optimisers: those of the standard library that update one tensor by its gradient, and the state that they keep."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import library
from ..errors import ArgumentError
from ..language import ir
from ..language.given_numbers import real, shown
from ..language.hints import closest

ABOVE = math.nextafter(0, 1)
RANGES = (  # options, the least number, the one that it stays below, in words
    (("beta1", "beta2", "rho", "alpha", "momentum"), 0.0, 1.0, "a number from 0 up to, but not including, 1"),
    (("eps", "weight_decay", "lr_decay", "momentum_decay"), 0.0, math.inf, "a number of 0 or more"),
    (("eps1", "eps2", "d"), ABOVE, math.inf, "a positive number"),
)
VECTORS = {"adafactor": "adafactor_vector"}  # by the name of the one for matrices


@dataclass(frozen=True)
class Optimizer:
    """A definition of the library and the numbers that it gets."""

    name: str
    options: Mapping[str, float] = field(default_factory=dict)

    def definition(self, rank: int) -> ir.Header:
        """The definition for a tensor of so many axes."""
        name = VECTORS[self.name] if self.name in VECTORS and rank == 1 else self.name
        header = library.definitions()[name].header
        assert header is not None
        places = header.arguments[0].access.indices if isinstance(header.arguments[0], ir.Argument) else ()
        if ir.Index(ir.BATCH) not in places and len(places) != rank:
            raise ArgumentError(
                f"{self.name} is for matrices and vectors; a parameter has {rank} axes", hint='use "adam", or a reshape'
            )
        return header

    def state(self, rank: int) -> dict[str, tuple[int, ...] | None]:
        """What it keeps of each tensor: names, and the axes of the tensor that they run over (None: all)."""
        param, _, *rest = self.definition(rank).arguments
        assert isinstance(param, ir.Argument)
        kept: dict[str, tuple[int, ...] | None] = {}
        for argument in rest:
            if isinstance(argument, ir.Argument) and argument.access.indices:
                places = argument.access.indices
                whole = places == param.access.indices
                kept[argument.name] = None if whole else tuple(param.access.indices.index(p) for p in places)
        return kept

    def call(self, tensor: str, gradient: str, rank: int, state: Mapping[str, str]) -> ir.CallStatement:
        """The statement of one update."""
        header = self.definition(rank)
        names = {a.name for a in header.arguments}
        kept = [ir.Access(name) for name in state.values()]
        numbers: list[tuple[str, ir.Expr]] = [(name, ir.Access(name)) for name in ("step", "lr") if name in names]
        numbers += [(name, ir.Number(value)) for name, value in self.options.items()]
        arguments = (ir.Access(tensor), ir.Access(gradient), *kept)
        return ir.CallStatement((ir.Access(tensor), *kept), header.name, arguments, tuple(numbers))


def known() -> list[str]:
    """The optimisers of the library: definitions that take a tensor, its gradient and a rate."""
    found = []
    for name in library.family("optimizers"):
        loops = library.definitions()[name]
        names = [a.name for a in loops.header.arguments] if loops.header else []
        scalars = [
            a for a in (loops.header.arguments if loops.header else ())
            if isinstance(a, ir.Argument) and not a.access.indices and a.default is None and a.name != "step"
        ]  # fmt: skip
        if names[:2] == ["param", "grad"] and "lr" in names and not scalars and name not in VECTORS.values():
            found.append(name)
    return found


def optimizer(choice: Any) -> Optimizer:
    """A name, or a dict with the name and the numbers that are not the usual ones."""
    if isinstance(choice, Optimizer):
        choice = {"name": choice.name, **choice.options}
    options = dict(choice) if isinstance(choice, Mapping) else {"name": choice}
    name = options.pop("name", None)
    if not isinstance(name, str) or name not in known():
        raise ArgumentError(f"there is no optimiser {shown(name)}", hint=closest(name, known(), "there are"))
    header = library.definitions()[name].header
    assert header is not None
    allowed = [a.name for a in header.arguments if a.default is not None and a.name != "lr"]
    for key, value in options.items():
        if key not in allowed:
            hint = closest(key, allowed, "it has")
            raise ArgumentError(f"{name} has no option {str(key)[:80]!r}", hint=hint)
        options[key] = _checked(name, key, value)
    return Optimizer(name, options)


def _checked(name: str, key: str, value: Any) -> float:
    """The number of an option, which will stand in a program."""
    number = real(f"the option {key} of {name}", value)
    words = next((words for keys, least, most, words in RANGES if key in keys and not least <= number < most), None)
    if words is not None:
        raise ArgumentError(f"the option {key} of {name} is {words}, not {number}")
    return number
