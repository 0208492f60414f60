"""Kernels: a nest -> one Numba function, which runs the strips that belong to its thread."""

from __future__ import annotations

import itertools
import math
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..interpret.grid import identity
from ..language import ir
from ..language.affine import affine
from ..language.bounds import at_least_zero
from ..language.build import add, conjuncts, divide, negate, product
from ..language.ir import Expr, Number
from ..language.render import statement as show_statement
from ..language.sizes import Sizes
from ..language.types import Types
from ..plan.nest import Nest
from ..plan.work import product_of, statements_in
from .contraction import ContractionWriter, Roles
from .expression import Expressions
from .flatten import flattened
from .layout import Cut, Layout, Word

BEST = "best of "  # names the tensor beside an argmax= that holds the values of its winners
NAME = re.compile(r"[a-z]+\d+")  # what a function that the kernel calls may take as an argument
UNROLL = 16  # terms of a sum that are written out rather than looped over
JAM = 8  # steps of a sum that are added in one go
LONG = 16  # elements of a loop for which that pays


@dataclass(frozen=True)
class Kernel:
    """Generated source and what it needs at a call: words of context, and memory of each thread's own.

    The context starts with the number of parts, and the bytes of scratch memory that each part has.
    """

    source: str
    words: tuple[Word, ...]
    nest: Nest
    scratch: dict[str, int]  # bytes of each tensor and panel that a part has to itself


class KernelWriter:
    def __init__(
        self,
        loops: ir.Loops,
        nest: Nest,
        types: Types,
        sizes: Sizes,
        default: np.dtype[Any],
        constant: frozenset[str],
        offsets: dict[int, int],
        stores: set[int],
        continued: frozenset[str],
    ) -> None:
        self.loops = loops
        self.nest = nest
        self.types = types
        self.layout = Layout(sizes, constant)
        self.write = Expressions(self.layout, types, default)
        self.offsets = offsets
        self.stores = stores  # statements that are the first to write their target, all of it
        self.continued = continued  # tensors that hold values before the kernel starts
        self.lines: list[str] = []
        self.fixed: set[str] = set()  # indices that a loop around the statement already runs over
        self.strips: dict[str, tuple[str, str]] = {}  # indices of which a loop around runs over strips
        self.filled: set[str] = set()
        self.begun: set[int] = set()  # statements whose targets got their first values further out
        self.steps: list[list[str]] = []  # functions that the kernel calls
        self.count = 0  # of the local variables so far
        self.levels: list[tuple[str, frozenset[str]]] = []  # the nests around: index, and the tensors written within
        self.ahead: list[tuple[list[str], str]] = []  # the lines before the strips of each of them

    def kernel(self) -> Kernel:
        nest = self.nest
        for name in nest.private:
            self.layout.kinds[name] = "private"
        indent = "        "
        for name in nest.private:
            self.fill_private(name, indent)
        if nest.index is None:
            for item in nest.items:
                self.item(item, indent)
        else:
            self.inside(nest, 0, indent)
        sizes = {n: self.layout.number(("bytes", n), self.bytes_of(n)) for n in nest.private}
        own = {}  # the first part adds to the tensor itself, the others to copies
        for position, name in enumerate(nest.private):
            own[name] = f"own{position}"
            self.layout.words.append(Word(own[name], "own", name))
        head = ["def kernel(start, size, step, context):", "    parts, scratch = context[0], context[1]"]
        parts = []
        for position, word in enumerate(self.layout.words, 2):
            text = f"context[{position}]"
            if word.kind in ("size", "copies", "own"):
                head.append(f"    {word.local} = {text}")
                continue
            assert isinstance(word.item, str)
            beside = word.item.removeprefix(BEST) if word.item.startswith(BEST) else None
            dtype = self.write.best(self.loops, beside) if beside else self.write.stored(word.item)
            if word.kind == "address":
                head.append(f"    {word.local} = {pointer_name(dtype)}({text})")
            elif word.kind == "local":
                parts.append(f"        {word.local} = {pointer_name(dtype)}({text} + part * scratch)")
            else:
                place = f"{text} + (part - 1) * {sizes[word.item]} if part > 0 else {own[word.item]}"
                parts.append(f"        {word.local} = {pointer_name(dtype)}({place})")
        loop = ["    for part in range(start[0], start[0] + size[0]):", *parts]
        scratch = {
            str(word.item): math.prod(self.layout.shape(str(word.item))) * self.write.stored(str(word.item)).itemsize
            for word in self.layout.words
            if word.kind == "local"
        }
        steps = [line for step in self.steps for line in step]
        return Kernel("\n".join([*steps, *head, *loop, *self.lines]) + "\n", tuple(self.layout.words), nest, scratch)

    def bytes_of(self, name: str) -> int:
        return math.prod(self.layout.sizes.shapes[name]) * self.write.stored(name).itemsize

    def inside(self, nest: Nest, level: int, indent: str) -> None:
        """The loop over the strips of a nest, and its items."""
        assert nest.index is not None
        size, grain = self.layout.size(nest.index), nest.grain
        low, high, strip, strips = (f"{word}{level}" for word in ("low", "high", "strip", "strips"))
        units = f"{size} // {grain}" if grain > 1 else size
        parts = "parts" if level == 0 else "1"
        share = nest.strip // grain
        many = parts if not nest.strip else f"({units} + {share - 1}) // {share}" if share > 1 else f"({units})"
        if not nest.strip and any(nest.index in ir.index_names(s.guard) for s in nest.statements if s.guard):
            many = f"4 * {parts}"  # strips of unequal work: several for each thread
        if level == 0:
            many = f"(max({many}, 1) + parts - 1) // parts * parts"
        first = "range(part, {}, parts)" if level == 0 else "range({})"
        before: list[str] = []
        outer = self.lines
        self.lines = []
        self.ahead.append((before, indent))
        self.lines += [
            f"{indent}{strips} = max(min({many}, {units}), 1)",
            f"{indent}for {strip} in {first.format(strips)}:",
            f"{indent}    {low} = {strip} * ({units}) // {strips} * {grain}",
            f"{indent}    {high} = ({strip} + 1) * ({units}) // {strips} * {grain}",
            f"{indent}    {high} = {high} if {strip} < {strips} - 1 else {size}",
        ]
        self.levels.append((nest.index, frozenset(s.target.tensor for s in nest.statements)))
        self.strips[nest.index] = (low, high)
        most = nest.most(self.layout.sizes.index[nest.index], nest.index in self.layout.constant)
        if nest.strip:
            self.layout.most[nest.index] = most
        self.layout.least[nest.index] = grain
        if nest.strip:
            for name in nest.local:
                self.layout.kinds[name] = "local"
                self.layout.cuts.setdefault(name, {})[nest.axes[name]] = Cut(
                    low, min(most, self.layout.sizes.index[nest.index])
                )
        for item in nest.items:
            if isinstance(item, Nest):
                self.begin_sums(item, indent + "    ")
                filled = set(self.filled)
                self.inside(item, level + 1, indent + "    ")
                self.filled = filled | (self.filled - set(item.local))
            else:
                self.item(item, indent + "    ")
        if before:
            own = self.strips.pop(nest.index)
            outer.append(f"{indent}{self.outlined(['    # panels, packed ahead', *_dedented(before)])}")
            self.strips[nest.index] = own
        outer += self.lines
        self.lines = outer
        self.levels.pop()
        self.ahead.pop()
        self.layout.most.pop(nest.index, None)
        del self.strips[nest.index], self.layout.least[nest.index]

    def begin_sums(self, nest: Nest, indent: str) -> None:
        """First values of what the strips of an inner nest add to, one strip after the other."""
        for statement in nest.statements:
            if statement.target.tensor not in nest.local:  # it lives in the nest around this one
                self.fill(statement, indent)
            private = self.layout.kinds.get(statement.target.tensor) == "private"
            fresh = id(statement) in self.stores and id(statement) not in self.begun and not private
            if fresh and nest.index not in ir.index_names(statement.target):
                self.zero_nest(statement, indent)
                self.begun.add(id(statement))

    def item(self, item: Nest | ir.Item, indent: str) -> None:
        if isinstance(item, ir.Block):
            self.fill(item, indent)
            name, size = self.layout.index(item.index), self.layout.size(item.index)
            order = f"range({size} - 1, -1, -1)" if item.down else f"range({size})"
            self.lines.append(f"{indent}for {name} in {order}:")
            self.fixed.add(item.index)
            for inner in item.body:
                self.item(inner, indent + "    ")
            self.fixed.discard(item.index)
        else:
            assert isinstance(item, ir.Statement)
            self.fill(item, indent)
            self.statement(item, indent)

    # -- first values

    def fill_private(self, name: str, indent: str) -> None:
        start = self.first_value(name)
        size = self.layout.number(("elements", name), math.prod(self.layout.sizes.shapes[name]))
        if name in self.continued:
            size = f"{size} if part > 0 else 0"
        self.lines.append(f"{indent}for k in range({size}):")
        self.lines.append(f"{indent}    {self.layout.tensor(name)}[k] = {start}")

    def first_value(self, name: str) -> str:
        operator = next(s.operator for s in self.loops.statements if s.target.tensor == name)
        dtype = self.write.stored(name)
        start = identity(operator, dtype)
        return self.write.cast(_text(start), np.dtype(np.uint8) if dtype == np.bool_ else dtype)

    def fill(self, item: ir.Item, indent: str) -> None:
        """Local tensors hold their identity before the first statement that does not write all of them."""
        for statement in statements_in(item):
            name = statement.target.tensor
            if name in self.filled or self.layout.kinds.get(name) != "local" or name not in self.layout.cuts:
                continue
            self.filled.add(name)
            if id(statement) in self.stores:
                continue
            size = self.layout.number(("kept", name), math.prod(self.layout.shape(name)))
            self.lines.append(f"{indent}for k in range({size}):")
            self.lines.append(f"{indent}    {self.layout.tensor(name)}[k] = {self.first_value(name)}")

    # -- one statement

    def statement(self, statement: ir.Statement, indent: str) -> None:
        outer, self.lines = self.lines, []
        text = self.renamed(statement)
        self.statement_body(statement, "    ")
        outer.append(f"{indent}{self.outlined([f'    # {text}', *self.lines])}")
        self.lines = outer

    def outlined(self, lines: list[str]) -> str:
        """The call of a function for these lines: compilers take longer for one long function than for many."""
        known = {*self.layout.tensors.values(), *self.layout.variables.values()}
        known |= {self.layout.index(index) for index in self.fixed}
        known |= {name for pair in self.strips.values() for name in pair}
        names = [n for n in dict.fromkeys(NAME.findall("\n".join(lines[1:]))) if n in known]
        function = f"step{len(self.steps)}({', '.join(names)})"
        self.steps.append(["@njit(**OPTIONS)", f"def {function}:", *lines, "", ""])
        return function

    def statement_body(self, statement: ir.Statement, indent: str) -> None:
        private = self.layout.kinds.get(statement.target.tensor) == "private"
        store = id(statement) in self.stores and id(statement) not in self.begun and not private
        found = Roles(statement, self.write, self.fixed, self.levels).find()
        if found is not None:
            ranges = {i: self.range(i, [], [])[:2] for i in statement.indices if i not in self.fixed}
            writer = ContractionWriter(found, statement, self.write, self.lines, store, self.ahead, ranges)
            writer.emit(indent, lambda deeper: self.plain(statement, deeper, store))
            return
        self.plain(statement, indent, store)

    def plain(self, statement: ir.Statement, indent: str, store: bool) -> None:
        """The statement as loops over its points."""
        statement = flattened(statement, self.layout, {*self.fixed, *self.strips})
        order = self.loop_order(statement)
        reduced = [i for i in order if i in ir.candidates(statement)]
        if statement.operator in ("argmax=", "argmin="):
            inside = bool(reduced) and self.sums_inside(statement, order, reduced)
            if inside and reduced == ir.candidates(statement):
                self.winner(statement, order, reduced, indent)
                return
            self.loops_around(statement, order, indent, [], lambda inner, _: self.argument(statement, inner))
            return
        terms = self.unrolled(statement, order, reduced)
        if terms is not None:
            order = [i for i in order if i not in reduced]
            self.loops_around(
                statement, order, indent, terms, lambda inner, values: self.assign(statement, values, inner, store)
            )
        elif reduced and statement.operator != "=" and self.sums_inside(statement, order, reduced):
            self.reduction(statement, order, reduced, indent, store)
        else:
            if store and reduced and statement.operator != "=":
                self.zero_nest(statement, indent)
                store = False
            if self.jams(statement, order, reduced):
                self.jammed(statement, order, indent)
                return
            value = [statement.value]
            self.loops_around(
                statement, order, indent, value, lambda inner, values: self.assign(statement, values, inner, store)
            )

    def jams(self, statement: ir.Statement, order: list[str], reduced: list[str]) -> bool:
        """Whether the loop runs along the target and the one around it over what is summed: several of its steps then
        go into one, so that the target is read and written less often."""
        if len(order) < 2 or order[-1] in reduced or order[-2] not in reduced or statement.guard is not None:
            return False
        quiet = not any(isinstance(n, ir.Call | ir.Conditional) for n in ir.walk(statement.value))
        bare = all(isinstance(e, ir.Index) for e in statement.target.indices)
        long = self.layout.typical(order[-1]) >= LONG
        streams = [a for a in statement.reads if {*order[-2:]} <= ir.index_names(a)]
        return quiet and bare and long and len(streams) < 2 and self.accumulated(statement.target.tensor).kind == "f"

    def jammed(self, statement: ir.Statement, order: list[str], indent: str) -> None:
        *outer, summed, along = order
        for index in outer:
            low, high, _ = self.range(index, [], [])
            self.lines.append(f"{indent}for {self.layout.index(index)} in range({low}, {high}):")
            indent += "    "
        low, high, _ = self.range(summed, [], [])
        name = self.layout.index(summed)
        terms = [
            ir.transform(statement.value, ir.substitute_indices({summed: add(ir.Index(summed), Number(k))}))
            for k in range(JAM)
        ]
        whole = f"({high} - {low}) // {JAM} * {JAM}"
        ranges = [(f"{low}, {low} + {whole}, {JAM}", terms), (f"{low} + {whole}, {high}", [statement.value])]
        for text, values in ranges:
            self.lines.append(f"{indent}for {name} in range({text}):")
            self.loops_around(
                statement, [along], indent + "    ", values, lambda inner, v: self.assign(statement, v, inner, False)
            )

    def sums_inside(self, statement: ir.Statement, order: list[str], reduced: list[str]) -> bool:
        """Whether the loops over what is summed are the innermost ones."""
        bare = all(isinstance(e, ir.Index) for e in statement.target.indices)
        return bare and order[len(order) - len(reduced) :] == reduced

    def zero_nest(self, statement: ir.Statement, indent: str) -> None:
        start = ir.Statement(statement.target, "=", Number(0))
        order = [i for i in self.loop_order(start) if i not in self.fixed]
        text = self.first_value(statement.target.tensor)
        place = f"{self.layout.tensor(statement.target.tensor)}[{self.write.offset(statement.target)}]"
        self.loops_around(start, order, indent, [], lambda inner, _: self.lines.append(f"{inner}{place} = {text}"))

    def unrolled(self, statement: ir.Statement, order: list[str], reduced: list[str]) -> list[Expr] | None:
        """The terms of a short sum, one by one, if the loop over its target can then be a loop over vectors."""
        if not reduced or statement.guard is not None or statement.operator == "=":
            return None
        if math.prod(self.layout.weight(i) for i in reduced) > UNROLL or any(i in self.strips for i in reduced):
            return None
        if any(not isinstance(e, ir.Index) for e in statement.target.indices):
            return None
        kept = [i for i in order if i not in reduced]
        across = max((self.score(statement, i) for i in kept), default=-99)
        if across <= max(self.score(statement, i) for i in reduced):
            return None  # vectors along the sum are better
        ranges = [range(self.layout.sizes.index[i]) for i in reduced]
        terms = []
        for point in itertools.product(*ranges):
            values: dict[str, Expr] = {i: Number(k) for i, k in zip(reduced, point, strict=True)}
            terms.append(ir.transform(statement.value, ir.substitute_indices(values)))
        return terms or None

    def loops_around(
        self,
        statement: ir.Statement,
        order: list[str],
        indent: str,
        values: list[Expr],
        body: Callable[[str, list[Expr]], None],
    ) -> None:
        """The loops of a statement; what the innermost one does not change is computed before it.

        Where conditions that only indices decide choose between values, the points at which all of them hold have a
        loop of their own, without them: one that can run in vectors.
        """
        atoms = list(conjuncts(statement.guard))
        ranges = []
        for position, index in enumerate(order):
            low, high, used = self.range(index, atoms, order[:position])
            atoms = [atom for atom in atoms if atom not in used]
            ranges.append((low, high))
        conditions = self.conditions(statement, atoms)

        def innermost(inner: str, chosen: list[Expr]) -> None:
            held = dict(self.write.held)
            if conditions:
                self.lines.append(f"{inner}if {conditions}:")
                inner += "    "
            self.hold(self.repeated(chosen), inner)
            body(inner, chosen)
            self.write.held = held

        held = dict(self.write.held)
        for index, (low, high) in zip(order[:-1], ranges[:-1], strict=True):
            self.lines.append(f"{indent}for {self.layout.index(index)} in range({low}, {high}):")
            indent += "    "
        if not order:
            innermost(indent, values)
            return
        last, (low, high) = order[-1], ranges[-1]
        name = self.layout.index(last)
        often = self.where_all_hold(values, last, order[:-1])
        if often is None:
            if not statement.guard:
                self.hold(self.invariant(values, last), indent)
            self.lines.append(f"{indent}for {name} in range({low}, {high}):")
            innermost(indent + "    ", values)
        else:
            chosen, outer, lows, highs = often
            inner = indent
            self.lines += [f"{indent}begin, middle, rest = {low}, {high}, {high}"]
            if outer:
                self.lines.append(f"{indent}if {outer}:")
                inner += "    "
            self.lines.append(f"{inner}middle = min({_joined('max', ['begin', *lows])}, rest)")
            self.lines.append(f"{inner}rest = {_joined('max', ['middle', _joined('min', ['rest', *highs])])}")
            self.lines.append(f"{indent}for {name} in range(middle, rest):")
            innermost(indent + "    ", chosen)
            self.lines.append(f"{indent}for side in range(2):")
            self.lines.append(
                f"{indent}    first, past = begin if side == 0 else rest, middle if side == 0 else {high}"
            )
            self.lines.append(f"{indent}    for {name} in range(first, past):")
            innermost(indent + "        ", values)
        self.write.held = held

    def where_all_hold(
        self, values: list[Expr], index: str, outer: list[str]
    ) -> tuple[list[Expr], str, list[str], list[str]] | None:
        """The values where all conditions on indices hold, what must hold of outer indices, bounds for the index."""
        atoms: dict[Expr, None] = {}
        for value in values:
            for node in ir.walk(value):
                if isinstance(node, ir.Conditional):
                    parts = conjuncts(node.condition)
                    if all(at_least_zero(p) and not any(isinstance(n, ir.Access) for n in ir.walk(p)) for p in parts):
                        atoms |= dict.fromkeys(parts)
        mine = [atom for atom in atoms if index in ir.index_names(atom)]
        lows, highs, used = self.bounds(index, mine, outer)
        holding = {atom for atom in atoms if atom in used or index not in ir.index_names(atom)}
        if not holding:
            return None

        def change(node: Expr) -> Expr:
            return node.then if isinstance(node, ir.Conditional) and set(conjuncts(node.condition)) <= holding else node

        texts = [self.write.truth(atom) for atom in atoms if index not in ir.index_names(atom)]
        return [ir.transform(value, change) for value in values], " and ".join(texts), lows, highs

    def hold(self, values: list[Expr], indent: str) -> None:
        """Local variables for values that are needed more than once."""
        for value in values:
            dtype = self.write.own(value)
            text = self.write.value(value, dtype)
            self.count += 1
            name = f"c{self.count}"
            self.lines.append(f"{indent}{name} = {text}")
            self.write.held[value] = (name, dtype)

    def invariant(self, values: list[Expr], index: str) -> list[Expr]:
        """The largest parts of values that an index does not change, and that every point evaluates."""
        found: dict[Expr, None] = {}
        for value in values:
            stack = [value]
            while stack:
                node = stack.pop()
                if isinstance(node, ir.Conditional | ir.Logic | ir.Compare | ir.Inside):
                    continue
                if index not in ir.index_names(node):
                    if any(isinstance(n, ir.Access) for n in ir.walk(node)) and not self.may_fail(node):
                        found[node] = None
                    continue
                if not isinstance(node, ir.Access):
                    stack.extend(ir.children(node))
        return list(found)

    def may_fail(self, node: Expr) -> bool:
        """What is computed before a loop is computed even if the loop runs over nothing."""
        return any(
            (isinstance(n, ir.Access) and not all(isinstance(e, ir.Index | Number) for e in n.indices))
            or isinstance(n, ir.Conditional | ir.Logic | ir.Inside)
            for n in ir.walk(node)
        )

    def repeated(self, values: list[Expr]) -> list[Expr]:
        """Calls that stand in values more than once, where every point evaluates them; inner ones first."""
        count: Counter[Expr] = Counter()
        for value in values:
            count.update(_always_called(value))
        found = [node for node, times in count.items() if times > 1 and node not in self.write.held]
        return sorted(found, key=lambda node: len(ir.walk(node)))

    def assign(self, statement: ir.Statement, terms: list[Expr], indent: str, store: bool) -> None:
        """One element: the terms of its sum, added to what is there unless this is its first value."""
        target, operator = statement.target, statement.operator
        place = f"{self.layout.tensor(target.tensor)}[{self.write.offset(target)}]"
        dtype, stored = self.accumulated(target.tensor), self.write.stored(target.tensor)
        texts = [self.write.value(term, dtype) for term in terms]
        if operator == "=" or store:
            text = texts[0] if operator != "-=" else f"(-{texts[0]})"
            texts = texts[1:]
        else:
            text = self.loaded(target, place)
        if len(terms) > 1:
            self.lines.append(f"{indent}total = {text}")
            text = "total"
            for term in texts:
                self.lines.append(f"{indent}total = {self.combined(operator, 'total', term)}")
        elif texts:
            text = self.combined(operator, text, texts[0])
        if stored != dtype or stored == np.bool_:
            text = self.write.cast(text, np.dtype(np.uint8) if stored == np.bool_ else stored)
        self.lines.append(f"{indent}{place} = {text}")

    def reduction(
        self, statement: ir.Statement, order: list[str], reduced: list[str], indent: str, store: bool
    ) -> None:
        """Sums in a local variable: the loops over the target outside, those over what is summed inside."""
        target = statement.target
        place = f"{self.layout.tensor(target.tensor)}[{self.write.offset(target)}]"
        dtype, stored = self.accumulated(target.tensor), self.write.stored(target.tensor)
        atoms = list(conjuncts(statement.guard))
        held = dict(self.write.held)
        after = indent
        summand, factor = self.taken_out(statement, reduced, dtype)
        start = (
            self.write.cast(_text(identity(statement.operator, dtype)), dtype) if store else self.loaded(target, place)
        )
        for position, index in enumerate(order):
            low, high, used = self.range(index, atoms, order[:position])
            atoms = [atom for atom in atoms if atom not in used]
            if position == len(order) - len(reduced):
                zero = self.write.cast("0", dtype)
                self.lines.append(f"{indent}total = {start if factor is None else zero}")
                after = indent
            if position == len(order) - 1 and not statement.guard:
                self.hold(self.invariant([summand], index), indent)
            self.lines.append(f"{indent}for {self.layout.index(index)} in range({low}, {high}):")
            indent += "    "
        conditions = self.conditions(statement, atoms)
        if conditions:
            self.lines.append(f"{indent}if {conditions}:")
            indent += "    "
        self.hold(self.repeated([summand]), indent)
        value = self.write.value(summand, dtype)
        self.lines.append(f"{indent}total = {self.combined(statement.operator, 'total', value)}")
        if factor is not None:
            over, under = factor
            self.lines.append(
                f"{after}total = total * {self.write.value(over, dtype)} / {self.write.value(under, dtype)}"
            )
            if not store:
                self.lines.append(f"{after}total = {self.loaded(target, place)} + total")
        text = "total" if stored == dtype else self.write.cast("total", stored)
        self.lines.append(f"{after}{place} = {text}")
        self.write.held = held

    def taken_out(
        self, statement: ir.Statement, reduced: list[str], dtype: np.dtype[Any]
    ) -> tuple[Expr, tuple[Expr, Expr] | None]:
        """What a sum adds up, and the factors and divisors that it does not run over, which are applied to the sum.

        Not where the sum may be empty: no terms are 0, whatever they would have been divided by.
        """
        constant = all(i in self.layout.constant and self.layout.sizes.index[i] > 0 for i in reduced)
        over, under = product_of(statement.value)
        outside = [[f for f in fs if not ir.index_names(f) & set(reduced)] for fs in (over, under)]
        if statement.operator not in ir.SUM or statement.guard is not None or dtype.kind != "f" or not constant:
            return statement.value, None
        if any(i in self.strips for i in reduced) or not outside[1]:
            return statement.value, None  # only divisions are worth it
        inside = [[f for f in fs if f not in out] for fs, out in zip((over, under), outside, strict=True)]
        summand = product(inside[0])
        for divisor in inside[1]:
            summand = divide(summand, divisor)
        return summand, (product(outside[0]), product(outside[1]))

    def accumulated(self, tensor: str) -> np.dtype[Any]:
        """The type that values for a tensor are computed in: integers in 64 bits, whatever they are stored in."""
        stored = self.write.stored(tensor)
        return np.dtype(np.int64) if stored.kind in "iu" else stored

    def loaded(self, target: ir.Access, place: str) -> str:
        dtype = self.accumulated(target.tensor)
        return place if self.write.stored(target.tensor) == dtype else self.write.cast(place, dtype)

    def conditions(self, statement: ir.Statement, atoms: list[Expr]) -> str:
        """What is left of the guard once loop bounds took their part; `inside` first."""
        texts = []
        if any(isinstance(atom, ir.Inside) for atom in atoms):
            texts.append(self.write.inside_statement(statement))
        texts += [self.guard_text(statement, atom) for atom in atoms if not isinstance(atom, ir.Inside)]
        return " and ".join(t for t in texts if t != "True")

    def guard_text(self, statement: ir.Statement, atom: Expr) -> str:
        if not any(isinstance(n, ir.Inside) for n in ir.walk(atom)):
            return self.write.truth(atom)
        assert isinstance(atom, ir.Logic | ir.Unary)
        if isinstance(atom, ir.Unary):
            return f"(not {self._with_inside(statement, atom.operand)})"
        return self._with_inside(statement, atom)

    def _with_inside(self, statement: ir.Statement, node: Expr) -> str:
        if isinstance(node, ir.Inside):
            return f"({self.write.inside_statement(statement)})"
        if isinstance(node, ir.Logic):
            left, right = self._with_inside(statement, node.left), self._with_inside(statement, node.right)
            return f"({left} {node.operator} {right})"
        if isinstance(node, ir.Unary) and node.operator == "not":
            return f"(not {self._with_inside(statement, node.operand)})"
        return self.write.truth(node)

    @staticmethod
    def combined(operator: str, old: str, new: str) -> str:
        match operator:
            case "+=":
                return f"{old} + {new}"
            case "-=":
                return f"{old} - {new}"
            case "*=":
                return f"{old} * {new}"
        return f"{'maximum' if operator == 'max=' else 'minimum'}({old}, {new})"

    def winner(self, statement: ir.Statement, order: list[str], reduced: list[str], indent: str) -> None:
        """The first position of the best value, where candidates are met in their order: best and position are local
        variables until all are seen."""
        target, atoms = statement.target, list(conjuncts(statement.guard))
        best, held, position, dtype = self.contest(statement)
        after = indent
        for place, index in enumerate(order):
            low, high, used = self.range(index, atoms, order[:place])
            atoms = [atom for atom in atoms if atom not in used]
            if place == len(order) - len(reduced):
                self.lines += [f"{indent}at = {self.write.offset(target)}"]
                self.lines += [f"{indent}best, first = {best}[at], {held}[at]"]
                after = indent
            self.lines.append(f"{indent}for {self.layout.index(index)} in range({low}, {high}):")
            indent += "    "
        conditions = self.conditions(statement, atoms)
        if conditions:
            self.lines.append(f"{indent}if {conditions}:")
            indent += "    "
        sign = ">" if statement.operator == "argmax=" else "<"
        better = f"either(first < 0, new {sign} best)"
        if dtype.kind == "f":  # a NaN beats all numbers
            better = f"either({better}, both(new != new, best == best))"
        self.lines += [
            f"{indent}new = {self.write.value(statement.value, dtype)}",
            f"{indent}better = {better}",
            f"{indent}best, first = chosen(better, new, best), chosen(better, {position}, first)",
            f"{after}{best}[at], {held}[at] = best, first",
        ]

    def contest(self, statement: ir.Statement) -> tuple[str, str, str, np.dtype[Any]]:
        """The names of the tensors of best values and of their positions, a candidate's position, and its type."""
        name = BEST + statement.target.tensor
        self.layout.sizes.shapes[name] = self.layout.sizes.shapes[statement.target.tensor]
        best, held = self.layout.tensor(name), self.layout.tensor(statement.target.tensor)
        position: str = "0"
        for index in ir.candidates(statement):
            position = f"({position} * {self.layout.size(index)} + {self.layout.index(index)})"
        position = f"{position} + {self.offsets[id(statement)]}"
        return best, held, position, self.write.best(self.loops, statement.target.tensor)

    def argument(self, statement: ir.Statement, inner: str) -> None:
        """The first position of the best value so far, which a tensor beside the target holds."""
        at = self.write.offset(statement.target)
        best, held, position, dtype = self.contest(statement)
        lines = [
            f"at = {at}",
            f"new = {self.write.value(statement.value, dtype)}",
            f"position = {position}",
            f"if {'above' if statement.operator == 'argmax=' else 'below'}(new, {best}[at], position, {held}[at]):",
            f"    {best}[at] = new",
            f"    {held}[at] = position",
        ]
        self.lines += [inner + line for line in lines]

    def renamed(self, statement: ir.Statement) -> str:
        """The statement in the kernel's own names."""

        def change(node: Expr) -> Expr:
            match node:
                case ir.Index(name=name):
                    return ir.Index(self.layout.index(name))
                case ir.Access(tensor=tensor):
                    return replace(node, tensor=self.layout.tensor(tensor))
                case ir.Size() | ir.AxisSize() | ir.Static():
                    return Number(self.layout.sizes.value(node)) if isinstance(node, ir.Static) else ir.Static("n")
            return node

        return show_statement(ir.map_statement(statement, change))

    # -- loops

    def loop_order(self, statement: ir.Statement) -> list[str]:
        """Target indices outside, candidates inside, and innermost the index with the most unit strides."""
        names = [i for i in statement.indices if i not in self.fixed]
        outer = [i for e in statement.target.indices for i in _names(e) if i in names]
        order = list(dict.fromkeys([*outer, *names]))
        if not order:
            return order
        guarded = {i for atom in conjuncts(statement.guard) for i in ir.index_names(atom)}
        best = max(order, key=lambda i: (self.score(statement, i), order.index(i)))
        if best not in guarded and self.score(statement, best) > self.score(statement, order[-1]):
            order.remove(best)
            order.append(best)
        return order

    def score(self, statement: ir.Statement, index: str) -> int:
        """How many accesses run along memory with the index, less those that jump."""
        score = 0
        for access in (statement.target, *statement.reads):
            stride = 0
            for place, step in zip(access.indices, self.layout.strides(access.tensor), strict=True):
                form = affine(place)
                if index in ir.index_names(place):
                    c = form.terms.get(index) if form else None
                    stride += abs(int(c.value)) * step if isinstance(c, Number) else 100
            if stride == 1:
                score += 2 if access is statement.target else 1
            elif stride > 1:
                score -= 3
        return score

    def range(self, index: str, atoms: list[Expr], outer: list[str]) -> tuple[str, str, list[Expr]]:
        """The bounds of a loop: those of the index, its strip, and the guards that bound it by outer indices."""
        first, last = self.strips.get(index) or ("0", self.layout.size(index))
        lows, highs, used = self.bounds(index, atoms, outer)
        return _joined("max", [first, *lows]), _joined("min", [last, *highs]), used

    def bounds(self, index: str, atoms: list[Expr], outer: list[str]) -> tuple[list[str], list[str], list[Expr]]:
        """Lower bounds of an index and upper ones (which it does not reach) by outer indices; and whence they are."""
        lows: list[str] = []
        highs: list[str] = []
        known = {*outer, *self.fixed}
        used: list[Expr] = []
        for atom in atoms:
            if not isinstance(atom, ir.Compare) or index not in ir.index_names(atom):
                continue
            bounds = at_least_zero(atom)
            forms = [affine(self.layout.known(b)) for b in bounds]
            if not bounds or any(
                f is None or f.terms.get(index) not in (Number(1), Number(-1)) or not set(f.terms) <= known | {index}
                for f in forms
            ):
                continue
            for form in forms:
                assert form is not None
                rest = form.without(index).expression()
                if form.terms[index] == Number(1):  # index + rest >= 0
                    lows.append(self.write.integer(negate(rest)))
                else:  # rest - index >= 0
                    highs.append(self.write.integer(add(rest, Number(1))))
            used.append(atom)
        return lows, highs, used


def _dedented(lines: list[str]) -> list[str]:
    """The lines as they stand in a function."""
    return textwrap.indent(textwrap.dedent("\n".join(lines)), "    ").split("\n")


def _always_called(value: Expr) -> Iterator[Expr]:
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, ir.Conditional | ir.Logic | ir.Access):
            continue
        if isinstance(node, ir.Call) and any(isinstance(n, ir.Access) for n in ir.walk(node)):
            yield node
        stack.extend(ir.children(node))


def _text(number: float) -> str:
    return "inf" if number == math.inf else "-inf" if number == -math.inf else repr(number)


def _names(node: Expr) -> list[str]:
    return [n.name for n in ir.walk(node) if isinstance(n, ir.Index)]


def _joined(function: str, parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{function}({', '.join(parts)})"


def pointer_name(dtype: np.dtype[Any]) -> str:
    return f"pointer_{dtype.str[1:]}"
