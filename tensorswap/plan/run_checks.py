"""Run checks: what only values can show to be right, kernels look at while they run.

An access that no proof keeps in bounds is held within its tensor, and a divisor away from zero, so that nothing can go
wrong in memory. Beside the statement stands another one, which looks for a point where that made a difference. So does
one for elements that `=` writes twice, or that a step reads before they are written. Each fills a scalar; one above
zero says that the interpreter must decide: it runs the call, and tells what is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations

from ..language import ir
from ..language.affine import affine, is_constant
from ..language.bounds import Use, unproven, uses
from ..language.build import ONE, ZERO, conjunction, conjuncts, is_integer, maximum, minimum, subtract
from ..language.ir import Expr, Number
from ..language.paths import found_in
from ..language.render import access as show_access
from ..language.render import expression as show
from ..language.sizes import Sizes, infer
from ..language.types import Types
from ..language.word import Reaches
from ..rules.complete_reads import complete_when_read
from ..rules.written_once import disjoint, injective

COUNT, CHECK = "written", "check"  # what added tensors are called, as far as the names are free


@dataclass(frozen=True)
class Checked:
    """A program with its checks; `scalars` are the outputs that must not be above zero."""

    loops: ir.Loops
    sizes: Sizes
    scalars: tuple[str, ...] = ()
    alone: tuple[ir.Statement, ...] = ()  # the checks that read inputs alone, and what they count
    within: tuple[ir.Statement, ...] = ()  # those that read what the program computes


@dataclass(frozen=True)
class _Check:
    """A statement that looks, and where it belongs: before a statement of the program, or at the end (None)."""

    statement: ir.Statement
    before: ir.Statement | None
    blocks: tuple[ir.Block, ...] = ()


class Impossible(Exception):
    """Why kernels cannot look."""


def with_checks(loops: ir.Loops, sizes: Sizes, types: Types, reaches: Reaches) -> Checked:
    """The program, safe to run on any values; raises Impossible."""
    return _Writer(loops, sizes, types, reaches).checked()


def checks_in_front(own: Checked, checked: Checked) -> Checked:
    """A derivative with the checks of its program, if they read what it has too, under names that it has not. Of those
    that read what the program computes, it has the same."""
    loops, sizes = own.loops, own.sizes
    given = set(loops.inputs) - loops.updated
    made = dict.fromkeys(s.target.tensor for s in checked.alone)
    known = {replace(s, target=ir.Access("")) for s in (*own.within, *own.alone)}
    other = [s for s in checked.within if replace(s, target=ir.Access("")) not in known]
    if other or any(a.tensor not in {*given, *made} for s in checked.alone for a in s.reads):
        raise Impossible("a derivative does not have what its program's checks read")
    taken = {*loops.names, *sizes.index, *sizes.shapes}
    names: dict[str, str] = {}
    for name in dict.fromkeys((*made, *(i for s in checked.alone for i in s.indices))):
        names[name] = ir.fresh(name, taken)
        taken.add(names[name])

    def change(node: Expr) -> Expr:
        match node:
            case ir.Index(name=name):
                return ir.Index(names[name])
            case ir.Access(tensor=tensor):
                return replace(node, tensor=names.get(tensor, tensor))
            case ir.Size() | ir.AxisSize() | ir.Static():
                return Number(checked.sizes.value(node))
        return node

    body = (*(ir.map_statement(s, change) for s in checked.alone), *loops.body)
    index = {names[name]: size for name, size in checked.sizes.index.items() if name in names}
    shapes = {names[name]: checked.sizes.shapes[name] for name in made}
    more = Sizes({**sizes.index, **index}, {**sizes.shapes, **shapes}, sizes.statics)
    scalars = tuple(names[name] for name in checked.scalars if name in names)
    return Checked(_with(loops, body, scalars), more, scalars)


def _with(loops: ir.Loops, body: tuple[ir.Item, ...], scalars: tuple[str, ...]) -> ir.Loops:
    """Another body, and scalars as outputs behind those that there are."""
    if loops.header is None:
        return replace(loops, body=body, returns=(*loops.outputs, *scalars))
    more = tuple(ir.Access(name) for name in scalars)
    return replace(loops, body=body, header=replace(loops.header, outputs=(*loops.header.outputs, *more)))


class _Writer:
    def __init__(self, loops: ir.Loops, sizes: Sizes, types: Types, reaches: Reaches) -> None:
        self.loops, self.types, self.reaches = loops, types, reaches
        self.sizes = sizes
        self.index: dict[str, int] = {}  # of what is added
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.taken = {*loops.names, *sizes.index, *sizes.shapes}
        self.open: dict[ir.Statement, set[Expr]] = {}
        self.checks: list[_Check] = []
        self.scalars: list[str] = []

    def checked(self) -> Checked:
        open_uses = unproven(self.loops, self.sizes, self.reaches.gathered)
        divisions = list(self._divisions())
        for use in open_uses:
            self.open.setdefault(use.statement, set()).add(use.access)
        for statement, _, node, _ in divisions:
            self.open.setdefault(statement, set()).add(node)
        for statement in self.open:
            if statement.asks_inside:  # it speaks of accesses as they are written
                raise Impossible(f"only a run shows what is `inside` where {show_access(statement.target)} is written")
        for use in open_uses:
            self._look(use.statement, use.blocks, self._outside(use.access), use.conditions)
        for statement, blocks, node, conditions in divisions:
            self._look(statement, blocks, ir.Compare("==", node.right, ZERO), conditions)
        self._written_once()
        self._early_reads()
        if not self.checks:
            return Checked(self.loops, self.sizes)
        sizes = Sizes({**self.sizes.index, **self.index}, {**self.sizes.shapes, **self.shapes}, self.sizes.statics)
        body = (*self._at_start(), *self._body(self.loops.body, ()), *self._at_end())
        loops = _with(self.loops, body, tuple(self.scalars))
        within = [c for c in self.checks if c.before is not None and not self._reads_inputs_alone(c)]
        alone = (*self._at_start(), *self._at_end())
        return Checked(loops, sizes, tuple(self.scalars), alone, tuple(c.statement for c in within))

    # -- what is looked at

    def _divisions(self) -> Iterator[tuple[ir.Statement, tuple[ir.Block, ...], ir.Binary, tuple[Expr, ...]]]:
        """Divisions of whole numbers that no range keeps away from zero."""
        for statement, blocks in self.loops.located:
            guard = tuple(atom for atom in conjuncts(statement.guard) if not isinstance(atom, ir.Inside))
            roots = [(atom, guard[:k]) for k, atom in enumerate(guard)]
            for root, path in (*roots, (statement.target, guard), (statement.value, guard)):
                for node, conditions in found_in(root, ir.Binary, path):
                    if node.operator not in ("//", "%") or self.types.of(node).dtype.kind == "f":
                        continue
                    reach = self.reaches.of(node.right)
                    if is_constant(node.right) and is_integer(node.right) and self.sizes.value(node.right) == 0:
                        raise Impossible(f"`{show(node)}` divides by zero")
                    if reach is None or reach[0] <= 0 <= reach[1]:
                        yield statement, blocks, node, conditions

    def _outside(self, access: ir.Access) -> Expr:
        """Whether an access leaves its tensor."""
        parts: list[Expr] = []
        for place, extent in zip(access.indices, self.sizes.shapes[access.tensor], strict=True):
            if extent == 0:
                raise Impossible(f"only a run shows whether {show_access(access)}, which is empty, is read")
            if isinstance(place, ir.Index) and self.sizes.index[place.name] <= extent:
                continue
            parts += [ir.Compare("<", place, ZERO), ir.Compare(">", place, Number(extent - 1))]
        return reduce(lambda a, b: ir.Logic("or", a, b), parts)

    def _look(
        self, statement: ir.Statement, blocks: tuple[ir.Block, ...], wrong: Expr, conditions: tuple[Expr, ...]
    ) -> None:
        wrong, guard = self._safe(statement, wrong), conjunction(self._safe(statement, c) for c in conditions)
        self._add(wrong, guard, statement, blocks)

    def _add(
        self, wrong: Expr, guard: Expr | None, before: ir.Statement | None, blocks: tuple[ir.Block, ...] = ()
    ) -> None:
        name = ir.fresh(CHECK, self.taken)
        look = ir.Statement(ir.Access(name), "max=", ir.Conditional(wrong, ONE, ZERO), guard)
        check = _Check(look, before, blocks)
        alone = self._reads_inputs_alone(check)  # then it is looked at once, before everything
        for other in self.checks:
            if replace(other.statement, target=look.target) == look and (other.before == before or alone):
                return
        self._name(name, ())
        self.scalars.append(name)
        self.checks.append(check)

    def _name(self, name: str, shape: tuple[int, ...]) -> None:
        self.taken.add(name)
        self.shapes[name] = shape

    # -- `=` writes once, and before it is read

    def _written_once(self) -> None:
        rules = infer(self.loops)
        for name in self.loops.written:
            writers = [(s, b) for s, b in self.loops.located if s.target.tensor == name and s.operator == "="]
            if name in self.loops.updated:
                for statement, blocks in writers:  # the next step, and the next statement, may update again
                    if not injective(statement, [], rules):
                        self._count(name, [(statement, blocks)], tuple(b.index for b in blocks))
            elif not all(injective(s, [b.index for b in blocks], rules) for s, blocks in writers) or not all(
                disjoint(self.loops, a, b) for (a, _), (b, _) in combinations(writers, 2)
            ):
                self._count(name, writers, ())

    def _count(
        self, name: str, writers: list[tuple[ir.Statement, tuple[ir.Block, ...]]], steps: tuple[str, ...]
    ) -> None:
        """Counts the writes to each element, of each step if several steps may write it."""
        count = ir.fresh(COUNT, self.taken)
        self._name(count, (*(self.sizes.index[i] for i in steps), *self.sizes.shapes[name]))
        leading = tuple(ir.Index(i) for i in steps)
        for statement, blocks in writers:
            guard = None if statement.guard is None else self._safe(statement, statement.guard)
            target = self._safe(statement, statement.target)
            assert isinstance(target, ir.Access)
            if statement.asks_inside:
                raise Impossible("only a run shows whether `=` writes each element once")
            points = Number(self._points(statement, blocks))
            one = ir.Statement(ir.Access(count, (*leading, *target.indices)), "+=", points, guard)
            self.checks.append(_Check(one, statement, blocks))
        places = []
        for extent in self.shapes[count]:
            index = ir.fresh("element", self.taken)
            self.taken.add(index)
            self.index[index] = extent
            places.append(ir.Index(index))
        self._add(ir.Compare(">", ir.Access(count, tuple(places)), ONE), None, None)

    def _points(self, statement: ir.Statement, blocks: tuple[ir.Block, ...]) -> int:
        """How often a point of target and guard writes: an index that stands in the value alone makes points too."""
        seen = ir.index_names(statement.target) | {b.index for b in blocks}
        seen |= frozenset() if statement.guard is None else ir.index_names(statement.guard)
        return math.prod(self.sizes.index[i] for i in statement.indices if i not in seen)

    def _early_reads(self) -> None:
        """A step may read what earlier steps wrote: at a place that says which step that was, it can be looked at."""
        assigned = {s.target.tensor for s, blocks in self.loops.located if s.operator == "=" and blocks}
        for use in uses(self.loops):
            access, reader = use.access, (use.statement, use.blocks)
            if access is use.statement.target or access.tensor not in assigned - self.loops.updated:
                continue
            if not complete_when_read(self.loops, reader, access):
                for writer, blocks in self.loops.located:
                    if writer.target.tensor == access.tensor and any(b in use.blocks for b in blocks):
                        self._before(writer, blocks, use)

    def _before(self, writer: ir.Statement, blocks: tuple[ir.Block, ...], use: Use) -> None:
        if len(use.blocks) != 1 or blocks != use.blocks or (use.statement.asks_inside and not use.inside):
            raise Impossible(f"only a run shows whether {show_access(use.access)} is complete when it is read")
        (block,) = blocks
        for written, read in zip(writer.target.indices, use.access.indices, strict=True):
            form = affine(subtract(written, ir.Index(block.index)))
            if form is not None and not form.terms and is_constant(form.constant):
                step = subtract(read, form.constant)  # in which the element is written
                order = self.loops.statements
                first = order.index(writer) < order.index(use.statement)
                late = (">" if first else ">=") if not block.down else ("<" if first else "<=")
                inside = (ir.Inside(),) if use.inside else ()
                self._look(
                    use.statement, blocks, ir.Compare(late, step, ir.Index(block.index)), (*inside, *use.conditions)
                )
                return
        raise Impossible(f"only a run shows whether {show_access(use.access)} is complete when it is read")

    # -- the program, and where checks stand in it

    def _safe(self, statement: ir.Statement, node: Expr) -> Expr:
        """An expression of a statement that reads nothing outside, and divides by nothing that is zero."""
        parts = ir.children(node)
        changed = tuple(self._safe(statement, part) for part in parts)
        new = node if all(a is b for a, b in zip(parts, changed, strict=True)) else ir.rebuild(node, changed)
        if node not in self.open.get(statement, ()):
            return new
        if isinstance(new, ir.Binary):
            return replace(new, right=ir.Conditional(ir.Compare("==", new.right, ZERO), ONE, new.right))
        assert isinstance(new, ir.Access)
        extents = self.sizes.shapes[new.tensor]
        return replace(new, indices=tuple(map(self._within, new.indices, extents)))

    def _within(self, place: Expr, extent: int) -> Expr:
        if isinstance(place, ir.Index) and self.sizes.index[place.name] <= extent:
            return place
        return minimum(maximum(place, ZERO), Number(extent - 1))

    def _reads_inputs_alone(self, check: _Check) -> bool:
        given = set(self.loops.inputs) - self.loops.updated
        return all(access.tensor in given for access in check.statement.reads)

    def _at_start(self) -> Iterator[ir.Statement]:
        return (c.statement for c in self.checks if c.before is not None and self._reads_inputs_alone(c))

    def _at_end(self) -> Iterator[ir.Statement]:
        return (c.statement for c in self.checks if c.before is None)

    def _body(self, body: tuple[ir.Item, ...], blocks: tuple[ir.Block, ...]) -> Iterator[ir.Item]:
        for item in body:
            if isinstance(item, ir.Block):
                yield replace(item, body=tuple(self._body(item.body, (*blocks, item))))
                continue
            assert isinstance(item, ir.Statement), "calls are inlined before a program runs"
            for check in self.checks:
                if check.before == item and check.blocks == blocks and not self._reads_inputs_alone(check):
                    yield check.statement
            target, bounds = self._target(item)
            guard = conjunction([*(self._safe(item, atom) for atom in conjuncts(item.guard)), *bounds])
            yield replace(item, target=target, value=self._safe(item, item.value), guard=guard)

    def _target(self, statement: ir.Statement) -> tuple[ir.Access, list[Expr]]:
        """The target, held within its tensor. An index that stands bare in it stays so, and has a bound in the guard:
        `argmax=` chooses among the points that differ in the other indices."""
        target = self._safe(statement, statement.target)
        assert isinstance(target, ir.Access)
        places = list(target.indices)
        bounds: list[Expr] = []
        for axis, (place, extent) in enumerate(
            zip(statement.target.indices, self.sizes.shapes[target.tensor], strict=True)
        ):
            if isinstance(place, ir.Index) and places[axis] != place:
                places[axis] = place
                bounds.append(ir.Compare("<", place, Number(extent)))
        return replace(target, indices=tuple(places)), bounds
