"""Nested calls: `Y = gelu_layer(linear(x, W))` and `Y = linear(x, W) + b` -> a statement for each call of a definition.

A call of a definition gives a tensor, so each gets a name of its own, before the statement that it stands in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from . import ir


@dataclass(frozen=True)
class Arguments:
    positional: tuple[ir.Expr, ...] = ()
    keywords: tuple[tuple[str, ir.Expr], ...] = ()


@dataclass(frozen=True, slots=True)
class UserCall(ir.Node):
    """A call of a name that is no scalar function: of a definition."""

    function: str
    arguments: Arguments


@dataclass(frozen=True)
class Lines:
    """Items that one line of text stands for."""

    items: tuple[ir.Item, ...]


class Hoist:
    """Takes the calls out of one statement; `fresh` makes names, `limit` refuses what nests too deep."""

    def __init__(self, fresh: Callable[[str], str], limit: Callable[[ir.Expr], None]) -> None:
        self.fresh = fresh
        self.limit = limit
        self.calls: list[ir.CallStatement] = []

    def value(self, node: ir.Expr) -> ir.Expr:
        """An expression with a name in the place of each call."""
        self.limit(node)
        return ir.transform(node, self._named)

    def call(self, targets: tuple[ir.Access, ...], call: UserCall) -> ir.CallStatement:
        positional = tuple(map(self.value, call.arguments.positional))
        keywords = tuple((name, self.value(value)) for name, value in call.arguments.keywords)
        return ir.CallStatement(targets, call.function, positional, keywords, span=call.span)

    def _named(self, node: ir.Expr) -> ir.Expr:
        if not isinstance(node, UserCall):
            return node
        target = ir.Access(self.fresh(node.function), span=node.span)
        self.calls.append(self.call((target,), node))
        return target


def in_each_step(item: ir.Item, block: str, made: set[str]) -> ir.Item:
    """What a nested call gives in a block has an element for each step: its name gets the block's index."""

    def placed(node: ir.Expr) -> ir.Expr:
        if isinstance(node, ir.Access) and node.tensor in made:
            return replace(node, indices=(ir.Index(block), *node.indices))
        return node

    match item:
        case ir.Block(body=body):
            return replace(item, body=tuple(in_each_step(inner, block, made) for inner in body))
        case ir.CallStatement(targets=targets, arguments=arguments, keywords=keywords):
            return replace(
                item,
                targets=tuple(ir.transform(target, placed) for target in targets),  # type: ignore[misc]
                arguments=tuple(ir.transform(value, placed) for value in arguments),
                keywords=tuple((name, ir.transform(value, placed)) for name, value in keywords),
            )
    return ir.map_statement(item, placed) if isinstance(item, ir.Statement) else item
