"""Gathered rows: values written or read at one gathered place of each row, without the rest of the row.

A scatter writes one element of each row, and a sum over the rows meets zeros elsewhere. So its readers look at that
element alone:

G[n,label[n]] -= v[n];  Z[n] += G[n,c] * E[n,c];  X[n,c] += G[n,c]
->  Z[n] -= v[n] * E[n,label[n]];  X[n,label[n]] -= v[n]

And a tensor of which only gathered elements are read is computed at those alone:

L[n,c] = X[n,c] - M[n];  loss += L[n,label[n]]   ->   loss += X[n,label[n]] - M[n]
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from ..language import ir
from ..language.build import conjunction
from ..language.ir import Expr
from ..language.types import UNSIGNED
from .work import Work, product_of, same_order, whole_axes

FEWER = 4  # elements of a row for each one that is read


def read_gathered_only(work: Work) -> Work:
    """Among statements outside blocks."""
    if any(isinstance(item, ir.Block) for item in work.loops.body):
        return work
    uses = _Uses(work)
    for name in work.loops.written:
        if name in work.loops.outputs or name in work.loops.updated:
            continue
        for change in (_compute_where_read, _read_where_written):
            changed = change(work, uses, name)
            uses, work = uses if changed is work else _Uses(changed), changed
    return work


class _Uses:
    """The statements that write and read each tensor, and the tensors of which a size is asked."""

    def __init__(self, work: Work) -> None:
        self.writers: defaultdict[str, list[ir.Statement]] = defaultdict(list)
        self.readers: defaultdict[str, list[ir.Statement]] = defaultdict(list)
        self.asked: set[str] = set()
        for statement in _statements(work):
            self.writers[statement.target.tensor].append(statement)
            for name in ir.tensors_read(statement):
                self.readers[name].append(statement)
            self.asked.update(n.tensor for n in statement.nodes if isinstance(n, ir.AxisSize))


def _statements(work: Work) -> list[ir.Statement]:
    return [item for item in work.loops.body if isinstance(item, ir.Statement)]


def _settled(work: Work, statement: ir.Statement) -> bool:
    """Whether what a statement reads is never written after it."""
    later = _statements(work)
    later = later[next(k for k, s in enumerate(later) if s is statement) :]
    return not {s.target.tensor for s in later} & ir.tensors_read(statement)


def _compute_where_read(work: Work, uses: _Uses, name: str) -> Work:
    writers, readers = uses.writers[name], uses.readers[name]
    (writer,) = writers if len(writers) == 1 else (None,)
    if writer is None or not readers or writer.operator != "=" or writer.guard is not None:
        return work
    names = whole_axes(writer.target, work.sizes)
    if names is None or {*names} != {*writer.indices}:
        return work
    points = sum(work.volume(s.indices) for s in readers)
    if points * FEWER > work.volume(names) or name in uses.asked or not _settled(work, writer):
        return work
    if any(isinstance(n, ir.Inside) for s in readers for n in s.nodes):
        return work

    def change(node: Expr) -> Expr:
        if isinstance(node, ir.Access) and node.tensor == name:
            places = dict(zip(names, node.indices, strict=True))
            return ir.transform(writer.value, ir.substitute_indices(places))
        return node

    if _unsigned(work, [a for s in readers for a in s.reads if a.tensor == name]):
        return work
    changed = [(s, ir.map_statement(s, change)) for s in readers]
    if any({*new.indices} != {*old.indices} or not same_order(old, new) for old, new in changed):
        return work  # a sum over an index that nothing names any more would be a sum over nothing
    return work.made(ir.map_statement(s, change) for s in _statements(work) if s is not writer)


def _unsigned(work: Work, taken: list[ir.Access]) -> bool:
    """Whether a place is an unsigned number: an index may be less than another number, that one wraps around."""
    places = {n.tensor for a in taken for e in a.indices for n in ir.walk(e) if isinstance(n, ir.Access)}
    return any(work.kinds[name].dtype == UNSIGNED for name in places if name in work.kinds)


def _read_where_written(work: Work, uses: _Uses, name: str) -> Work:
    if len(uses.writers[name]) != 1 or not uses.readers[name] or name in uses.asked:
        return work
    (writer,) = uses.writers[name]
    places = writer.target.indices
    gathered = [k for k, e in enumerate(places) if isinstance(e, ir.Access)]
    names = [e.name for e in places if isinstance(e, ir.Index)]
    if len(gathered) != 1 or len(names) < len(places) - 1 or writer.operator not in ir.SUM:
        return work
    if len(set(names)) < len(names) or set(writer.indices) != set(names) or not _settled(work, writer):
        return work
    if _unsigned(work, [writer.target]):
        return work
    if any(isinstance(n, ir.Inside) for n in writer.nodes):
        return work
    changed: dict[int, ir.Statement] = {}
    statements = _statements(work)
    for number, reader in enumerate(statements):
        if name in ir.tensors_read(reader):
            sifted = _sifted(work, reader, writer, gathered[0])
            if sifted is None:
                return work
            changed[number] = sifted
    body = [changed.get(number, s) for number, s in enumerate(statements) if s is not writer]
    for sifted in changed.values():
        body = _behind_writers(body, sifted)
    return work.made(body)


def _sifted(work: Work, reader: ir.Statement, writer: ir.Statement, axis: int) -> ir.Statement | None:
    """The reader at the elements that the writer wrote; None if it reads in another way, or not in proportion."""
    name = writer.target.tensor
    over, under = product_of(reader.value)
    mine = [f for f in over if isinstance(f, ir.Access) and f.tensor == name]
    if len(mine) != 1 or reader.operator not in ir.SUM or sum(a.tensor == name for a in reader.reads) != 1:
        return None
    access = mine[0]
    found = whole_axes(access, work.sizes)
    if found is None or any(isinstance(n, ir.Inside) for n in reader.nodes):
        return None
    if any(found[axis] in ir.index_names(divisor) for divisor in under):
        return None  # elsewhere the zeros are divided, by zero perhaps
    own = [e.name if isinstance(e, ir.Index) else None for e in writer.target.indices]
    names: dict[str, Expr] = {o: e for o, e in zip(own, access.indices, strict=True) if o is not None}
    local = ir.map_statement(writer, ir.substitute_indices(names))
    at = {found[axis]: local.target.indices[axis]}
    value = local.value if writer.operator == "+=" else ir.Unary("-", local.value)
    moved = ir.map_statement(
        replace(reader, value=ir.transform(reader.value, lambda n: value if n == access else n)),
        ir.substitute_indices(at),
    )
    if {*moved.indices} != {*reader.indices} - {found[axis]}:
        return None  # a sum over an index that nothing names any more would be a sum over nothing
    return replace(moved, guard=conjunction([moved.guard, local.guard]))


def _behind_writers(statements: list[ir.Statement], statement: ir.Statement) -> list[ir.Statement]:
    """A scatter stands behind the statements that write the same tensor whole: the first of those then stores."""
    name = statement.target.tensor
    start = next(k for k, s in enumerate(statements) if s is statement)
    end = start
    for k in range(start + 1, len(statements)):
        if name in ir.tensors_read(statements[k]) or statements[k].target.tensor in ir.tensors_read(statement):
            break
        if statements[k].target.tensor == name:
            end = k
    return [*statements[:start], *statements[start + 1 : end + 1], statement, *statements[end + 1 :]]
