"""Noise: what the random functions of a program depend on. Noise that is the same in every step teaches the noise."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass

from ..errors import ArgumentError, Span
from ..language import ir
from ..language.functions import RANDOM
from ..language.render import expression as show
from ..rules.activity import reached
from ..rules.expand import expand


@dataclass(frozen=True)
class Noise:
    """A call of a random function, and the inputs that its numbers depend on."""

    text: str
    span: Span | None
    inputs: frozenset[str]


def noises(loops: ir.Loops) -> list[Noise]:
    """Every random call of a program."""
    loops = expand(loops)
    steps = [(s.target.tensor, ir.tensors_read(s)) for s in loops.statements]
    behind = {name: reached([name], steps) for name in loops.inputs}

    def inputs(arguments: Iterable[ir.Expr]) -> frozenset[str]:
        names = {n.tensor for node in arguments for n in ir.walk(node) if isinstance(n, ir.Access)}
        return frozenset(name for name, found in behind.items() if found & names)

    return [
        Noise(show(node), node.span, inputs(node.arguments))
        for statement in loops.statements
        for node in statement.nodes
        if isinstance(node, ir.Call) and node.function in RANDOM
    ]


def refuse_steady(found: Iterable[Noise], changing: Set[str]) -> None:
    """Raises for a random call that nothing changes from step to step."""
    for noise in found:
        if not noise.inputs & changing:
            raise ArgumentError(
                f"`{noise.text}` gives the same numbers in every step of a training",
                noise.span,
                hint="pass the number of the step among its arguments: an input `step` is filled in, as in "
                "normal(seed, step, b). same_noise=True allows it as it is",
            )
