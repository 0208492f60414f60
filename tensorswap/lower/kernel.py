"""Kernels: a nest -> kernel IR for one part of it, which runs the strips that belong to its thread."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..kernel import ir as kernel
from ..kernel.ir import (
    ONE,
    PART,
    PARTS,
    WORD,
    ZERO,
    Choice,
    For,
    Role,
    Statement,
    Step,
    Value,
    Variable,
    Word,
    compare,
    extreme,
    least,
    most,
    word,
)
from ..language import ir
from ..language.ir import Expr, Number
from ..language.render import statement as show_statement
from ..plan.at_rest import at_rest
from ..plan.first_writes import Planned
from ..plan.nest import GRAIN, Alive, Nest
from ..plan.work import statements_in
from . import short_blocks
from .contraction import ContractionWriter
from .expression import Expressions
from .flatten import flattened
from .held import in_place
from .layout import CopiesOf, Cut, Layout, PanelsOf, Tensor
from .plain import PlainWriter
from .reduction import accumulated, combined, first_value
from .register_blocks import Chunks, at_once, chunks_of, held_by, parted
from .roles import Roles
from .rows import Rows, in_rows
from .scope import Scope
from .together import Shared, grouped, write_together

UNEVEN = 4  # strips for each thread, where they are of unequal work
SUMMED = 32768  # values that are added up in one go: longer sums are sums of such sums, which round less


Span = tuple[int, int]  # the first moment and the last


@dataclass(frozen=True)
class Lowered:
    """A kernel, and what it needs at a call: memory of each part's own."""

    kernel: kernel.Kernel
    nest: Nest
    scratch: dict[Tensor, tuple[int, Span]]  # bytes of what a part has to itself, and the moments when they are needed
    layout: Layout
    moved: int | None = None  # elements, of a kernel that does nothing but move them for another one

    def bytes_of(self, tensor: Tensor) -> int:
        return self.layout.elements(tensor) * self.layout.stored(tensor).itemsize


class KernelWriter:
    """`continued` are tensors that hold values before the kernel starts."""

    def __init__(self, loops: ir.Loops, nest: Nest, layout: Layout, continued: frozenset[str]) -> None:
        self.loops = loops
        self.nest = nest
        self.layout = layout
        if nest.block is not None:
            layout.words.append(Word(layout.index(nest.block.index), Role.STEP, nest.block.index))
        self.write = Expressions(self.layout)
        self.scope = Scope(self.write)
        self.plain = PlainWriter(self.scope, loops)
        self.continued = continued
        self.filled: set[str] = set()
        self.begun: set[str] = set()  # tensors that got their first values further out
        self.steps = 0
        self.levels: list[tuple[str, frozenset[str]]] = []  # the nests around: index, and the tensors written within
        self.ahead: list[list[Statement]] = []  # what comes before the strips of each of them
        self.packing: list[Statement] = []  # what comes before the kernel
        self.alive = Alive()

    def kernels(self) -> list[Lowered]:
        """The kernel of the nest, and one before it for panels that all threads share."""
        made = self.kernel()
        return [self.packing_kernel(), made] if self.packing else [made]

    def packing_kernel(self) -> Lowered:
        """Threads pack panels in turn."""
        variables, memories = kernel.free(tuple(self.packing))
        used = {*(variable.name for variable in variables), *(memory.name for memory in memories)}
        words = tuple(w for w in self.layout.words if w.place.name in used)
        body = (Step(0, "panels, packed ahead", tuple(self.packing)),)
        elements = sum(self.layout.elements(w.item) for w in words if isinstance(w.item, PanelsOf))
        return Lowered(
            kernel.Kernel(words, body), Nest(None, (), "packs panels for all threads"), {}, self.layout, elements
        )

    def kernel(self) -> Lowered:
        nest, layout = self.nest, self.layout
        for name in nest.private:
            layout.roles[name] = Role.COPY
        for name in nest.private:
            self.fill_private(name)
        if nest.block is not None:
            self.scope.fixed.add(nest.block.index)
        if nest.index is None:
            for item in nest.items:
                self.item(item)
        else:
            self.strips_of(nest, 0)
        local = [w.item for w in layout.words if w.role is Role.LOCAL]
        spans: Mapping[Any, Span] = self.alive.spans
        always = (0, self.alive.moment)
        scratch = {i: (layout.elements(i) * layout.stored(i).itemsize, spans.get(i, always)) for i in local}
        return Lowered(kernel.Kernel(self.words(), tuple(self.scope.body)), nest, scratch, layout)

    def words(self) -> tuple[Word, ...]:
        """The context: of a copy, the size in bytes and the tensor that the first part adds to as well."""
        layout = self.layout
        for position, found in enumerate(layout.words):
            if found.role is Role.COPY:
                name = str(found.item)
                size = layout.number(("bytes", name), layout.elements(name) * layout.stored(name).itemsize)
                own = Variable(f"own{position}", WORD)
                layout.words.append(Word(own, Role.OWN, name))
                layout.words[position] = replace(found, bytes=size, own=own)
        return tuple(layout.words)

    # -- nests

    def strips_of(self, nest: Nest, level: int) -> None:
        """The loop over the strips of a nest, and its items."""
        assert nest.index is not None
        scope, index = self.scope, nest.index
        before: list[Statement] = []
        self.ahead.append(before)
        with scope.collected() as body, self.strip_loop(nest, level) as (low, high):
            self.levels.append((index, frozenset(s.target.tensor for s in nest.statements)))
            with self.cut_to_strip(nest, low, high):
                self.items(nest, level)
            self.levels.pop()
        self.ahead.pop()
        if before:
            scope.add(self.outlined("panels, packed ahead", before))
        scope.add(*body)

    def items(self, nest: Nest, level: int) -> None:
        for found in in_rows(nest.items, self.scope):
            if isinstance(found, Rows):
                self.rows(found)
            else:
                self.others(found, level)

    def others(self, items: Sequence[Nest | ir.Item], level: int) -> None:
        for item in grouped(items, self.scope):
            if isinstance(item, Nest):
                self.inner_nest(item, level + 1)
            elif isinstance(item, Shared):
                for statement in item.statements:
                    self.fill(statement)
                self.together(item)
                self.alive.passes(item.statements, self.alive.moment)
            else:
                self.item(item)

    def inner_nest(self, nest: Nest, level: int) -> None:
        first = self.alive.moment
        self.begin_sums(nest)
        filled = set(self.filled)
        self.strips_of(nest, level)
        self.filled = filled | (self.filled - set(nest.local))
        self.alive.passes(nest.statements, first, nest.local)

    @contextmanager
    def strip_loop(self, nest: Nest, level: int) -> Iterator[tuple[Variable, Variable]]:
        """Gives the bounds of a strip."""
        assert nest.index is not None
        scope, grain = self.scope, nest.grain
        low, high, strip, strips = (Variable(f"{name}{level}", WORD) for name in ("low", "high", "strip", "strips"))
        size = self.layout.size(nest.index)
        units = size // grain
        scope.set(strips.name, most(least(self.how_many(nest, level, units), units), 1))
        first, step = (PART, PARTS) if level == 0 else (ZERO, ONE)
        with scope.counted(strip, first, strips, step):
            scope.set(low.name, self.begin_of(strip, strips, nest, units) * grain)
            end = scope.set(high.name, self.begin_of(strip + 1, strips, nest, units) * grain)
            scope.set(high.name, Choice(compare("<", strip, strips - 1), end, size))
            yield low, high

    def begin_of(self, strip: Value, strips: Value, nest: Nest, units: Value) -> Value:
        """Where a strip begins, as a multiple of the grain. The last one has the rest, too: where that may be much, and
        no memory is cut to strips, it has fewer multiples, but one at least."""
        if nest.strip or nest.grain <= GRAIN:
            return strip * units // strips
        size = self.layout.size(nest.index or "")
        nearest = (strip * size * 2 + strips * nest.grain) // (strips * (2 * nest.grain))
        return least(nearest, units - strips + strip)

    def how_many(self, nest: Nest, level: int, units: Value) -> Value:
        """The strips of a nest; the outermost have a multiple of the parts, so that all have the same number."""
        parts = PARTS if level == 0 else ONE
        share = nest.strip // nest.grain
        if nest.strip:
            many = (units + (share - 1)) // share
        elif any(nest.index in ir.index_names(s.guard) for s in nest.statements if s.guard):
            many = parts * UNEVEN
        elif nest.private:
            many = most(parts, units // (SUMMED // nest.grain))
        else:
            many = parts
        return (most(many, 1) + PARTS - 1) // PARTS * PARTS if level == 0 else many

    @contextmanager
    def cut_to_strip(self, nest: Nest, low: Variable, high: Variable) -> Iterator[None]:
        """Within it, loops over the index run over a strip, and tensors of the nest's own have but that."""
        assert nest.index is not None
        layout, index = self.layout, nest.index
        longest = nest.most(layout.count(index), layout.is_constant(index))
        self.scope.strips[index] = (low, high)
        layout.least[index] = nest.grain
        if nest.vectors:
            self.scope.vectors[index] = nest.grain
        if nest.strip:
            layout.most[index] = longest
            for name in nest.local:
                layout.roles[name] = Role.LOCAL
                layout.cuts.setdefault(name, {})[nest.axes[name]] = Cut(low, min(longest, layout.count(index)))
                if nest.vectors:
                    layout.lines[name] = nest.axes[name]
        yield
        layout.most.pop(index, None)
        self.scope.vectors.pop(index, None)
        del self.scope.strips[index], layout.least[index]

    def begin_sums(self, nest: Nest) -> None:
        """First values of what the strips of an inner nest add to, one strip after the other."""
        for statement in nest.statements:
            assert isinstance(statement, Planned)
            if statement.target.tensor not in nest.local:  # it lives in the nest around this one
                self.fill(statement)
            if self.stores(statement) and nest.index not in ir.index_names(statement.target):
                self.plain.first_values(statement)
                self.begun.add(statement.target.tensor)

    def stores(self, statement: Planned) -> bool:
        """Whether a statement stores where it would add."""
        name = statement.target.tensor
        return statement.first and name not in self.begun and self.layout.roles.get(name) is not Role.COPY

    def item(self, item: Nest | ir.Item) -> None:
        first = self.alive.moment
        if isinstance(item, ir.Block):
            self.fill(item)
            chunks = chunks_of(item, self.scope)
            if chunks is None:
                self.block(item)
            else:
                self.in_registers(item, chunks)
        else:
            assert isinstance(item, Planned)
            self.fill(item)
            self.statement(item)
        self.alive.passes(statements_in(item), first)

    def block(self, block: ir.Block) -> None:
        """One step after the other."""
        loop = self.step_by_step(block)
        whole = short_blocks.as_one(loop)
        if whole is None:
            self.scope.add(replace(loop, often=True))
            return
        tensor, held = self.layout.tensor, short_blocks.held_in(block, self.layout)
        with in_place(held, self.layout):
            whole = short_blocks.as_one(self.step_by_step(block))
        assert whole is not None, "a block is as short as it was before"
        before = [part for one in held for part in (one.declared, one.loaded(tensor(one.tensor)))]
        after = [one.stored(tensor(one.tensor)) for one in held]
        self.scope.add(self.outlined(short_blocks.comment_of(loop), [*before, whole, *after]))

    def step_by_step(self, block: ir.Block) -> For:
        with self.scope.collected() as written, self.steps_of(block):
            for inner in grouped(block.body, self.scope):
                if isinstance(inner, Shared):
                    self.together(inner)
                else:
                    self.item(inner)
            rest = at_rest(block, self.layout.sizes, self.scope.fixed - {block.index})
            if rest is not None:
                with self.scope.when([self.write.truth(rest)]):
                    self.scope.add(kernel.Leave())
        (loop,) = written
        assert isinstance(loop, kernel.For)
        return loop

    @contextmanager
    def steps_of(self, block: ir.Block, first: Value = ZERO, past: Value | None = None) -> Iterator[None]:
        """The loop over the steps of a block, from the first up to the one that it does not reach, or down."""
        past = self.layout.size(block.index) if past is None else past
        bounds = (past - 1, first - 1, word(-1)) if block.down else (first, past, ONE)
        with self.scope.counted(self.layout.index(block.index), *bounds):
            self.scope.fixed.add(block.index)
            yield
            self.scope.fixed.discard(block.index)

    def in_registers(self, block: ir.Block, chunks: Chunks) -> None:
        """All steps for a few vectors of points, and then for the next; what is left goes one step after the other."""
        scope, index = self.scope, chunks.index
        low, high = scope.strips[index]
        chunk, points = Variable("chunk", WORD), word(chunks.points)
        inner, size = parted(block, chunks, scope), self.layout.size(block.index)
        with scope.collected() as body:
            first: Value = ZERO
            past: Value = size
            parts: list[tuple[Value, Value, Sequence[Planned]]] = []
            if inner.lows:
                first = scope.set("first", extreme("min", [extreme("max", [ZERO, *inner.lows]), size]))
                parts.append((ZERO, first, chunks.statements))
            if inner.highs:
                past = scope.set("past", extreme("max", [first, extreme("min", [size, *inner.highs])]))
            parts.append((first, past, inner.statements))
            if inner.highs:
                parts.append((past, size, chunks.statements))
            held = held_by(chunks, self.layout, chunk)
            for one in held:
                scope.add(one.declared)
            with scope.counted(chunk, low, high - (points - 1), points):
                scope.strips[index] = chunk, chunk + points
                for one in held:
                    scope.add(one.loaded(self.layout.tensor(one.tensor)))
                with in_place(held, self.layout):
                    for begin, end, statements in reversed(parts) if block.down else parts:
                        self.steps_at_once(block, begin, end, statements, chunks)
                for one in held:
                    scope.add(one.stored(self.layout.tensor(one.tensor)))
        comment = "; ".join(map(self.renamed, chunks.statements))
        scope.add(self.outlined(comment, body))
        scope.strips[index] = low + most(high - low, ZERO) // points * points, high
        with scope.when([compare("<", scope.strips[index][0], high)]):
            self.block(block)
        scope.strips[index] = low, high

    def steps_at_once(
        self, block: ir.Block, begin: Value, end: Value, statements: Sequence[Planned], chunks: Chunks
    ) -> None:
        """Steps of a block for the points of a chunk."""
        with self.scope.collected() as written, self.steps_of(block, begin, end):
            for statement in statements:
                stores = self.stores(statement)
                assert not stores or chunks.index in ir.index_names(statement.target), (
                    "a sum of strips has begun before"
                )
                write_together(Shared([chunks.index], [statement]), self.scope, self.plain.assign_one, [stores])
        (loop,) = written
        assert isinstance(loop, kernel.For)
        body = at_once(loop.body, chunks, self.layout.index(chunks.index))
        rare = statements is chunks.statements  # those that ask: LLVM would take long to write several of them out
        self.scope.add(replace(loop, body=body, plain=not rare))

    def together(self, shared: Shared) -> None:
        """Statements in one loop."""
        comment = "; ".join(self.renamed(statement) for statement in shared.statements)
        stores = [self.stores(statement) for statement in shared.statements]
        with self.scope.collected() as body:
            write_together(shared, self.scope, self.plain.assign_one, stores)
        self.scope.add(self.outlined(comment, body))

    def rows(self, found: Rows) -> None:
        """Statements that run along one row after the other."""
        scope = self.scope
        for statement in found.statements:
            self.fill(statement)
        comment = "; ".join(self.renamed(statement) for statement in found.statements)
        with scope.collected() as body, ExitStack() as around:
            for depth, index in enumerate(found.outer):
                around.enter_context(scope.loop(index, *scope.range(index, [], found.outer[:depth])[:2]))
            scope.fixed.update(found.outer)
            for part in grouped(found.statements, scope):
                if isinstance(part, Shared):
                    write_together(part, scope, self.plain.assign_one, [self.stores(s) for s in part.statements])
                else:
                    assert isinstance(part, Planned)
                    self.plain.emit(part, self.stores(part))
            scope.fixed.difference_update(found.outer)
        scope.add(self.outlined(comment, body))
        self.alive.passes(found.statements, self.alive.moment)

    # -- first values

    def fill_private(self, name: str) -> None:
        elements: Value = self.layout.number(("elements", name), self.layout.elements(name))
        if name in self.continued:
            elements = Choice(compare(">", PART, ZERO), elements, ZERO)
        self.fill_all(name, elements)

    def fill_all(self, name: str, elements: Value) -> None:
        k = Variable("k", WORD)
        with self.scope.counted(k, ZERO, elements):
            self.scope.store(self.layout.tensor(name), k, first_value(name, self.loops, self.layout))

    def fill(self, item: ir.Item) -> None:
        """Local tensors hold their identity before the first statement that does not write all of them."""
        for statement in statements_in(item):
            name = statement.target.tensor
            assert isinstance(statement, Planned)
            if name in self.filled or self.layout.roles.get(name) is not Role.LOCAL:
                continue
            self.filled.add(name)
            if not statement.first:
                self.fill_all(name, self.layout.number(("kept", name), self.layout.elements(name)))

    # -- one statement

    def statement(self, statement: Planned) -> None:
        comment = self.renamed(statement)
        with self.scope.collected() as body:
            self.statement_body(statement)
        self.scope.add(self.outlined(comment, body))

    def outlined(self, comment: str, body: list[Statement]) -> Step:
        """A function of its own: compilers take longer for one long function than for many."""
        self.steps += 1
        return Step(self.steps - 1, comment, tuple(body))

    def statement_body(self, statement: Planned) -> None:
        scope, store = self.scope, self.stores(statement)
        joined = flattened(statement, self.layout, {*scope.fixed, *scope.strips})
        found = Roles(joined, self.write, scope.fixed, self.levels).find()
        if found is None:
            self.plain.emit(statement, store)
            return
        writer = ContractionWriter(found, joined, scope, store, self.steps, self.ahead, self.packing)
        writer.emit(lambda: self.plain.emit(statement, store))

    def renamed(self, statement: ir.Statement) -> str:
        """The statement in the kernel's own names."""

        def change(node: Expr) -> Expr:
            match node:
                case ir.Index(name=name):
                    return ir.Index(self.layout.index(name).name)
                case ir.Access(tensor=tensor):
                    return replace(node, tensor=self.layout.tensor(tensor).name)
                case ir.Size() | ir.AxisSize() | ir.Static():
                    return Number(self.layout.sizes.value(node)) if isinstance(node, ir.Static) else ir.Static("n")
            return node

        return show_statement(ir.map_statement(statement, change))


def joining_kernel(name: str, operator: str, layout: Layout) -> Lowered:
    """Adds the copies of a tensor to it, in the order of the threads."""
    elements = layout.elements(name)
    target = layout.tensor(name)
    copies = layout.keep(CopiesOf(name), elements, layout.stored(name), Role.TENSOR)
    size = layout.number(("elements", name), elements)
    count, copy, k = (Variable(word, WORD) for word in ("copies", "copy", "k"))
    computed = kernel.type_of(accumulated(name, layout))
    scope = Scope(Expressions(layout))
    with scope.counted(copy, ZERO, count), scope.counted(k, PART * size // PARTS, (PART + 1) * size // PARTS):
        old, new = (
            kernel.cast(kernel.Load(target, k), computed),
            kernel.cast(kernel.Load(copies, copy * size + k), computed),
        )
        scope.store(target, k, kernel.cast(combined(ir.reduction(operator), old, new), target.type))
    words = (*layout.words, Word(count, Role.COPIES, name))
    body = (Step(0, "what other threads have found", tuple(scope.body)),)
    whole = not layout.sizes.shapes[name]
    why = "one thread adds them up" if whole else "each thread adds up elements of its own"
    nest = Nest(None if whole else f"{name}:0", (), why, joins=name)
    return Lowered(kernel.Kernel(words, body), nest, {}, layout, elements)


def filling_kernel(dtype: np.dtype[Any], value: float) -> kernel.Kernel:
    """Gives all elements of a tensor their first value."""
    memory = kernel.Memory("a0", kernel.type_in_memory(dtype))
    count, k = Variable("n0", WORD), Variable("k", WORD)
    body = kernel.For(k, ZERO, count, ONE, (kernel.Store(memory, k, kernel.number(value, memory.type)),))
    words = (Word(memory, Role.TENSOR, ""), Word(count, Role.SIZE, 0))
    return kernel.Kernel(words, (Step(0, "first values", (body,)),))
