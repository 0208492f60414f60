"""What the derivative of `max=`, `min=` and `*=` needs beside the adjoint: the winner, the product of the others."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..errors import DerivativeError
from ..language import ir
from ..language.build import ZERO, add, conjunction, opposite, product, row_major
from ..language.ir import Expr, candidates
from .derived_names import helper
from .solve import FreshIndices
from .written_once import disjoint


@dataclass
class Helpers:
    """Statements that stand between the forward and the backward pass, made when a rule first asks for them."""

    loops: ir.Loops
    fresh: FreshIndices
    after: bool = True  # they stand behind the whole program, so that all that it computes can be read
    statements: list[ir.Statement] = field(default_factory=list)
    like: dict[str, str] = field(default_factory=dict)  # helper -> the tensor whose shape it has
    _winners: dict[int, str] = field(default_factory=dict)
    _others: dict[int, ir.Access] = field(default_factory=dict)

    def winner(self, statement: ir.Statement) -> Expr | None:
        """The guard that holds at the first winner of a `max=` or `min=`; None if there is only one candidate."""
        group = self.meeting(statement)
        if len(group) == 1 and not candidates(statement):
            return None
        position: Expr = ZERO
        for other in group:
            if other is statement:
                break
            position = add(position, product(ir.Size(name) for name in candidates(other)))
        name = self._winner_name(group)
        return ir.Compare(
            "==", add(position, row_major(candidates(statement))), ir.Access(name, statement.target.indices)
        )

    def meeting(self, statement: ir.Statement) -> list[ir.Statement]:
        """The statements that may write an element which the given one writes, or which one of them writes: each of
        them has the same group."""
        rest = [s for s in self.loops.statements if s.target.tensor == statement.target.tensor]
        met: list[ir.Statement] = []
        found = [statement]
        while found:
            met += found
            rest = [s for s in rest if all(s is not other for other in found)]
            found = [s for s in rest if any(not disjoint(self.loops, s, other) for other in found)]
        group = [s for s in self.loops.statements if any(s is other for other in met)]
        if any(ir.BATCH in candidates(s) for s in group):
            raise DerivativeError(
                f"`{statement.operator}` over `...` has no derivative here",
                statement.span,
                "write the batch indices out",
            )
        return group

    def _winner_name(self, group: list[ir.Statement]) -> str:
        tensor, key = group[0].target.tensor, id(group[0])
        if key not in self._winners:
            operator = "argmax=" if group[0].operator == "max=" else "argmin="
            held = self._held_winner(group, operator) if self.after else None
            self._winners[key] = held or helper(self.loops, tensor, "arg", self.fresh.taken)
            if not held:
                name = self._winners[key]
                self.like[name] = tensor
                for s in group:
                    self.statements.append(replace(s, target=replace(s.target, tensor=name), operator=operator))
        return self._winners[key]

    def _held_winner(self, group: list[ir.Statement], operator: str) -> str | None:
        """An argmax= tensor that the program already computes from the same statements."""
        wanted = [(s.target.indices, s.value, s.guard) for s in group]
        names = dict.fromkeys(s.target.tensor for s in self.loops.statements if s.operator == operator)
        for name in names:
            if [
                (s.target.indices, s.value, s.guard)
                for s, around in self.loops.located
                if s.target.tensor == name and not around
            ] == wanted:
                return name
        return None

    def others(self, statement: ir.Statement) -> Expr | None:
        """The product of all other factors of a `*=`, so that zeros do no harm; None if there are none."""
        group = self.meeting(statement)
        if len(group) == 1 and not candidates(statement):
            return None
        if id(statement) not in self._others:
            name = helper(self.loops, statement.target.tensor, "others", self.fresh.taken)
            access = ir.Access(name, tuple(ir.Index(i) for i in statement.indices))
            self._others[id(statement)] = access
            factors = [f for f in group if f is not statement or candidates(statement)]
            self.statements += [self._other_factors(access, statement, factor) for factor in factors]
        return self._others[id(statement)]

    def _other_factors(self, access: ir.Access, statement: ir.Statement, factor: ir.Statement) -> ir.Statement:
        """access *= the points of `factor` that meet the same target element, save the point itself."""
        values: dict[str, Expr] = {}
        conditions: list[Expr] = []
        for own, wanted in zip(factor.target.indices, statement.target.indices, strict=True):
            if isinstance(own, ir.Index) and own.name not in values:
                values[own.name] = wanted
                if own != wanted:
                    conditions += [ir.Compare(">=", wanted, ZERO), ir.Compare("<", wanted, ir.Size(own.name))]
        for name in factor.indices:
            if name not in values:
                values[name] = ir.Index(self.fresh.make(name, ir.Size(name)))
        change = ir.substitute_indices(values)
        moved = ir.map_statement(factor, change)
        for own, wanted in zip(moved.target.indices, statement.target.indices, strict=True):
            if own != wanted:
                conditions.append(ir.Compare("==", own, wanted))
        if factor is statement:
            same = conjunction(ir.Compare("==", values[n], ir.Index(n)) for n in candidates(statement))
            assert same is not None, "a statement with one candidate has no other factors"
            conditions.append(opposite(same))
        return ir.Statement(access, "*=", moved.value, conjunction((*conditions, moved.guard)))
