"""Which whole numbers of a program may leave the 64 bits that kernels compute in.

The proof that accesses are in bounds counts without limit, and so does the meaning of an index expression. A kernel
does not: so it is run only where every part of every index expression, and of every comparison of such, is shown to
fit. What is computed of values wraps around as numpy's does, interpreted and compiled.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from . import ir
from .affine import is_constant
from .bounds import ROOM, numbers
from .build import is_integer
from .functions import INDEX_FUNCTIONS
from .interval import Bounds, interval
from .ir import Expr, Number
from .sizes import Sizes
from .types import BOOL, UNSIGNED, Types, number, promote

WORD = 2**63 - 1  # the largest whole number that kernels compute with

Reach = tuple[int, int]


class Reaches:
    """The least and greatest values of whole-number expressions of one call."""

    def __init__(self, loops: ir.Loops, sizes: Sizes, types: Types, gathered: Mapping[str, Bounds]) -> None:
        self.loops = loops
        self.sizes = sizes
        self.types = types
        self.gathered = dict(gathered)
        self._computed()

    def of(self, node: Expr) -> Reach | None:
        """Between which numbers an expression lies, if it is known."""
        if not all(map(self._is_arithmetic, _arithmetic(node))):
            return None
        bounds = interval(numbers(node, self.sizes), self.sizes.index, self.gathered)
        if bounds is None:
            return None
        return self.sizes.value(bounds[0]), self.sizes.value(bounds[1])

    def _is_arithmetic(self, node: Expr) -> bool:
        """Whole numbers with + - * // % min max abs, as they stand inside brackets."""
        match node:
            case ir.Binary(operator="//" | "%", right=right):
                return not is_constant(right) or (is_integer(right) and self.sizes.value(right) != 0)
            case ir.Access(tensor=tensor):
                return self.types.tensors[tensor].dtype.kind in "iu"
            case ir.Binary(operator="+" | "-" | "*") | ir.Unary(operator="-"):
                return True
            case ir.Call(function=function):
                return function in INDEX_FUNCTIONS
        return not ir.children(node) and is_integer(node)

    def _computed(self) -> None:
        """Positions that argmax= and argmin= find, and what `=` writes or sums count, are known like inputs."""
        for name in self.loops.written:
            if name in self.loops.updated or name in self.gathered or self.types.tensors[name].dtype.kind not in "iu":
                continue
            reach: Reach | None = (0, 0)  # where nothing is written
            for statement, blocks in self.loops.located:
                if statement.target.tensor == name and reach is not None:
                    reach = self._after(reach, statement, [block.index for block in blocks])
            if reach is not None and reach[0] >= -WORD and reach[1] <= WORD:
                self.gathered[name] = Number(reach[0]), Number(reach[1])

    def _after(self, before: Reach, statement: ir.Statement, blocks: list[str]) -> Reach | None:
        """Where the elements of a tensor lie once a statement has written it, in all steps of the blocks around it."""
        if statement.operator.startswith("arg"):
            points = math.prod(self.sizes.index[i] for i in ir.candidates(statement))
            first = next(s for s in self.loops.statements if s.target.tensor == statement.target.tensor) is statement
            found = points > 0 and statement.guard is None and not blocks and self._fills(statement.target)
            points *= math.prod(self.sizes.index[i] for i in {*blocks}.difference(statement.indices))
            low = 0 if (first and found) or (not first and before[0] == 0) else -1
            return low, points - 1 if first else before[1] + points
        reach = self._value(statement.value)
        if reach is None or statement.operator not in ("=", "+=", "-="):
            return None
        low, high = reach if statement.operator != "-=" else (-reach[1], -reach[0])
        if statement.operator == "=":
            return min(before[0], low), max(before[1], high)
        points = math.prod(self.sizes.index[i] for i in {*statement.indices, *blocks})
        return before[0] + min(low, 0) * points, before[1] + max(high, 0) * points

    def _fills(self, target: ir.Access) -> bool:
        """Whether every element is written; what is not holds -1 where positions are sought."""
        places, extents = target.indices, self.sizes.shapes[target.tensor]
        return len(set(places)) == len(places) and all(
            isinstance(place, ir.Index) and self.sizes.index[place.name] == extent
            for place, extent in zip(places, extents, strict=True)
        )

    def _value(self, node: Expr) -> Reach | None:
        """Where a value lies, if no part of it wraps around."""
        if self.types.of(node).dtype == BOOL:
            return 0, 1
        if isinstance(node, ir.Conditional):
            a, b = self._value(node.then), self._value(node.otherwise)
            return None if a is None or b is None else (min(a[0], b[0]), max(a[1], b[1]))
        if not ir.children(node) or isinstance(node, ir.Access):
            return self.of(node)
        parts = [reach for part in ir.children(node) if (reach := self._value(part)) is not None]
        if not self._is_arithmetic(node) or len(parts) < len(ir.children(node)):
            return None
        low, high = combined(node, parts)
        return (low, high) if low >= -WORD and high <= WORD else None

    def _leaves(self, node: Expr) -> bool:
        if isinstance(node, ir.Access):  # read from memory, so it fits
            return False
        reach = self.of(node)
        return reach is None or reach[0] < -ROOM or reach[1] > ROOM

    def leaving(self) -> Iterator[Expr]:
        """Index expressions, and sides of comparisons with indices, of which a part may need more than 64 bits, or come
        near that: what a loop compares them with is held there."""
        for statement in self.loops.statements:
            for node in statement.nodes:
                roots: tuple[Expr, ...] = ()
                if isinstance(node, ir.Access):
                    roots = tuple(place for place in node.indices if not isinstance(place, ir.Index))
                elif isinstance(node, ir.Compare):
                    sides = (node.left, node.right)
                    whole = [side for side in sides if is_integer(side)]
                    roots = tuple(side for side in whole if len(whole) == 2 or ir.index_names(side))
                for root in roots:
                    if any(self._leaves(part) for part in _arithmetic(root)):
                        yield root

    def unsigned(self) -> Iterator[Expr]:
        """Values of unsigned words that may not fit signed ones, where it makes a difference which they are."""
        if all(kind.dtype != UNSIGNED for kind in self.types.tensors.values()):
            return
        for statement in self.loops.statements:
            ordered = statement.operator not in ("=", "+=", "-=", "*=")
            if ordered and self._is_unsigned(statement.value) and self._large(statement.value):
                yield statement.value
            elif statement.operator == "min=" and self.types.tensors[statement.target.tensor].dtype == UNSIGNED:
                yield statement.value  # it starts from the greatest of all
            for root in (statement.value, *((statement.guard,) if statement.guard is not None else ())):
                for node in _arithmetic(root):
                    if any(self._large(part) for part in self._told_apart(node)):
                        yield node

    def _told_apart(self, node: Expr) -> tuple[Expr, ...]:
        """The unsigned words that a node computes, or compares."""
        if isinstance(node, ir.Compare):
            kind = promote(number(self.types.of(node.left)), number(self.types.of(node.right)))
            return (node.left, node.right) if kind.dtype == UNSIGNED else ()
        if isinstance(node, ir.Access | ir.Conditional):
            return ()
        return (node,) if ir.children(node) and self._is_unsigned(node) else ()

    def _is_unsigned(self, node: Expr) -> bool:
        return self.types.of(node).dtype == UNSIGNED

    def _large(self, node: Expr) -> bool:
        reach = self.of(node)
        return reach is None or reach[0] < 0 or reach[1] > WORD


def _arithmetic(node: Expr) -> Iterator[Expr]:
    """The parts of an index expression, down to the values that it gathers."""
    yield node
    if not isinstance(node, ir.Access):
        for part in ir.children(node):
            yield from _arithmetic(part)


def combined(node: Expr, parts: list[Reach]) -> Reach:
    """Numbers between which an operation lies whose operands lie between others."""
    lows, highs = [low for low, _ in parts], [high for _, high in parts]
    most = [max(abs(low), abs(high)) for low, high in parts]
    match node:
        case ir.Binary(operator="+"):
            return sum(lows), sum(highs)
        case ir.Binary(operator="-"):
            return lows[0] - highs[1], highs[0] - lows[1]
        case ir.Binary(operator="*"):
            corners = [a * b for a in parts[0] for b in parts[1]]
            return min(corners), max(corners)
        case ir.Binary(operator="%"):
            return -most[1], most[1]
        case ir.Call(function="min" | "max"):
            return min(lows), max(highs)
    return -most[0], most[0]  # a sign, an absolute value or a quotient
