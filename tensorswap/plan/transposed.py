"""Transposed copies: a small tensor that a long loop would read with jumps is copied, its elements in line."""

from __future__ import annotations

from dataclasses import replace

from ..language import ir
from ..language.affine import is_constant
from ..language.ir import Expr
from .work import Work, product_of

WORTHWHILE = 16  # points of the loop for each element of the copy
SHORT = 16  # elements of a loop that are too few for vectors


def lay_in_line(work: Work) -> None:
    """For statements that are no contractions of two tensors: those pack their operands themselves."""
    inputs = set(work.loops.inputs) - work.loops.updated
    copies: dict[tuple[str, int], str] = {}
    first: list[ir.Statement] = []

    def change(statement: ir.Statement, blocks: tuple[str, ...]) -> list[ir.Statement]:
        target = statement.target
        if not target.indices or not isinstance(target.indices[-1], ir.Index):
            return [statement]
        over, under = product_of(statement.value)
        factors = [f for f in (*over, *under) if not is_constant(f)]
        if statement.operator in ir.SUM and all(isinstance(f, ir.Access) for f in factors):
            return [statement]
        along = target.indices[-1]
        turned: ir.Access | None = None
        if work.weight(along.name) < SHORT:
            if blocks or statement.operator not in ir.SUM or not ir.candidates(statement):
                return [statement]
            longest = _in_line(work, statement)
            if longest is None:
                return [statement]
            along = ir.Index(longest)
            if along in target.indices:
                bare = [e for e in target.indices if isinstance(e, ir.Index)]
                if len(set(bare)) < len(target.indices):
                    return [statement]
                turned = work.tensor("turned", [*(e for e in bare if e != along), along])

        def replaced(node: Expr) -> Expr:
            if not isinstance(node, ir.Access) or node.tensor not in inputs or along not in node.indices[:-1]:
                return node
            if node.indices[-1] == along or node.indices.count(along) > 1:
                return node
            axis = node.indices.index(along)
            shape = work.sizes.shapes[node.tensor]
            size = 1
            for extent in shape:
                size *= extent
            if work.volume(statement.indices) < WORTHWHILE * size:
                return node
            if (node.tensor, axis) not in copies:
                indices = [work.index("axis", extent) for extent in shape]
                moved = [*(i for k, i in enumerate(indices) if k != axis), indices[axis]]
                held = work.tensor("transposed", moved)
                work.copies.add(held.tensor)
                first.append(ir.Statement(held, "=", ir.Access(node.tensor, tuple(indices))))
                copies[node.tensor, axis] = held.tensor
            places = [*(e for k, e in enumerate(node.indices) if k != axis), along]
            return ir.Access(copies[node.tensor, axis], tuple(places))

        changed = replace(statement, value=ir.transform(statement.value, replaced))
        if turned is None:
            return [changed]
        return [replace(changed, target=turned), ir.Statement(target, "+=", turned)]

    work.each(change)
    work.loops = replace(work.loops, body=(*first, *work.loops.body))


def _in_line(work: Work, statement: ir.Statement) -> str | None:
    """The long index that most reads run along, where the target's last one is too short for vectors."""
    last = [a.indices[-1] for a in statement.reads if a.indices]
    names = [e.name for e in last if isinstance(e, ir.Index) and work.weight(e.name) >= 4 * SHORT]
    if not names or any(not isinstance(e, ir.Index) for a in statement.reads for e in a.indices):
        return None
    return max(dict.fromkeys(names), key=names.count)
