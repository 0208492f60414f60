"""Guards to selects: a guard that looks at data -> a value chosen by it, so that the loop runs in vectors and writes
all.

D[i] += G[i] if X[i] > 0   ->   D[i] += (G[i] if X[i] > 0 else 0)
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ..language import ir
from ..language.bounds import unproven
from ..language.build import conjunction, conjuncts
from .work import Work


def guards_to_selects(work: Work) -> Work:
    """Where every point may evaluate the value: it is in bounds everywhere, guard or not."""
    writers = Counter(s.target.tensor for s in work.loops.statements)

    def change(statement: ir.Statement, _: tuple[str, ...]) -> list[ir.Statement]:
        atoms = conjuncts(statement.guard)
        data = [atom for atom in atoms if any(isinstance(n, ir.Access) for n in ir.walk(atom))]
        fresh = statement.target.tensor not in work.loops.updated  # what was there before stays where the guard fails
        alone = statement.operator == "=" and writers[statement.target.tensor] == 1 and fresh
        if not data or not (statement.operator in ir.SUM or (alone and len(data) == len(atoms))):
            return [statement]
        if alone and not all(isinstance(e, ir.Index) for e in statement.target.indices):
            return [statement]  # what no statement writes is 0, but so is what this one does not reach
        if any(isinstance(n, ir.Inside | ir.Logic) for atom in atoms for n in ir.walk(atom)):
            return [statement]
        condition = conjunction(data)
        assert condition is not None
        value = ir.Conditional(condition, statement.value, ir.Number(0))
        chosen = replace(statement, value=value, guard=conjunction(a for a in atoms if a not in data))
        everywhere = replace(chosen, value=ir.Binary("+", statement.value, condition))
        if unproven(replace(work.loops, body=(everywhere,)), work.sizes, {}):
            return [statement]
        return [chosen]

    return work.each(change)
