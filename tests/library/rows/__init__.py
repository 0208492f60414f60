"""The table: one module for each family of ops, each with a tuple ROWS."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from ..table import Op

FAMILIES = sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))


def rows_of(family: str) -> tuple[Op, ...]:
    rows: tuple[Op, ...] = import_module(f"{__name__}.{family}").ROWS
    return rows


def all_rows() -> dict[str, Op]:
    return {row.name: row for family in FAMILIES for row in rows_of(family)}
