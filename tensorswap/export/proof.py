"""Which accesses are in bounds whatever the sizes of a call are: intervals over sizes as symbols, and guards.

What this cannot show is checked in an exported file, before its kernels run or in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from ..language import ir
from ..language.affine import affine, greatest, tidy
from ..language.bounds import at_least_zero
from ..language.build import ZERO, add, conjuncts, is_integer, opposite, subtract
from ..language.interval import interval
from ..language.ir import Expr, Number
from ..language.paths import Path
from ..language.sizes import Axis, SizeRules, bare_uses, bare_written

SUMMED = 6  # conditions whose sums in pairs are tried


class Proof:
    """Proofs for one program."""

    def __init__(self, loops: ir.Loops, rules: SizeRules) -> None:
        self.loops = loops
        self.rules = rules
        self.inputs = frozenset(loops.inputs)
        written = bare_written(loops)
        self.strict = {  # axes that a file shows to be as long as their index
            (use.tensor, use.axis): use.index
            for use in bare_uses(loops)
            if use.tensor in self.inputs or (use.tensor, use.axis) in written
        }
        self.same = self._same(written)
        self.declared = {
            d.subject.index: d.value for d in loops.sizes if isinstance(d.subject, ir.Size) and not d.inferred
        }

    def _same(self, written: dict[Axis, str]) -> dict[str, str]:
        """For each index one that stands for all of the same size: those that stand alone on one axis."""
        same = {name: name for name in self.loops.indices}
        groups: dict[Axis, set[str]] = {
            key: {name} for key, name in written.items() if self.rules.axis.get(key) == ir.Size(name)
        }
        for use in bare_uses(self.loops):
            if (use.tensor, use.axis) in self.strict:
                groups.setdefault((use.tensor, use.axis), set()).add(use.index)
        for group in groups.values():
            chosen = {same[name] for name in group}
            first = min(chosen)
            same = {name: first if other in chosen else other for name, other in same.items()}
        return same

    def inside(self, access: ir.Access, axis: int, path: Path, indices: frozenset[str]) -> bool:
        """Whether an access that is evaluated under the conditions of `path` is in bounds on an axis."""
        place = access.indices[axis]
        name = ir.bare(place)
        strict = self.strict.get((access.tensor, axis))
        if name is not None and strict is not None and self.same[name] == self.same[strict]:
            return True
        known = set(resolved(path))
        low, high = bounds_of(access, axis)
        constraints = [c for atom in known if is_comparison(atom) for c in at_least_zero(atom)]
        extent = ir.AxisSize(access.tensor, axis)
        return (low in known or self._holds(place, constraints, indices)) and (
            high in known
            or any(
                self._holds(subtract(subtract(least, Number(1)), place), constraints, indices)
                for least in (extent, *self.at_most(extent))
            )
        )

    def at_most(self, extent: ir.AxisSize) -> list[Expr]:
        """Formulas that are never more than the extent of an axis."""
        formula = self.rules.axis.get((extent.tensor, extent.axis))
        if extent.tensor in self.inputs or formula is None:
            return []
        found, parts = [], [formula]
        while parts:
            part = parts.pop()
            if isinstance(part, ir.Call) and part.function == "max":
                parts += part.arguments
            else:
                found.append(part)
        return found

    def _holds(self, node: Expr, constraints: list[Expr], indices: frozenset[str]) -> bool:
        """node >= 0 at every point, or node - c >= 0 for something that a condition makes c >= 0."""
        sizes = {name: ir.Size(name) for name in self.loops.indices}
        sums = [add(a, b) for a, b in combinations(constraints[:SUMMED], 2)]
        for shift in (ZERO, *constraints, *sums):
            bounds = interval(subtract(node, shift), sizes)
            if bounds is not None and self._not_negative(bounds[0], indices):
                return True
        return False

    def _not_negative(self, bound: Expr, indices: frozenset[str]) -> bool:
        """Sizes are not negative, and those of the indices of a point not zero."""
        full = {self.same[name] for name in indices}

        def change(node: Expr) -> Expr:
            return add(node, Number(1)) if isinstance(node, ir.Size) and node.index in full else node

        least = tidy(ir.transform(self.plain(bound), change))
        return greatest(least, ZERO) == least

    def plain(self, node: Expr, expanded: frozenset[str] = frozenset()) -> Expr:
        """Sizes that are always equal under one name, declared ones written out."""

        def change(n: Expr) -> Expr:
            if isinstance(n, ir.AxisSize):
                axis = n.axis + self.loops.ranks.get(n.tensor, 0) if n.axis < 0 else n.axis
                strict = self.strict.get((n.tensor, axis))
                return n if strict is None else change(ir.Size(strict))
            if isinstance(n, ir.Size):
                if n.index in self.declared and n.index not in expanded:
                    return self.plain(self.declared[n.index], expanded | {n.index})
                return ir.Size(self.same.get(n.index, n.index))
            return n

        return ir.transform(node, change)


def is_comparison(atom: Expr) -> bool:
    """A comparison of whole numbers."""
    return isinstance(atom, ir.Compare) and is_integer(atom.left) and is_integer(atom.right)


def resolved(path: Path) -> Iterator[Expr]:
    """The conditions of a path, and what follows of `not c or bound` where c holds."""
    atoms = [part for condition in path for part in conjuncts(condition)]
    excluded = {opposite(condition) for condition in (*path, *atoms)}
    for atom in atoms:
        while isinstance(atom, ir.Logic) and atom.operator == "or" and atom.left in excluded:
            atom = atom.right
        yield atom


def bounds_of(access: ir.Access, axis: int) -> tuple[Expr, Expr]:
    """Comparisons that hold where an access is in bounds on an axis."""
    place = access.indices[axis]
    return ir.Compare(">=", place, ZERO), ir.Compare("<", place, ir.AxisSize(access.tensor, axis))


def is_affine(place: Expr) -> bool:
    return affine(place) is not None


def without_inside(statement: ir.Statement, proof: Proof, indices: frozenset[str]) -> tuple[Expr, ...]:
    """The parts of a guard, with comparisons in the place of `inside`, which come first where it is joined by `and`."""
    atoms = conjuncts(statement.guard)
    nodes = (statement.target, *(a for a in atoms if not isinstance(a, ir.Inside)), statement.value)
    bounds = dict.fromkeys(bound for node in nodes for bound in _bounds(node, (), proof, indices))

    def change(node: Expr) -> Expr:
        if not isinstance(node, ir.Inside):
            return node
        result: Expr = ir.Compare("==", ZERO, ZERO)
        for bound in bounds:
            result = ir.Logic("and", result, bound)
        return result

    first = tuple(bounds) if any(isinstance(atom, ir.Inside) for atom in atoms) else ()
    return (*first, *(ir.transform(atom, change) for atom in atoms if not isinstance(atom, ir.Inside)))


def _bounds(node: Expr, path: Path, proof: Proof, indices: frozenset[str]) -> Iterator[Expr]:
    """What must hold for every access that evaluating a node needs, innermost first."""
    if isinstance(node, ir.Inside):
        return
    if isinstance(node, ir.Conditional):
        yield from _bounds(node.condition, path, proof, indices)
        yield from _bounds(node.then, (*path, node.condition), proof, indices)
        yield from _bounds(node.otherwise, (*path, opposite(node.condition)), proof, indices)
    elif isinstance(node, ir.Logic):
        yield from _bounds(node.left, path, proof, indices)
        holds = node.left if node.operator == "and" else opposite(node.left)
        yield from _bounds(node.right, (*path, holds), proof, indices)
    else:
        for part in ir.children(node):
            yield from _bounds(part, path, proof, indices)
    if isinstance(node, ir.Access):
        for axis in range(len(node.indices)):
            if not proof.inside(node, axis, path, indices):
                for bound in bounds_of(node, axis):
                    result: Expr = bound
                    for condition in reversed(path):
                        if not any(isinstance(n, ir.Inside) for n in ir.walk(condition)):
                            result = ir.Logic("or", opposite(condition), result)
                    yield result
