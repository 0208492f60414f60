"""Register blocks: a recurrence that is a few sums and products at each point takes all its steps for a few vectors of
points, and then for the next ones.

One step after the other over all points, each would load what the one before has stored. Here it stays in registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..kernel.ir import (
    ONE,
    WORD,
    ZERO,
    Body,
    For,
    If,
    Memory,
    Role,
    Set,
    Statement,
    Value,
    Variable,
    word,
)
from ..kernel.registers import registers
from ..language import ir
from ..language.build import conjunction, conjuncts
from ..language.ir import Expr, Index
from ..plan.first_writes import Planned
from .held import Held
from .layout import Cut, Layout
from .scope import Scope
from .together import loops_shared

MOST = 8  # vectors: enough to fill the pipelines while each waits for its last sum
FEW = 6  # statements of a step


@dataclass(frozen=True)
class Chunks:
    """The points that take all steps of a block at once: so many vectors along an index."""

    index: str
    lanes: int
    vectors: int
    statements: Sequence[Planned]

    @property
    def points(self) -> int:
        return self.lanes * self.vectors


def chunks_of(block: ir.Block, scope: Scope) -> Chunks | None:
    """None if steps do not stay at their points, or do more than such a loop is good for."""
    statements = [s for s in block.body if isinstance(s, Planned)]
    if len(statements) != len(block.body) or not 0 < len(statements) <= FEW:
        return None
    orders = [loops_shared(s, scope, {*scope.fixed, block.index}) for s in statements]
    order = orders[0]
    if order is None or len(order) != 1 or any(other != order for other in orders):
        return None
    (index,) = order
    if index not in scope.strips or index in scope.vectors or not _stays(block, statements, index, scope):
        return None
    accesses = [a for s in statements for a in (s.target, *s.reads) if index in ir.index_names(a)]
    (item,) = {scope.layout.stored(a.tensor).itemsize for a in accesses}
    lanes = registers().bytes // item
    vectors = min(MOST, (registers().count - 2) // (len({a.tensor for a in accesses}) + 1))
    if vectors < 2 or lanes < 2 or scope.layout.most.get(index, 0) < lanes * vectors:
        return None
    return Chunks(index, lanes, vectors, statements)


def _stays(block: ir.Block, statements: Sequence[Planned], index: str, scope: Scope) -> bool:
    """Whether each point of the index has elements of its own in all that the block writes, save for sums that no step
    reads, and steps read nothing else that lies far from what the last step read; all of one type, and without
    functions."""
    written = {s.target.tensor for s in statements}
    sums = {s.target.tensor for s in statements if index not in ir.index_names(s.target) and s.operator in ir.SUM}
    types = {scope.layout.stored(name) for name in sums}
    if len(sums) == len(written):
        return False  # there is nothing to hold
    for statement in statements:
        if any(isinstance(n, ir.Call) for n in statement.nodes) or sums & {*ir.tensors_read(statement)}:
            return False
        if statement.target.tensor not in sums and Index(index) not in statement.target.indices:
            return False
        for access in (statement.target, *statement.reads):
            if access is statement.target and access.tensor in sums:
                continue
            axes = [k for k, e in enumerate(access.indices) if index in ir.index_names(e)]
            if not axes:
                if access.tensor in written:
                    return False
                continue
            bare = len(axes) == 1 and ir.bare(access.indices[axes[0]]) == index
            near = scope.layout.strides(access.tensor)[axes[0]] == 1 if bare else False
            local = scope.layout.roles.get(access.tensor) is Role.LOCAL
            if not near or not (local or block.index not in ir.index_names(access)):
                return False
            types.add(scope.layout.stored(access.tensor))
    return len(types) == 1 and types <= {np.dtype(np.float32), np.dtype(np.float64)}


def held_by(chunks: Chunks, layout: Layout, chunk: Variable) -> list[Held]:
    """What the steps write: each tensor that has one element at a point."""
    targets = {s.target.tensor: s.target for s in chunks.statements if Index(chunks.index) in s.target.indices}
    found: list[Held] = []
    for name, target in targets.items():
        axis = target.indices.index(Index(chunks.index))
        if any(extent != 1 for k, extent in enumerate(layout.shape(name)) if k != axis):
            continue
        cut = layout.cuts.get(name, {}).get(axis)
        place = chunk if cut is None else chunk - cut.low
        memory = Memory(f"held{len(found)}", layout.tensor(name).type)
        cut_here, at_once = (axis, Cut(chunk, chunks.points)), (chunks.lanes, chunks.vectors)
        found.append(Held(name, memory, chunks.points, place, cut_here, at_once))
    return found


@dataclass(frozen=True)
class Parted:
    """The steps of a block between bounds, where conditions on the step hold: the statements without them."""

    statements: Sequence[Planned]
    lows: Sequence[Value]
    highs: Sequence[Value]


def parted(block: ir.Block, chunks: Chunks, scope: Scope) -> Parted:
    """A recurrence often begins with a step that has none before it: the others need not ask."""
    atoms: dict[Expr, None] = {}
    for statement in chunks.statements:
        asked = [n.condition for n in ir.walk(statement.value) if isinstance(n, ir.Conditional)]
        atoms |= dict.fromkeys(atom for condition in (statement.guard, *asked) for atom in conjuncts(condition))
    lows, highs, used = scope.bounds(block.index, list(atoms), [])
    holding = set(used)

    def change(node: Expr) -> Expr:
        if isinstance(node, ir.Conditional) and set(conjuncts(node.condition)) <= holding:
            return scope.write.branch(node, True)
        return node

    made = [
        replace(
            s,
            value=ir.transform(s.value, change),
            guard=conjunction(tuple(atom for atom in conjuncts(s.guard) if atom not in holding)),
        )
        for s in chunks.statements
    ]
    return Parted(made, lows, highs)


def at_once(body: Sequence[Statement], chunks: Chunks, point: Variable) -> Body:
    """The statements of a step, whose loops over the points are vectors: as many as each loop is long, which it says by
    counting from 0."""
    made: list[Statement] = []
    for statement in body:
        match statement:
            case For(variable=variable, first=first, body=inner) if variable.name == point.name:
                lane = Variable("lane", WORD)
                steps = (Set(variable, first + lane), *inner)
                made.append(For(lane, ZERO, word(chunks.points), ONE, steps, at_once=(chunks.lanes, chunks.vectors)))
            case If(test=test, then=then, otherwise=otherwise):
                made.append(If(test, at_once(then, chunks, point), at_once(otherwise, chunks, point)))
            case _:
                made.append(statement)
    return tuple(made)
