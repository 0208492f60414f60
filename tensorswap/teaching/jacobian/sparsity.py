"""Sparsity: where a Jacobian may be nonzero, read off the index text; for given sizes, without any values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...arrays import Integers
from ...errors import ArgumentError
from ...language import ir
from ...language.affine import affine
from ...language.bound import Bound
from ...language.build import conjuncts, subtract
from ...language.ir import Expr
from ...language.paths import always_read
from ...language.render import access as show_access
from ...language.render import expression as show
from ...lazy import cached_property
from ...program import Program, shapes_as_arrays
from ...rules.activity import integer_uses
from ...run.arguments import bind, merged
from .entries import linear
from .linear import Linear, Term
from .pattern import Pattern, pattern_of
from .points import Points, decidable

Pairs = tuple[Integers, Integers]


@dataclass(frozen=True, eq=False)
class Sparsity:
    """What the text tells of a Jacobian's nonzeros: `str` shows it, `pattern` is exact for given sizes."""

    linear: Linear
    loops: ir.Loops  # of the Jacobian

    @cached_property
    def structure(self) -> str:
        """The kind of the Jacobian, where the text of a single step shows it for every size."""
        terms = [t for t in self.linear.terms if t.target == self.linear.result]
        if not terms:
            return "zero"
        kinds = {_kind(term, self.linear.seed_first) if term.source is None else "composed" for term in terms}
        return next(iter(kinds)) if len(kinds) == 1 else "sum of " + ", ".join(sorted(kinds))

    def __str__(self) -> str:
        lines = [self.structure]
        for term in self.linear.terms:
            if term.target == self.linear.result:
                guard = "" if term.statement.guard is None else f" if {show(term.statement.guard)}"
                lines.append(f"    {show_access(term.statement.target)}{guard}")
        return "\n".join(lines)

    def pattern(self, mapping: Mapping[str, Any] | None = None, /, **arrays: Any) -> Pattern:
        """The nonzeros for arrays, or shapes, of the inputs; an array inside brackets must be given itself."""
        return self.pattern_of(self.bind(merged(mapping, arrays)))

    def bind(self, arguments: Mapping[str, Any]) -> Bound:
        """The sizes of a call. A tuple stands for an array of that shape."""
        needed = integer_uses(self.loops)
        for name, value in arguments.items():
            if isinstance(value, tuple) and name in needed:
                raise ArgumentError(
                    f"the nonzeros depend on the values of {name}, which stands inside brackets",
                    hint=f"pass the array {name}, not its shape",
                )
        return bind(self.loops, shapes_as_arrays(arguments))

    def pattern_of(self, bound: Bound) -> Pattern:
        walk = _Walk(self.linear, bound)
        found = walk.pairs()
        own, seed = walk.extent(self.linear.result), walk.extent(self.linear.seed)
        if self.linear.seed_first:
            return pattern_of((found[1], found[0]), (seed, own))
        return pattern_of(found, (own, seed))


def sparsity(program: Program, of: str, wrt: str) -> Sparsity:
    """Where the Jacobian of `of` by `wrt` may be nonzero."""
    return Sparsity(*linear(program.loops, of, wrt, None))


def _kind(term: Term, seed_first: bool) -> str:
    """What one statement of the Jacobian looks like: rows are where it writes, columns where it reads."""
    rows, columns = (term.read, term.places) if seed_first else (term.places, term.read)
    if rows == columns:
        return "diagonal"
    row_names = {i for e in rows for i in ir.index_names(e)}
    shared = [name for e in columns if (name := ir.bare(e)) in row_names]
    if shared:
        return f"block diagonal over {', '.join(map(str, shared))}"
    if not any(ir.index_names(e) & row_names for e in columns):
        return "dense"
    distance = affine(subtract(columns[0], rows[0])) if len(rows) == len(columns) == 1 else None
    if distance is not None and not row_names & distance.terms.keys():
        return f"banded, column - row = {show(distance.expression(), tight=True)}"
    return "sparse"


class _Walk:
    """The nonzeros of every linear tensor, as pairs of flat positions: its own, and the seed's."""

    def __init__(self, linear: Linear, bound: Bound) -> None:
        self.linear, self.sizes = linear, bound.sizes
        self.integers = {n: a for n, a in bound.arrays.items() if a.dtype.kind in "iu"}
        self.shapes = bound.sizes.shapes

    def shape(self, tensor: str) -> tuple[int, ...]:
        """The shape of a linear tensor without the axes that the seed adds, or of the seed."""
        whole = self.shapes[self.linear.name if tensor == self.linear.seed else self.linear.named(tensor)]
        rank = len(self.linear.extents)
        first = rank if self.linear.seed_first else len(whole) - rank
        return whole[:first] if (tensor == self.linear.seed) == self.linear.seed_first else whole[first:]

    def extent(self, tensor: str) -> int:
        return math.prod(self.shape(tensor))

    def pairs(self) -> Pairs:
        """The nonzeros of the result, found step by step: what is new goes on to what reads it."""
        columns = max(1, self.extent(self.linear.seed))
        terms = [(t, self.local(t)) for t in self.linear.terms if self.linear.named(t.target) in self.shapes]
        found: dict[str, _Found] = {}
        for term, _ in terms:
            found.setdefault(term.target, _Found(self.extent(term.target) * columns))
        fresh: dict[str, list[Integers]] = {}
        for term, (places, read) in terms:
            if term.source is None:
                fresh.setdefault(term.target, []).append(places * columns + read)
        while fresh:
            new = {tensor: found[tensor].add(np.unique(np.concatenate(codes))) for tensor, codes in fresh.items()}
            fresh = {}
            for term, local in terms:
                codes = new.get(term.source or "", _NOTHING)
                if len(codes):
                    rows, along = _composed(local, (codes // columns, codes % columns))
                    fresh.setdefault(term.target, []).append(rows * columns + along)
        codes = found[self.linear.result].codes if self.linear.result in found else _NOTHING
        return codes // columns, codes % columns

    def local(self, term: Term) -> Pairs:
        """The pairs of places that one statement joins: where it writes, and where it reads."""
        source = term.source or self.linear.seed
        conditions, inside = self.conditions(term.statement)
        shown = [*term.places, *term.read, *(e for access in inside for e in access.indices)]
        shown += [c for condition in conditions for c in _comparisons(condition)]
        known = [e for e in shown if decidable(e, self.integers)]
        names = list(dict.fromkeys(n.name for e in known for n in ir.walk(e) if isinstance(n, ir.Index)))
        if any(self.sizes.index[i] == 0 for i in term.statement.indices):
            return _NOTHING, _NOTHING
        points = Points(names, self.sizes, self.integers)
        for condition in conditions:
            points.keep(points.truth(condition)[0])
        for access in inside:
            points.keep(points.within(access, self.shapes[access.tensor]))
        for tensor, places in ((term.target, term.places), (source, term.read)):
            points.keep(points.within(ir.Access(tensor, places), self.shape(tensor)))
        columns = max(1, self.extent(source))
        written, read = self.flat(points, term.target, term.places), self.flat(points, source, term.read)
        codes = np.unique((written[:, None, :] * columns + read[None, :, :]).reshape(-1))
        return codes // columns, codes % columns

    def conditions(self, statement: ir.Statement) -> tuple[list[Expr], list[ir.Access]]:
        """The parts of a guard, and the reads that `inside` keeps in bounds; the linear ones are kept so anyway."""
        atoms = conjuncts(statement.guard)
        conditions: list[Expr] = [atom for atom in atoms if not isinstance(atom, ir.Inside)]
        if len(conditions) == len(atoms):
            return conditions, []
        own = {self.linear.named(tensor) for tensor in self.linear.active}
        return conditions, [a for a in always_read(statement.value) if a.tensor not in own]

    def flat(self, points: Points, tensor: str, places: tuple[Expr, ...]) -> Integers:
        """The flat positions of an access, as [choices, points]: a place that only values decide may be any."""
        flat = np.zeros((1, points.count), np.int64)
        for place, extent in zip(places, self.shape(tensor), strict=True):
            if decidable(place, self.integers):
                flat = flat * extent + points.value(place)
            else:
                choices = flat[None, :, :] * extent + np.arange(extent)[:, None, None]
                flat = choices.reshape(-1, points.count)
        return flat


_NOTHING: Integers = np.zeros(0, np.int64)
MARKED = 2**27  # up to so many entries are marked in an array; beyond, they are sorted


class _Found:
    """A growing set of numbers below `count`."""

    def __init__(self, count: int) -> None:
        self.parts: list[Integers] = []
        self.marks = np.zeros(count, bool) if count <= MARKED else None

    def add(self, codes: Integers) -> Integers:
        """Adds numbers, sorted; gives those that are new."""
        if self.marks is not None:
            codes = codes[~self.marks[codes]]
            self.marks[codes] = True
        else:
            codes = np.setdiff1d(codes, self.codes, assume_unique=True)
        self.parts.append(codes)
        return codes

    @property
    def codes(self) -> Integers:
        return np.sort(np.concatenate(self.parts)) if self.parts else _NOTHING


def _comparisons(atom: Expr) -> list[Expr]:
    """The conditions that a condition is made of."""
    if isinstance(atom, ir.Logic):
        return [*_comparisons(atom.left), *_comparisons(atom.right)]
    if isinstance(atom, ir.Unary) and atom.operator == "not":
        return _comparisons(atom.operand)
    return [atom]


def _composed(first: Pairs, second: Pairs) -> Pairs:
    """The pairs (a, c) for which some b has (a, b) in the first and (b, c) in the second, which is sorted."""
    middle, last = second
    start, end = np.searchsorted(middle, first[1], "left"), np.searchsorted(middle, first[1], "right")
    count = end - start
    rows = np.repeat(first[0], count)
    offsets = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)
    return rows, last[np.repeat(start, count) + offsets]
