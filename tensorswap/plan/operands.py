"""Operands: a factor of a contraction that is no plain tensor gets one of its own, for register tiles to read."""

from __future__ import annotations

from dataclasses import replace

from ..language import ir
from ..language.affine import affine, is_constant
from ..language.bounds import divides_by_values, unproven
from ..language.build import product
from ..language.ir import Expr
from .work import Draft, divided, for_each_statement, product_of, scaled

WORTHWHILE = 8  # points of the contraction for each element of the operand


@for_each_statement
def split_operands(draft: Draft, statement: ir.Statement, blocks: tuple[str, ...]) -> list[ir.Statement]:
    if statement.operator not in ir.SUM:
        return [statement]
    over, under = product_of(statement.value)
    factors = [*over, *map(divided, under)]
    large = [f for f in factors if not is_constant(f) and ir.index_names(f) - set(blocks)]
    around = [i for i in statement.indices if i not in blocks]
    summed = [i for i in around if i not in ir.index_names(statement.target)]
    if len(large) != 2 or not all(any(i in ir.index_names(f) for i in summed) for f in large):
        return [statement]
    if any(draft.is_narrower(part, statement.target.tensor) for part in (product(large), *map(divided, under))):
        return [statement]  # its other factors, which come first, make it wide
    made: list[ir.Statement] = []
    held: dict[Expr, Expr] = {}
    for factor in large:
        own = dict.fromkeys(n.name for n in ir.walk(factor) if isinstance(n, ir.Index))
        names = [i for i in own if i in around]
        if _plain(factor) or len(names) == len(around):
            continue
        if draft.volume(names) * WORTHWHILE > draft.volume(around):
            continue
        access = draft.tensor("operand", [ir.Index(i) for i in names])
        first = ir.Statement(access, "=", factor)
        open_uses = unproven(replace(draft.loops, body=(first,)), draft.sizes, {})
        if statement.guard is not None and (open_uses or divides_by_values(factor)):
            continue
        made.append(first)
        held[factor] = access
    if not made:
        return [statement]
    value = scaled(product(held.get(f, f) for f in large), [f for f in factors if f not in large])
    return [*made, replace(statement, value=value)]


def _plain(factor: Expr) -> bool:
    return isinstance(factor, ir.Access) and all(affine(place) is not None for place in factor.indices)
