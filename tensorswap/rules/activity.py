"""Which tensors a derivative passes through, and what it may not pass through."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

from ..errors import ArgumentError, DerivativeError
from ..language import ir
from ..language.functions import RANDOM
from ..language.hints import closest
from ..lazy import kept_with_program
from .differentiate import contributions
from .inherited_names import known_tensors


@kept_with_program
def integer_uses(loops: ir.Loops) -> dict[str, ir.Access]:
    """Tensors that stand inside a bracket or among the arguments of a random function: they are integers."""
    found: dict[str, ir.Access] = {}
    for statement in loops.statements:
        for node in statement.nodes:
            parts = node.indices if isinstance(node, ir.Access) else ()
            if isinstance(node, ir.Call) and node.function in RANDOM:
                parts = node.arguments
            for part in parts:
                for inner in ir.walk(part):
                    if isinstance(inner, ir.Access):
                        found.setdefault(inner.tensor, inner)
    for statement in loops.statements:
        if statement.operator.startswith("arg"):
            found.setdefault(statement.target.tensor, statement.target)
    return found


@kept_with_program
def smooth_reads(loops: ir.Loops) -> list[tuple[str, frozenset[str]]]:
    """For each statement its target, and the tensors that its value depends on smoothly."""
    everything = frozenset(loops.read) - integer_uses(loops).keys()
    smooth = [s for s in loops.statements if not s.operator.startswith("arg")]
    return [(s.target.tensor, frozenset(c.access.tensor for c in contributions(s.value, everything))) for s in smooth]


def reached(start: Iterable[str], steps: Iterable[tuple[str, Set[str]]]) -> frozenset[str]:
    """The names given, and every target of a step that reads one of those found."""
    found, rest = set(start), list(steps)
    while True:
        more = {target for target, read in rest if read & found} - found
        if not more:
            return frozenset(found)
        found |= more


def active(loops: ir.Loops, wrt: Sequence[str], of: Sequence[str]) -> frozenset[str]:
    """Tensors on a smooth path from `wrt` to `of`."""
    steps = smooth_reads(loops)
    turned = [(name, {target}) for target, read in steps for name in read]
    return reached(wrt, steps) & reached(of, turned)


def default_wrt(loops: ir.Loops, of: Sequence[str] | None = None) -> tuple[str, ...]:
    """The inputs that the outputs named (all, if none are) depend on smoothly."""
    found = active(loops, loops.inputs, loops.outputs if of is None else of)
    return tuple(name for name in loops.inputs if name in found)


def names_of(what: str, value: object) -> list[str]:
    """A list of names that a caller gave, or one name alone."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Iterable) and not isinstance(value, Mapping | bytes):
        names = list(value)
        if all(isinstance(name, str) for name in names):
            return names
    raise ArgumentError(f"{what} is a list of names, not {str(value)[:80]}", hint=f'write {what}=["X"]')


def check_wrt(loops: ir.Loops, given: Sequence[str]) -> tuple[str, ...]:
    wrt = names_of("wrt", given)
    integers = integer_uses(loops)
    for name in wrt:
        if name not in loops.inputs and name not in known_tensors(loops):
            raise ArgumentError(f"{name} is not an input", hint=closest(name, loops.inputs) or _inputs_of(loops))
        if name not in loops.ranks and name not in known_tensors(loops):
            raise DerivativeError(
                f"{name} is only asked for its size, which has no derivative", hint=f"leave {name} out"
            )
        if name in integers:
            raise DerivativeError(
                f"{name} is used as an index, and an integer has no derivative",
                integers[name].span,
                f"leave {name} out of wrt",
            )
    if not wrt:
        raise ArgumentError("wrt names no input", hint=_inputs_of(loops))
    return tuple(dict.fromkeys(wrt))


def _inputs_of(loops: ir.Loops) -> str:
    return f"differentiate by some of {', '.join(loops.inputs)}" if loops.inputs else "the program has no inputs"


def check_of(loops: ir.Loops, of: Sequence[str] | None) -> tuple[str, ...]:
    if of is None:
        integers = integer_uses(loops)
        of = [name for name in loops.outputs if name not in integers]
    of = names_of("of", of)
    for name in of:
        if name not in loops.written:
            hint = closest(name, loops.written) or f"differentiate one of {', '.join(loops.outputs)}"
            raise ArgumentError(f"{name} is not computed by the program", hint=hint)
    if not of:
        raise DerivativeError("the program has no output with a derivative", hint="an argmax= is an integer")
    return tuple(dict.fromkeys(of))


def refuse_updates(loops: ir.Loops, involved: frozenset[str]) -> None:
    """An updated tensor has two values under one name, so its derivative would have two meanings."""
    for statement in loops.statements:
        name = statement.target.tensor
        if name in loops.updated and name in involved:
            raise DerivativeError(
                f"{name} is updated in place, so that {name}'s derivative could mean its old or its new value",
                statement.span,
                f"write the new value under a name of its own: `{name}_new[...] = ...`",
            )


def depends_smoothly(loops: ir.Loops, wrt: Sequence[str]) -> frozenset[str]:
    """The names given and every tensor that depends on them smoothly."""
    return reached(wrt, smooth_reads(loops))
