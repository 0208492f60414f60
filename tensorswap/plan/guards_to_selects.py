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
from .work import Draft, for_each_statement


@for_each_statement
def guards_to_selects(draft: Draft, statement: ir.Statement, _: tuple[str, ...]) -> list[ir.Statement]:
    """Where every point may evaluate the value: it is in bounds everywhere, guard or not."""
    atoms = conjuncts(statement.guard)
    data = [atom for atom in atoms if any(isinstance(n, ir.Access) for n in ir.walk(atom))]
    data = [atom for atom in data if not bounded_by_values(atom)]  # a loop runs between those
    condition = conjunction(data)
    if condition is None or any(isinstance(n, ir.Inside | ir.Logic) for atom in atoms for n in ir.walk(atom)):
        return [statement]
    if statement.operator not in ir.SUM and not (len(data) == len(atoms) and _writes_alone(draft.loops, statement)):
        return [statement]
    value = ir.Conditional(condition, statement.value, ir.Number(0))
    chosen = replace(statement, value=value, guard=conjunction(a for a in atoms if a not in data))
    everywhere = replace(chosen, value=ir.Binary("+", statement.value, condition))
    return [statement] if unproven(replace(draft.loops, body=(everywhere,)), draft.sizes, {}) else [chosen]


def _writes_alone(loops: ir.Loops, statement: ir.Statement) -> bool:
    """Whether what a guard leaves out is 0: nothing else writes it, it was not there before, and all is reached."""
    target = statement.target
    once = statement.operator == "=" and sum(s.target.tensor == target.tensor for s in loops.statements) == 1
    return once and target.tensor not in loops.updated and all(isinstance(e, ir.Index) for e in target.indices)
