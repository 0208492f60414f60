"""Recurrences: a bound program with a block -> what comes before its steps, the steps in stretches, what comes after.

    H[0,i] = h[i]                          before:   H_in[i] = h[i]
    for t:                                 stretch:  H[0,i] = H_in[i]
        H[t+1,i] = f(H[t,i], X[t,i])                 for t:  H[t+1,i] = f(H[t,i], X[t,i])
    loss += g(H[t+1,i])                              loss_part += g(H[t+1,i])
                                                     H_out[i] = H[size(t),i]
    Y[i] = H[size(t),i]                    after:    Y[i] = H_out[i];  loss += loss_part

A stretch has the parts of inputs that its steps read, and hands the state to the next one. What is a sum over the steps
is added up over stretches. Tensors that are wanted whole are put together of what the stretches make.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..cluster.cutting import NotCut, in_numbers
from ..cluster.shard_program import Shard, once, shard
from ..cluster.states import Cut, Division
from ..language import ir
from ..language.affine import affine, not_bare
from ..language.bound import Bound
from ..language.build import add
from ..language.ir import Expr, Number
from ..lazy import cached_property

FAR = 8  # steps that a recurrence may look back


@dataclass(frozen=True)
class Along:
    """A tensor that has the steps along an axis: step t writes place t + `written`; later steps read `back` others."""

    axis: int
    written: int
    back: int
    operator: str = "="  # with which it is written
    entering: tuple[str, ...] = ()  # the tensors that bring what earlier stretches made, one for each place
    leaving: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recurrence:
    """A program in three parts, the second of which runs for one stretch of steps after the other."""

    division: Division
    down: bool
    before: tuple[ir.Item, ...]
    steps: tuple[ir.Item, ...]
    after: tuple[ir.Item, ...]
    along: Mapping[str, Along]
    sums: Mapping[str, str]  # sums over the steps, each with its name in a stretch
    whole: Mapping[str, str]  # tensors that are wanted whole, each with its name in a stretch
    outputs: tuple[str, ...]

    @property
    def index(self) -> str:
        return self.division.index

    @cached_property
    def state(self) -> dict[str, str]:
        """What a stretch takes from the one before it, each with the name under which that one leaves it."""
        return {
            name: other
            for tensor in self.along.values()
            for name, other in zip(tensor.entering, tensor.leaving, strict=True)
        }

    @cached_property
    def owners(self) -> dict[str, str]:
        """The tensor that each part of the state is of, and of what stretches give."""
        parts = {name: tensor for tensor, name in (*self.sums.items(), *self.whole.items())}
        slots = {name: tensor for tensor, t in self.along.items() for name in (tensor, *t.entering, *t.leaving)}
        return {**parts, **slots}

    @cached_property
    def made_before(self) -> tuple[str, ...]:
        """What others need of what comes before the steps."""
        rest = ir.Loops((*self.steps, *self.after)).statements
        needed = {access.tensor for statement in rest for access in statement.reads} | {*self.state, *self.outputs}
        return tuple(name for name in ir.Loops(self.before).written if name in needed)

    @cached_property
    def linear(self) -> bool:
        """Whether stretches read parts of inputs that lie as far from each other as the stretches do."""
        places = [p for s in ir.Loops(self.steps).statements for access in s.reads for p in access.indices]
        places = [p for p in places if not any(isinstance(n, ir.Access) for n in ir.walk(p))]  # others read the whole
        forms = [affine(place) for place in places if self.index in ir.index_names(place)]
        return all(form is not None and isinstance(form.terms.get(self.index), Number) for form in forms)

    def first_part(self) -> Shard:
        return once(self.division, self.before, self.made_before)

    def stretch(self, start: int, stop: int) -> Shard:
        """The program of the steps from `start` to before `stop`."""
        wanted = (*self.state.values(), *self.sums.values(), *self.whole.values())
        return shard(self.division, self.steps, wanted, start, stop)

    def last_part(self) -> Shard:
        return once(self.division, self.after, tuple(n for n in self.outputs if n in ir.Loops(self.after).written))


def recurrences(bound: Bound) -> list[str]:
    """The indices of blocks that stand by themselves, those of most steps first."""
    found = dict.fromkeys(item.index for item in bound.loops.body if isinstance(item, ir.Block))
    return sorted(found, key=lambda name: -bound.sizes.index[name])


def divide_steps(bound: Bound, index: str, wanted: Sequence[str]) -> Recurrence:
    """The parts of a program with `for index:` that compute the tensors wanted; raises NotCut if it has none."""
    if bound.loops.updated:
        raise NotCut("it updates its inputs")
    if not bound.sizes.index[index]:
        raise NotCut("it has no steps")
    body = _as_steps(in_numbers(bound.loops.body, bound.sizes), index, bound.sizes.index[index])
    parts = _Sorted(index, tuple(_leading_to(body, {*wanted} | _behind(body, {*wanted}))))
    return _Writer(bound, index, parts, tuple(wanted)).recurrence()


def _as_steps(body: tuple[ir.Item, ...], index: str, count: int) -> tuple[ir.Item, ...]:
    """A statement for the place of one step, as a step: `H[0,i] = h[i]` where steps write H[t,i] if t > 0 is
    `H[t,i] = h[i] if t == 0`."""
    written = {
        (s.target.tensor, axis): offset
        for item in body
        if isinstance(item, ir.Block) and item.index == index
        for s in _statements(item)
        for axis, place in enumerate(s.target.indices)
        if (offset := _beyond(place, index)) is not None
    }
    made: list[ir.Item] = []
    for item in body:
        if isinstance(item, ir.Statement) and index not in item.indices:
            for axis, place in enumerate(item.target.indices):
                offset, number = written.get((item.target.tensor, axis)), _number(place)
                if offset is not None and number is not None and 0 <= number - offset < count:
                    step = ir.Compare("==", ir.Index(index), Number(number - offset))
                    guard = step if item.guard is None else ir.Logic("and", step, item.guard)
                    places = _with(item.target.indices, axis, add(ir.Index(index), Number(offset)))
                    item = replace(item, target=replace(item.target, indices=places), guard=guard)
                    break
        made.append(item)
    return tuple(made)


def _leading_to(body: tuple[ir.Item, ...], needed: set[str]) -> Iterator[ir.Item]:
    """The statements that write tensors which are needed."""
    for item in body:
        if isinstance(item, ir.Block):
            inner = tuple(_leading_to(item.body, needed))
            if inner:
                yield replace(item, body=inner)
        elif isinstance(item, ir.Statement) and item.target.tensor in needed:
            yield item


class _Sorted:
    """The items of a program: those before the steps, those of the steps, those after them."""

    def __init__(self, index: str, body: tuple[ir.Item, ...]) -> None:
        self.index = index
        self.before: list[ir.Item] = []
        self.steps: list[ir.Item] = []
        self.after: list[ir.Item] = []
        directions = {item.down for item in body if isinstance(item, ir.Block) and item.index == index}
        if len(directions) != 1:
            raise NotCut("its blocks run in both directions" if directions else f"it has no block `for {index}:`")
        (self.down,) = directions
        early = self.early(body)
        stepped: set[str] = set()  # tensors with an axis of steps
        late: set[str] = set()  # sums over the steps, and all that comes behind them
        sums = self.sums(body)
        for item in body:
            reads, targets = _reads(item), _targets(item)
            ends = {a.tensor for a in _accesses(item) if self.index not in ir.index_names(a)}
            if reads & late or ends & stepped:
                self.after.append(item)
                late |= targets
            elif item in early or not self.has_steps(item):
                behind = targets & sums and item not in early  # what is added to a sum over the steps comes with it
                (self.after if behind else self.before).append(item)
                late |= targets if behind else set()
            else:
                self.steps.append(item)
                for statement in _statements(item):
                    by_steps = self.index in ir.index_names(statement.target)
                    (stepped if by_steps else late).add(statement.target.tensor)
        if not any(isinstance(item, ir.Block) and item.index == index for item in self.steps):
            raise NotCut(f"the steps of `for {index}:` need a sum over all of them")

    def has_steps(self, item: ir.Item) -> bool:
        if isinstance(item, ir.Block) and item.index == self.index:
            return True
        return any(self.index in s.indices for s in _statements(item))

    def sums(self, body: tuple[ir.Item, ...]) -> set[str]:
        """Tensors that steps write, all of them into the same places."""
        steps = [s for item in body if self.has_steps(item) for s in _statements(item)]
        return {s.target.tensor for s in steps if self.index not in ir.index_names(s.target)}

    def early(self, body: tuple[ir.Item, ...]) -> list[ir.Item]:
        """Items with the index of steps that have to be complete before the first step: sums over inputs, say."""
        depending: set[str] = set()
        for item in body:
            if (isinstance(item, ir.Block) and item.index == self.index) or _reads(item) & depending:
                depending |= _targets(item)
        sums = self.sums(body) & _behind(body, depending) - depending
        needed = sums | _behind(body, sums)
        return [item for item in body if _targets(item) & needed]


class _Writer:
    """Writes the three parts."""

    def __init__(self, bound: Bound, index: str, parts: _Sorted, wanted: tuple[str, ...]) -> None:
        self.bound, self.index, self.parts, self.down = bound, index, parts, parts.down
        self.wanted = wanted
        self.shapes = dict(bound.sizes.shapes)
        self.extents = dict(bound.sizes.index)
        self.taken = {*bound.loops.names, *bound.loops.indices}
        self.count = bound.sizes.index[index]
        self.sums: dict[str, str] = {}
        self.whole: dict[str, str] = {}
        self.along: dict[str, Along] = {}
        for name in dict.fromkeys(s.target.tensor for item in parts.steps for s in _statements(item)):
            self.classify(name)

    # -- what becomes of each tensor that the steps write

    def classify(self, name: str) -> None:
        statements = [s for item in self.parts.steps for s in _statements(item)]
        writers = [s for s in statements if s.target.tensor == name]
        reads = [(s, a) for s in statements for a in s.reads if a.tensor == name]
        if not any(self.index in ir.index_names(s.target) for s in writers):
            if {s.operator for s in writers} - ir.SUM:
                raise NotCut(f"{name} is reduced over the steps, and not by a sum", writers[0].span)
            if reads:
                raise NotCut(f"a step reads {name}, which all steps add to", reads[0][0].span)
            self.sums[name] = ir.claim(f"{name}_part", self.taken)
            return
        axis, written = self.written_at(name, writers)
        offsets = [self.offset(s, a, axis) for s, a in reads]
        back = max((written - o if not self.down else o - written for o in offsets), default=0)
        ahead = [s for (s, _), o in zip(reads, offsets, strict=True) if (o < written if self.down else o > written)]
        if ahead:
            raise NotCut(f"a step reads {name} at places that later steps write", ahead[0].span)
        if back > FAR:
            raise NotCut(f"a step reads {name} {back} steps back", reads[0][0].span)
        operator = ir.reduction(writers[0].operator)
        if back and operator.startswith("arg"):
            raise NotCut(f"a step reads the positions in {name} that earlier steps chose", writers[0].span)
        extent = self.shapes[name][axis]
        used = [*((s, written) for s in writers), *((s, o) for (s, _), o in zip(reads, offsets, strict=True))]
        for statement, place in used:
            out = place < 0 or place + self.count > extent
            if out and any(isinstance(node, ir.Inside) for node in statement.nodes):
                raise NotCut(f"`inside` asks whether places of {name} are in bounds", statement.span)
        words = ("",) if back == 1 else tuple(map(str, range(back)))
        entering = tuple(ir.claim(f"{name}_in{word}", self.taken) for word in words)
        leaving = tuple(ir.claim(f"{name}_out{word}", self.taken) for word in words)
        shape = self.shapes[name]
        for slot in (*entering, *leaving):
            self.shapes[slot] = (*shape[:axis], *shape[axis + 1 :])
        self.along[name] = Along(axis, written, back, operator, entering, leaving)

    def written_at(self, name: str, writers: list[ir.Statement]) -> tuple[int, int]:
        for axis in range(len(self.shapes[name])):
            found = {_beyond(s.target.indices[axis], self.index) for s in writers}
            if len(found) == 1 and (offset := found.pop()) is not None:
                return axis, offset
        raise NotCut(f"steps write {name} at places that are not `{self.index}` and a number", writers[0].span)

    def offset(self, statement: ir.Statement, access: ir.Access, axis: int) -> int:
        found = _beyond(access.indices[axis], self.index)
        if found is None:
            raise NotCut(
                f"a step reads {access.tensor} at a place that is not `{self.index}` and a number", statement.span
            )
        return found

    # -- statements

    def recurrence(self) -> Recurrence:
        before = tuple(ir.map_items(tuple(self.parts.before), self.of_start))
        after = tuple(ir.map_items(tuple(self.parts.after), self.of_end))
        for name in self.wanted:
            if name in self.along:
                self.want_whole(name)
        sums = tuple(self.copy(name, part, operator="+=") for name, part in self.sums.items())
        steps = self.written_steps()
        sizes = replace(self.bound.sizes, shapes=self.shapes, index=self.extents)
        states = {name: Cut(found.axis, found.back) for name, found in self.along.items()}
        states |= {part: Cut(self.along[name].axis) for name, part in self.whole.items()}
        return Recurrence(
            Division(self.index, sizes, self.bound.types, states, (), {}, {}),
            self.down, before, steps, (*sums, *after), self.along, self.sums, self.whole, self.wanted,
        )  # fmt: skip

    def written_steps(self) -> tuple[ir.Item, ...]:
        size = ir.Size(self.index)
        items: list[ir.Item] = []
        ends: list[ir.Item] = []
        for name, tensor in self.along.items():
            for number, (entering, leaving) in enumerate(zip(tensor.entering, tensor.leaving, strict=True)):
                near, far = Number(number), add(size, Number(number))
                first, last = (far, near) if self.down else (near, far)
                items.append(self.slice(name, tensor.axis, first, entering, into=tensor.operator))
                ends.append(self.slice(name, tensor.axis, last, leaving))
        items += ir.map_items(tuple(self.parts.steps), self.of_steps)
        for name, part in self.whole.items():
            tensor = self.along[name]
            place = self.local(tensor, tensor.written)
            ends.append(self.slice(name, tensor.axis, place, part, step=True))
        return (*items, *ends)

    def of_steps(self, statement: ir.Statement) -> ir.Statement:
        """A statement of the steps, with places counted from where its stretch starts."""

        def change(node: Expr) -> Expr:
            if not isinstance(node, ir.Access) or node.tensor not in self.along:
                return node
            tensor = self.along[node.tensor]
            offset = _beyond(node.indices[tensor.axis], self.index)
            assert offset is not None, "it was asked before"
            return replace(node, indices=_with(node.indices, tensor.axis, self.local(tensor, offset)))

        made = ir.map_statement(statement, change)
        name = self.sums.get(statement.target.tensor)
        return made if name is None else replace(made, target=replace(made.target, tensor=name))

    def local(self, tensor: Along, offset: int) -> Expr:
        place = add(ir.Index(self.index), Number(offset - tensor.written + (0 if self.down else tensor.back)))
        return not_bare(place) if tensor.back else place

    def of_start(self, statement: ir.Statement) -> ir.Statement:
        """A statement before the steps: what it writes of their tensors is what the first stretch takes."""
        return self.with_slots(statement, {name: self.first_places(t) for name, t in self.along.items()}, "entering")

    def of_end(self, statement: ir.Statement) -> ir.Statement:
        """A statement after the steps: what it reads of their tensors is what the last stretch leaves, or whole."""
        written = statement.target.tensor
        if written in self.along:
            raise NotCut(f"{written} is written after the steps too", statement.span)
        places = {name: self.last_places(tensor) for name, tensor in self.along.items()}
        for access in statement.reads:
            tensor = self.along.get(access.tensor)
            if tensor is not None and _number(access.indices[tensor.axis]) not in places[access.tensor]:
                self.want_whole(access.tensor)
        known = {name: found for name, found in places.items() if name not in self.whole}
        return self.with_slots(statement, known, "leaving")

    def with_slots(self, statement: ir.Statement, places: Mapping[str, range], side: str) -> ir.Statement:
        def change(node: Expr) -> Expr:
            if not isinstance(node, ir.Access) or node.tensor not in places:
                return node
            tensor = self.along[node.tensor]
            place = _number(node.indices[tensor.axis])
            if place is None or place not in places[node.tensor]:
                raise NotCut(
                    f"{node.tensor} is used outside of the steps in another way than as their start", node.span
                )
            slots: tuple[str, ...] = getattr(tensor, side)
            rest = (*node.indices[: tensor.axis], *node.indices[tensor.axis + 1 :])
            return replace(node, tensor=slots[place - places[node.tensor].start], indices=rest)

        return ir.map_statement(statement, change)

    def first_places(self, tensor: Along) -> range:
        start = self.count + tensor.written if self.down else tensor.written - tensor.back
        return range(start, start + tensor.back)

    def last_places(self, tensor: Along) -> range:
        start = tensor.written if self.down else self.count + tensor.written - tensor.back
        return range(start, start + tensor.back)

    def want_whole(self, name: str) -> None:
        if name not in self.whole:
            self.whole[name] = part = ir.claim(f"{name}_made", self.taken)
            tensor = self.along[name]
            self.shapes[part] = _with(self.shapes[name], tensor.axis, self.count)

    # -- copies

    def slice(self, name: str, axis: int, place: Expr, other: str, into: str = "", step: bool = False) -> ir.Statement:
        """One place of a tensor as another one, or that one `into` it by an operator; `step`: that of each step."""
        rest = self.free(name, axis)
        of = ir.Access(name, (*rest[:axis], place, *rest[axis:]))
        own = (*rest[:axis], ir.Index(self.index), *rest[axis:]) if step else tuple(rest)
        copy = ir.Access(other, own)
        return ir.Statement(of, into, copy) if into else ir.Statement(copy, "=", of)

    def copy(self, name: str, part: str, operator: str) -> ir.Statement:
        self.shapes[part] = self.shapes[name]
        free = self.free(name)
        return ir.Statement(ir.Access(name, free), operator, ir.Access(part, free))

    def free(self, name: str, but: int | None = None) -> tuple[ir.Index, ...]:
        """Indices for the axes of a tensor but one: those of its writers, where they have one, or new ones."""
        writers = [s.target for s in self.bound.loops.statements if s.target.tensor == name]
        names: list[ir.Index] = []
        for axis, extent in enumerate(self.shapes[name]):
            found = {ir.bare(target.indices[axis]) for target in writers}
            known = found.pop() if len(found) == 1 else None
            if axis == but:
                continue
            if known is None or self.extents[known] != extent or ir.Index(known) in names:
                known = ir.claim(f"i{axis}", self.taken)
                self.extents[known] = extent
            names.append(ir.Index(known))
        return tuple(names)


def _beyond(place: Expr, index: str) -> int | None:
    """c, if a place is the index plus c."""
    form = affine(place)
    if form is None or form.terms != {index: Number(1)} or not isinstance(form.constant, Number):
        return None
    return int(form.constant.value)


def _statements(item: ir.Item) -> tuple[ir.Statement, ...]:
    return ir.Loops((item,)).statements


def _targets(item: ir.Item) -> set[str]:
    return {s.target.tensor for s in _statements(item)}


def _accesses(item: ir.Item) -> list[ir.Access]:
    return [access for s in _statements(item) for access in s.reads]


def _reads(item: ir.Item) -> set[str]:
    return {access.tensor for access in _accesses(item)}


def _behind(body: tuple[ir.Item, ...], names: set[str]) -> set[str]:
    """All that some tensors are made of."""
    found: set[str] = set()
    statements = ir.Loops(body).statements
    while more := {a.tensor for s in statements if s.target.tensor in names | found for a in s.reads} - found:
        found |= more
    return found


def _number(place: Expr) -> int | None:
    return place.value if isinstance(place, Number) and isinstance(place.value, int) else None


def _with(entries: tuple, place: int, entry: object) -> tuple:  # type: ignore[type-arg]
    return (*entries[:place], entry, *entries[place + 1 :])
