"""Where the text does not show that `=` writes each element once, a kernel looks; what it cannot see is refused."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..errors import ArgumentError
from ..language import ir
from ..language.ir import Expr
from ..rules.complete_reads import complete_when_read
from ..rules.written_once import shown_by_text


@dataclass(frozen=True)
class Unshown:
    """Tensors whose elements several statements or steps might write twice, and updates that might do so alone."""

    tensors: frozenset[str]
    updates: frozenset[ir.Statement]


def unshown(loops: ir.Loops) -> Unshown:
    check_order(loops)
    updates = frozenset(
        statement
        for statement, blocks in loops.located
        if statement.target.tensor in loops.updated and not _once_in_a_step(loops, statement, blocks)
    )
    if shown_by_text(loops):
        return Unshown(frozenset(), updates)
    assigned = {s.target.tensor for s in loops.statements if s.operator == "="} - loops.updated
    return Unshown(frozenset(name for name in assigned if not shown_by_text(_alone(loops, name))), updates)


def check_order(loops: ir.Loops) -> None:
    """Refuses a block that might read an element before a later step writes it."""
    assigned = {s.target.tensor for s, blocks in loops.located if s.operator == "=" and blocks} - loops.updated
    for statement, blocks in loops.located:
        for access in statement.reads:
            if access.tensor in assigned and not complete_when_read(loops, (statement, blocks), access):
                raise ArgumentError(
                    f"only a run can show that no step reads an element of {access.tensor} that a later step writes, "
                    "and an exported file does not look",
                    access.span,
                    f"read what earlier steps wrote, such as {access.tensor}[t-1]",
                )


def _alone(loops: ir.Loops, name: str) -> ir.Loops:
    """The program as if `=` wrote one tensor only."""

    def change(statement: ir.Statement) -> ir.Statement:
        other = statement.target.tensor != name and statement.operator == "="
        return replace(statement, operator="+=") if other else statement

    return replace(loops, body=ir.map_items(loops.body, change))


def _once_in_a_step(loops: ir.Loops, statement: ir.Statement, blocks: tuple[ir.Block, ...]) -> bool:
    """An update may write an element at every step of a block, but only once in a step."""
    steps: dict[str, Expr] = {block.index: ir.Static("step") for block in blocks}
    alone = replace(statement, target=replace(statement.target, tensor=ir.fresh("new", loops.names)))
    return shown_by_text(ir.Loops(body=(ir.map_statement(alone, ir.substitute_indices(steps)),), sizes=loops.sizes))
