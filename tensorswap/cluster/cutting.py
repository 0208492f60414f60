"""Cutting: a bound program and an index -> the stages in which its shards compute it, or the reason why they cannot.

Every tensor gets a state. A statement without the index has a whole target. One whose target has the index bare makes a
part of it. Any other reduces over the index, and its operator joins what the shards have found. A statement that reads
what has to be joined, or what lies in other shards, comes one stage later.

    m max= x[b]                 stage 1: m is partial
    e[b] = exp(x[b] - m)        stage 2: e is cut along axis 0
    s += e[b]                   stage 2: s is partial
    y[b] = e[b] / s             stage 3: y is cut; e is still where it was made
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from ..errors import ProgramError, Span
from ..language import ir
from ..language.bound import Bound
from ..language.bounds import numbers
from ..language.render import statement as show_statement
from ..language.sizes import Sizes
from ..language.types import Types
from ..lazy import cached_property
from .states import WHOLE, Cut, Division, Partial, Stage, State

SMALL = 2**16  # points of a statement that every shard computes for itself rather than wait for another
ARGUMENTS = {"argmax=": "max=", "argmin=": "min="}


class NotCut(Exception):
    """Why a program cannot be cut along an index."""

    def __init__(self, reason: str, span: Span | None = None) -> None:
        self.reason, self.span = reason, span
        super().__init__(reason)


class Unused(NotCut):
    """Nothing that a program computes depends on the index."""


def divide(bound: Bound, index: str) -> Division:
    """The stages of a program that is cut along an index; if there are none, an error names another index."""
    try:
        return _divided(bound, index)
    except NotCut as error:
        others = other_indices(bound, index)
        hint = f'cut it along another index: p.shard("{others[0]}")' if others else "run it as it is: p(...)"
        raise ProgramError(f"the program cannot be cut along {index}: {error.reason}", error.span, hint) from None


def divide_if_used(bound: Bound, index: str) -> Division | None:
    """As above; None if the index has no part in the program."""
    try:
        return _divided(bound, index)
    except Unused:
        return None
    except NotCut:
        return divide(bound, index)  # with its error


def other_indices(bound: Bound, index: str) -> list[str]:
    """The indices that a program can be cut along, those of one stage first, then the longest."""
    found = []
    for name in bound.loops.indices:
        size = bound.sizes.index.get(name, 0)
        if name == index or size < 2:
            continue
        try:
            found.append((len(_divided(bound, name).stages), -size, name))
        except NotCut:
            continue
    return [name for _, _, name in sorted(found)]


@dataclass
class Unit:
    """Items that write the same tensors, and so belong together."""

    placed: list[tuple[int, ir.Item]]  # each with its place in the program
    last: int  # the place of the last
    level: int = 0
    in_shards: bool = False
    states: dict[str, State] = field(default_factory=dict)

    @cached_property
    def items(self) -> tuple[ir.Item, ...]:
        return tuple(item for _, item in sorted(self.placed, key=lambda entry: entry[0]))

    @cached_property
    def located(self) -> list[tuple[ir.Statement, tuple[ir.Block, ...]]]:
        return list(ir.Loops(self.items).located)

    @cached_property
    def statements(self) -> list[ir.Statement]:
        return [statement for statement, _ in self.located]

    @cached_property
    def written(self) -> frozenset[str]:
        return frozenset(s.target.tensor for s in self.statements)

    @cached_property
    def outer_reads(self) -> list[tuple[ir.Statement, ir.Access]]:
        """What comes from elsewhere."""
        own = self.written
        return [(s, a) for s in self.statements for a in s.reads if a.tensor not in own]


def _divided(bound: Bound, index: str) -> Division:
    loops, sizes = bound.loops, bound.sizes
    if index not in sizes.index:
        raise NotCut("it has no such index")
    body, outputs = _without_updates(loops, in_numbers(loops.body, sizes))
    renamed = {new: old for old, new in outputs.items() if new != old}
    sizes = replace(sizes, shapes={**sizes.shapes, **{new: sizes.shapes[old] for new, old in renamed.items()}})
    types = Types({**bound.types.tensors, **{new: bound.types.tensors[old] for new, old in renamed.items()}})
    units = _units(body)
    maker = {name: unit for unit in units for name in unit.written}
    needed = _needed(units, maker, outputs.values())
    divider = _Divider(index, sizes, types, maker)
    for unit in units:
        if unit.last in needed:
            divider.classify(unit)
    used = [unit for unit in units if unit.last in needed]
    if not any(unit.in_shards for unit in used):
        raise Unused("nothing that it computes depends on the index")
    return _Sorter(index, sizes, types, used, maker, outputs).division()


def in_numbers(body: tuple[ir.Item, ...], sizes: Sizes) -> tuple[ir.Item, ...]:
    """Sizes and static integers as the numbers that they have in this call: those of a shard are others."""

    def change(statement: ir.Statement) -> ir.Statement:
        guard = None if statement.guard is None else numbers(statement.guard, sizes)
        target = numbers(statement.target, sizes)
        assert isinstance(target, ir.Access)
        return replace(statement, target=target, value=numbers(statement.value, sizes), guard=guard)

    return ir.map_items(body, change)


def _without_updates(loops: ir.Loops, body: tuple[ir.Item, ...]) -> tuple[tuple[ir.Item, ...], dict[str, str]]:
    """New names for the new values of updated inputs: `W[i] = W[i] - g[i]` makes W_new, which is the output W."""
    taken = set(loops.names)
    names: dict[str, str] = {}
    made: list[ir.Item] = []
    for item in body:
        new = ir.map_items((item,), lambda s: _reading(s, names))
        writes = [s for s in ir.Loops((item,)).statements if s.target.tensor in loops.updated]
        for statement in writes:
            name = statement.target.tensor
            bare = [ir.bare(place) for place in statement.target.indices]
            plain = item is statement and statement.operator == "=" and statement.guard is None and name not in names
            if not plain or None in bare or len(set(bare)) < len(bare):
                raise NotCut(f"it updates a part of {name}", statement.span)
            names[name] = ir.claim(f"{name}_new", taken)
            (changed,) = new
            assert isinstance(changed, ir.Statement)
            new = (replace(changed, target=replace(changed.target, tensor=names[name])),)
        made += new
    return tuple(made), {name: names.get(name, name) for name in loops.outputs}


def _reading(statement: ir.Statement, names: Mapping[str, str]) -> ir.Statement:
    def change(node: ir.Expr) -> ir.Expr:
        return (
            replace(node, tensor=names[node.tensor]) if isinstance(node, ir.Access) and node.tensor in names else node
        )

    return ir.map_statement(statement, change) if names else statement


def _units(body: tuple[ir.Item, ...]) -> list[Unit]:
    """Items that write a common tensor taken together; in the order in which each is complete."""
    owner: dict[str, Unit] = {}
    units: list[Unit] = []
    for place, item in enumerate(body):
        written = {s.target.tensor for s in ir.Loops((item,)).statements}
        same = {id(owner[name]): owner[name] for name in written if name in owner}
        merged = Unit([*(entry for unit in same.values() for entry in unit.placed), (place, item)], place)
        units = [unit for unit in units if id(unit) not in same] + [merged]
        owner |= dict.fromkeys(merged.written, merged)
    return units


def _needed(units: list[Unit], maker: Mapping[str, Unit], outputs: Iterable[str]) -> set[int]:
    """The units that the outputs depend on."""
    found: set[int] = set()
    open_names = [name for name in outputs if name in maker]
    while open_names:
        unit = maker[open_names.pop()]
        if unit.last not in found:
            found.add(unit.last)
            open_names += [access.tensor for _, access in unit.outer_reads if access.tensor in maker]
    return found


class _Divider:
    """Finds the state of each tensor, and the stage in which it is there."""

    def __init__(self, index: str, sizes: Sizes, types: Types, maker: Mapping[str, Unit]) -> None:
        self.index, self.sizes, self.types, self.maker = index, sizes, types, maker
        self.done: set[int] = set()

    def classify(self, unit: Unit) -> None:
        for _, blocks in unit.located:
            if any(block.index == self.index for block in blocks):
                raise NotCut(f"the steps of `for {self.index}:` come one after the other", blocks[0].span)
        unit.in_shards = any(self.index in s.indices for s in unit.statements)
        for name in unit.written:
            writers = [s for s in unit.statements if s.target.tensor == name]
            unit.states[name] = self.state(name, writers) if unit.in_shards else WHOLE
            if isinstance(unit.states[name], Partial):
                self.check_partial(unit, name, writers)
        for statement in unit.statements:
            for access in statement.reads:
                if access.tensor in unit.written:
                    self.check_own(unit, statement, access)
        for statement, access in unit.outer_reads:
            unit.level = max(unit.level, self.available(statement, access))
        self.done.add(unit.last)

    def state(self, name: str, writers: list[ir.Statement]) -> State:
        """What a shard holds of a tensor that some of these statements make with the index."""
        index = ir.Index(self.index)
        if not any(self.index in s.indices for s in writers):
            return WHOLE
        for axis, extent in enumerate(self.sizes.shapes[name]):
            if extent == self.sizes.index[self.index] and all(s.target.indices[axis] == index for s in writers):
                return Cut(axis)
        operators = {ir.reduction(s.operator) for s in writers}
        statement = next(s for s in writers if self.index in s.indices)
        if operators == {"="} or len(operators) > 1:
            raise NotCut(
                f"`{show_statement(statement)}` would write into {name} from every shard, and `=` says nothing of how "
                "to join what they write",
                statement.span,
            )
        return Partial(operators.pop())

    def check_partial(self, unit: Unit, name: str, writers: list[ir.Statement]) -> None:
        blocks = any(around for s, around in unit.located if s.target.tensor == name)
        once = [s for s in writers if self.index not in s.indices]
        if once and blocks:
            raise NotCut(f"{name} is added to with {self.index} and without it in steps of a block", once[0].span)
        if writers[0].operator in ARGUMENTS:
            kind = self.types.of(writers[0].value)
            if len(writers) > 1 or blocks or self.index in ir.bare_indices(writers[0].target):
                raise NotCut(f"several statements, or steps, choose the positions in {name}", writers[0].span)
            if kind.weak and kind.dtype.kind == "f":
                raise NotCut(f"the values behind the positions in {name} have no type of their own", writers[0].span)

    def check_own(self, unit: Unit, statement: ir.Statement, access: ir.Access) -> None:
        """A block reads what it writes: each shard must have made it."""
        match unit.states[access.tensor]:
            case Partial():
                raise NotCut(
                    f"a step of a block reads {access.tensor}, which is reduced over {self.index}", statement.span
                )
            case Cut(axis=axis) if access.indices[axis] != ir.Index(self.index):
                raise NotCut(
                    f"a step of a block reads {access.tensor} at places of {self.index} that other shards compute",
                    statement.span,
                )

    def available(self, statement: ir.Statement, access: ir.Access) -> int:
        """The first stage that can read a tensor so."""
        unit = self.maker.get(access.tensor)
        if unit is None:
            return 0
        if unit.last not in self.done:
            raise NotCut(f"{access.tensor} is read before all of it is written", statement.span)
        match unit.states[access.tensor]:
            case Cut(axis=axis) if access.indices[axis] == ir.Index(self.index):
                return unit.level
            case Cut() | Partial():
                return unit.level + 1
        # A whole tensor that shards make on their way is taken from one of them, in the next stage.
        return unit.level + 1 if unit.in_shards and self.index not in statement.indices else unit.level


class _Sorter:
    """Sorts units into stages: what runs once, what runs for every shard, and what each hands on."""

    def __init__(
        self,
        index: str,
        sizes: Sizes,
        types: Types,
        units: list[Unit],
        maker: Mapping[str, Unit],
        outputs: Mapping[str, str],
    ) -> None:
        self.index, self.sizes, self.types = index, sizes, types
        self.units, self.maker, self.outputs = units, maker, outputs
        self.wanted_once: set[str] = set()
        self.wanted_shards: set[str] = set()
        self.run_once: set[int] = set()
        taken = {name for unit in units for s in unit.statements for name in (s.target.tensor, *s.indices)}
        taken |= {access.tensor for unit in units for s in unit.statements for access in s.reads}
        self.best = {
            name: ir.claim(f"{name}_best", taken)
            for unit in units
            for name, state in unit.states.items()
            if isinstance(state, Partial) and state.operator in ARGUMENTS
        }

    def division(self) -> Division:
        for name in self.outputs.values():
            self.want(name)
        levels = range(max(unit.level for unit in self.units) + 1)
        shards = {level: tuple(self.shard_items(level)) for level in levels}
        once = {level: tuple(self.once_items(level)) for level in levels}
        stages = [Stage(once[k], self.handed(once[k], False), shards[k], self.handed(shards[k], True)) for k in levels]
        states = {name: state for unit in self.units for name, state in unit.states.items()}
        statements: dict[str, list[ir.Statement]] = {}
        for unit in self.units:
            for statement in unit.statements:
                statements.setdefault(statement.target.tensor, []).append(statement)
        both = {name for name in states if self.split(name)}
        return Division(
            self.index,
            self.sizes,
            self.types,
            states,
            tuple(stage for stage in stages if stage.once or stage.shard),
            self.outputs,
            {name: tuple(found) for name, found in statements.items()},
            self.best,
            frozenset(both),
        )

    def split(self, name: str) -> bool:
        """Whether a partial tensor is made by statements with the index and by others."""
        unit = self.maker[name]
        writers = [s for s in unit.statements if s.target.tensor == name]
        return isinstance(unit.states[name], Partial) and any(self.index not in s.indices for s in writers)

    def want(self, name: str) -> None:
        """Somebody outside of a stage's shards needs a tensor."""
        unit = self.maker.get(name)
        if unit is None:
            return
        (self.wanted_shards if unit.in_shards else self.wanted_once).add(name)
        if not unit.in_shards:
            self.make_once(unit)

    def make_once(self, unit: Unit) -> None:
        if unit.last in self.run_once:
            return
        self.run_once.add(unit.last)
        for _, access in unit.outer_reads:
            self.want(access.tensor)

    def shard_items(self, level: int) -> Iterator[ir.Item]:
        """The units of a stage's shards, each behind the small ones that they compute for themselves."""
        made: set[int] = set()

        def before(unit: Unit) -> Iterator[ir.Item]:
            for statement, access in unit.outer_reads:
                if self.split_off(unit, statement):
                    self.want(access.tensor)
                    continue
                source = self.maker.get(access.tensor)
                if source is None or source.last in made:
                    continue
                if source.in_shards and source.level == level:
                    continue  # its turn has come before
                if not source.in_shards and self.work(source) <= SMALL:
                    made.add(source.last)
                    yield from before(source)
                    yield from source.items
                else:
                    self.want(access.tensor)

        for unit in self.units:
            if unit.in_shards and unit.level == level:
                yield from before(unit)
                yield from (item for item in unit.items if not self.split_off(unit, item))
                for name in unit.written & self.best.keys():
                    (writer,) = (s for s in unit.statements if s.target.tensor == name)
                    target = replace(writer.target, tensor=self.best[name])
                    yield replace(writer, target=target, operator=ARGUMENTS[writer.operator])
                made.add(unit.last)

    def split_off(self, unit: Unit, item: ir.Item) -> bool:
        """Whether a statement contributes once to what the shards of its unit contribute to as well."""
        return (
            isinstance(item, ir.Statement)
            and unit.in_shards
            and isinstance(unit.states[item.target.tensor], Partial)
            and self.index not in item.indices
        )

    def once_items(self, level: int) -> Iterator[ir.Item]:
        for unit in self.units:
            if unit.level == level and unit.in_shards:
                yield from (item for item in unit.items if self.split_off(unit, item))
            elif unit.level == level and unit.last in self.run_once:
                yield from unit.items

    def handed(self, items: tuple[ir.Item, ...], by_shards: bool) -> tuple[str, ...]:
        written = dict.fromkeys(s.target.tensor for s in ir.Loops(items).statements)
        if by_shards:
            positions = {self.best[name] for name in self.best if name in self.wanted_shards}
            return tuple(name for name in written if name in self.wanted_shards or name in positions)
        return tuple(name for name in written if name in self.wanted_once or self.split(name))

    def work(self, unit: Unit) -> int:
        around = [(s, [block.index for block in blocks]) for s, blocks in unit.located]
        return sum(math.prod(self.sizes.index[i] for i in {*s.indices, *steps}) for s, steps in around)
