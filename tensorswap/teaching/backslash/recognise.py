"""Recognise: one read of a statement -> the operator that it is: a multiplication, a Hadamard product, a trace."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...arrays import Array
from ...language import ir
from ...language.build import ONE, conjunction, conjuncts, negate
from ...language.ir import Expr
from ...language.render import expression as show
from ...language.sizes import Sizes
from ...program import Program
from ...rules.differentiate import Contribution, Factor, Over, product
from .operators import Hadamard, Identity, Kronecker, Left, Operator, Right, Scale, Trace
from .spaces import Plain

INTERPRETED = 2**22  # points of an expression that is not worth compiling


@dataclass(frozen=True)
class Recogniser:
    """The values and sizes at which operators are formed."""

    values: Mapping[str, Array]
    sizes: Sizes

    def operator(self, statement: ir.Statement, contribution: Contribution) -> Operator | None:
        """The operator of one read in an `=` or `+=` statement, or None if it has no simple form."""
        rows, columns = self.whole(statement.target), self.whole(contribution.access)
        guard = conjunction((statement.guard, *contribution.conditions))
        if rows is None or columns is None or any(isinstance(atom, ir.Inside) for atom in conjuncts(guard)):
            return None
        factors = tuple(self.held(statement, f) for f in (*contribution.before, *contribution.after))
        coefficient = product(factors)
        if contribution.negative != (statement.operator == "-="):
            coefficient = negate(coefficient)
        return _Part(self, statement, coefficient, guard, factors, rows, columns).operator()

    @staticmethod
    def held(statement: ir.Statement, factor: Factor) -> Factor:
        """The factor with the statement's own value read from its target: 1 - tanh(Z) ** 2 is 1 - Y ** 2."""
        if statement.operator != "=":
            return factor
        if isinstance(factor, Over):
            return Over(ir.exchange(factor.divisor, statement.value, statement.target))
        return ir.exchange(factor, statement.value, statement.target)

    def whole(self, access: ir.Access) -> tuple[str, ...] | None:
        """The indices of an access that reads or writes each element of its tensor once; None if it does not."""
        names = [ir.bare(e) for e in access.indices]
        shape = self.sizes.shapes[access.tensor]
        fits = all(n is not None and self.sizes.index[n] == s for n, s in zip(names, shape, strict=True))
        return tuple(str(n) for n in names) if fits and len(set(names)) == len(names) else None

    def factor(self, node: Expr, guard: Expr | None, axes: Sequence[str]) -> Array:
        """An expression as an array over some indices, summed over the others that it names."""
        if isinstance(node, ir.Access) and guard is None and self.whole(node) is not None:
            names = self.whole(node)
            if names is not None and set(names) == set(axes):
                return np.transpose(self.values[node.tensor], [names.index(axis) for axis in axes])
        target = ir.Access("factor.grad", tuple(ir.Index(axis) for axis in axes))
        statement = ir.Statement(target, "+=", node, guard)
        used = [i for i in statement.indices if i in self.sizes.index]
        declared = tuple(ir.SizeDeclaration(ir.Size(i), ir.Number(self.sizes.index[i])) for i in used)
        program = Program(ir.Loops((statement,), declared))
        points = math.prod(self.sizes.index[i] for i in used)
        run = program.run_reference if points <= INTERPRETED else program
        return np.asarray(run({name: self.values[name] for name in program.inputs}))


@dataclass(frozen=True)
class _Part:
    """dY[rows] += coefficient * dX[columns] where the guard holds, for all indices of the statement."""

    recogniser: Recogniser
    statement: ir.Statement
    coefficient: Expr
    guard: Expr | None
    factors: tuple[Factor, ...]

    rows: tuple[str, ...]
    columns: tuple[str, ...]

    def operator(self) -> Operator | None:
        rows, columns = self.rows, self.columns
        if rows == columns:
            return self.elementwise(rows)
        if not rows:
            return Trace(self.array(columns), f"<{self.text},.>")
        if not columns:
            return Trace(self.array(rows), f"<{self.text},.>").T
        if len(rows) == len(columns) == 1:
            return self.multiplication(Left, (*rows, *columns), None, "L")
        if len(rows) != 2 or len(columns) != 2:
            return None
        (i, k), (j, last) = rows, columns
        if k == last and i != j and k not in self.used:
            return self.multiplication(Left, (i, j), self.size(k), "L")
        if i == j and k != last and i not in self.used:
            return self.multiplication(Right, (last, k), self.size(i), "R")
        return None if {i, k} & {j, last} else self.kronecker(rows, columns)

    def multiplication(
        self, kind: Callable[[Array, Any, str], Operator], axes: tuple[str, str], other: int | None, letter: str
    ) -> Operator | None:
        """A product with a matrix that names both of its axes; one that repeats itself is no matrix worth forming."""
        if not self.used.issuperset(axes):
            return None
        return kind(self.array(axes), other, f"{self.side(axes)}_{letter}")

    def elementwise(self, indices: tuple[str, ...]) -> Operator:
        space = Plain(tuple(self.size(i) for i in indices))
        if isinstance(self.coefficient, ir.Number) and self.guard is None:
            value = float(self.coefficient.value) * self.repeated()
            return Identity(space) if value == 1 else Scale(value, space)
        return Hadamard(self.array(indices), f"{_enclosed(self.text)}_H" if indices else _enclosed(self.text))

    def kronecker(self, rows: tuple[str, ...], columns: tuple[str, ...]) -> Operator | None:
        """B X A' where the factors fall into two groups: those of the rows, and those of the columns."""
        if self.guard is not None or self.repeated() != 1:
            return None
        groups: list[list[Factor]] = [[], []]
        sides = ({rows[0], columns[0]}, {rows[1], columns[1]})
        for factor in self.factors:
            names = ir.index_names(factor.divisor if isinstance(factor, Over) else factor)
            side = next((k for k in (0, 1) if names <= sides[k]), None)
            if side is None:
                return None
            groups[side].append(factor)
        b, a = (product(tuple(group)) for group in groups)
        if self.coefficient != product(self.factors):  # it has a minus
            b = negate(b)
        if not all(side <= ir.index_names(node) for side, node in zip(sides, (b, a), strict=True)):
            return None
        make = self.recogniser.factor
        label = f"{_enclosed(_short(a))}(x){_enclosed(_short(b))}"
        return Kronecker(make(a, None, (rows[1], columns[1])), make(b, None, (rows[0], columns[0])), label)

    @property
    def used(self) -> frozenset[str]:
        guard = frozenset() if self.guard is None else ir.index_names(self.guard)
        return ir.index_names(self.coefficient) | guard

    def size(self, index: str) -> int:
        return self.recogniser.sizes.index[index]

    def repeated(self) -> int:
        """How often each term counts: once for every point of the indices that nothing here names."""
        named = {*self.used, *self.rows, *self.columns}
        return math.prod(self.size(i) for i in self.statement.indices if i not in named)

    def array(self, axes: Sequence[str]) -> Array:
        made, times = self.recogniser.factor(self.coefficient, self.guard, axes), self.repeated()
        return made if times == 1 else made * times

    @property
    def text(self) -> str:
        """What stands in a picture for the coefficient."""
        if self.guard is None:
            return _short(self.coefficient)
        condition = f"[{_short(self.guard)}]"
        return condition if self.coefficient == ONE else f"{_enclosed(_short(self.coefficient))}{condition}"

    def side(self, axes: tuple[str, ...]) -> str:
        """The name of a matrix, with a prime where it stands transposed."""
        node = self.coefficient
        if isinstance(node, ir.Access) and self.guard is None:
            return node.tensor if tuple(ir.bare(e) for e in node.indices) == axes else f"{node.tensor}'"
        return _enclosed(self.text)


def _short(node: Expr) -> str:
    """The expression without its indices."""
    return show(ir.transform(node, lambda n: ir.Access(n.tensor) if isinstance(n, ir.Access) else n))


def _enclosed(text: str) -> str:
    return text if text.isidentifier() or text[:1] in "([" else f"({text})"
