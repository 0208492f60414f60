"""swell: how the size of a derivative grows, written out, with equal parts shared, and as an adjoint program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...language import ir
from ...program import Program
from ...rules.activity import default_wrt
from ..flat.gates import gates
from .symbolic import symbolic_gradient


@dataclass(frozen=True)
class Row:
    """Counts of operations."""

    name: str
    value: int
    written_out: int
    shared: int
    adjoint: int


@dataclass(frozen=True)
class SwellTable:
    """Prints as a table."""

    rows: tuple[Row, ...]

    def __str__(self) -> str:
        width = max([len(row.name) for row in self.rows] + [8]) + 2
        lines = [f"{'function':<{width}}{'value':>8}{'written out':>16}{'shared':>10}{'adjoint':>10}"]
        for row in self.rows:
            lines.append(
                f"{row.name:<{width}}{row.value:>8,}{_short(row.written_out):>16}{row.shared:>10,}{row.adjoint:>10,}"
            )
        return "\n".join(lines)

    __repr__ = __str__


def _short(number: int) -> str:
    return f"{number:,}" if number < 10**12 else f"{number:.2e}"


def swell(functions: Mapping[str, Program]) -> SwellTable:
    """For each scalar program the operations of its value, and of its gradient by all inputs in three ways.

    "Written out" and "shared" are symbolic derivatives, one for each input. The adjoint is that of the program with one
    operation a statement; it gives the value as well.
    """
    rows = []
    for name, program in functions.items():
        steps = gates(program.loops)
        single = Program(ir.Loops(tuple(ir.Statement(ir.Access(g.name), "=", g.value) for g in steps)))
        gradient = single.grad(of=steps[-1].name)
        made = symbolic_gradient(program, default_wrt(program.loops))
        rows.append(
            Row(
                name,
                made[0].forward_operations,
                sum(s.operations for s in made),
                made[0].graph.operations([s.derivative for s in made]),
                operations(gradient),
            )
        )
    return SwellTable(tuple(rows))


def operations(program: Program) -> int:
    """Operations of a scalar program; an accumulation is one from its second statement on."""
    count, seen = 0, set()
    for statement in program.loops.statements:
        count += sum(isinstance(n, ir.Binary | ir.Unary | ir.Call | ir.Compare) for n in ir.walk(statement.value))
        count += statement.target.tensor in seen
        seen.add(statement.target.tensor)
    return count
