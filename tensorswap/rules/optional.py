"""Optional: a program and the optional tensors that a call leaves out -> the program that reads their defaults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Set
from dataclasses import replace

from ..language import build, ir
from ..language.ir import Expr

FOLDED = {"+": build.add, "-": build.subtract, "*": build.multiply, "/": build.divide}


def optional_tensors(loops: ir.Loops) -> dict[str, int | float]:
    """The tensors of a header that have a default, `bias[o] = 0`: each of their elements is that number if left out."""
    arguments = loops.header.arguments if loops.header else ()
    return {
        a.name: a.default
        for a in arguments
        if isinstance(a, ir.Argument) and a.access.indices and a.default is not None
    }


def without(loops: ir.Loops, missing: Set[str]) -> ir.Loops:
    """The program without these optional tensors."""
    assert loops.header is not None
    values = {name: value for name, value in optional_tensors(loops).items() if name in missing}
    arguments = tuple(a for a in loops.header.arguments if a.name not in values)
    changed = replace(loops, header=replace(loops.header, arguments=arguments))
    changed = replace(changed, body=ir.map_items(changed.body, lambda s: _filled_in(s, values)))
    return replace(changed, body=_without_zeros(changed.body, Counter(s.target.tensor for s in changed.statements)))


def _filled_in(statement: ir.Statement, values: Mapping[str, int | float]) -> ir.Statement:
    """The statement with numbers in the place of tensors. It runs over the same points: an index that only such a
    tensor had stays as a term that is always 0."""
    if not ir.tensors_read(statement) & values.keys():
        return statement
    new = _changed(statement, lambda access: ir.Number(values[access.tensor]), values)
    lost = [i for i in statement.indices if i not in new.indices]
    if not lost:
        return new

    def with_index(access: ir.Access) -> Expr:
        number: Expr = ir.Number(values[access.tensor])
        for name in lost:
            number = ir.Binary("+", number, ir.Binary("*", ir.Number(0), ir.Index(name)))
        return number

    return _changed(statement, with_index, values)


def _changed(
    statement: ir.Statement, number: Callable[[ir.Access], Expr], values: Mapping[str, int | float]
) -> ir.Statement:
    def change(node: Expr) -> Expr:
        if isinstance(node, ir.Access) and node.tensor in values:
            return number(node)
        parts = ir.children(node)
        changed = tuple(change(part) for part in parts)
        if all(a is b for a, b in zip(parts, changed, strict=True)):
            return node  # what stands in a bracket and is none of ours stays as it is written
        if isinstance(node, ir.Binary) and node.operator in FOLDED:
            return FOLDED[node.operator](*changed)
        return ir.rebuild(node, changed)

    guard = None if statement.guard is None else change(statement.guard)
    places = tuple(change(e) for e in statement.target.indices)
    target = replace(statement.target, indices=places)
    return replace(statement, target=target, value=change(statement.value), guard=guard)


def _without_zeros(body: tuple[ir.Item, ...], writers: Counter[str]) -> tuple[ir.Item, ...]:
    """The body without sums of nothing, where another statement makes the tensor."""
    kept: list[ir.Item] = []
    for item in body:
        if isinstance(item, ir.Block):
            item = replace(item, body=_without_zeros(item.body, writers))
            if not item.body:
                continue
        elif isinstance(item, ir.Statement) and item.operator in ir.SUM and build.is_zero(item.value):
            writers[item.target.tensor] -= 1
            if writers[item.target.tensor]:
                continue
        kept.append(item)
    return tuple(kept)
