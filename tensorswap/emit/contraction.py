"""Contractions: a sum of products of two tensors -> loops over register tiles, where strides allow it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..language import ir
from ..language.affine import affine, is_constant
from ..language.bounds import numbers
from ..language.build import ONE, divide, multiply
from ..language.ir import Expr, Number
from .expression import CAST, Expressions
from .layout import Layout

WORTHWHILE = 4  # steps of the sum below which a tile's start and end cost more than its middle


@dataclass(frozen=True)
class Contraction:
    """The roles of tensors and indices in y[row, column] += a[row, k] * b[column, k]."""

    form: str  # "outer": columns are contiguous in y and b; "dot": the last summed index is contiguous in a and b
    a: ir.Access
    b: ir.Access
    row: str | None
    column: str
    summed: tuple[str, ...]
    scale: Expr


def factors(value: Expr) -> tuple[list[ir.Access], Expr] | None:
    """The two accesses of a product and the constant beside them; None if the value is anything else."""
    match value:
        case ir.Access():
            return [value], ONE
        case ir.Binary(operator="*" | "/" as operator, left=left, right=right):
            a = factors(left)
            if operator == "/":
                return (a[0], divide(a[1], right)) if a and _is_scale(right) else None
            b = factors(right)
            return (a[0] + b[0], multiply(a[1], b[1])) if a and b else None
    return ([], value) if _is_scale(value) else None


def _is_scale(node: Expr) -> bool:
    return is_constant(node)


def strides(access: ir.Access, layout: Layout) -> dict[str, int] | None:
    """How far each index moves through memory; None if some place is not affine."""
    found: dict[str, int] = {}
    for place, step in zip(access.indices, layout.strides(access.tensor), strict=True):
        form = affine(numbers(place, layout.sizes))
        if form is None:
            return None
        for index, coefficient in form.terms.items():
            if not isinstance(coefficient, Number) or not isinstance(coefficient.value, int):
                return None
            found[index] = found.get(index, 0) + coefficient.value * step
    return found


def contraction(statement: ir.Statement, write: Expressions, fixed: set[str]) -> Contraction | None:
    """The roles in a statement that tiles can compute, or None."""
    target = statement.target
    if statement.operator not in ir.SUM or statement.guard is not None:
        return None
    if not all(isinstance(e, ir.Index) for e in target.indices) or len(set(target.indices)) < len(target.indices):
        return None
    parts = factors(statement.value)
    if parts is None or len(parts[0]) != 2 or target.tensor in ir.tensors_read(statement):
        return None
    dtype = write.stored(target.tensor)
    if dtype.kind != "f" or any(write.stored(a.tensor) != dtype for a in parts[0]):
        return None
    moves = [strides(access, write.layout) for access in (target, *parts[0])]
    if any(m is None for m in moves):
        return None
    y, first, second = (m or {} for m in moves)
    free = [i for i in statement.indices if i not in fixed]
    summed = [i for i in free if i not in y]
    if not summed or len(summed) > 3 or any(i not in first or i not in second for i in summed):
        return None
    left, right = (parts[0][0], first), (parts[0][1], second)
    for (a, of_a), (b, of_b) in ((left, right), (right, left)):
        found = _roles(statement, a, of_a, b, of_b, y, free, summed, parts[1], write.layout)
        if found:
            return found
    return None


def _roles(
    statement: ir.Statement,
    a: ir.Access,
    of_a: dict[str, int],
    b: ir.Access,
    of_b: dict[str, int],
    y: dict[str, int],
    free: list[str],
    summed: list[str],
    scale: Expr,
    layout: Layout,
) -> Contraction | None:
    if math.prod(layout.weight(i) for i in summed) < WORTHWHILE:
        return None
    rows = [i for i in free if y.get(i) and of_a.get(i) and not of_b.get(i)]
    columns = [i for i in free if y.get(i) and of_b.get(i) and not of_a.get(i)]
    row = max(rows, key=layout.weight, default=None)
    order = sorted(summed, key=lambda i: -abs(of_b[i]))
    for column in columns:
        if y[column] == 1 and of_b[column] == 1:
            return Contraction("outer", a, b, row, column, tuple(order), scale)
    along = [i for i in summed if of_a[i] == 1 and of_b[i] == 1]
    if along and row is not None and columns:
        column = max(columns, key=layout.weight)
        last = (*(i for i in order if i != along[0]), along[0])
        return Contraction("dot", a, b, row, column, last, scale)
    return None


class ContractionWriter:
    """Writes the loops around the tiles of one contraction."""

    def __init__(self, found: Contraction, statement: ir.Statement, write: Expressions, lines: list[str]) -> None:
        self.found = found
        self.statement = statement
        self.write = write
        self.layout = write.layout
        self.lines = lines
        self.type = CAST[write.stored(statement.target.tensor)]
        tensors = (found.a, found.b, statement.target)
        self.of_a, self.of_b, self.of_y = (strides(access, self.layout) or {} for access in tensors)

    def emit(self, indent: str, ranges: dict[str, tuple[str, str]], rows: int, vectors: int, lanes: int) -> None:
        """`ranges` bounds the loop over each index that is not summed over."""
        found = self.found
        inner = {found.row, found.column, *found.summed}
        for index in (i for i in ranges if i not in inner):
            self.lines.append(
                f"{indent}for {self.layout.index(index)} in range({ranges[index][0]}, {ranges[index][1]}):"
            )
            indent += "    "
        loops = []
        for index in found.summed:
            loops += [self.layout.size(index), str(self.of_a[index]), str(self.of_b[index])]
        loops = ["1", "0", "0"] * (3 - len(found.summed)) + loops
        sign = "-" if self.statement.operator == "-=" else ""
        scale = f"{sign}{self.write.value(found.scale, self.write.stored(self.statement.target.tensor))}"
        low, high = ranges[found.column]
        if found.form == "outer":
            steps = [(f"{vectors}_{lanes}", vectors * lanes), (f"1_{lanes}", lanes), ("1_1", 1)]
        else:
            steps = [("4", 4), ("1", 1)]
        name, start = self.layout.index(found.column), low
        for kind, step in steps:  # columns outside: what the tiles of one column read of b stays in the nearest cache
            end = high
            if step > 1:
                end = f"end{step}"
                self.lines.append(f"{indent}{end} = {start} + ({high} - {start}) // {step} * {step}")
            self.lines.append(f"{indent}for {name} in range({start}, {end}, {step}):")
            self.rows(indent + "    ", kind, ranges.get(found.row or ""), rows, [*loops, scale])
            start = end

    def rows(self, indent: str, kind: str, bounds: tuple[str, str] | None, rows: int, last: list[str]) -> None:
        """The tiles of one column."""
        found = self.found
        zero = ir.substitute_indices({index: Number(0) for index in found.summed})
        places = []
        for access in (found.a, found.b, self.statement.target):
            start = ir.transform(access, zero)
            assert isinstance(start, ir.Access)
            places += [self.layout.tensor(start.tensor), self.write.offset(start)]
        steps = [str(self.of_a.get(found.row or "", 0)), str(self.of_y.get(found.row or "", 0))]
        if found.form == "dot":
            steps += [str(self.of_b[found.column]), str(self.of_y[found.column])]
        arguments = ", ".join([*places, *steps, *last])
        tile = f"{found.form}_{self.type}"
        if found.row is None or bounds is None:
            self.lines.append(f"{indent}{tile}_1_{kind}({arguments})")
            return
        many = rows if found.form == "outer" else 4
        name, (low, high) = self.layout.index(found.row), bounds
        self.lines.append(f"{indent}whole = {low} + ({high} - {low}) // {many} * {many}")
        self.lines.append(f"{indent}for {name} in range({low}, whole, {many}):")
        self.lines.append(f"{indent}    {tile}_{many}_{kind}({arguments})")
        self.lines.append(f"{indent}for {name} in range(whole, {high}):")
        self.lines.append(f"{indent}    {tile}_1_{kind}({arguments})")
