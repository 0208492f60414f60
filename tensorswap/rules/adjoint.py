"""Adjoint: program -> program. Every access of every statement changes places with the target: the swap rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..errors import DerivativeError
from ..language import ir
from ..language.build import ONE, ZERO, conjunction, conjuncts
from ..language.ir import Expr
from ..language.render import access as show_access
from ..language.stages import tell
from .activity import active, check_of, check_wrt, refuse_updates
from .carried_guards import carry_guards
from .complete_reads import complete_when_read
from .derived_inside import always_accessed, completed
from .derived_names import next_suffix
from .differentiate import Contribution, contributions
from .inherited_names import NOTHING, pattern, still_known
from .reduce import Helpers
from .shapes import Shapes
from .share import share
from .simplify import Held, held_values, merge_doubles, remove_dead, reuse, with_outputs
from .solve import FreshIndices, gather_form
from .unnest import unnest

Place = tuple[ir.Statement, tuple[ir.Block, ...]]


@dataclass(frozen=True)
class Note:
    """Which rule made an adjoint statement out of which forward statement."""

    forward: ir.Statement
    adjoint: ir.Statement
    rule: str
    raw: ir.Statement  # before it was solved for a gather


@dataclass
class AdjointBuilder:
    """The adjoint in the making."""

    forward: ir.Loops
    wrt: tuple[str, ...]
    of: tuple[str, ...]
    unit: bool  # the seed is the number 1: the gradient of a scalar
    notes: list[Note] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.suffix = next_suffix(self.forward, "grad")
        self.active = active(self.forward, self.wrt, self.of)
        self.fresh = FreshIndices(set(self.forward.names))
        self.helpers = Helpers(self.forward, self.fresh)
        self.shapes = Shapes(self.forward, fresh=self.fresh)
        self.held = held_values(self.forward)
        read = {name for s in self.forward.statements if s.target.tensor in self.active for name in ir.tensors_read(s)}
        self.name: dict[str, str] = {}
        for tensor in (*self.active, *self.wrt, *self.of):
            # a seed that also gathers contributions is an input, so its total needs a name of its own
            total = tensor in self.of and tensor in self.active and tensor in read and not self._unit(tensor)
            seed = f"{tensor}.{self.suffix}"
            self.name[tensor] = f"{seed}.total" if total else seed
            self.shapes.base |= {seed: tensor, self.name[tensor]: tensor}

    def _unit(self, tensor: str) -> bool:
        return self.unit and tensor in self.of

    def seed(self, target: ir.Access) -> Expr:
        """The adjoint of a statement's target, read where the statement wrote."""
        if self._unit(target.tensor):
            return ONE
        access = ir.Access(self.name[target.tensor], target.indices)
        return self.shapes.partial(access) if target.tensor in self.of else access

    def totals(self) -> Iterator[ir.Statement]:
        """Y.grad.total starts as the seed Y.grad that the caller gives."""
        for tensor in self.of:
            if self.name[tensor].endswith(".total"):
                indices = self.shapes.whole(tensor)
                yield ir.Statement(
                    ir.Access(self.name[tensor], indices), "+=", ir.Access(f"{tensor}.{self.suffix}", indices)
                )

    def zeros(self, written: set[str]) -> Iterator[ir.Statement]:
        """An input that nothing depends on has the derivative zero, said so."""
        for tensor in self.wrt:
            if self.name[tensor] not in written:
                yield ir.Statement(ir.Access(self.name[tensor], self.shapes.whole(tensor)), "=", NOTHING)

    def backward(self, body: tuple[ir.Item, ...], blocks: tuple[ir.Block, ...]) -> Iterator[ir.Item]:
        """The items in reverse, blocks turned around."""
        for item in reversed(body):
            if isinstance(item, ir.Block):
                inner = tuple(self.backward(item.body, (*blocks, item)))
                if inner:
                    yield ir.Block(item.index, inner, not item.down)
            elif isinstance(item, ir.Statement) and item.target.tensor in self.active:
                yield from self.swap((item, blocks))

    def swap(self, place: Place) -> Iterator[ir.Statement]:
        """One adjoint statement for each access of an active tensor."""
        statement, blocks = place
        if statement.operator.startswith("arg"):
            return
        found = list(contributions(statement.value, self.active))
        found.sort(key=lambda c: self.wrt.index(c.access.tensor) if c.access.tensor in self.wrt else -1)
        if not found:
            return
        if statement.operator in ("max=", "min=", "*="):
            check_steps(statement, blocks)
        winner = self.helpers.winner(statement) if statement.operator in ("max=", "min=") else None
        others = self.helpers.others(statement) if statement.operator == "*=" else None
        for contribution in found:
            if others is not None:
                contribution = replace(contribution, after=(others, *contribution.after))
            raw = self.raw(statement, contribution, winner, blocks)
            self.check_order(place, contribution.access, raw, winner is not None or others is not None)
            fixed = frozenset(block.index for block in blocks)
            source = contribution.access
            prefer = ir.bare_indices(statement.target)
            made = gather_form(raw, source, fixed, prefer, self.fresh, self.shapes.extent, self._shows_range)
            self.notes.append(Note(statement, made, _rule_name(statement, contribution, raw, made), raw))
            yield made

    def raw(
        self, statement: ir.Statement, contribution: Contribution, winner: Expr | None, blocks: tuple[ir.Block, ...]
    ) -> ir.Statement:
        """The adjoint statement before its target is solved for: it still writes where the forward read."""
        negative = contribution.negative != (statement.operator == "-=")
        target = ir.Access(self.name[contribution.access.tensor], contribution.access.indices)
        guard = conjunction((statement.guard, *contribution.conditions, winner))
        holds = frozenset(conjuncts(guard))
        held = self.held_for(statement, blocks)
        value = contribution.value(self.seed(statement.target), lambda e: reuse(e, held, holds))
        adjoint = ir.Statement(target, "-=" if negative else "+=", value, guard)
        return completed(statement, adjoint, blocks, self.shapes, contribution.access)

    def held_for(self, statement: ir.Statement, blocks: tuple[ir.Block, ...]) -> Mapping[Expr, Held]:
        """Held values that are those of a statement: not of sums to which later steps add."""
        place = (statement, blocks)
        growing = {a for a in statement.reads if blocks and not complete_when_read(self.forward, place, a)}
        if not growing:
            return self.held
        return {value: held for value, held in self.held.items() if growing.isdisjoint(ir.walk(value))}

    def _shows_range(self, statement: ir.Statement, index: str) -> bool:
        """Whether an access that every point evaluates has the bare index on an axis of exactly its size."""
        for access in always_accessed(statement):
            for axis, place in enumerate(access.indices):
                if ir.bare(place) == index and self.shapes.exact(access.tensor, axis, index):
                    return True
        return False

    def check_order(self, place: Place, own: ir.Access, raw: ir.Statement, all_values: bool) -> None:
        """Refuses a derivative that needs a value which a later step of the same block has changed."""
        statement, blocks = place
        if not blocks:
            return
        parts = (*raw.target.indices, raw.value, raw.guard or ZERO)
        needed = {n for part in parts for n in ir.walk(part) if isinstance(n, ir.Access)}
        if all_values:
            needed |= set(statement.reads)
        operators = {s.target.tensor: s.operator for s in self.forward.statements}
        for access in statement.reads:
            operator = operators.get(access.tensor)
            if operator is None or operator == "=" or complete_when_read(self.forward, place, access):
                continue  # each element written once by `=` is complete when read, or the run is refused
            summed = operator in ir.SUM and access.tensor != statement.target.tensor
            if access in needed or (access == own and not summed):
                index = blocks[-1].index
                raise DerivativeError(
                    f"{show_access(access)} is read in `for {index}` while it is still being accumulated; its value at "
                    "that step is gone when the derivative needs it",
                    access.span or statement.span,
                    f"give {access.tensor} the index {index}, so that each step has its own element: "
                    f"`{_at(access, ir.Index(index))} = ...`, which may read "
                    f"`{_at(access, ir.Binary('-', ir.Index(index), ONE))}`",
                )


def check_steps(statement: ir.Statement, blocks: tuple[ir.Block, ...]) -> None:
    """Refuses what every step of a block does again: its part in the result would count as often."""
    again = [block.index for block in blocks if block.index not in statement.indices]
    if again:
        raise DerivativeError(
            f"{show_access(statement.target)} takes the same part with `{statement.operator}` in every step of `for "
            f"{again[-1]}`",
            statement.span,
            "take the statement out of the block",
        )


def _is_forward(item: ir.Item, loops: ir.Loops) -> bool:
    """Whether an item of the derived body stood in the forward one."""
    first = item
    while isinstance(first, ir.Block):
        first = first.body[0]
    return isinstance(first, ir.Statement) and first.target.tensor in loops.written


def _at(access: ir.Access, step: Expr) -> str:
    return show_access(ir.Access(access.tensor, (step, *access.indices)))


def _rule_name(forward: ir.Statement, contribution: Contribution, raw: ir.Statement, made: ir.Statement) -> str:
    """What a person would call the step from the forward to the adjoint statement."""
    names = {
        "max=": "route to the first winner",
        "min=": "route to the first winner",
        "*=": "product of the other factors",
    }
    parts = [names.get(forward.operator, "swap")]
    if raw.target != made.target:
        parts.append("solved for a gather")
    elif any(isinstance(n, ir.Access) for e in raw.target.indices for n in ir.walk(e)):
        parts.append("gather becomes scatter-add")
    if contribution.conditions:
        parts.append("branch taken")
    return ", ".join(parts)


def derive(
    loops: ir.Loops, wrt: Sequence[str], of: Sequence[str] | None = None, unit: bool = False, keep: Sequence[str] = ()
) -> tuple[ir.Loops, list[Note]]:
    """The adjoint program and the rule behind each of its statements. `keep` names forward outputs to give as well."""
    wrt, of = check_wrt(loops, wrt), check_of(loops, of)
    loops = unnest(loops)
    making = AdjointBuilder(loops, wrt, of, unit)
    involved = frozenset(n for s in loops.statements if s.target.tensor in making.active for n in ir.tensors_read(s))
    refuse_updates(loops, involved | making.active)
    backward = tuple(making.backward(loops.body, ()))
    totals = tuple(making.totals())
    written = {s.target.tensor for s in ir.Loops(body=backward).statements}
    zeros = tuple(making.zeros(written))
    making.shapes.base |= making.helpers.like
    body = (*loops.body, *making.helpers.statements, *totals, *backward, *zeros)
    outputs = (*keep, *(making.name[x] for x in wrt))
    seeds = {} if unit else {f"{y}.{making.suffix}": pattern(loops, y) for y in of}
    derived = ir.Loops(body=body, statics=loops.statics, known={**still_known(loops), **seeds})
    if loops.header:
        given = () if unit else [(y, f"{y}.{making.suffix}") for y in of]
        results = [*((y, y) for y in keep), *((x, making.name[x]) for x in wrt)]
        derived = replace(derived, header=making.shapes.header(loops.header, "adjoint", given, results))

    def finished(made: ir.Loops) -> ir.Loops:
        return with_outputs(making.shapes.declare(made), outputs)

    tell("swap", lambda: finished(_before_gathers(derived, making.notes)))
    tell("gather_form", lambda: finished(derived))
    derived = merge_doubles(derived, outputs)
    tell("merge_doubles", lambda: finished(derived))
    derived = carry_guards(derived, outputs)
    tell("carry_guards", lambda: finished(derived))
    derived = remove_dead(derived, outputs)
    tell("remove_dead", lambda: finished(derived))
    derived = share(derived, first=sum(_is_forward(item, loops) for item in derived.body))
    tell("share", lambda: finished(derived))
    return finished(derived), making.notes


def _before_gathers(derived: ir.Loops, notes: Sequence[Note]) -> ir.Loops:
    """The adjoint as the swap rule has it, with targets where the forward program reads."""
    raw = {id(note.adjoint): note.raw for note in notes}
    return replace(derived, body=ir.map_items(derived.body, lambda s: raw.get(id(s), s)))
