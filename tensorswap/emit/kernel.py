"""Kernels: a nest -> one Numba function, which runs the strips that belong to its thread."""

from __future__ import annotations

import math
import re
import textwrap
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..language import ir
from ..language.ir import Expr, Number
from ..language.render import statement as show_statement
from ..language.sizes import Sizes
from ..language.types import Types
from ..plan.nest import Nest
from ..plan.work import statements_in
from .contraction import ContractionWriter
from .expression import Expressions
from .layout import Cut, Layout, Word
from .panels import PANEL
from .plain import PlainWriter
from .reduction import first_value
from .roles import Roles
from .scope import Scope
from .winner import BEST

NAME = re.compile(r"[a-z]+\d+")  # what a function that the kernel calls may take as an argument


@dataclass(frozen=True)
class Kernel:
    """Generated source and what it needs at a call: words of context, and memory of each thread's own.

    The context starts with the number of parts, and the bytes of scratch memory that each part has.
    """

    source: str
    words: tuple[Word, ...]
    nest: Nest
    scratch: dict[str, int]  # bytes of each tensor and panel that a part has to itself
    packed: int = 0  # elements that a kernel does nothing but pack, for the one behind it


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
        self.scope = Scope(self.write)
        self.plain = PlainWriter(self.scope, loops, offsets)
        self.stores = stores  # statements that are the first to write their target, all of it
        self.continued = continued  # tensors that hold values before the kernel starts
        self.filled: set[str] = set()
        self.begun: set[int] = set()  # statements whose targets got their first values further out
        self.steps: list[list[str]] = []  # functions that the kernel calls
        self.levels: list[tuple[str, frozenset[str]]] = []  # the nests around: index, and the tensors written within
        self.ahead: list[tuple[list[str], str]] = []  # the lines before the strips of each of them
        self.packing: list[str] = []  # the lines before the kernel

    def kernels(self) -> list[Kernel]:
        """The kernel of the nest, and one before it for panels that all threads share."""
        made = self.kernel()
        return [self.packing_kernel(), made] if self.packing else [made]

    def packing_kernel(self) -> Kernel:
        """Threads pack panels in turn."""
        used = set(NAME.findall("\n".join(self.packing)))
        words = tuple(word for word in self.layout.words if word.local in used)
        panels = [str(w.item) for w in words if str(w.item).startswith(PANEL)]
        names = ", ".join(["part", "parts", *(word.local for word in words)])
        loads = [
            f"    {word.local} = context[{position}]"
            if word.kind == "size"
            else f"    {word.local} = {pointer_name(self.write.stored(str(word.item)))}(context[{position}])"
            for position, word in enumerate(words, 2)
        ]
        lines = [
            "@njit(**OPTIONS)",
            f"def step0({names}):",
            "    # panels, packed ahead",
            *self.packing,
            "",
            "",
            "def kernel(start, size, step, context):",
            "    parts = context[0]",
            *loads,
            "    for part in range(start[0], start[0] + size[0]):",
            f"        step0({names})",
        ]
        packed = sum(math.prod(self.layout.sizes.shapes[name]) for name in panels)
        return Kernel("\n".join(lines) + "\n", words, Nest(None, (), "packs panels for all threads"), {}, packed)

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
        return Kernel(
            "\n".join([*steps, *head, *loop, *self.scope.lines]) + "\n", tuple(self.layout.words), nest, scratch
        )

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
        outer, self.scope.lines = self.scope.lines, []
        self.ahead.append((before, indent))
        self.scope.add(
            indent,
            f"{strips} = max(min({many}, {units}), 1)",
            f"for {strip} in {first.format(strips)}:",
            f"    {low} = {strip} * ({units}) // {strips} * {grain}",
            f"    {high} = ({strip} + 1) * ({units}) // {strips} * {grain}",
            f"    {high} = {high} if {strip} < {strips} - 1 else {size}",
        )
        self.levels.append((nest.index, frozenset(s.target.tensor for s in nest.statements)))
        self.scope.strips[nest.index] = (low, high)
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
            own = self.scope.strips.pop(nest.index)
            outer.append(f"{indent}{self.outlined(['    # panels, packed ahead', *_dedented(before)])}")
            self.scope.strips[nest.index] = own
        outer += self.scope.lines
        self.scope.lines = outer
        self.levels.pop()
        self.ahead.pop()
        self.layout.most.pop(nest.index, None)
        del self.scope.strips[nest.index], self.layout.least[nest.index]

    def begin_sums(self, nest: Nest, indent: str) -> None:
        """First values of what the strips of an inner nest add to, one strip after the other."""
        for statement in nest.statements:
            if statement.target.tensor not in nest.local:  # it lives in the nest around this one
                self.fill(statement, indent)
            private = self.layout.kinds.get(statement.target.tensor) == "private"
            fresh = id(statement) in self.stores and id(statement) not in self.begun and not private
            if fresh and nest.index not in ir.index_names(statement.target):
                self.plain.first_values(statement, indent)
                self.begun.add(id(statement))

    def item(self, item: Nest | ir.Item, indent: str) -> None:
        if isinstance(item, ir.Block):
            self.fill(item, indent)
            name, size = self.layout.index(item.index), self.layout.size(item.index)
            order = f"range({size} - 1, -1, -1)" if item.down else f"range({size})"
            self.scope.add(indent, f"for {name} in {order}:")
            self.scope.fixed.add(item.index)
            for inner in item.body:
                self.item(inner, indent + "    ")
            self.scope.fixed.discard(item.index)
        else:
            assert isinstance(item, ir.Statement)
            self.fill(item, indent)
            self.statement(item, indent)

    # -- first values

    def fill_private(self, name: str, indent: str) -> None:
        start = first_value(name, self.loops, self.write)
        size = self.layout.number(("elements", name), math.prod(self.layout.sizes.shapes[name]))
        if name in self.continued:
            size = f"{size} if part > 0 else 0"
        self.scope.add(indent, f"for k in range({size}):", f"    {self.layout.tensor(name)}[k] = {start}")

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
            start = first_value(name, self.loops, self.write)
            self.scope.add(indent, f"for k in range({size}):", f"    {self.layout.tensor(name)}[k] = {start}")

    # -- one statement

    def statement(self, statement: ir.Statement, indent: str) -> None:
        outer, self.scope.lines = self.scope.lines, []
        text = self.renamed(statement)
        self.statement_body(statement, "    ")
        outer.append(f"{indent}{self.outlined([f'    # {text}', *self.scope.lines])}")
        self.scope.lines = outer

    def outlined(self, lines: list[str]) -> str:
        """The call of a function for these lines: compilers take longer for one long function than for many."""
        known = {*self.layout.tensors.values(), *self.layout.variables.values()}
        known |= {self.layout.index(index) for index in self.scope.fixed}
        known |= {name for pair in self.scope.strips.values() for name in pair}
        names = [n for n in dict.fromkeys(NAME.findall("\n".join(lines[1:]))) if n in known]
        function = f"step{len(self.steps)}({', '.join(names)})"
        self.steps.append(["@njit(**OPTIONS)", f"def {function}:", *lines, "", ""])
        return function

    def statement_body(self, statement: ir.Statement, indent: str) -> None:
        private = self.layout.kinds.get(statement.target.tensor) == "private"
        store = id(statement) in self.stores and id(statement) not in self.begun and not private
        scope = self.scope
        found = Roles(statement, self.write, scope.fixed, self.levels).find()
        if found is not None:
            ranges = {i: scope.range(i, [], [])[:2] for i in statement.indices if i not in scope.fixed}
            writer = ContractionWriter(
                found, statement, self.write, scope.lines, store, self.ahead, self.packing, ranges
            )
            writer.emit(indent, lambda deeper: self.plain.emit(statement, deeper, store))
            return
        self.plain.emit(statement, indent, store)

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


def _dedented(lines: list[str]) -> list[str]:
    """The lines as they stand in a function."""
    return textwrap.indent(textwrap.dedent("\n".join(lines)), "    ").split("\n")


def pointer_name(dtype: np.dtype[Any]) -> str:
    return f"pointer_{dtype.str[1:]}"
