"""Kernels: a group of statements -> one Numba function over a strip of its parallel index."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..language import ir
from ..language.affine import affine
from ..language.bounds import at_least_zero
from ..language.build import conjuncts
from ..language.ir import Expr, Number
from ..language.render import statement as show_statement
from ..language.sizes import Sizes
from ..language.types import Types
from ..plan.plan import Group
from .contraction import Contraction, ContractionWriter, contraction
from .expression import Expressions
from .layout import Layout, Word
from .registers import ROWS, VECTORS, vector_bytes

BEST = "best of "  # names the tensor beside an argmax= that holds the values of its winners
STRIP = 64  # values of the parallel index that run through all statements of a kernel before the next ones do


@dataclass(frozen=True)
class Kernel:
    """Generated source and what it needs at a call: a word of context for each tensor and variable size."""

    source: str
    words: tuple[Word, ...]
    parallel: str | None
    why: str
    statements: tuple[ir.Statement, ...]


class KernelWriter:
    def __init__(
        self,
        loops: ir.Loops,
        group: Group,
        types: Types,
        sizes: Sizes,
        default: np.dtype[Any],
        constant: frozenset[str],
        offsets: dict[int, int],
    ) -> None:
        self.loops = loops
        self.group = group
        self.types = types
        self.layout = Layout(sizes, constant)
        self.write = Expressions(self.layout, types, default)
        self.offsets = offsets
        self.lines: list[str] = []
        self.fixed: set[str] = set()  # indices that a loop around the statement already runs over

    def kernel(self) -> Kernel:
        body: list[str] = []
        self.lines = body
        parallel = self.group.parallel
        if parallel is None:
            for item in self.group.items:
                self.item(item, "    ")
        else:
            strip = STRIP if len(self.group.statements) > 1 else "max(last - first, 1)"
            body.append(f"    for low in range(first, last, {strip}):")
            body.append(f"        high = min(low + {strip}, last)")
            for item in self.group.items:
                self.item(item, "        ")
        head = ["def kernel(start, size, step, context):"]
        if parallel is not None:
            head += ["    first = start[0]", "    last = first + size[0]"]
        for position, word in enumerate(self.layout.words):
            if isinstance(word.item, str):
                beside = word.item.removeprefix(BEST) if word.item.startswith(BEST) else None
                dtype = self.write.best(self.loops, beside) if beside else self.write.stored(word.item)
                head.append(f"    {word.local} = {pointer_name(dtype)}(context[{position}])")
            else:
                head.append(f"    {word.local} = context[{position}]")
        return Kernel(
            "\n".join([*head, *body]) + "\n",
            tuple(self.layout.words),
            parallel,
            self.group.why,
            tuple(self.group.statements),
        )

    def item(self, item: ir.Item, indent: str) -> None:
        if isinstance(item, ir.Block):
            name, size = self.layout.index(item.index), self.layout.size(item.index)
            order = f"range({size} - 1, -1, -1)" if item.down else f"range({size})"
            self.lines.append(f"{indent}for {name} in {order}:")
            self.fixed.add(item.index)
            for inner in item.body:
                self.item(inner, indent + "    ")
            self.fixed.discard(item.index)
        else:
            assert isinstance(item, ir.Statement)
            self.statement(item, indent)

    # -- one statement

    def statement(self, statement: ir.Statement, indent: str) -> None:
        self.lines.append(f"{indent}# {self.renamed(statement)}")
        found = contraction(statement, self.write, self.fixed)
        if found is not None:
            self.contraction(found, statement, indent)
            return
        order = self.loop_order(statement)
        atoms = list(conjuncts(statement.guard))
        target = statement.target
        reduced = [i for i in order if i in ir.candidates(statement)]
        local = (
            statement.operator not in ("=", "argmax=", "argmin=")
            and bool(reduced)
            and order[len(order) - len(reduced) :] == reduced
            and all(isinstance(e, ir.Index) for e in target.indices)
        )
        depth = 0
        place = f"{self.layout.tensor(target.tensor)}[{self.write.offset(target)}]"
        for position, index in enumerate(order):
            if local and position == len(order) - len(reduced):
                self.lines.append(f"{indent}{'    ' * depth}total = {self.loaded(target, place)}")
                after = depth
            low, high, used = self.range(index, atoms, order[:position])
            atoms = [atom for atom in atoms if atom not in used]
            self.lines.append(f"{indent}{'    ' * depth}for {self.layout.index(index)} in range({low}, {high}):")
            depth += 1
        inner = indent + "    " * depth
        conditions = self.conditions(statement, atoms)
        if conditions:
            self.lines.append(f"{inner}if {conditions}:")
            inner += "    "
        dtype = self.accumulated(target.tensor)
        if statement.operator in ("argmax=", "argmin="):
            self.argument(statement, inner)
        elif local:
            value = self.write.value(statement.value, dtype)
            self.lines.append(f"{inner}total = {self.combined(statement.operator, 'total', value)}")
            stored = self.write.stored(target.tensor)
            text = "total" if stored == dtype else self.write.cast("total", stored)
            self.lines.append(f"{indent}{'    ' * after}{place} = {text}")
        else:
            stored = self.write.stored(target.tensor)
            value = self.write.value(statement.value, dtype)
            if statement.operator != "=":
                value = self.combined(statement.operator, self.loaded(target, place), value)
            if stored != dtype or stored == np.bool_:
                value = self.write.cast(value, np.dtype(np.uint8) if stored == np.bool_ else stored)
            self.lines.append(f"{inner}{place} = {value}")

    def contraction(self, found: Contraction, statement: ir.Statement, indent: str) -> None:
        """Register tiles, with loops around them over what is not summed."""
        ranges = {}
        for index in (i for i in statement.indices if i not in self.fixed and i not in found.summed):
            low, high, _ = self.range(index, [], [])
            ranges[index] = (low, high)
        width = vector_bytes()
        lanes = width // self.write.stored(statement.target.tensor).itemsize
        writer = ContractionWriter(found, statement, self.write, self.lines)
        writer.emit(indent, ranges, ROWS[width], VECTORS[width], lanes)

    def accumulated(self, tensor: str) -> np.dtype[Any]:
        """The type that values for a tensor are computed in: integers in 64 bits, whatever they are stored in."""
        stored = self.write.stored(tensor)
        return np.dtype(np.int64) if stored.kind in "iu" else stored

    def loaded(self, target: ir.Access, place: str) -> str:
        dtype = self.accumulated(target.tensor)
        return place if self.write.stored(target.tensor) == dtype else self.write.cast(place, dtype)

    def conditions(self, statement: ir.Statement, atoms: list[Expr]) -> str:
        """What is left of the guard once loop bounds took their part; `inside` first."""
        texts = []
        if any(isinstance(atom, ir.Inside) for atom in atoms):
            texts.append(self.write.inside_statement(statement))
        texts += [self.guard_text(statement, atom) for atom in atoms if not isinstance(atom, ir.Inside)]
        return " and ".join(t for t in texts if t != "True")

    def guard_text(self, statement: ir.Statement, atom: Expr) -> str:
        if not any(isinstance(n, ir.Inside) for n in ir.walk(atom)):
            return self.write.truth(atom)
        assert isinstance(atom, ir.Logic | ir.Unary)
        if isinstance(atom, ir.Unary):
            return f"(not {self._with_inside(statement, atom.operand)})"
        return self._with_inside(statement, atom)

    def _with_inside(self, statement: ir.Statement, node: Expr) -> str:
        if isinstance(node, ir.Inside):
            return f"({self.write.inside_statement(statement)})"
        if isinstance(node, ir.Logic):
            left, right = self._with_inside(statement, node.left), self._with_inside(statement, node.right)
            return f"({left} {node.operator} {right})"
        if isinstance(node, ir.Unary) and node.operator == "not":
            return f"(not {self._with_inside(statement, node.operand)})"
        return self.write.truth(node)

    @staticmethod
    def combined(operator: str, old: str, new: str) -> str:
        match operator:
            case "+=":
                return f"{old} + {new}"
            case "-=":
                return f"{old} - {new}"
            case "*=":
                return f"{old} * {new}"
        return f"{'maximum' if operator == 'max=' else 'minimum'}({old}, {new})"

    def argument(self, statement: ir.Statement, inner: str) -> None:
        """The first position of the best value so far, which a tensor beside the target holds."""
        target = statement.target
        at = self.write.offset(target)
        name = BEST + target.tensor
        self.layout.sizes.shapes[name] = self.layout.sizes.shapes[target.tensor]
        best, held = self.layout.tensor(name), self.layout.tensor(target.tensor)
        position: str = "0"
        for index in ir.candidates(statement):
            position = f"({position} * {self.layout.size(index)} + {self.layout.index(index)})"
        position = f"{position} + {self.offsets[id(statement)]}"
        dtype = self.write.best(self.loops, target.tensor)
        lines = [
            f"at = {at}",
            f"new = {self.write.value(statement.value, dtype)}",
            f"position = {position}",
            f"if {'above' if statement.operator == 'argmax=' else 'below'}(new, {best}[at], position, {held}[at]):",
            f"    {best}[at] = new",
            f"    {held}[at] = position",
        ]
        self.lines += [inner + line for line in lines]

    def renamed(self, statement: ir.Statement) -> str:
        """The statement in the kernel's own names."""

        def change(node: Expr) -> Expr:
            match node:
                case ir.Index(name=name):
                    return ir.Index(self.layout.index(name))
                case ir.Access(tensor=tensor):
                    return replace(node, tensor=self.layout.tensor(tensor))
                case ir.Size() | ir.AxisSize() | ir.Static():
                    return Number(self.layout.sizes.value(node)) if isinstance(node, ir.Static) else ir.Static("n")
            return node

        return show_statement(ir.map_statement(statement, change))

    # -- loops

    def loop_order(self, statement: ir.Statement) -> list[str]:
        """Target indices outside, candidates inside, and innermost the index with the most unit strides."""
        names = [i for i in statement.indices if i not in self.fixed]
        outer = [i for e in statement.target.indices for i in _names(e) if i in names]
        order = list(dict.fromkeys([*outer, *names]))
        if not order:
            return order
        guarded = {i for atom in conjuncts(statement.guard) for i in ir.index_names(atom)}
        best = max(order, key=lambda i: (self.score(statement, i), order.index(i)))
        if best not in guarded and self.score(statement, best) > self.score(statement, order[-1]):
            order.remove(best)
            order.append(best)
        return order

    def score(self, statement: ir.Statement, index: str) -> int:
        """How many accesses run along memory with the index, less those that jump."""
        score = 0
        for access in (statement.target, *statement.reads):
            stride = 0
            for place, step in zip(access.indices, self.layout.strides(access.tensor), strict=True):
                form = affine(place)
                if index in ir.index_names(place):
                    c = form.terms.get(index) if form else None
                    stride += abs(int(c.value)) * step if isinstance(c, Number) else 100
            if stride == 1:
                score += 2 if access is statement.target else 1
            elif stride > 1:
                score -= 1
        return score

    def range(self, index: str, atoms: list[Expr], outer: list[str]) -> tuple[str, str, list[Expr]]:
        """The bounds of a loop: those of the index, its strip, and the guards that bound it by outer indices."""
        strip = index == self.group.parallel
        low, high = (["low"], ["high"]) if strip else (["0"], [self.layout.size(index)])
        known = {*outer, *self.fixed}
        used: list[Expr] = []
        for atom in atoms:
            if not isinstance(atom, ir.Compare) or index not in ir.index_names(atom):
                continue
            bounds = at_least_zero(atom)
            forms = [affine(b) for b in bounds]
            if not bounds or any(
                f is None or f.terms.get(index) not in (Number(1), Number(-1)) or not set(f.terms) <= known | {index}
                for f in forms
            ):
                continue
            for form in forms:
                assert form is not None
                rest = self.write.integer(form.without(index).expression())
                if form.terms[index] == Number(1):  # index + rest >= 0
                    low.append(f"-({rest})")
                else:  # rest - index >= 0
                    high.append(f"({rest}) + 1")
            used.append(atom)
        return _joined("max", low), _joined("min", high), used


def _names(node: Expr) -> list[str]:
    return [n.name for n in ir.walk(node) if isinstance(n, ir.Index)]


def _joined(function: str, parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{function}({', '.join(parts)})"


def pointer_name(dtype: np.dtype[Any]) -> str:
    return f"pointer_{dtype.str[1:]}"
