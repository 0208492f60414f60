"""Optional: a program and the optional tensors that a call leaves out -> the program that reads their defaults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Set
from dataclasses import replace

from ..language import build, ir
from ..language.ir import Expr
from .activity import integer_uses

NEUTRAL = {"+": 0, "-": 0, "*": 1, "/": 1}
WHOLE = 2**24  # whole numbers up to here are exact in every type that a program computes in


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
    integers = integer_uses(loops)
    values = {
        name: value if name in integers else float(value)  # whole numbers would make a result of theirs an integer
        for name, value in optional_tensors(loops).items()
        if name in missing
    }
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
        return _folded(ir.rebuild(node, changed))

    guard = None if statement.guard is None else change(statement.guard)
    places = tuple(change(e) for e in statement.target.indices)
    target = replace(statement.target, indices=places)
    return replace(statement, target=target, value=change(statement.value), guard=guard)


def _folded(node: Expr) -> Expr:
    """Without the 0 of a sum and the 1 of a product. A product with 0 stays: it is NaN where the other factor is not
    finite, as if the zeros had been given."""
    if not isinstance(node, ir.Binary) or node.operator not in NEUTRAL:
        return node
    left, right = node.left, node.right
    if isinstance(left, ir.Number) and isinstance(right, ir.Number):
        return _of_numbers(node.operator, left.value, right.value) or node
    if isinstance(right, ir.Number) and right.value == NEUTRAL[node.operator]:
        return left
    if isinstance(left, ir.Number) and left.value == NEUTRAL[node.operator] and node.operator in "+*":
        return right
    return node


def _of_numbers(operator: str, a: int | float, b: int | float) -> ir.Number | None:
    """The sum, difference or product of whole numbers that are exact in any precision."""
    if operator == "/" or not (abs(a) < WHOLE and abs(b) < WHOLE and a == int(a) and b == int(b)):
        return None
    value = {"+": a + b, "-": a - b, "*": a * b}[operator]
    return ir.Number(value) if abs(value) < WHOLE else None


def _without_zeros(body: tuple[ir.Item, ...], writers: Counter[str]) -> tuple[ir.Item, ...]:
    """The body without sums of nothing, where another statement makes the tensor."""

    def kept(statement: ir.Statement, blocks: tuple[ir.Block, ...]) -> list[ir.Item]:
        name = statement.target.tensor
        nothing = statement.operator in ir.SUM and build.is_zero(statement.value)
        writers[name] -= nothing
        return [] if nothing and writers[name] else [statement]

    return ir.rewrite(body, kept)
