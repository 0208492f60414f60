"""Prepare: program -> program that kernels can run in place: what a statement would change under itself is copied."""

from __future__ import annotations

from dataclasses import replace

from ..language import ir
from ..language.affine import affine
from ..language.ir import Number
from ..rules.order import complete_when_read


def prepare(loops: ir.Loops) -> ir.Loops:
    """Hoists what no step of a block needs, then copies what a statement would read while it changes it."""
    return _copy_before_change(_hoist(loops))


def _hoist(loops: ir.Loops) -> ir.Loops:
    """Sums at the end of a block that no step reads, over values that are complete, run behind the block at once."""
    body: list[ir.Item] = []
    for item in loops.body:
        if isinstance(item, ir.Block):
            kept, moved = _split(loops, item)
            body.extend([kept] if kept.body else [])
            body.extend(moved)
        else:
            body.append(item)
    return replace(loops, body=tuple(body))


def _split(loops: ir.Loops, block: ir.Block) -> tuple[ir.Block, list[ir.Statement]]:
    if any(isinstance(inner, ir.Block) for inner in block.body):
        return block, []
    body = [s for s in block.body if isinstance(s, ir.Statement)]
    read = {a.tensor for s in body for a in s.reads}
    moved = []
    for statement in body:
        alone = statement.target.tensor not in read and block.index in statement.indices
        if not alone or statement.operator not in ir.SUM:
            continue
        written = {s.target.tensor for s in body}
        if all(a.tensor not in written or complete_when_read(loops, (statement, (block,)), a) for a in statement.reads):
            moved.append(statement)
    kept = tuple(s for s in block.body if s not in moved)
    return replace(block, body=kept), moved


def _copy_before_change(loops: ir.Loops) -> ir.Loops:
    taken = set(loops.names)

    def visit(body: tuple[ir.Item, ...], blocks: tuple[str, ...]) -> tuple[ir.Item, ...]:
        result: list[ir.Item] = []
        for item in body:
            if isinstance(item, ir.Block):
                result.append(replace(item, body=visit(item.body, (*blocks, item.index))))
                continue
            assert isinstance(item, ir.Statement)
            name = item.target.tensor
            own = [a for a in item.reads if a.tensor == name]
            if own and not all(_harmless(item, a, blocks) for a in own):
                copy = ir.fresh(f"{name.replace('.', '_')}_old", taken)
                taken.add(copy)
                indices = tuple(ir.Index(f"{copy}_{k}") for k in range(len(item.target.indices)))
                result.append(ir.Statement(ir.Access(copy, indices), "=", ir.Access(name, indices)))
                item = _reading(item, name, copy)
            result.append(item)
        return tuple(result)

    return replace(loops, body=visit(loops.body, ()))


def _harmless(statement: ir.Statement, access: ir.Access, blocks: tuple[str, ...]) -> bool:
    """The very element that the point writes, at its only point; or an element of another step."""
    if access == statement.target and not ir.candidates(statement):
        return True
    for written, read in zip(statement.target.indices, access.indices, strict=True):
        a, b = affine(written), affine(read)
        if a is None or b is None or a.terms != b.terms or not set(a.terms) <= set(blocks):
            continue
        if isinstance(a.constant, Number) and isinstance(b.constant, Number) and a.constant != b.constant:
            return True
    return False


def _reading(statement: ir.Statement, name: str, copy: str) -> ir.Statement:
    def change(node: ir.Expr) -> ir.Expr:
        return replace(node, tensor=copy) if isinstance(node, ir.Access) and node.tensor == name else node

    guard = None if statement.guard is None else ir.transform(statement.guard, change)
    places = tuple(ir.transform(e, change) for e in statement.target.indices)
    target = replace(statement.target, indices=places)
    return replace(statement, target=target, value=ir.transform(statement.value, change), guard=guard)
