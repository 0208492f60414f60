"""Guards to selects: a guard that looks at data -> a value chosen by it, so that the loop runs in vectors and writes
all.

D[i] += G[i] if X[i] > 0   ->   D[i] += (G[i] if X[i] > 0 else 0)

A guard that bounds an index by values, `if row[i] <= e and e < row[i+1]`, stays: the loop runs over what it leaves.
"""

from __future__ import annotations

from dataclasses import replace

from ..language import ir
from ..language.bounds import bounded_by_values, unproven
from ..language.build import conjunction, conjuncts
from ..language.paths import always_read
from .work import ASKED, Draft, for_each_statement, statements_in


@for_each_statement
def guards_to_selects(draft: Draft, statement: ir.Statement, blocks: tuple[str, ...]) -> list[ir.Statement]:
    """Where every point may evaluate the value: it is in bounds everywhere, guard or not."""
    atoms = conjuncts(statement.guard)
    data = [atom for atom in atoms if any(isinstance(n, ir.Access) for n in ir.walk(atom))]
    data = [atom for atom in data if not _bounds_a_loop(atom, draft)]
    condition = conjunction(data)
    asked = [atom for atom in atoms if not isinstance(atom, ir.Inside)]
    if condition is None or any(isinstance(n, ir.Inside | ir.Logic) for atom in asked for n in ir.walk(atom)):
        return [statement]
    if statement.operator not in ir.SUM and not (len(data) == len(atoms) and _writes_alone(draft.loops, statement)):
        return [statement]
    value = ir.Conditional(condition, statement.value, ir.Number(0))
    chosen = replace(statement, value=value, guard=conjunction(a for a in atoms if a not in data))
    everywhere = replace(chosen, value=ir.Binary("+", statement.value, condition))
    open_uses = unproven(replace(draft.loops, body=(everywhere,)), draft.sizes, {})
    if not all(_is_read_before(draft, use.access, statement) for use in open_uses):
        return [statement]
    if not open_uses or blocks or chosen.guard is not None or not _asks_whole_sums(statement, condition):
        return [chosen]  # a step would go on with the sum of the step before
    names = [place for place in statement.target.indices if isinstance(place, ir.Index)]
    total = draft.tensor("sum", names, like=statement.target.tensor)
    return [ir.Statement(total, "+=", statement.value), replace(chosen, value=replace(value, then=total))]


def _bounds_a_loop(atom: ir.Expr, draft: Draft) -> bool:
    """Whether a loop runs between values that are read: over more than a few."""
    return any(draft.weight(index) > ASKED for index in bounded_by_values(atom))


def _asks_whole_sums(statement: ir.Statement, condition: ir.Expr) -> bool:
    """Whether sums can be made first and chosen then. Tiles do so by themselves, but do not read through indices."""
    places = statement.target.indices
    alone = all(isinstance(place, ir.Index) for place in places) and len({*places}) == len(places)
    return alone and bool(ir.candidates(statement)) and ir.index_names(condition) <= ir.index_names(statement.target)


def _is_read_before(draft: Draft, access: ir.Access, statement: ir.Statement) -> bool:
    """Whether another statement has made the same access at all points: it is in bounds there, by proof or by check."""
    asked = {n.tensor for place in access.indices for n in ir.walk(place) if isinstance(n, ir.Access)}
    found = False
    for item in draft.loops.body:
        inside = statements_in(item)
        if any(s is statement for s in inside):
            return found and asked.isdisjoint(s.target.tensor for s in inside)
        if not asked.isdisjoint(s.target.tensor for s in inside):
            found = False  # what it asked has changed since
        elif isinstance(item, ir.Statement) and item.guard is None:
            some = all(draft.sizes.index[i] > 0 for i in item.indices)  # a statement of no points proves nothing
            found |= some and access in always_read(item.value)
    return False


def _writes_alone(loops: ir.Loops, statement: ir.Statement) -> bool:
    """Whether what a guard leaves out is 0: nothing else writes it, it was not there before, and all is reached."""
    target = statement.target
    once = statement.operator == "=" and sum(s.target.tensor == target.tensor for s in loops.statements) == 1
    return once and target.tensor not in loops.updated and all(isinstance(e, ir.Index) for e in target.indices)
