"""Pieces: a stage's statements and a range of the index -> the program of one shard, and the parts that it reads.

The index of a shard counts from 0. An access whose place on an axis lies in a known interval reads a part of that axis,
with a halo where the place is `i+p-1`; being in the part and being in bounds of the tensor are one and the same for the
places that the shard reaches, so guards with `inside` keep their meaning. Any other access reads the whole tensor at
`b + b_start`, where the shard is told the start of its range.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

from ..language import ir
from ..language.affine import affine, not_bare
from ..language.build import add, subtract
from ..language.interval import interval
from ..language.ir import Expr, Number
from ..language.sizes import evaluate
from .states import Cut, Division


@dataclass(frozen=True)
class View:
    """A part of a tensor: of one axis, or all of it. `kept` is what the same shard made of it in an earlier stage."""

    tensor: str
    axis: int | None = None
    start: int = 0
    stop: int = 0
    kept: bool = False


@dataclass(frozen=True)
class Shard:
    """The program of one shard: the parts that it reads by name, the numbers that it is told, the sizes of indices."""

    loops: ir.Loops
    views: Mapping[str, View]
    numbers: Mapping[str, int]
    sizes: Mapping[str, int]
    shapes: Mapping[str, tuple[int, ...]]  # of what it writes


def ranges(extent: int, shards: int) -> list[tuple[int, int]]:
    """The range of each shard: as equal as they can be, the longer ones first."""
    count = max(min(shards, extent), 1)
    step, more = divmod(extent, count)
    ends = [0]
    for number in range(count):
        ends.append(ends[-1] + step + (number < more))
    return list(pairwise(ends))


def once(division: Division, items: tuple[ir.Item, ...], wanted: tuple[str, ...]) -> Shard:
    """What runs once, on whole tensors."""
    made = _Writer(division, items, 0, division.extent)
    own = made.loops(tuple(ir.map_items(items, made.of_whole)), wanted)
    views = {name: View(name) for name in own.inputs}
    sizes = {name: division.sizes.index[name] for name in own.indices}
    return Shard(own, views, {}, sizes, {name: division.sizes.shapes[name] for name in own.written})


def shard(division: Division, items: tuple[ir.Item, ...], wanted: tuple[str, ...], start: int, stop: int) -> Shard:
    """The program of the shard that has the index from `start` to `stop`."""
    writer = _Writer(division, items, start, stop)
    body = ir.map_items(items, writer.statement)
    loops = writer.loops(body, wanted)
    sizes = {n: stop - start if n == division.index else division.sizes.index[n] for n in loops.indices}
    numbers = {name: number for name, number in writer.numbers.items() if name in loops.inputs}
    return Shard(loops, writer.views, numbers, sizes, {name: writer.shape(name) for name in loops.written})


@dataclass
class _Writer:
    division: Division
    items: tuple[ir.Item, ...]
    start: int
    stop: int
    views: dict[str, View] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.index = self.division.index
        statements = ir.Loops(self.items).statements
        self.own = {s.target.tensor for s in statements}
        self.taken = {name for s in statements for n in (s.target, *s.reads) for name in (n.tensor, *ir.index_names(n))}
        self.reach: dict[tuple[str, int], tuple[int, int]] = {}
        ways: dict[str, set[int | str | None]] = {}
        for statement in statements:
            for access in statement.reads:
                if access.tensor not in self.own:
                    way = self.way(access)
                    ways.setdefault(access.tensor, set()).add(way)
                    if isinstance(way, int):
                        self.include(access, way)
        self.names: dict[tuple[str, int | str | None], str] = {}
        for tensor, found in ways.items():
            for way in sorted(found, key=str):
                word = "whole" if way is None else way if isinstance(way, str) else f"axis{way}"
                name = tensor if len(found) == 1 else ir.claim(f"{tensor}_{word}", self.taken)
                self.names[tensor, way] = name
                self.views[name] = self.view(tensor, way)

    def way(self, access: ir.Access) -> int | str | None:
        """How an access reads a tensor of another stage, or an input: as it was kept, along an axis, or whole."""
        state = self.division.states.get(access.tensor)
        if isinstance(state, Cut) and access.indices[state.axis] == ir.Index(self.index):
            return "kept"
        for axis, place in enumerate(access.indices):
            if self.index in ir.index_names(place) and self.bounds(place) is not None:
                return axis
        return None

    def bounds(self, place: Expr) -> tuple[int, int] | None:
        """The least and greatest place that this shard may reach."""
        if self.stop <= self.start:
            return None
        at = ir.exchange(place, ir.Index(self.index), ir.Binary("+", ir.Index(self.index), Number(self.start)))
        found = interval(at, {**self.division.sizes.index, self.index: self.stop - self.start})
        if found is None or any(isinstance(n, ir.Index | ir.Access) for end in found for n in ir.walk(end)):
            return None
        low, high = (evaluate(end, self.division.sizes.index.__getitem__, lambda t, a: 0, {}) for end in found)
        return low, high

    def include(self, access: ir.Access, axis: int) -> None:
        found = self.bounds(access.indices[axis])
        assert found is not None, "the way was chosen by it"
        low, high = self.reach.get((access.tensor, axis), found)
        self.reach[access.tensor, axis] = min(low, found[0]), max(high, found[1])

    def view(self, tensor: str, way: int | str | None) -> View:
        if not isinstance(way, int):
            return View(tensor, kept=way is not None)
        extent = self.division.sizes.shapes[tensor][way]
        low, high = self.reach[tensor, way]
        start = max(min(low, extent - 1), 0)  # one element at least, where there is one
        return View(tensor, way, start, min(max(high + 1, start + 1), extent))

    # -- statements

    def loops(self, body: tuple[ir.Item, ...], wanted: tuple[str, ...]) -> ir.Loops:
        made = ir.Loops(body)
        declared = [
            ir.SizeDeclaration(ir.AxisSize(name, axis), self.extent(name, axis))
            for name in made.written
            for axis in range(made.ranks[name])
            if self.is_declared(made, name, axis)
        ]
        made = replace(made, sizes=tuple(declared))
        return made if made.outputs == wanted else replace(made, returns=wanted)

    def shaped(self, name: str) -> str:
        """The tensor that has the shape of this one: the values behind an argmax= are as many as its positions."""
        return next((tensor for tensor, best in self.division.best.items() if best == name), name)

    def shape(self, name: str) -> tuple[int, ...]:
        """What this shard has of a tensor that it writes."""
        whole, state = self.division.sizes.shapes[self.shaped(name)], self.division.states.get(self.shaped(name))
        if not isinstance(state, Cut):
            return whole
        return (*whole[: state.axis], self.stop - self.start + state.more, *whole[state.axis + 1 :])

    def extent(self, name: str, axis: int) -> Expr:
        """The size of an axis, as a shard declares it."""
        state = self.division.states.get(self.shaped(name))
        if isinstance(state, Cut) and state.axis == axis:
            return add(ir.Size(self.index), Number(state.more))
        return Number(self.shape(name)[axis])

    def is_declared(self, made: ir.Loops, name: str, axis: int) -> bool:
        """Whether an axis has a size that its writers do not tell."""
        state = self.division.states.get(self.shaped(name))
        if isinstance(state, Cut) and state.axis == axis:
            return state.more > 0
        places = {ir.bare(s.target.indices[axis]) for s in made.statements if s.target.tensor == name}
        index = places.pop() if len(places) == 1 else None
        sizes = self.division.sizes
        return index is None or index == self.index or sizes.index[index] != sizes.shapes[self.shaped(name)][axis]

    def statement(self, statement: ir.Statement) -> ir.Statement:
        guard = None if statement.guard is None else self.expression(statement.guard)
        places = self.places(statement.target, self.shaped(statement.target.tensor))
        state = self.division.states.get(self.shaped(statement.target.tensor))
        if isinstance(state, Cut):
            places[state.axis] = statement.target.indices[state.axis]
        target = replace(statement.target, indices=tuple(places))
        return replace(statement, target=target, value=self.expression(statement.value), guard=guard)

    def expression(self, node: Expr) -> Expr:
        if isinstance(node, ir.Access):
            return self.access(node)
        if node == ir.Index(self.index):
            return self.told(f"{self.index}_start", self.start, node)
        parts = ir.children(node)
        return ir.rebuild(node, tuple(map(self.expression, parts))) if parts else node

    def told(self, name: str, number: int, node: Expr, sign: str = "+") -> Expr:
        """The expression moved by a number that the shard is told."""
        if not number:
            return node
        known = {value: own for own, value in self.numbers.items() if own.startswith(name)}
        own = known.get(number) or ir.claim(name, self.taken)
        self.numbers[own] = number
        return ir.Binary(sign, node, ir.Access(own))

    def access(self, access: ir.Access) -> ir.Access:
        places = self.places(access, access.tensor)
        if access.tensor in self.own:
            state = self.division.states.get(access.tensor)
            if isinstance(state, Cut):
                places[state.axis] = access.indices[state.axis]
            return replace(access, indices=tuple(places))
        way = self.way(access)
        name = self.names[access.tensor, way]
        if way == "kept":
            state = self.division.states[access.tensor]
            assert isinstance(state, Cut)
            places[state.axis] = access.indices[state.axis]
        elif isinstance(way, int):
            places[way] = self.in_part(name, access.indices[way])
        return replace(access, tensor=name, indices=tuple(places))

    def places(self, access: ir.Access, shaped: str) -> list[Expr]:
        """The places of an access in a whole tensor."""
        extents = self.division.sizes.shapes[shaped]
        return [self.whole(self.expression(p), extent) for p, extent in zip(access.indices, extents, strict=True)]

    def whole(self, place: Expr, extent: int) -> Expr:
        """An index by itself in a bracket would claim that its range is all of the axis."""
        if not isinstance(place, ir.Index):
            return place
        count = self.stop - self.start if place.name == self.index else self.division.sizes.index[place.name]
        return not_bare(place) if extent != count else place

    def of_whole(self, statement: ir.Statement) -> ir.Statement:
        """A statement that runs once. What it reads is an input of its program, and an index would claim its axes."""

        def change(node: Expr) -> Expr:
            if not isinstance(node, ir.Access) or node.tensor in self.own:
                return node
            extents = self.division.sizes.shapes[node.tensor]
            return replace(node, indices=tuple(map(self.whole, node.indices, extents)))

        return ir.map_statement(statement, change)

    def in_part(self, name: str, place: Expr) -> Expr:
        """A place counted from the start of the part: the same expression for all shards between the first and last."""
        view = self.views[name]
        form = affine(place)
        step = None if form is None else form.terms.get(self.index)
        if isinstance(step, Number) and isinstance(step.value, int):
            moved = add(place, Number(step.value * self.start - view.start))
            return self.whole(moved, view.stop - view.start)
        moved = self.told(f"{name}_start", view.start, self.expression(place), "-")
        return moved if moved != place or not isinstance(place, ir.Index) else subtract(moved, Number(0))
