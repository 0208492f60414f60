"""Simplify: program -> program. Values that are already held are read instead of computed again; the dead goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from ..language import ir
from ..language.build import conjuncts
from ..language.ir import Expr
from .complete_reads import complete_when_read


@dataclass(frozen=True)
class Held:
    """A tensor that holds an expression as it stands, at the points where `conditions` hold."""

    access: ir.Access
    conditions: frozenset[Expr]


def held_values(loops: ir.Loops) -> dict[Expr, Held]:
    """Expressions that some tensor holds for good: right sides of `=` statements, of values that no longer change."""
    held: dict[Expr, Held] = {}
    writers = Counter(s.target.tensor for s in loops.statements)
    for statement, blocks in loops.located:
        target, conditions = statement.target, frozenset(conjuncts(statement.guard))
        whole = _is_whole(target) and len(set(target.indices)) == len(target.indices)
        if statement.operator != "=" or not whole or writers[target.tensor] > 1 or ir.Inside() in conditions:
            continue
        if {*ir.bare_indices(target)} != ir.index_names(statement.value) or not _worth_holding(statement.value):
            continue  # a target with further indices would bring them into the statement that reads it
        if loops.updated & {target.tensor, *ir.tensors_read(statement)}:
            continue
        if all(complete_when_read(loops, (statement, blocks), access) for access in statement.reads):
            held.setdefault(statement.value, Held(ir.Access(target.tensor, target.indices), conditions))
    return held


def _worth_holding(value: Expr) -> bool:
    """Whether reading is cheaper than computing: functions, divisions and powers; not a plain product."""
    return any(
        isinstance(n, ir.Call | ir.Conditional) or (isinstance(n, ir.Binary) and n.operator in ("/", "**"))
        for n in ir.walk(value)
    )


def reuse(value: Expr, held: Mapping[Expr, Held], holds: frozenset[Expr] = frozenset()) -> Expr:
    """The expression with held values read instead of computed, the largest first, where `holds` is known."""
    if not held:
        return value
    found = held.get(value)
    if found is not None and found.conditions <= holds:
        return found.access
    parts = ir.children(value)
    if not parts:
        return value
    changed = tuple(reuse(part, held, holds) for part in parts)
    return value if all(a is b for a, b in zip(parts, changed, strict=True)) else ir.rebuild(value, changed)


def remove_dead(loops: ir.Loops, outputs: Sequence[str]) -> ir.Loops:
    """Keeps the statements that some output needs."""
    asked: dict[str, set[str]] = {}
    for statement in loops.statements:
        names = (n.tensor for n in statement.nodes if isinstance(n, ir.Access | ir.AxisSize))
        asked.setdefault(statement.target.tensor, set()).update(names)
    needed, open_names = set(outputs), list(outputs)
    while open_names:
        new = asked.get(open_names.pop(), set()) - needed
        needed |= new
        open_names.extend(new)
    return replace(loops, body=_keep(loops.body, needed))


def _keep(body: tuple[ir.Item, ...], needed: Set[str]) -> tuple[ir.Item, ...]:
    return ir.rewrite(body, lambda s, _: [s] if s.target.tensor in needed else [])


def merge_doubles(loops: ir.Loops, outputs: Sequence[str]) -> ir.Loops:
    """Tensors that one statement each computes from the same expression become one."""
    single = {s.target.tensor: s for s, blocks in loops.located if not blocks}
    count = Counter(s.target.tensor for s in loops.statements)
    declared = {d.subject.tensor for d in loops.sizes if isinstance(d.subject, ir.AxisSize)}
    first: dict[tuple[object, ...], str] = {}
    same: dict[str, str] = {}
    for name, statement in single.items():
        if count[name] > 1 or name in outputs or name in loops.outputs or name in declared:
            continue
        if loops.updated & {name, *ir.tensors_read(statement)} or not _is_whole(statement.target):
            continue  # another value, or perhaps another shape
        key = (statement.target.indices, statement.operator, statement.value, statement.guard)
        if first.setdefault(key, name) != name:
            same[name] = first[key]
    if not same:
        return loops

    def change(node: Expr) -> Expr:
        if isinstance(node, ir.Access | ir.AxisSize) and node.tensor in same:
            return replace(node, tensor=same[node.tensor])
        return node

    kept = _keep(loops.body, {*loops.written} - same.keys())
    return ir.map_loops(replace(loops, body=kept), change)


def _is_whole(target: ir.Access) -> bool:
    """Bare indices only: they tell the shape."""
    return all(isinstance(place, ir.Index) for place in target.indices)


def with_outputs(loops: ir.Loops, outputs: Sequence[str]) -> ir.Loops:
    """The program that gives these outputs; they are named only where they are not those it gives anyway."""
    if loops.header:
        return loops
    order = {name: k for k, name in enumerate(loops.written)}
    wanted = tuple(sorted(dict.fromkeys(outputs), key=lambda n: order.get(n, 0)))
    plain = replace(loops, returns=None)
    return plain if plain.outputs == wanted else replace(loops, returns=wanted)
