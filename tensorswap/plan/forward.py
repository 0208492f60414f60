"""Forward: a tensor that only copies another is not made; what reads it reads the other.

G[i,j] += C[j,i];  Y[i,j] = G[i,j] * X[i,j]   ->   Y[i,j] = C[j,i] * X[i,j]
"""

from __future__ import annotations

from dataclasses import replace

from ..language import ir
from ..language.ir import Expr
from .work import Work, same_order, whole_axes


def forward_copies(work: Work) -> Work:
    for name in work.loops.written:
        if name not in work.loops.outputs and name not in work.loops.updated:
            work = _forward(work, name)
    return work


def _forward(work: Work, name: str) -> Work:
    loops = work.loops
    writers = [k for k, item in enumerate(loops.body) if isinstance(item, ir.Statement) and item.target.tensor == name]
    if len(writers) != 1 or sum(s.target.tensor == name for s in loops.statements) != 1:
        return work
    writer = loops.body[writers[0]]
    assert isinstance(writer, ir.Statement)
    source, target = writer.value, writer.target
    if writer.guard is not None or writer.operator not in ("=", "+=") or not isinstance(source, ir.Access):
        return work
    if work.kinds and work.kinds[name] != work.kinds[source.tensor]:
        return work  # what reads it computes in its type
    names = whole_axes(target, work.sizes)
    if not names or sorted(names) != sorted(ir.bare(e) or "" for e in source.indices):
        return work
    later = [s for s, _ in replace(loops, body=loops.body[writers[0] :]).located]
    if source.tensor in loops.updated or any(s.target.tensor == source.tensor for s in later):
        return work
    if any(isinstance(n, ir.AxisSize) and n.tensor == name for s in later for n in s.nodes):
        return work
    if any(name in ir.tensors_read(s) and ir.Inside() in s.nodes for s in later):
        return work  # the other may be longer

    def change(node: Expr) -> Expr:
        if isinstance(node, ir.Access) and node.tensor == name:
            places = dict(zip(names, node.indices, strict=True))
            return replace(source, indices=tuple(places[ir.bare(e) or ""] for e in source.indices))
        return node

    body = tuple(item for k, item in enumerate(loops.body) if k != writers[0])
    if not all(same_order(s, ir.map_statement(s, change)) for s in later):
        return work
    return work.made(ir.map_items(body, lambda s: ir.map_statement(s, change)))
