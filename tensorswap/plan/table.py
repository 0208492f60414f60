"""The plan of a program as a table: what each kernel computes, how it runs, and what that costs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ..language import ir
from ..language.build import conjuncts
from ..language.counting import Formula, axis_name, operations, shown
from ..language.render import expression as show_expression
from ..language.render import statement as show_statement
from ..language.sizes import Sizes
from ..lazy import method
from .at_rest import at_rest
from .nest import Nest


@dataclass(frozen=True)
class Row:
    """One kernel: its statements, how it runs and why that is safe, its work and memory traffic."""

    statements: tuple[str, ...]
    how: str
    why: str
    operations: int
    bytes: int
    operations_formula: str
    bytes_formula: str
    local: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()  # blocks that need not take all their steps, and when they end

    @property
    def remarks(self) -> tuple[str, ...]:
        kept = (f"never stored beyond a strip: {', '.join(self.local)}",) if self.local else ()
        return (f"safe: {self.why}", *kept, *self.ends)


@dataclass(frozen=True)
class PlanTable:
    """Prints as a table. `reason` says why a program is interpreted instead, if it is."""

    rows: tuple[Row, ...]
    results: int = 0  # bytes of the outputs
    workspace: int = 0  # bytes of everything else that a run needs beside inputs and outputs
    saved: tuple[str, ...] = ()  # values that one kernel leaves in memory for another
    note: str = ""
    reason: str | None = None

    def __str__(self) -> str:
        if self.reason:
            return f"interpreted: {self.reason}"
        width = max([len(row.how) for row in self.rows] + [len("runs")]) + 2
        lines = [f"{'kernel':<8}{'runs':<{width}}{'operations':>10}{'bytes':>10}  statement"]
        for number, row in enumerate(self.rows, 1):
            first, *rest = row.statements
            lines.append(f"{number:<8}{row.how:<{width}}{short(row.operations):>10}{short(row.bytes):>10}  {first}")
            lines += [f"{'':<{28 + width}}  {text}" for text in rest]
            lines += [f"{'':<8}{remark}" for remark in row.remarks]
            lines.append(f"{'':<8}operations: {row.operations_formula}; bytes: {row.bytes_formula}")
        operations, moved = (sum(getattr(r, name) for r in self.rows) for name in ("operations", "bytes"))
        lines.append(f"{'total':<{8 + width}}{short(operations):>10}{short(moved):>10}")
        lines.append(f"memory: {short(self.results)}B of results, {short(self.workspace)}B of workspace")
        if self.saved:
            lines.append(f"saved from one kernel to another: {', '.join(self.saved)}")
        if self.note:
            lines.append(self.note)
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The same table, for a notebook."""
        page: str = method("plan_page")(self)
        return page


def row(nest: Nest, sizes: Sizes, width: int) -> Row:
    """The cost of a kernel: operations at every loop point, and each tensor that it touches moved once."""
    if nest.joins:
        return _joining(nest, sizes.shapes[nest.joins], width)
    statements = nest.statements
    work: Formula = Counter()
    for statement, names in nest.repeated:
        work[names] += operations(statement)
    total = sum(_points(s, names, sizes) * operations(s) for s, names in nest.repeated)
    local = set(_local(nest))
    moved: Formula = Counter()
    count = 0
    for access in {a.tensor: a for s in statements for a in (s.target, *s.reads) if a.tensor not in local}.values():
        names = tuple(axis_name(access, k) for k in range(len(access.indices)))
        moved[names] += width
        count += width * math.prod(sizes.shapes[access.tensor])
    return Row(
        tuple(show_statement(s) for s in statements), _how(nest), nest.why, round(total), count,
        shown(work), shown(moved), tuple(sorted(local)), tuple(_ends(nest.items, sizes, _steps(nest))),
    )  # fmt: skip


def _steps(nest: Nest) -> frozenset[str]:
    return frozenset() if nest.block is None else frozenset({nest.block.index})


def _ends(items: Iterable[Nest | ir.Item], sizes: Sizes, around: frozenset[str]) -> Iterator[str]:
    """When blocks end before their last step."""
    for item in items:
        if isinstance(item, Nest):
            yield from _ends(item.items, sizes, around)
        elif isinstance(item, ir.Block):
            yield from _ends(item.body, sizes, around | {item.index})
            rest = at_rest(item, sizes, around)
            if rest is not None:
                where = show_expression(rest)
                yield f"the steps of {item.index} end with the first that changes nothing: where {where}"


def _joining(nest: Nest, shape: tuple[int, ...], width: int) -> Row:
    told = f"the copies of {nest.joins} that the other parts have made are added to it"
    axes = tuple(f"{nest.joins}:{k}" for k in range(len(shape)))
    copies, count = ("(parts-1)", *axes), math.prod(shape)
    moved: Formula = Counter({axes: width, copies: width})
    return Row((told,), _how(nest), nest.why, count, 2 * count * width, shown(Counter({copies: 1})), shown(moved))


def _local(nest: Nest) -> list[str]:
    inner = [name for item in nest.items if isinstance(item, Nest) for name in _local(item)]
    return [*(nest.local if nest.strip else ()), *inner]


def _how(nest: Nest) -> str:
    if nest.block is not None:
        return f"{_how(replace(nest, block=None))}, in each step of {nest.block.index}"
    if nest.index is None:
        return "serial"
    strips = f" by {nest.strip}" if nest.strip > 1 else ""
    inner = [item for item in nest.items if isinstance(item, Nest)]
    within = f", {inner[0].index} by {inner[0].strip}" if inner else ""
    return f"parallel over {nest.index}{strips}{within}"


def _points(statement: ir.Statement, indices: Iterable[str], sizes: Sizes) -> float:
    """Loop points: a comparison of two indices keeps about half of them."""
    points: float = math.prod(sizes.index[i] for i in indices)
    for atom in conjuncts(statement.guard):
        if isinstance(atom, ir.Compare) and len(ir.index_names(atom)) == 2 and atom.operator in ("<", "<=", ">", ">="):
            points /= 2
    return points


def short(number: int) -> str:
    """A number with a unit: `1.5 M`. A small one ends in a blank, where the unit would be."""
    for unit, size in (("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number} "
