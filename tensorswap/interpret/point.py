"""One statement at one point: the innermost operation behind a value that is no finite number, in index terms."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..language import ir
from ..language.functions import FUNCTIONS
from ..language.render import expression as show
from .grid import Grid
from .state import State

SHOWN = 300  # characters of an expression
READS = 8  # values that are told

REASONS = {
    **{row.name: f"{row.name} needs {row.domain}" for row in FUNCTIONS.values() if row.domain},
    "/": "a divisor that may be 0 needs a guard",
    "**": "a power needs a positive base, or a whole exponent that is not negative",
}


class Point:
    """A statement with a value for each of its indices."""

    def __init__(self, interpreter: State, statement: ir.Statement, indices: dict[str, int]) -> None:
        self.statement = statement
        self.indices = indices
        self.grid = Grid(interpreter, statement, indices)
        self.all = np.ones((), bool)

    def value(self, node: ir.Expr) -> float | int:
        found: float | int = np.asarray(self.grid.evaluate(node, self.all)).item()
        return found

    def position(self, access: ir.Access) -> tuple[int, ...]:
        """The element that an access means here."""
        return tuple(int(self.grid.integer(place, self.all)) for place in access.indices)

    def element(self, access: ir.Access) -> str:
        """`H[t=3,b=7]`."""
        return show(self.labelled(access))

    def text(self, node: ir.Expr) -> str:
        """The expression, each bracket with the positions it means here."""
        text = show(self.labelled(node))
        return text if len(text) <= SHOWN else f"{text[:SHOWN]} ..."

    def labelled(self, node: ir.Expr) -> ir.Expr:
        match node:
            case ir.Access(indices=indices):
                places = zip(indices, self.position(node), strict=True)
                return replace(node, indices=tuple(_label(place, number) for place, number in places))
            case ir.Conditional(condition=condition, then=then, otherwise=otherwise):
                if self.value(condition):
                    return replace(node, then=self.labelled(then))
                return replace(node, otherwise=self.labelled(otherwise))
            case ir.Compare() | ir.Logic():
                return node
        return ir.rebuild(node, tuple(self.labelled(part) for part in ir.children(node)))

    def taken(self, node: ir.Conditional) -> ir.Expr:
        """The branch that counts here."""
        return node.then if self.value(node.condition) else node.otherwise

    def parts(self, node: ir.Expr) -> tuple[ir.Expr, ...]:
        """What a value is computed of: no positions, no conditions, no branch not taken."""
        match node:
            case ir.Conditional():
                return (self.taken(node),)
            case ir.Unary() | ir.Binary() | ir.Call():
                return ir.children(node)
        return ()

    def innermost(self, node: ir.Expr) -> ir.Expr:
        """The operation that made a value NaN (or infinite) of others that were not, or the access that read it."""
        value = self.value(node)
        if math.isfinite(value):
            return node
        is_bad = math.isnan if math.isnan(value) else math.isinf
        bad = next((part for part in self.parts(node) if is_bad(self.value(part))), None)
        return node if bad is None else self.innermost(bad)

    def infinite_part(self, node: ir.Expr) -> ir.Expr | None:
        """An infinity that an operation took."""
        return next((part for part in self.parts(node) if math.isinf(self.value(part))), None)

    def told(self, node: ir.Expr) -> str:
        """An operation with the values it took: `log(P[t=3,b=7]) with P = 0`."""
        leaves = list(dict.fromkeys(self.leaves(node)))
        count = Counter(leaf.tensor for leaf in leaves if isinstance(leaf, ir.Access))
        values = []
        for leaf in leaves[:READS]:
            name = leaf.tensor if isinstance(leaf, ir.Access) and count[leaf.tensor] == 1 else self.text(leaf)
            values.append(f"{name} = {number(self.value(leaf))}")
        for part in dict.fromkeys(self.parts(node)):
            if part not in leaves and not isinstance(part, ir.Number):
                values.append(f"{self.text(part)} = {number(self.value(part))}")
        return self.text(node) + (f" with {', '.join(values)}" if values else "")

    def leaves(self, node: ir.Expr) -> Iterator[ir.Expr]:
        """The tensors and indices that a value is computed of."""
        if isinstance(node, ir.Access | ir.Index):
            yield node
        for part in self.parts(node):
            yield from self.leaves(part)


def _label(place: ir.Expr, position: int) -> ir.Expr:
    """A bracket's entry as a name to be shown."""
    return ir.Index(str(position) if isinstance(place, ir.Number) else f"{show(place, tight=True)}={position}")


def number(value: float | int) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def reason(node: ir.Expr) -> str:
    """What an operation would need."""
    name = node.function if isinstance(node, ir.Call) else node.operator if isinstance(node, ir.Binary) else ""
    return REASONS.get(name, "")
