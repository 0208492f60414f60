"""Plain loops: a statement that is no contraction -> loops over its points, in the form that suits it best."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from ..kernel import ir as kernel
from ..kernel.ir import WORD, Set, Variable, constant, end_of_piece, extreme, type_of, word
from ..kernel.ir import Number as Whole
from ..language import ir
from ..language.build import add, conjunction, conjuncts
from ..language.functions import IN_VECTORS
from ..language.ir import Expr, Number
from ..plan.first_writes import Planned
from .flatten import SHORT, flattened_in_strips
from .loops import bounds_alone, loop_order, loops_around, score
from .reduction import accumulated, combined, first_value, loaded, put, reduction
from .scope import WRITTEN, Scope
from .together import Shared, write_together
from .turned_copy import written_as_turned_copy
from .winner import WinnerWriter

UNROLL = 16  # terms of a sum that are written out rather than looped over
JAM = 8  # steps of a sum that are added in one go
SUMS = 8  # that stay in registers along a row
TOGETHER = ("+=", "-=")
LONG = 16  # elements of a loop for which that pays
PIECE = 256  # elements of lines that these read, one piece after the other
AGAIN = 16  # rows of a product that run for each few steps of its sum, at most
PLACE = Variable("piece", WORD)


def is_bare(target: ir.Access) -> bool:
    """Whether nothing but indices says where an element lies, or numbers where another index took the place of one."""
    return all(isinstance(place, ir.Index | Number) for place in target.indices)


class PlainWriter:
    """Writes statements of one kernel. `store` says that one is the first to write its target, all of it."""

    def __init__(self, scope: Scope, loops: ir.Loops) -> None:
        self.scope = scope
        self.loops = loops
        self.write = scope.write
        self.layout = scope.layout
        self.winners = WinnerWriter(scope, loops)

    def emit(self, statement: Planned, store: bool) -> None:
        statement = flattened_in_strips(statement, self.scope)
        parts = self.called_on_rows(statement, store)
        if parts is not None:
            for part in parts:
                self.emit(part, False)
            return
        if written_as_turned_copy(statement, self.scope, store):
            return
        order = loop_order(statement, self.scope)
        reduced = [i for i in order if i in ir.candidates(statement)]
        if statement.operator in ("argmax=", "argmin="):
            inside = bool(reduced) and self.sums_inside(statement, order, reduced)
            if inside and reduced == ir.candidates(statement):
                self.winners.at_once(statement, order, reduced)
            else:
                self.winners.one_by_one(statement, order)
            return
        terms = self.unrolled(statement, order, reduced)
        if terms is not None:
            self.points(statement, [i for i in order if i not in reduced], terms, store)
        elif reduced and statement.operator != "=" and self.sums_inside(statement, order, reduced):
            if self.shares_a_loop(statement, order, reduced):
                self.side_by_side(statement, order, store)
            else:
                reduction(self.scope, statement, order, reduced, store)
        else:
            if store and reduced and statement.operator != "=":
                self.first_values(statement)
                store = False
            inner = self.summed_last(statement, order, reduced)
            if self.jams(statement, order, reduced):
                self.jammed(statement, order)
            elif inner:
                reduction(self.scope, statement, order, inner, False)
            else:
                self.points(statement, order, [statement.value], store)

    def called_on_rows(self, statement: Planned, store: bool) -> tuple[Planned, Planned] | None:
        """A function that is called for elements of rows which are too short to fill its vectors: what it is called for
        comes first, row by row, in little time; then all calls, for which the rows are one."""
        value, target = statement.value, statement.target
        if statement.guard is not None or ir.candidates(statement) or not (store or statement.operator == "="):
            return None
        if not isinstance(value, ir.Call) or value.function not in IN_VECTORS or len(value.arguments) != 1:
            return None
        (inside,) = value.arguments
        if target.tensor in ir.tensors_read(statement) or isinstance(inside, ir.Access):
            return None
        last = ir.bare(target.indices[-1]) if target.indices else None
        if last is None or not WRITTEN < self.layout.weight(last) < SHORT or len(target.indices) < 2:
            return None
        if self.write.own(inside) != self.layout.stored(target.tensor) or statement.operator == "-=":
            return None
        calls = replace(statement, operator="=", value=replace(value, arguments=(replace(target),)))
        if ir.bare(flattened_in_strips(calls, self.scope).target.indices[-1]) == last:
            return None
        return replace(statement, operator="=", value=inside), calls

    def first_values(self, statement: ir.Statement) -> None:
        """All that a statement adds to gets the value from which its sums start."""
        target = statement.target
        start = ir.Statement(target, "=", Number(0))
        order = [i for i in loop_order(start, self.scope) if i not in self.scope.fixed]
        value = first_value(target.tensor, self.loops, self.layout)
        loops_around(self.scope, start, order, [], lambda _: put(target, value, self.scope), again=True)

    def points(self, statement: ir.Statement, order: list[str], terms: list[Expr], store: bool) -> None:
        """Loops in the given order, and the assignment of one element inside them."""
        anew = (store or statement.operator == "=") and statement.target.tensor not in ir.tensors_read(statement)
        loops_around(self.scope, statement, order, terms, lambda values: self.assign(statement, values, store), anew)

    def assign(self, statement: ir.Statement, terms: list[Expr], store: bool) -> None:
        """The element gets the terms, or they are added to it."""
        target, operator, write = statement.target, statement.operator, self.write
        dtype = accumulated(target.tensor, self.layout)
        values = [write.value(term, dtype) for term in terms]
        if operator == "=" or store:
            result = values.pop(0)
            if operator == "-=":  # not its negative: 0 - 0 is 0, and -0 has another arc tangent
                result = kernel.Operation("-", (kernel.number(0, result.type), result), result.type)
        else:
            result = loaded(target, write)
        if len(terms) > 1:
            total = Variable("total", type_of(dtype))
            self.scope.add(Set(total, result))
            for value in values:
                self.scope.add(Set(total, combined(operator, total, value)))
            result = total
        elif values:
            result = combined(operator, result, values[0])
        put(target, result, self.scope)

    # -- forms of sums

    def sums_inside(self, statement: ir.Statement, order: list[str], reduced: list[str]) -> bool:
        """Whether the loops over what is summed are the innermost ones."""
        return is_bare(statement.target) and order[len(order) - len(reduced) :] == reduced

    def shares_a_loop(self, statement: Planned, order: list[str], reduced: list[str]) -> bool:
        """Whether there are a few sums along one long row, some of which all of them read: one loop makes all."""
        if len(reduced) > 1 or len(order) < 2 or statement.guard is not None or statement.operator not in TOGETHER:
            return False
        kept, summed = order[-2:]
        if kept in self.scope.strips or not 1 < self.layout.weight(kept) <= SUMS or not self.layout.is_constant(kept):
            return False
        rows = [a for a in statement.reads if score(replace(statement, value=a), summed, self.layout) == 1]
        shared = [a for a in rows if kept not in ir.index_names(a)]
        floating = accumulated(statement.target.tensor, self.layout).kind == "f"
        plain = not any(isinstance(n, ir.Call | ir.Conditional) for n in ir.walk(statement.value))
        in_line = len(rows) == sum(summed in ir.index_names(a) for a in statement.reads)
        return floating and plain and in_line and bool(shared) and self.layout.typical(summed) >= LONG

    def side_by_side(self, statement: Planned, order: list[str], store: bool) -> None:
        *outer, kept, summed = order
        sums = []
        for number in range(self.layout.count(kept)):
            change = ir.substitute_indices({kept: Number(number)})
            target = ir.transform(statement.target, change)
            assert isinstance(target, ir.Access)
            sums.append(replace(statement, target=target, value=ir.transform(statement.value, change)))
        with ExitStack() as around:
            for depth, index in enumerate(outer):
                around.enter_context(self.scope.loop(index, *self.scope.range(index, [], outer[:depth])[:2]))
            self.scope.fixed.update(outer)
            write_together(Shared([summed], sums), self.scope, self.assign_one, [store] * len(sums))
            self.scope.fixed.difference_update(outer)

    def assign_one(self, statement: Planned, store: bool) -> None:
        self.assign(statement, [statement.value], store)

    def summed_last(self, statement: ir.Statement, order: list[str], reduced: list[str]) -> list[str]:
        """The innermost loops, if all of them are over what is summed, inside a loop over the target."""
        if statement.operator == "=" or not is_bare(statement.target):
            return []
        count = next((k for k, i in enumerate(reversed(order)) if i not in reduced), len(order))
        return order[len(order) - count :]

    def unrolled(self, statement: ir.Statement, order: list[str], reduced: list[str]) -> list[Expr] | None:
        """The terms of a short sum, one by one, if the loop over its target can then be a loop over vectors."""
        if not reduced or statement.guard is not None or statement.operator == "=":
            return None
        if math.prod(self.layout.weight(i) for i in reduced) > UNROLL or any(i in self.scope.strips for i in reduced):
            return None
        if not is_bare(statement.target):
            return None
        kept = [i for i in order if i not in reduced]
        across = max((score(statement, i, self.layout) for i in kept), default=-99)
        if across <= max(score(statement, i, self.layout) for i in reduced):
            return None  # vectors along the sum are better
        ranges = [range(self.layout.count(i)) for i in reduced]
        terms = []
        for point in itertools.product(*ranges):
            values: dict[str, Expr] = {i: Number(k) for i, k in zip(reduced, point, strict=True)}
            terms.append(ir.transform(statement.value, ir.substitute_indices(values)))
        return terms or None

    def jams(self, statement: ir.Statement, order: list[str], reduced: list[str]) -> bool:
        """Whether the loop runs along the target and the one around it over what is summed: several of its steps then
        go into one, so that the target is read and written less often."""
        if len(order) < 2 or order[-1] in reduced or order[-2] not in reduced:
            return False
        atoms = conjuncts(statement.guard)
        if not all(self.bounds_a_loop(atom, order) for atom in atoms):
            return False
        if atoms and order[-2] in self.scope.strips:
            return False  # a strip may be shorter than a jam
        _, past, _ = self.scope.bounds(order[-2], list(atoms), order[:-2])
        if any(isinstance(end, Whole) and end.value < JAM for end in past):
            return False  # the first step of a recurrence, say
        quiet = not any(isinstance(n, ir.Call | ir.Conditional) for n in ir.walk(statement.value))
        long = self.layout.typical(order[-1]) >= LONG
        streams = [a for a in statement.reads if {*order[-2:]} <= ir.index_names(a)]
        floating = accumulated(statement.target.tensor, self.layout).kind == "f"
        return quiet and is_bare(statement.target) and long and len(streams) < 2 and floating

    def bounds_a_loop(self, atom: Expr, order: list[str]) -> bool:
        """Whether a condition becomes a bound of the innermost loop that it asks about; of the last one only if that is
        the same in all steps of the one around it."""
        free = [i for i in order if i in ir.index_names(atom)]
        if not free or order[-2:] == free[-2:]:
            return False
        return bounds_alone(self.scope, free[-1], (atom,), order[: order.index(free[-1])])

    def jammed(self, statement: ir.Statement, order: list[str]) -> None:
        *outer, summed, along = order
        scope = self.scope
        again = self.read_again(statement, order)
        outer = [i for i in outer if i not in again]
        atoms = conjuncts(statement.guard)
        statement = replace(statement, guard=conjunction(a for a in atoms if along in ir.index_names(a)))
        with ExitStack() as around:
            for depth, index in enumerate(outer):
                around.enter_context(scope.loop(index, *scope.range(index, list(atoms), outer[:depth])[:2]))
            low, high, _ = scope.range(summed, list(atoms), outer)
            if atoms:  # a guard may leave no terms at all
                low = scope.set("first_term", low)
                high = scope.set("past_terms", extreme("max", [low, high]))
            jam = int(max(min(JAM, self.layout.weight(summed)), 1))
            terms = [
                ir.transform(statement.value, ir.substitute_indices({summed: add(ir.Index(summed), Number(k))}))
                for k in range(jam)
            ]
            split = low + (high - low) // jam * jam
            with scope.counted(self.layout.index(summed), low, split, word(jam)), self.in_pieces(along, bool(again)):
                self.points(statement, [*again, along], terms, False)
            if constant(high - split) != 0:
                with scope.counted(self.layout.index(summed), split, high):
                    self.points(statement, [*again, along], [statement.value], False)

    @contextmanager
    def in_pieces(self, along: str, read_again: bool) -> Iterator[None]:
        """Loops along lines that are read again run over short pieces, all of which stay in the nearest cache."""
        scope, strip = self.scope, self.scope.strips.get(along)
        if not read_again or self.layout.weight(along) <= PIECE:
            yield
            return
        low, high, _ = scope.range(along, [], [])
        with scope.counted(PLACE, low, high, word(PIECE)):
            scope.strips[along] = PLACE, end_of_piece(PLACE, PIECE, low, high)
            yield
        del scope.strips[along]
        if strip is not None:
            scope.strips[along] = strip

    def read_again(self, statement: ir.Statement, order: list[str]) -> list[str]:
        """The indices of a few rows of a product, for each of which the same lines are read: they run for each few
        steps of its sum, so that those lines are still near."""
        *outer, summed, along = order
        lines = [a for a in statement.reads if {summed, along} <= ir.index_names(a)]
        again = [i for i in outer if lines and not any(i in ir.index_names(a) for a in lines)]
        few = math.prod(self.layout.count(i) for i in again) <= AGAIN
        return again if few and statement.guard is None and not any(i in self.scope.strips for i in again) else []
