"""Made again: values of each step that another block reads are computed again there, where that costs less than to keep
those of all steps.

for t:
    a[t,i] = x[i] * Y[t,i]
    Y[t+1,i] = Y[t,i] + h * a[t,i]
for t down:
    g[i] += G[t,i] * a[t,i] + Y[t,i]
->  for t:
        a[t,i] = x[i] * Y[t,i]
        Y[t+1,i] = Y[t,i] + h * a[t,i]
    for t down:
        a_1[t,i] = x[i] * Y[t,i]
        g[i] += G[t,i] * a_1[t,i] + Y[t,i]

Both keep one slice then (see rolling_buffers.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

from ..language import ir
from ..language.counting import operations
from ..language.functions import takes_long
from ..language.ir import Expr
from ..rules.complete_reads import complete_when_read
from .step_slices import accesses_in, own_index
from .work import Draft, Work, statements_in, whole_axes

LARGE = 1 << 20  # bytes of all steps: what a cache holds is sooner read than made
CHEAP = 8  # operations for an element, beside which memory is slow


@dataclass
class Again:
    """Two blocks, and the statements of the first whose values the second computes again, by what they make."""

    first: ir.Block
    second: ir.Block
    made: dict[str, ir.Statement]


def make_again(work: Work) -> Work:
    blocks = [item for item in work.loops.body if isinstance(item, ir.Block)]
    for first, second in combinations(blocks, 2):
        found = _found(work, first, second)
        if found.made:
            return make_again(_with(work, found))
    return work


def _found(work: Work, first: ir.Block, second: ir.Block) -> Again:
    found = Again(first, second, {})
    if work.sizes.index[first.index] != work.sizes.index[second.index]:
        return found
    for statement in first.body:
        if not isinstance(statement, ir.Statement) or not _is_kept_for(second, statement, first, work):
            continue
        if _is_large(work, statement) and _is_cheap(statement) and _can_be_made(work, statement, found):
            found.made[statement.target.tensor] = statement
    return found


def _is_kept_for(second: ir.Block, statement: ir.Statement, first: ir.Block, work: Work) -> bool:
    """Whether a statement makes a slice of a tensor in each step, which but for its own block the second one alone
    reads, in the step of the same number."""
    name, names = statement.target.tensor, whole_axes(statement.target, work.sizes)
    if statement.operator != "=" or statement.guard is not None or ir.candidates(statement):
        return False
    if names is None or first.index not in names or name in (*work.loops.outputs, *work.loops.inputs):
        return False
    if sum(s.target.tensor == name for s in work.loops.statements) > 1:
        return False
    others = [item for item in work.loops.body if item is not first and any(accesses_in(item, name))]
    if len(others) != 1 or others[0] is not second:
        return False
    inner = {block.index for _, blocks in ir.Loops(body=(second,)).located for block in blocks}
    if inner & {*names} - {first.index}:
        return False
    return own_index(list(accesses_in(second, name)), names.index(first.index)) == second.index


def _is_large(work: Work, statement: ir.Statement) -> bool:
    return work.volume(statement.indices) * work.types.of(statement.target).dtype.itemsize >= LARGE


def _is_cheap(statement: ir.Statement) -> bool:
    return operations(statement) <= CHEAP and not any(map(takes_long, ir.walk(statement.value)))


def _can_be_made(work: Work, statement: ir.Statement, found: Again) -> bool:
    """Whether the second block has, or makes, what a statement reads, as it was when the first one read it."""
    first, second = found.first, found.second
    start = next(k for k, item in enumerate(work.loops.body) if item is first)
    later = {s.target.tensor for item in work.loops.body[start + 1 :] for s in statements_in(item)}
    own = {s.target.tensor for s in statements_in(first)}
    asked = {access.tensor for s in statements_in(second) for access in s.reads}

    def is_there(access: ir.Access) -> bool:
        name = access.tensor
        if name in found.made:
            axis = [ir.bare(place) for place in found.made[name].target.indices].index(first.index)
            return ir.bare(access.indices[axis]) == first.index
        if name in later or name not in own:
            return name not in later
        return name in asked and complete_when_read(work.loops, (statement, (first,)), access)

    return all(map(is_there, statement.reads))


def _with(work: Work, found: Again) -> Work:
    draft, first, second = Draft(work), found.first, found.second
    step: dict[str, Expr] = {first.index: ir.Index(second.index)}
    names: dict[str, str] = {}
    for name, statement in found.made.items():
        places = [ir.Index(index) for place in statement.target.indices if (index := ir.bare(place))]
        names[name] = draft.tensor(name, places, like=name).tensor

    def renamed(node: Expr) -> Expr:
        if isinstance(node, ir.Access | ir.AxisSize) and node.tensor in names:
            return replace(node, tensor=names[node.tensor])
        return node

    def moved(node: Expr) -> Expr:
        return renamed(ir.substitute_indices(step)(node))

    def body() -> Iterator[ir.Item]:
        for item in work.loops.body:
            if item is second:
                again = (ir.map_statement(s, moved) for s in found.made.values())
                rest = ir.rewrite(second.body, lambda s, _: [ir.map_statement(s, renamed)])
                yield replace(second, body=(*again, *rest))
            elif item is not first:
                yield item
            elif left := _still_read(first, found):
                yield replace(first, body=left)

    return draft.made(body())


def _still_read(first: ir.Block, found: Again) -> tuple[ir.Item, ...]:
    """The first block without statements that were there for the second one alone."""
    left: list[ir.Item] = []
    for item in reversed(first.body):
        name = next((name for name, statement in found.made.items() if statement is item), None)
        if name is None or any(any(accesses_in(other, name)) for other in left):
            left.append(item)
    return tuple(reversed(left))
