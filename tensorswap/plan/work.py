"""What the passes of a plan work on: a program, and the sizes of one call, to which a pass adds those of new names."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from ..language import ir
from ..language.ir import Expr, Number
from ..language.sizes import Sizes


@dataclass
class Work:
    """`weights` are the sizes by which passes weigh what is worthwhile, where those are not the sizes themselves: so a
    plan can be made anew at tiny sizes, with the choices that it makes at large ones."""

    loops: ir.Loops
    sizes: Sizes
    weights: Mapping[str, int] = field(default_factory=dict)
    copies: set[str] = field(default_factory=set)  # tensors that hold an input in another order of its axes

    def __post_init__(self) -> None:
        self.kept = frozenset({*self.loops.inputs, *self.loops.outputs})  # the caller's, which no pass may change
        self.taken = {*self.loops.names, *self.sizes.index, *self.sizes.shapes, *self.sizes.statics}

    def index(self, name: str, size: int) -> ir.Index:
        """A new index."""
        name = self.fresh(name)
        self.sizes.index[name] = size
        self.sizes.formulas[name] = Number(size)
        return ir.Index(name)

    def tensor(self, name: str, indices: Iterable[ir.Index]) -> ir.Access:
        """A new tensor, as long on each axis as its index."""
        access = ir.Access(self.fresh(name), tuple(indices))
        self.sizes.shapes[access.tensor] = tuple(self.sizes.index[i.name] for i in indices)
        return access

    def fresh(self, name: str) -> str:
        """The first of name_1, name_2, ... that is neither a user's nor made before."""
        made = next(made for n in count(1) if (made := f"{name}_{n}") not in self.taken)
        self.taken.add(made)
        return made

    def volume(self, indices: Iterable[str]) -> int:
        return math.prod(self.weight(i) for i in set(indices))

    def weight(self, index: str) -> int:
        """The size of an index, for a choice that changes no meaning."""
        return self.weights.get(index, self.sizes.index[index])

    def each(self, change: Callable[[ir.Statement, tuple[str, ...]], list[ir.Statement]]) -> None:
        """Puts statements in the place of every statement; `change` is told the indices of the blocks around it."""

        def visit(body: tuple[ir.Item, ...], blocks: tuple[str, ...]) -> tuple[ir.Item, ...]:
            result: list[ir.Item] = []
            for item in body:
                if isinstance(item, ir.Block):
                    result.append(replace(item, body=visit(item.body, (*blocks, item.index))))
                else:
                    assert isinstance(item, ir.Statement)
                    result += change(item, blocks)
            return tuple(result)

        self.loops = replace(self.loops, body=visit(self.loops.body, ()))


def statements_in(item: ir.Item) -> list[ir.Statement]:
    """The statement itself, or those of a block in their order."""
    if isinstance(item, ir.Block):
        return [s for inner in item.body for s in statements_in(inner)]
    assert isinstance(item, ir.Statement)
    return [item]


def product_of(value: Expr) -> tuple[list[Expr], list[Expr]]:
    """The factors of a product: those above and those below the line. A minus in front is a factor -1."""
    match value:
        case ir.Binary(operator="*", left=left, right=right):
            over, under = product_of(left)
            more, below = product_of(right)
            return over + more, under + below
        case ir.Binary(operator="/", left=left, right=right):
            over, under = product_of(left)
            below, above = product_of(right)
            return over + above, under + below
        case ir.Unary(operator="-", operand=operand):
            over, under = product_of(operand)
            return [Number(-1), *over], under
    return [value], []
