"""The plan of a program as a table: what each kernel computes, how it runs, and what that costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..language import ir
from ..language.render import statement as show_statement
from ..language.sizes import Sizes


@dataclass(frozen=True)
class Row:
    """One kernel: the statements it runs, its parallel index and why that is safe, its work and memory traffic."""

    statements: tuple[str, ...]
    parallel: str
    why: str
    operations: int
    bytes: int


@dataclass(frozen=True)
class PlanTable:
    """Prints as a table. `reason` says why a program is interpreted instead, if it is."""

    rows: tuple[Row, ...]
    memory: int
    reason: str | None = None

    def __str__(self) -> str:
        if self.reason:
            return f"interpreted: {self.reason}"
        lines = [f"{'kernel':<8}{'runs':<26}{'operations':>12}{'bytes':>12}  statement"]
        for number, row in enumerate(self.rows, 1):
            first, *rest = row.statements
            how = f"parallel over {row.parallel}" if row.parallel else "serial"
            lines.append(f"{number:<8}{how:<26}{_short(row.operations):>12}{_short(row.bytes):>12}  {first}")
            lines += [f"{'':<58}  {text}" for text in rest]
            lines.append(f"{'':<8}({row.why})")
        total, traffic = sum(r.operations for r in self.rows), sum(r.bytes for r in self.rows)
        lines.append(
            f"{'total':<34}{_short(total):>12}{_short(traffic):>12}  {_short(self.memory)}B of memory for results"
        )
        return "\n".join(lines)

    __repr__ = __str__


def row(statements: Sequence[ir.Statement], parallel: str | None, why: str, sizes: Sizes, width: int) -> Row:
    """The cost of a kernel: operations at every loop point, and each tensor that it touches moved once."""
    operations = sum(_points(s, sizes) * _operations(s) for s in statements)
    tensors = {a.tensor for s in statements for a in (s.target, *s.reads)}
    moved = sum(math.prod(sizes.shapes[t]) for t in tensors) * width
    return Row(tuple(map(show_statement, statements)), parallel or "", why, operations, moved)


def _points(statement: ir.Statement, sizes: Sizes) -> int:
    return math.prod(sizes.index[i] for i in statement.indices)


def _operations(statement: ir.Statement) -> int:
    """Arithmetic operations and function calls at one loop point, the accumulation included."""
    nodes = ir.walk(statement.value)
    count = sum(isinstance(n, ir.Binary | ir.Call) or (isinstance(n, ir.Unary) and n.operator == "-") for n in nodes)
    return count + (statement.operator != "=")


def _short(number: int) -> str:
    for unit, size in (("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number} "
