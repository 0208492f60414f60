"""A plan -> a table: a row for each kernel, why it may run so, and what it costs."""

from __future__ import annotations

from html import escape

from ..plan.table import PlanTable, Row, short
from .markup import code, head, note, part, table


def plan_page(plan: PlanTable) -> str:
    if plan.reason:
        return part(head("Plan"), note(f"interpreted: {plan.reason}"))
    rows = [[str(number), *_cells(row)] for number, row in enumerate(plan.rows, 1)]
    operations, moved = (sum(getattr(row, name) for row in plan.rows) for name in ("operations", "bytes"))
    rows.append(["", "total", short(operations), f"{short(moved)}B", ""])
    told = [f"memory: {short(plan.results)}B of results, {short(plan.workspace)}B of workspace"]
    told += [f"saved from one kernel to another: {', '.join(plan.saved)}"] if plan.saved else []
    told += plan.note.splitlines()
    columns = table(["kernel", "runs", "operations", "moves", "statements"], rows, numbers=(2, 3), wide=(1, 4))
    return part(head("Plan"), columns, *map(note, told))


def _cells(row: Row) -> list[str]:
    how = escape(row.how) + "".join(map(note, row.remarks))
    formulas = note(f"operations: {row.operations_formula}; bytes: {row.bytes_formula}")
    statements = "<br>".join(map(code, row.statements)) + formulas
    return [how, short(row.operations), f"{short(row.bytes)}B", statements]
