"""Unnest: program -> program. Deep expressions become steps, `Y.shared`, so that a derivative grows with their length.

The derivative of a function of a function names the inner one again: at 60 levels each of 60 reads would bring along
all levels above it, conditions too. An expression within the usual depth stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from ..language import ir
from ..language.build import conjunction, opposite
from ..language.functions import RANDOM
from ..language.ir import Expr
from .derived_names import helper

DEEP = 16  # levels that an expression may have
STEP = 8  # levels of one step, where it has more


def unnest(loops: ir.Loops) -> ir.Loops:
    """The program with expressions of more than so many levels taken in steps."""
    if all(_levels(statement.value) <= DEEP for statement in loops.statements):
        return loops
    taken: set[str] = set()

    def in_steps(item: ir.Statement, blocks: tuple[ir.Block, ...]) -> list[ir.Item]:
        if _levels(item.value) <= DEEP or item.asks_inside:  # `inside` speaks of all accesses, so none may move
            return [item]
        steps = _Steps(loops, item, tuple(block.index for block in blocks), taken)
        value = steps.taken_apart(item.value, ())
        return [*steps.made, replace(item, value=value)]

    made = replace(loops, body=ir.rewrite(loops.body, in_steps))
    # a step may read what only the statement itself did, which then is no output by default
    return made if made.outputs == loops.outputs else replace(made, returns=loops.outputs)


def _chain(node: Expr) -> str | None:
    """Sums within sums, and products within products, are one level."""
    match node:
        case ir.Binary(operator="+" | "-") | ir.Unary(operator="-"):
            return "sum"
        case ir.Binary(operator="*"):
            return "product"
    return None


def _parts(node: Expr) -> tuple[Expr, ...]:
    """What an expression is computed of: not the places of its accesses, nor what a random number depends on."""
    whole = isinstance(node, ir.Access) or (isinstance(node, ir.Call) and node.function in RANDOM)
    return () if whole else ir.children(node)


def _levels(node: Expr) -> int:
    return _above(node, [(part, _levels(part)) for part in _parts(node)])


def _above(node: Expr, parts: Iterable[tuple[Expr, int]]) -> int:
    chain = _chain(node)
    return max((levels + (chain is None or chain != _chain(part)) for part, levels in parts), default=0)


@dataclass
class _Steps:
    """The steps of one statement."""

    loops: ir.Loops
    statement: ir.Statement
    blocks: tuple[str, ...]
    taken: set[str]
    made: list[ir.Statement] = field(default_factory=list)

    def taken_apart(self, node: Expr, path: tuple[Expr, ...]) -> Expr:
        """The expression, with reads in the place of its deeper parts; `path` holds where it is evaluated."""
        parts = self.parts(node, path)
        if not parts:
            return node
        if _above(node, [(part, _levels(part)) for part, _ in parts]) > STEP:
            parts = [(self.step(part, where), where) for part, where in parts]
        return ir.rebuild(node, tuple(part for part, _ in parts))

    def parts(self, node: Expr, path: tuple[Expr, ...]) -> list[tuple[Expr, tuple[Expr, ...]]]:
        """The parts of a node, taken apart, and the conditions under which each is evaluated."""
        if isinstance(node, ir.Conditional):
            condition = self.taken_apart(node.condition, path)
            holds, fails = (*path, condition), (*path, opposite(condition))
            then, otherwise = self.taken_apart(node.then, holds), self.taken_apart(node.otherwise, fails)
            return [(then, holds), (condition, path), (otherwise, fails)]
        if isinstance(node, ir.Logic):
            left = self.taken_apart(node.left, path)
            where = (*path, left if node.operator == "and" else opposite(left))
            return [(left, path), (self.taken_apart(node.right, where), where)]
        return [(self.taken_apart(part, path), path) for part in _parts(node)]

    def step(self, node: Expr, path: tuple[Expr, ...]) -> Expr:
        """A tensor that holds the value, if it is one that is computed of tensors."""
        condition = isinstance(node, ir.Compare | ir.Logic) or (isinstance(node, ir.Unary) and node.operator == "not")
        if condition or not _parts(node) or not any(isinstance(n, ir.Access) for n in ir.walk(node)):
            return node
        where, guard = conjunction(path), self.statement.guard
        value = node if where is None else ir.Conditional(where, node, ir.Number(0))
        named = {*ir.index_names(value), *(ir.index_names(guard) if guard else ()), *self.blocks}
        order = [ir.BATCH, *self.blocks, *self.statement.indices]
        indices = tuple(ir.Index(i) for i in dict.fromkeys(order) if i in named)
        held = ir.Access(helper(self.loops, self.statement.target.tensor, "shared", self.taken), indices)
        self.made.append(ir.Statement(held, "=", value, guard))
        return held
