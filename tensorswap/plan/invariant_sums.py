"""Invariant sums: a sum that does not depend on one of its target's indices is added up once, not for each value of it.

Y[n,k] += S[k,d]   ->   sum[k] += S[k,d];  Y[n,k] += sum[k]
"""

from __future__ import annotations

from dataclasses import replace

from ..language import ir
from .work import Draft, for_each_statement


@for_each_statement
def lift_sums(draft: Draft, statement: ir.Statement, blocks: tuple[str, ...]) -> list[ir.Statement]:
    """Outside blocks, where a step may need another value."""
    target = statement.target
    names = [e.name for e in target.indices if isinstance(e, ir.Index)]
    summed = [i for i in statement.indices if i not in names]
    if blocks or statement.operator not in ir.SUM or len(names) < len(target.indices) or not summed:
        return [statement]
    if any(draft.sizes.index[i] == 0 for i in statement.indices):
        return [statement]  # a statement of no points may read anywhere, and the sum alone would have some
    used = ir.index_names(statement.value) | (ir.index_names(statement.guard) if statement.guard else frozenset())
    own = [i for i in names if i in used]
    if len(own) == len(names) or any(isinstance(n, ir.Inside) for n in statement.nodes):
        return [statement]
    held = draft.tensor("sum", [ir.Index(i) for i in own], like=target.tensor)
    return [replace(statement, target=held), ir.Statement(target, "+=", held)]
