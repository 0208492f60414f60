"""Carried guards: where an adjoint goes to one winner only, what reads it looks there only.

D.grad[n,k] += m.grad[n] if k == m.arg[n];  X.grad[n,d] += D.grad[n,k] * C[k,d]
->  X.grad[n,d] += m.grad[n] * C[k,d] if k == m.arg[n]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace

from ..language import ir
from ..language.build import conjunction, conjuncts
from ..language.ir import Expr

SHORT = 12  # nodes of a value that may stand in several statements


def carry_guards(loops: ir.Loops, outputs: Collection[str]) -> ir.Loops:
    """The program with routed adjoints in the place of their names, where these do nothing but scale."""
    body = list(loops.body)
    reads = Counter(name for s in loops.statements for name in ir.tensors_read(s))
    writes = Counter(s.target.tensor for s in loops.statements)
    for place, item in enumerate(body):
        if not isinstance(item, ir.Statement) or writes[item.target.tensor] > 1 or not _is_routed(item):
            continue
        name = item.target.tensor
        readers = {k: s for k, s in enumerate(body) if isinstance(s, ir.Statement) and name in ir.tensors_read(s)}
        inside_blocks = reads[name] > len(readers)
        carried = {k: _carried(item, reader) for k, reader in readers.items()}
        if name in outputs or inside_blocks or not readers or min(readers) < place or None in carried.values():
            continue
        for k, made in carried.items():
            assert made is not None
            body[k] = made
    return replace(loops, body=tuple(body))


def _is_routed(statement: ir.Statement) -> bool:
    """Whether a statement adds to the element of a winner: one of its indices is compared with a position."""
    places = [ir.bare(e) for e in statement.target.indices]
    if statement.operator not in ir.SUM or None in places or len(set(places)) < len(places):
        return False
    if {*statement.indices} - {*places} or sum(1 for _ in ir.walk(statement.value)) > SHORT:
        return False
    return any(
        isinstance(atom, ir.Compare) and atom.operator == "==" and ir.bare(atom.left) in places
        and isinstance(atom.right, ir.Access)
        for atom in conjuncts(statement.guard)
    )  # fmt: skip


def _carried(routed: ir.Statement, reader: ir.Statement) -> ir.Statement | None:
    """The reader with the routed value and its guard, if nothing else is lost by that."""
    name = routed.target.tensor
    found = [a for a in reader.reads if a.tensor == name]
    if len(found) != 1 or reader.operator not in ir.SUM or not _scales(reader.value, found[0]):
        return None
    places = [ir.bare(e) for e in found[0].indices]
    if None in places or len(set(places)) < len(places):
        return None
    names = {ir.bare(own) or "": place for own, place in zip(routed.target.indices, found[0].indices, strict=True)}
    moved = ir.map_statement(routed, ir.substitute_indices(names))
    value = moved.value if routed.operator == "+=" else ir.Unary("-", moved.value)
    changed = ir.map_statement(reader, lambda node: value if node == found[0] else node)
    return replace(changed, guard=conjunction((*conjuncts(moved.guard), *conjuncts(reader.guard))))


def _scales(value: Expr, access: ir.Access) -> bool:
    """Whether a value is a product with an access among its factors."""
    match value:
        case ir.Access():
            return value == access
        case ir.Unary(operator="-", operand=inner):
            return _scales(inner, access)
        case ir.Binary(operator="*", left=left, right=right):
            return _scales(left, access) or _scales(right, access)
        case ir.Binary(operator="/", left=left):
            return _scales(left, access)
    return False
