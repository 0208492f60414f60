"""Noise: what the random functions of a program depend on. Noise that is the same in every step teaches the noise."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass

from ..errors import ArgumentError, Span
from ..language import ir
from ..language.functions import RANDOM
from ..language.render import expression as show
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
    behind: dict[str, frozenset[str]] = {name: frozenset([name]) for name in loops.inputs}

    def inputs(nodes: Iterable[ir.Expr]) -> frozenset[str]:
        names = {n.tensor for node in nodes for n in ir.walk(node) if isinstance(n, ir.Access)}
        return frozenset[str]().union(*(behind.get(name, frozenset()) for name in names))

    grown = True
    while grown:  # blocks read what later statements write
        grown = False
        for statement in loops.statements:
            target = statement.target.tensor
            found = inputs(statement.nodes) | behind.get(target, frozenset())
            grown = grown or found != behind.get(target)
            behind[target] = found
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
