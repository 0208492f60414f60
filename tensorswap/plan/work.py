"""What the passes of a plan work on: a program, and the sizes of one call. Each makes another of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from itertools import count

import numpy as np

from ..language import ir
from ..language.build import ONE, ZERO, divide, multiply, product
from ..language.ir import Expr, Number
from ..language.sizes import Sizes
from ..language.types import Kind, Types, infer_types
from ..lazy import cached_property

TILED = 4  # steps of a sum of products below which a tile's start and end cost more than its middle
FEW_ROWS, FAR = 8, 1 << 16  # rows of a product, and bytes of the matrix that it makes them of

ASKED = 4  # values of an index, all of which are asked sooner than a loop begins between bounds that are read

Change = Callable[[ir.Statement, tuple[str, ...]], list[ir.Statement]]


@dataclass(frozen=True)
class Work:
    """`weights` are the sizes by which passes weigh what is worthwhile, where those are not the sizes themselves: so a
    plan can be made anew at tiny sizes, with the choices that it makes at large ones."""

    loops: ir.Loops
    sizes: Sizes
    weights: Mapping[str, int] = field(default_factory=dict)
    copies: frozenset[str] = frozenset()  # tensors that hold an input in another order of its axes
    kinds: Mapping[str, Kind] = field(default_factory=dict)  # of all tensors

    def volume(self, indices: Iterable[str]) -> int:
        return math.prod(self.weight(i) for i in set(indices))

    def weight(self, index: str) -> int:
        """The size of an index, for a choice that changes no meaning."""
        return self.weights.get(index, self.sizes.index[index])

    def is_narrower(self, value: Expr, tensor: str) -> bool:
        """Whether a value would be computed in a type that cannot hold what is added to a tensor: whole numbers wrap
        around, and single precision overflows, where the statement as it stands does neither."""
        if tensor not in self.kinds:
            return False
        kind, whole = self.types.of(value), self.kinds[tensor]
        if kind.weak and not whole.weak:
            return True  # by itself it would take the type that is usual in the program
        return np.promote_types(kind.dtype, whole.dtype) != kind.dtype

    @cached_property
    def types(self) -> Types:
        """Of all tensors, those of a draft as far as it knows them."""
        return infer_types(self.loops, {}, self.kinds)

    def made(self, body: Iterable[ir.Item], copies: Iterable[str] = ()) -> Work:
        """What a pass gives: other statements, and the names that they need. What nothing writes any more has no size
        to declare."""
        loops = replace(self.loops, body=tuple(body))
        gone = {*self.loops.written}.difference(loops.written)
        sizes = [d for d in loops.sizes if not (isinstance(d.subject, ir.AxisSize) and d.subject.tensor in gone)]
        return Work(replace(loops, sizes=tuple(sizes)), self.sizes, self.weights, self.copies.union(copies), self.kinds)

    def each(self, change: Change) -> Work:
        """Puts statements in the place of every statement; `change` is told the indices of the blocks around it."""
        return self.made(ir.rewrite(self.loops.body, lambda s, around: change(s, tuple(b.index for b in around))))


class Draft(Work):
    """The work of a pass that adds names: they are its own until it gives what it has made."""

    def __init__(self, work: Work) -> None:
        self._index, self._shapes = dict(work.sizes.index), dict(work.sizes.shapes)
        self._kinds = dict(work.kinds)
        sizes = Sizes(self._index, self._shapes, work.sizes.statics)
        super().__init__(work.loops, sizes, work.weights, work.copies, self._kinds)
        self._taken = {*self.loops.names, *self._index, *self._shapes, *sizes.statics}

    def index(self, name: str, size: int) -> ir.Index:
        """A new index."""
        name = self._fresh(name)
        self._index[name] = size
        return ir.Index(name)

    def tensor(self, name: str, indices: Iterable[ir.Index], like: str | None = None) -> ir.Access:
        """A new tensor, as long on each axis as its index; with the type of another one, if it is to hold a part of
        what that would."""
        access = ir.Access(self._fresh(name), tuple(indices))
        self._shapes[access.tensor] = tuple(self._index[i.name] for i in indices)
        if like in self._kinds:
            self._kinds[access.tensor] = self._kinds[like]
            self.types.learn(access.tensor, self._kinds[like])
        return access

    def _fresh(self, name: str) -> str:
        """The first of name_1, name_2, ... that is neither a user's nor made before."""
        made = next(made for n in count(1) if (made := f"{name}_{n}") not in self._taken)
        self._taken.add(made)
        return made


def for_each_statement(
    change: Callable[[Draft, ir.Statement, tuple[str, ...]], list[ir.Statement]],
) -> Callable[[Work], Work]:
    """A pass that looks at one statement after the other, told the indices of the blocks around it."""

    @wraps(change)
    def run(work: Work) -> Work:
        draft = Draft(work)
        return draft.each(partial(change, draft))

    return run


def whole_axes(access: ir.Access, sizes: Sizes) -> list[str] | None:
    """The indices of an access to all of a tensor, each along an axis of its own; None for any other."""
    names = spanning(access, sizes)
    return names if names is not None and len(names) == len(access.indices) else None


def spanning(access: ir.Access, sizes: Sizes, besides: Collection[int] = ()) -> list[str] | None:
    """The indices of an access to all of a tensor, or, besides some axes, of a slice of it: each along an axis of its
    own, of which it has all; place 0 is all of an axis of length one. None for any other."""
    names: list[str] = []
    for axis, (place, size) in enumerate(zip(access.indices, sizes.shapes[access.tensor], strict=True)):
        if axis in besides or (size == 1 and place == ZERO):
            continue
        name = ir.bare(place)
        if name is None or name in names or sizes.index[name] != size:
            return None
        names.append(name)
    return names


def same_order(old: ir.Statement, new: ir.Statement) -> bool:
    """Whether a changed statement counts the positions that argmax= and argmin= find as it did."""
    return not old.operator.startswith("arg") or ir.candidates(old) == ir.candidates(new)


def statements_in(item: ir.Item) -> list[ir.Statement]:
    """The statement itself, or those of a block in their order."""
    if isinstance(item, ir.Block):
        return [s for inner in item.body for s in statements_in(inner)]
    assert isinstance(item, ir.Statement)
    return [item]


def divided(factor: Expr) -> Expr:
    """What stands below the line, as a factor."""
    return divide(ONE, factor)


def scaled(value: Expr, factors: Sequence[Expr]) -> Expr:
    """A value by numbers. Those that have a type are taken one after the other, and last: their product alone, or that
    with a part of the value, might not fit it."""
    if len(factors) == 1 and isinstance(factors[0], Number):
        return multiply(factors[0], value)
    return product([value, *factors])


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


def is_contraction(statement: ir.Statement) -> bool:
    """A sum of products of tensors, and of numbers beside them."""
    factors, _ = product_of(statement.value)
    several = len(factors) > 1 and bool(statement.reads)
    return statement.operator in ir.SUM and bool(ir.candidates(statement)) and several


def are_few(rows: float, size: int) -> bool:
    """Whether a product makes so few rows of a matrix of so many bytes that this is read line by line: register tiles
    would jump from line to line, and panels are not worth their packing."""
    return rows < FEW_ROWS and size >= FAR
