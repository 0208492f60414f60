"""Plain loops: a statement that is no contraction -> loops over its points, in the form that suits it best."""

from __future__ import annotations

import itertools
import math

import numpy as np

from ..language import ir
from ..language.build import add
from ..language.ir import Expr, Number
from .flatten import flattened
from .loops import loop_order, loops_around, score
from .reduction import accumulated, combined, first_value, loaded, reduction
from .scope import Scope
from .winner import WinnerWriter

UNROLL = 16  # terms of a sum that are written out rather than looped over
JAM = 8  # steps of a sum that are added in one go
LONG = 16  # elements of a loop for which that pays


class PlainWriter:
    """Writes statements of one kernel. `store` says that one is the first to write its target, all of it."""

    def __init__(self, scope: Scope, loops: ir.Loops, offsets: dict[int, int]) -> None:
        self.scope = scope
        self.loops = loops
        self.write = scope.write
        self.layout = scope.write.layout
        self.winners = WinnerWriter(scope, loops, offsets)

    def emit(self, statement: ir.Statement, indent: str, store: bool) -> None:
        statement = flattened(statement, self.layout, {*self.scope.fixed, *self.scope.strips})
        order = loop_order(statement, self.scope)
        reduced = [i for i in order if i in ir.candidates(statement)]
        if statement.operator in ("argmax=", "argmin="):
            inside = bool(reduced) and self.sums_inside(statement, order, reduced)
            if inside and reduced == ir.candidates(statement):
                self.winners.at_once(statement, order, reduced, indent)
            else:
                self.winners.one_by_one(statement, order, indent)
            return
        terms = self.unrolled(statement, order, reduced)
        if terms is not None:
            self.points(statement, [i for i in order if i not in reduced], indent, terms, store)
        elif reduced and statement.operator != "=" and self.sums_inside(statement, order, reduced):
            reduction(self.scope, statement, order, reduced, indent, store)
        else:
            if store and reduced and statement.operator != "=":
                self.first_values(statement, indent)
                store = False
            if self.jams(statement, order, reduced):
                self.jammed(statement, order, indent)
            else:
                self.points(statement, order, indent, [statement.value], store)

    def first_values(self, statement: ir.Statement, indent: str) -> None:
        """All that a statement adds to gets the value from which its sums start."""
        start = ir.Statement(statement.target, "=", Number(0))
        order = [i for i in loop_order(start, self.scope) if i not in self.scope.fixed]
        text = first_value(statement.target.tensor, self.loops, self.write)
        place = f"{self.layout.tensor(statement.target.tensor)}[{self.write.offset(statement.target)}]"
        loops_around(self.scope, start, order, indent, [], lambda inner, _: self.scope.add(inner, f"{place} = {text}"))

    def points(self, statement: ir.Statement, order: list[str], indent: str, terms: list[Expr], store: bool) -> None:
        """Loops in the given order, and the assignment of one element inside them."""

        def body(inner: str, values: list[Expr]) -> None:
            self.assign(statement, values, inner, store)

        loops_around(self.scope, statement, order, indent, terms, body)

    def assign(self, statement: ir.Statement, terms: list[Expr], indent: str, store: bool) -> None:
        """One element: the terms of its sum, added to what is there unless this is its first value."""
        target, operator, write = statement.target, statement.operator, self.write
        place = f"{self.layout.tensor(target.tensor)}[{write.offset(target)}]"
        dtype, stored = accumulated(target.tensor, write), write.stored(target.tensor)
        texts = [write.value(term, dtype) for term in terms]
        if operator == "=" or store:
            text = texts[0] if operator != "-=" else f"(-{texts[0]})"
            texts = texts[1:]
        else:
            text = loaded(target, place, write)
        if len(terms) > 1:
            self.scope.add(indent, f"total = {text}")
            text = "total"
            for term in texts:
                self.scope.add(indent, f"total = {combined(operator, 'total', term)}")
        elif texts:
            text = combined(operator, text, texts[0])
        if stored != dtype or stored == np.bool_:
            text = write.cast(text, np.dtype(np.uint8) if stored == np.bool_ else stored)
        self.scope.add(indent, f"{place} = {text}")

    # -- forms of sums

    def sums_inside(self, statement: ir.Statement, order: list[str], reduced: list[str]) -> bool:
        """Whether the loops over what is summed are the innermost ones."""
        bare = all(isinstance(e, ir.Index) for e in statement.target.indices)
        return bare and order[len(order) - len(reduced) :] == reduced

    def unrolled(self, statement: ir.Statement, order: list[str], reduced: list[str]) -> list[Expr] | None:
        """The terms of a short sum, one by one, if the loop over its target can then be a loop over vectors."""
        if not reduced or statement.guard is not None or statement.operator == "=":
            return None
        if math.prod(self.layout.weight(i) for i in reduced) > UNROLL or any(i in self.scope.strips for i in reduced):
            return None
        if any(not isinstance(e, ir.Index) for e in statement.target.indices):
            return None
        kept = [i for i in order if i not in reduced]
        across = max((score(statement, i, self.layout) for i in kept), default=-99)
        if across <= max(score(statement, i, self.layout) for i in reduced):
            return None  # vectors along the sum are better
        ranges = [range(self.layout.sizes.index[i]) for i in reduced]
        terms = []
        for point in itertools.product(*ranges):
            values: dict[str, Expr] = {i: Number(k) for i, k in zip(reduced, point, strict=True)}
            terms.append(ir.transform(statement.value, ir.substitute_indices(values)))
        return terms or None

    def jams(self, statement: ir.Statement, order: list[str], reduced: list[str]) -> bool:
        """Whether the loop runs along the target and the one around it over what is summed: several of its steps then
        go into one, so that the target is read and written less often."""
        if len(order) < 2 or order[-1] in reduced or order[-2] not in reduced or statement.guard is not None:
            return False
        quiet = not any(isinstance(n, ir.Call | ir.Conditional) for n in ir.walk(statement.value))
        bare = all(isinstance(e, ir.Index) for e in statement.target.indices)
        long = self.layout.typical(order[-1]) >= LONG
        streams = [a for a in statement.reads if {*order[-2:]} <= ir.index_names(a)]
        floating = accumulated(statement.target.tensor, self.write).kind == "f"
        return quiet and bare and long and len(streams) < 2 and floating

    def jammed(self, statement: ir.Statement, order: list[str], indent: str) -> None:
        *outer, summed, along = order
        for index in outer:
            low, high, _ = self.scope.range(index, [], [])
            indent = self.scope.loop(indent, index, low, high)
        low, high, _ = self.scope.range(summed, [], [])
        name = self.layout.index(summed)
        terms = [
            ir.transform(statement.value, ir.substitute_indices({summed: add(ir.Index(summed), Number(k))}))
            for k in range(JAM)
        ]
        whole = f"({high} - {low}) // {JAM} * {JAM}"
        ranges = [(f"{low}, {low} + {whole}, {JAM}", terms), (f"{low} + {whole}, {high}", [statement.value])]
        for text, values in ranges:
            self.scope.add(indent, f"for {name} in range({text}):")
            self.points(statement, [along], indent + "    ", values, False)
