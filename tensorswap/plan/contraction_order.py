"""Contraction order: a sum over a product of three or more factors -> steps of two, in the order that opt_einsum finds.

A step that another statement has taken already (the same factors, summed over the same indices) is shared: forward and
adjoint statements are looked at together. A factor that the sum does not run over is taken out of it on the way.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from string import ascii_letters

import numpy as np

from ..language import ir
from ..language.affine import is_constant
from ..language.build import conjunction, conjuncts, product
from ..language.ir import Expr
from ..language.types import accumulated
from .work import Draft, Work, divided, product_of, scaled, statements_in

EXHAUSTIVE = 6  # factors up to which every order is tried


@dataclass
class _Leaf:
    """A factor of a product: a value of its own, or several that were multiplied before."""

    value: Expr
    parts: Counter[Hashable]

    @property
    def indices(self) -> frozenset[str]:
        return ir.index_names(self.value)


@dataclass
class _Step:
    """A product that has been computed, with the indices that are left and the guard it was computed under."""

    parts: Counter[Hashable]
    kept: frozenset[str]
    guard: frozenset[Hashable]  # its conditions, at that moment
    held: ir.Access | None  # where its values are
    final: _Final | None = None  # or the statement that adds them to their target, which can hold them apart

    @property
    def value(self) -> Expr:
        if self.held is not None:
            return self.held
        assert self.final is not None
        return self.final.product


@dataclass(frozen=True)
class _Final:
    """The last statement of a sum: the product that is shared, times numbers, its `scale`. A factor of the product may
    be a number that an earlier step added up, so the statement's own text does not tell the two apart."""

    statement: ir.Statement
    scale: list[Expr]
    product: Expr


def order_products(work: Work) -> Work:
    """Takes statements outside blocks apart."""
    orderer = _Orderer(Draft(work))
    for item in work.loops.body:
        if isinstance(item, ir.Statement):
            orderer.statement(item)
        else:
            orderer.out.append(item)
            orderer.written.update(s.target.tensor for s in statements_in(item))
    return orderer.draft.made(orderer.out)


class _Orderer:
    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.out: list[ir.Item] = []
        self.steps: list[_Step] = []
        self.written: Counter[str] = Counter()  # how often each tensor was written so far
        self.upcoming = [
            s for s in draft.loops.body if isinstance(s, ir.Statement) and s.operator in ir.SUM and s.guard is None
        ]

    def statement(self, statement: ir.Statement) -> None:
        leaves, scale = self.leaves(_chosen(statement))
        if self.worthwhile(statement, leaves):
            self.take_apart(statement, leaves, scale)
        else:
            self.out.append(statement)
        self.written[statement.target.tensor] += 1

    def leaves(self, value: Expr) -> tuple[list[_Leaf], list[Expr]]:
        """The factors that hold indices, and the others."""
        over, under = product_of(value)
        factors = [*over, *map(divided, under)]
        found = [_Leaf(f, Counter([self.key(f)])) for f in factors if ir.index_names(f)]
        return found, [f for f in factors if not ir.index_names(f)]

    def key(self, value: Expr) -> Hashable:
        """A value at this moment: a tensor that is written again is another one."""
        tensors = sorted({n.tensor for n in ir.walk(value) if isinstance(n, ir.Access)})
        return value, tuple((name, self.written[name]) for name in tensors)

    def worthwhile(self, statement: ir.Statement, leaves: list[_Leaf]) -> bool:
        """Whether a sum of many factors runs over more points than any factor or the target has."""
        if statement.operator not in ir.SUM or len(leaves) < 3:
            return False
        if any(self.draft.sizes.index[i] == 0 for i in statement.indices):
            return False
        if statement.guard is not None:
            parts = [n for leaf in leaves for n in ir.walk(leaf.value)]
            bare = all(isinstance(e, ir.Index) for n in parts if isinstance(n, ir.Access) for e in n.indices)
            if not bare or any(isinstance(n, ir.Inside) for n in ir.walk(statement.guard)):
                return False
        below = map(divided, product_of(_chosen(statement))[1])
        if any(self.draft.is_narrower(factor, statement.target.tensor) for factor in below):
            return False  # to divide by it is not to multiply by what 1 / it is in its own type
        largest = max(map(self.elements, (statement.target, *(leaf.value for leaf in leaves))))
        return self.draft.volume(statement.indices) > largest

    def elements(self, value: Expr) -> int:
        """How many numbers it takes: those of a tensor that is read through another are the tensor's own."""
        points = self.draft.volume(ir.index_names(value))
        if isinstance(value, ir.Access) and any(isinstance(n, ir.Access) for e in value.indices for n in ir.walk(e)):
            shape = self.draft.sizes.shapes.get(value.tensor)  # what a derivative has no use for has no size
            return points if shape is None else min(points, math.prod(shape))
        return points

    def take_apart(self, statement: ir.Statement, leaves: list[_Leaf], scale: list[Expr]) -> None:
        atoms = conjuncts(statement.guard)
        guard = frozenset().union(*(ir.index_names(atom) for atom in atoms)) if atoms else frozenset()
        target = ir.index_names(statement.target)
        leaves = self.reuse(statement, leaves, target | guard, frozenset(map(self.key, atoms)))
        while len(leaves) > 2:
            if len(leaves) < EXHAUSTIVE:
                steps = [self.shared_pair(statement, leaves, target | guard)]
            else:
                steps = self.path(leaves, target | guard)
            for pair in steps:
                if len(leaves) <= 2:
                    break
                chosen = [leaves[k] for k in sorted(pair)]
                leaves = [leaf for k, leaf in enumerate(leaves) if k not in pair]
                needed = frozenset().union(*(leaf.indices for leaf in leaves)) | target | guard
                leaves.append(self.step(self.widened(chosen, statement), needed, atoms))
        leaves = self.widened(leaves, statement)
        last = product(leaf.value for leaf in leaves)
        final = replace(statement, value=scaled(last, scale))
        if (value := statement.value) is not _chosen(statement):
            assert isinstance(value, ir.Conditional)
            self.out.append(replace(final, value=replace(value, then=final.value)))
            return
        self.out.append(final)
        own = frozenset().union(*(leaf.indices for leaf in leaves))
        if all(isinstance(e, ir.Index) for e in statement.target.indices) and guard <= target <= own:
            parts: Counter[Hashable] = sum((leaf.parts for leaf in leaves), Counter())
            self.steps.append(_Step(parts, target, frozenset(map(self.key, atoms)), None, _Final(final, scale, last)))

    def widened(self, leaves: list[_Leaf], statement: ir.Statement) -> list[_Leaf]:
        """Factors whose product has the type of what the statement adds to: the first is copied to that type if their
        own is narrower."""
        if not self.draft.is_narrower(product(leaf.value for leaf in leaves), statement.target.tensor):
            return leaves
        first = leaves[0]
        own = dict.fromkeys(n.name for n in ir.walk(first.value) if isinstance(n, ir.Index))
        wide = self.draft.tensor("wide", [ir.Index(i) for i in own], like=statement.target.tensor)
        self.out.append(ir.Statement(wide, "=", first.value))
        return [_Leaf(wide, first.parts), *leaves[1:]]

    def shared_pair(self, statement: ir.Statement, leaves: list[_Leaf], output: frozenset[str]) -> tuple[int, ...]:
        """The first step of a best order: of equally good ones, that whose work another statement can share, or that
        which reads memory in line."""
        choices = []
        others = [(s, self.leaves(_chosen(s))[0]) for s in self.upcoming if s is not statement]
        for pair in itertools.combinations(range(len(leaves)), 2):
            both = [leaves[k] for k in pair]
            rest = [leaf.indices for k, leaf in enumerate(leaves) if k not in pair]
            indices = both[0].indices | both[1].indices
            kept = indices & (output | frozenset().union(*rest))
            work = self.draft.volume(indices)
            cost = work + self.least_work([*rest, kept], output)
            shares = any(_could_share(*other, both[0].parts + both[1].parts, kept) for other in others)
            choices.append((-work if shares else 0, self.jumps(both, indices - kept), cost, pair))
        least = min(cost for _, _, cost, _ in choices)
        return min(choice for choice in choices if choice[2] <= 1.1 * least)[3]

    def jumps(self, leaves: list[_Leaf], summed: frozenset[str]) -> bool:
        """Whether a sum does not run along the lines of the largest tensor, which is read from memory."""
        largest = max(leaves, key=lambda leaf: self.elements(leaf.value)).value
        if not isinstance(largest, ir.Access) or not largest.indices:
            return False
        return not ir.index_names(largest.indices[-1]) & summed

    def least_work(self, factors: list[frozenset[str]], output: frozenset[str]) -> int:
        """The points of the cheapest order."""
        if len(factors) == 1:
            return 0
        found = []
        for a, b in itertools.combinations(range(len(factors)), 2):
            rest = [f for k, f in enumerate(factors) if k not in (a, b)]
            indices = factors[a] | factors[b]
            kept = indices & (output | frozenset().union(*rest))
            found.append(self.draft.volume(indices) + self.least_work([*rest, kept], output))
        return min(found)

    def path(self, leaves: list[_Leaf], output: frozenset[str]) -> list[tuple[int, ...]]:
        """The order of steps, as positions in the list of factors that shrinks from step to step."""
        names = sorted(frozenset().union(*(leaf.indices for leaf in leaves)))
        letter = {name: ascii_letters[k] if k < len(ascii_letters) else chr(140 + k) for k, name in enumerate(names)}
        terms = ["".join(letter[i] for i in sorted(leaf.indices)) for leaf in leaves]
        shapes = [tuple(self.draft.weight(i) for i in sorted(leaf.indices)) for leaf in leaves]
        equation = f"{','.join(terms)}->{''.join(letter[i] for i in names if i in output)}"
        return _path(equation, shapes)

    def reuse(
        self, statement: ir.Statement, leaves: list[_Leaf], output: frozenset[str], atoms: frozenset[Hashable]
    ) -> list[_Leaf]:
        """The factors with steps that are known in the place of what they multiply."""
        for step in sorted(self.steps, key=lambda s: -sum(s.parts.values())):
            together: Counter[Hashable] = sum((leaf.parts for leaf in leaves), Counter())
            if not all(together[part] >= count for part, count in step.parts.items()):
                continue
            if not step.guard <= atoms or self.draft.is_narrower(step.value, statement.target.tensor):
                continue
            inside: list[_Leaf] = []
            rest: list[_Leaf] = []
            open_parts = Counter(step.parts)
            for leaf in leaves:
                fits = all(open_parts[part] >= count for part, count in leaf.parts.items())
                (inside if fits else rest).append(leaf)
                if fits:
                    open_parts -= leaf.parts
            if +open_parts or len(inside) < 2:
                continue
            gone = frozenset().union(*(leaf.indices for leaf in inside)) - step.kept
            if gone & (output | frozenset().union(*(leaf.indices for leaf in rest)) if rest else gone & output):
                continue
            leaves = [*rest, _Leaf(self.held(step), Counter(step.parts))]
        return leaves

    def held(self, step: _Step) -> ir.Access:
        """Where the values of a step are: those of a last step are held apart from now on."""
        if step.held is None:
            assert step.final is not None
            final = step.final.statement
            position = next(k for k, item in enumerate(self.out) if item is final)
            indices = [e for e in final.target.indices if isinstance(e, ir.Index)]
            step.held = self.draft.tensor("shared", indices)
            self.draft.types.learn(step.held.tensor, self.draft.types.of(step.final.product))
            first = ir.Statement(step.held, "+=", step.final.product, final.guard)
            last = replace(final, value=scaled(step.held, step.final.scale))
            self.out[position : position + 1] = [first, last]
        return step.held

    def step(self, leaves: list[_Leaf], needed: frozenset[str], atoms: tuple[Expr, ...]) -> _Leaf:
        """Multiplies factors, and sums over what no one else needs."""
        value = product(leaf.value for leaf in leaves)
        indices = frozenset().union(*(leaf.indices for leaf in leaves))
        kept = indices & needed
        guard = tuple(atom for atom in atoms if ir.index_names(atom) <= indices)
        parts: Counter[Hashable] = sum((leaf.parts for leaf in leaves), Counter())
        held = self.draft.tensor("product", [ir.Index(i) for i in _arranged(leaves, kept)])
        made = ir.Statement(held, "=" if kept == indices else "+=", value, conjunction(guard))
        self.out.append(made)
        self.draft.types.learn(held.tensor, accumulated(made.operator, self.draft.types.of(value)))
        self.steps.append(_Step(parts, kept, frozenset(map(self.key, guard)), held))
        return _Leaf(held, parts)


def _chosen(statement: ir.Statement) -> Expr:
    """The value, or that which a condition chooses for whole sums: it can be asked when they are known."""
    value = statement.value
    if not isinstance(value, ir.Conditional) or value.otherwise != ir.Number(0):
        return value
    return value if ir.index_names(value.condition).intersection(ir.candidates(statement)) else value.then


def _could_share(other: ir.Statement, leaves: list[_Leaf], parts: Counter[Hashable], kept: frozenset[str]) -> bool:
    """Whether a step of these factors serves another statement too, which is the product of some leaves."""
    inside = [leaf for leaf in leaves if leaf.parts <= parts]
    if sum((leaf.parts for leaf in inside), Counter()) != parts:
        return False
    rest = frozenset().union(*(leaf.indices for leaf in leaves if leaf not in inside))
    needed = rest | ir.index_names(other.target)
    return frozenset().union(*(leaf.indices for leaf in inside)) & needed == kept


def _arranged(leaves: list[_Leaf], kept: frozenset[str]) -> list[str]:
    """Indices in the order of the factors, and last one that lies side by side in a factor of its own."""
    nodes = [n for leaf in leaves for n in ir.walk(leaf.value)]
    order = list(dict.fromkeys(n.name for n in nodes if isinstance(n, ir.Index) and n.name in kept))
    last = [
        place.name
        for leaf in leaves
        for node in _data(leaf.value)
        if node.indices and isinstance(place := node.indices[-1], ir.Index) and place.name in kept
    ]
    own = [i for i in last if sum(i in leaf.indices for leaf in leaves) == 1] or last
    if own:
        order.remove(own[-1])
        order.append(own[-1])
    return order


def _data(value: Expr) -> Iterator[ir.Access]:
    """Accesses to what is computed with, not to what tells where that lies."""
    if isinstance(value, ir.Access):
        yield value
    else:
        for part in ir.children(value):
            yield from _data(part)


def has_long_product(loops: ir.Loops) -> bool:
    """Whether some statement sums over a product of three or more tensors."""
    return any(
        s.operator in ir.SUM
        and ir.candidates(s)
        and len([f for f in product_of(s.value)[0] if isinstance(f, ir.Access) and not is_constant(f)]) > 2
        for s in loops.statements
    )


def _path(equation: str, shapes: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    try:
        import opt_einsum  # only programs with such products need it
    except ImportError:  # where an exported file runs; numpy searches less, and knows plain letters alone
        arrays = [np.broadcast_to(np.float32(0), shape) for shape in shapes]
        found = np.einsum_path(equation, *arrays, optimize="optimal" if len(shapes) < EXHAUSTIVE else "greedy")[0][1:]
        return [tuple(step) for step in found]
    how = "optimal" if len(shapes) <= EXHAUSTIVE else "auto"
    return [tuple(step) for step in opt_einsum.contract_path(equation, *shapes, shapes=True, optimize=how)[0]]
