"""Blocks at rest: a step that changes nothing is followed by steps that change nothing, so the block may end with it.

for u:
    above[0] = p[0] + q[0] > 0
    p[0] = p[0] + q[0] if above[0] else p[0]
->  the block is at rest if `not above[0]`

The step itself must not count: places are those of buffers that keep one slice. What a step leaves to the next must be
written by statements that say when they keep it, by conditions that are known before.
"""

from __future__ import annotations

from collections.abc import Collection

from ..language import ir
from ..language.build import ZERO, conjunction, opposite
from ..language.ir import Expr, Number
from ..language.sizes import Sizes
from .work import spanning


def at_rest(block: ir.Block, sizes: Sizes, fixed: Collection[str]) -> Expr | None:
    """When a step of the block has changed nothing, as its end knows it; None if it cannot tell. The `fixed` indices
    are those of the blocks around."""
    located = [(ir.map_statement(s, _without_steps), inner) for s, inner in ir.Loops(body=block.body).located]
    statements = [statement for statement, _ in located]
    if any(block.index in statement.indices for statement in statements):
        return None
    nested = {inner.index for _, blocks in located for inner in blocks}
    names = {s.target.tensor for s in statements}
    left = {name for name in names if not _begins_anew(name, statements, sizes, {*fixed} - nested, nested)}
    writers = [k for k, s in enumerate(statements) if s.target.tensor in left]
    if any(located[k][1] for k in writers):
        return None
    kept = [_kept(statements[k]) for k in writers]
    condition = conjunction(k for k in kept if not isinstance(k, bool))
    if condition is None or any(k is False for k in kept) or not ir.index_names(condition) <= {*fixed}:
        return None
    changed = left.union(s.target.tensor for s in statements[writers[0] :])
    read = {node.tensor for node in ir.walk(condition) if isinstance(node, ir.Access)}
    return None if read & changed else condition


def _without_steps(node: Expr) -> Expr:
    """0 for the place of the only slice: `(u+1) % 1`."""
    return ZERO if isinstance(node, ir.Binary) and node.operator == "%" and node.right == Number(1) else node


def _begins_anew(
    name: str, statements: list[ir.Statement], sizes: Sizes, fixed: Collection[str], nested: Collection[str]
) -> bool:
    """Whether each step writes all of a tensor before it reads any: it finds nothing of the step before."""
    accesses = [a for s in statements for a in (s.target, *s.reads) if a.tensor == name]
    parts: set[tuple[int, Expr]] = set()  # of one axis, written by statements of their own
    for statement in (s for s in statements if name in {s.target.tensor, *ir.tensors_read(s)}):
        if name in ir.tensors_read(statement) or statement.operator != "=" or statement.guard is not None:
            return False
        places = list(enumerate(statement.target.indices))
        alone = [(k, p) for k, p in places if isinstance(p, Number) and sizes.shapes[name][k] > 1]
        own = [k for k, p in places if ir.bare(p) in fixed and all(a.indices[k] == p for a in accesses)]
        names = spanning(statement.target, sizes, {*own, *(k for k, _ in alone)})
        if names is None or {*names} & {*nested}:
            return False
        parts.update(alone)
        if not alone or (len({axis for axis, _ in parts}) == 1 and len(parts) == sizes.shapes[name][alone[0][0]]):
            return True
    return False


def _kept(statement: ir.Statement) -> Expr | bool:
    """When a statement leaves what it writes as it was."""
    return statement.operator == "=" and statement.guard is None and _is_old(statement.value, statement.target)


def _is_old(value: Expr, target: ir.Access) -> Expr | bool:
    if not isinstance(value, ir.Conditional):
        return value == target
    yes, no = (_is_old(branch, target) for branch in (value.then, value.otherwise))
    return _either(_both(value.condition, yes), _both(opposite(value.condition), no))


def _both(condition: Expr, then: Expr | bool) -> Expr | bool:
    if isinstance(then, bool):
        return condition if then else False
    return ir.Logic("and", condition, then)


def _either(left: Expr | bool, right: Expr | bool) -> Expr | bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return left if right is False else right if left is False else True
    return ir.Logic("or", left, right)
