"""Transposed copies: a small tensor that a long loop would read with jumps is copied, its elements in line."""

from __future__ import annotations

import math
from dataclasses import replace

from ..language import ir
from ..language.affine import is_constant
from ..language.ir import Expr
from .work import TILED, Draft, Work, product_of

WORTHWHILE = 8  # points of the loop for each element of the copy
SHORT = 16  # elements of a loop that are too few for vectors


def lay_in_line(work: Work) -> Work:
    """For statements that tiles or turned copies do not run: those pack their operands themselves."""
    copies = _Copies(Draft(work))
    draft = copies.draft

    def change(statement: ir.Statement, blocks: tuple[str, ...]) -> list[ir.Statement]:
        along = None if _packs_itself(work, statement) else _along(work, statement, blocks)
        if along is None:
            return [statement]
        target = statement.target
        bare = [e for e in target.indices if isinstance(e, ir.Index)]
        if along == target.indices[-1] or along not in bare:
            return [copies.read_in(statement, along)]
        turned = draft.tensor("turned", [*(e for e in bare if e != along), along], like=target.tensor)
        return [replace(copies.read_in(statement, along), target=turned), ir.Statement(target, "+=", turned)]

    made = draft.each(change)
    return made.made([*copies.made, *made.loops.body], copies.names.values())


def _packs_itself(work: Work, statement: ir.Statement) -> bool:
    """Whether a statement copies a tensor, or sums products of two over steps enough for tiles."""
    over, under = product_of(statement.value)
    factors = [f for f in (*over, *under) if not is_constant(f)]
    if statement.operator not in ir.SUM or not all(isinstance(f, ir.Access) for f in factors):
        return False
    steps = math.prod(work.weight(i) for i in ir.candidates(statement))
    return len(factors) == 1 or (len(factors) == 2 and steps >= TILED)


def _along(work: Work, statement: ir.Statement, blocks: tuple[str, ...]) -> ir.Index | None:
    """The index that vectors can run along: the last one of the target, or, where that is too short, a long one."""
    places = statement.target.indices
    last = places[-1] if places else None
    if not isinstance(last, ir.Index) or work.weight(last.name) >= SHORT:
        return last if isinstance(last, ir.Index) else None
    if blocks or statement.operator not in ir.SUM or not ir.candidates(statement):
        return None
    along = _most_read(work, statement)
    whole = len({e for e in places if isinstance(e, ir.Index)}) == len(places)
    return along if whole or along not in places else None


def _most_read(work: Work, statement: ir.Statement) -> ir.Index | None:
    """The long index that most reads run along."""
    last = [a.indices[-1] for a in statement.reads if a.indices]
    found = [e for e in last if isinstance(e, ir.Index) and work.weight(e.name) >= 4 * SHORT]
    if not found or any(not isinstance(e, ir.Index) for a in statement.reads for e in a.indices):
        return None
    return max(dict.fromkeys(found), key=found.count)


class _Copies:
    """Inputs with one of their axes behind the others."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.inputs = {*draft.loops.inputs} - draft.loops.updated
        self.names: dict[tuple[str, int], str] = {}
        self.made: list[ir.Statement] = []

    def read_in(self, statement: ir.Statement, along: ir.Index) -> ir.Statement:
        """The statement with copies in the place of inputs whose elements lie otherwise, where that is worthwhile: not
        where other tensors would be read with jumps all the same."""
        points = self.draft.volume(statement.indices)
        jumping = [a for a in statement.reads if a.indices.count(along) == 1 and a.indices[-1] != along]
        turned = [a for a in jumping if a.tensor in self.inputs and self.is_small(a.tensor, points)]
        summed = ir.candidates(statement)
        if any(a not in turned and ir.bare(a.indices[-1]) in summed for a in jumping):
            return statement

        def change(node: Expr) -> Expr:
            if not isinstance(node, ir.Access) or node not in turned:
                return node
            axis = node.indices.index(along)
            places = [*(e for k, e in enumerate(node.indices) if k != axis), along]
            return ir.Access(self.copy(node.tensor, axis), tuple(places))

        return replace(statement, value=ir.transform(statement.value, change))

    def is_small(self, tensor: str, points: int) -> bool:
        return points >= WORTHWHILE * math.prod(self.draft.sizes.shapes[tensor])

    def copy(self, tensor: str, axis: int) -> str:
        if (tensor, axis) not in self.names:
            indices = [self.draft.index("axis", extent) for extent in self.draft.sizes.shapes[tensor]]
            moved = [*(i for k, i in enumerate(indices) if k != axis), indices[axis]]
            held = self.draft.tensor("transposed", moved)
            self.made.append(ir.Statement(held, "=", ir.Access(tensor, tuple(indices))))
            self.names[tensor, axis] = held.tensor
        return self.names[tensor, axis]
