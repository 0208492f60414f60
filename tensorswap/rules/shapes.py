"""Sizes of a derived program: what the forward program knew of its indices and axes, said again where it is needed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from ..language import ir
from ..language.affine import not_bare
from ..language.ir import Expr
from ..language.name_kinds import unshown_indices
from ..language.sizes import SizeRules, bare_written, infer
from ..lazy import cached_property
from .inherited_names import known_tensors, pattern
from .solve import FreshIndices


@dataclass
class Shapes:
    """The forward program's sizes. `base` maps a derived tensor to the forward tensor whose shape it has."""

    forward: ir.Loops
    base: dict[str, str] = field(default_factory=dict)
    fresh: FreshIndices = field(default_factory=lambda: FreshIndices(set()))

    @cached_property
    def rules(self) -> SizeRules:
        """Formulas for all sizes; those of indices that only a call tells stand in them as `size(i)`."""
        rules = infer(self.forward)
        return infer(self.forward, frozenset(rules.missing)) if rules.missing else rules

    @cached_property
    def _written(self) -> dict[tuple[str, int], str]:
        return bare_written(self.forward)

    @cached_property
    def _inputs(self) -> frozenset[str]:
        return frozenset((*self.forward.inputs, *known_tensors(self.forward)))

    def exact(self, tensor: str, axis: int, index: str) -> bool:
        """Whether the axis is exactly as long as the index, by the forward program's own rules."""
        tensor = self.base.get(tensor, tensor)
        if index in self.fresh.declared:
            return self.fresh.declared[index] == self.extent(tensor, axis)
        if tensor in self._inputs or (tensor, axis) in self._written:
            return index in self._bare.get((tensor, axis), ())
        return False

    def covers(self, tensor: str, axis: int, place: Expr) -> bool:
        """Whether a place is a bare index that runs over the whole axis."""
        return isinstance(place, ir.Index) and (place.name == ir.BATCH or self.exact(tensor, axis, place.name))

    @cached_property
    def _bare(self) -> dict[tuple[str, int], set[str]]:
        """The indices that stand bare on each axis: on inputs, and axes written bare, their sizes must agree."""
        found: dict[tuple[str, int], set[str]] = {}
        for access in self.forward.accesses:
            for axis, place in enumerate(access.indices):
                if isinstance(place, ir.Index):
                    found.setdefault((access.tensor, axis), set()).add(place.name)
        return found

    def whole(self, tensor: str) -> tuple[Expr, ...]:
        """Indices that run over all of a forward tensor, its own where they do, new ones elsewhere."""
        found: list[Expr] = []
        access = pattern(self.forward, tensor)
        for axis, place in enumerate(access.indices if access else ()):
            own = [
                i
                for i in self.forward.indices
                if ir.Index(i) not in found and i in self._bare.get((tensor, axis), ()) and self.exact(tensor, axis, i)
            ]
            if ir.bare(place) == ir.BATCH:
                own = [ir.BATCH]
            name = own[0] if own else self.fresh.of_axis(tensor, axis, self.extent(tensor, axis))
            found.append(ir.Index(name))
        return tuple(found)

    def extent(self, tensor: str, axis: int) -> Expr:
        """The size of a forward tensor's axis, as the derived program may say it."""
        if tensor in self._inputs:
            access = pattern(self.forward, tensor)
            if access is not None and access.batched:  # counted from the end: `...` may stand for many axes
                return ir.AxisSize(tensor, axis - len(access.indices))
            return ir.AxisSize(tensor, axis)
        if (tensor, axis) in self._written:
            return ir.Size(self._written[tensor, axis])
        return self.rules.axis.get((tensor, axis), ir.AxisSize(tensor, axis))

    def partial(self, access: ir.Access) -> ir.Access:
        """The access with `i+0` for an index that covers only a part of its axis: bare would claim the whole."""
        places = enumerate(access.indices)
        indices = tuple(e if self.covers(access.tensor, k, e) else not_bare(e) for k, e in places)
        return replace(access, indices=indices)

    def header(
        self, header: ir.Header, kind: str, given: Iterable[tuple[str, str]], results: Iterable[tuple[str, str]]
    ) -> ir.Header:
        """The signature of a derivative: names are given for tensors whose derivatives it takes, and which it gives."""
        arguments = (a.access for a in header.arguments if isinstance(a, ir.Argument))
        known = {a.tensor: a.indices for a in (*arguments, *header.outputs)}

        def named(tensor: str, name: str) -> ir.Access:
            return ir.Access(name, known[tensor] if tensor in known else self.whole(tensor))

        seeds = tuple(ir.Argument(named(*pair)) for pair in given)
        outputs = tuple(named(*pair) for pair in results)
        return ir.Header(f"{header.name}.{kind}", (*header.arguments, *seeds), outputs)

    def declare(self, derived: ir.Loops) -> ir.Loops:
        """The derived program with every size declared that its own text would not show, or would show otherwise."""
        derived = self._with_sizes(self._with_arrays(derived))
        derived = self._counted_from_the_end(self._with_arrays(derived))
        return replace(derived, ranges=tuple(ir.Index(name) for name in unshown_indices(derived)))

    def _with_arrays(self, derived: ir.Loops) -> ir.Loops:
        """`X[...,c]: array` where no input of the derived program shows what `...` stands for."""
        if derived.header or derived.arrays or ir.BATCH not in derived.indices:
            return derived
        if any(a.batched for s in derived.statements for a in s.reads if a.tensor in derived.inputs):
            return derived
        primals = [self.base[name] for name in derived.written if name in self.base]
        given = [n for n in (*derived.inputs, *primals, *self.forward.inputs) if n in self._inputs]
        patterns = [(n, pattern(self.forward, n)) for n in (*given, *known_tensors(self.forward))]
        shown = next((name for name, access in patterns if access is not None and access.batched), None)
        return derived if shown is None else replace(derived, arrays=(ir.Access(shown, self.whole(shown)),))

    def _counted_from_the_end(self, derived: ir.Loops) -> ir.Loops:
        """The axes of a tensor with `...` whose accesses are gone are counted so that no access need show them."""
        accessed = {a.tensor for a in derived.accesses}

        def change(node: Expr) -> Expr:
            if isinstance(node, ir.AxisSize) and node.axis > 0 and node.tensor not in accessed:
                access = pattern(self.forward, node.tensor)
                if access is not None and access.batched:
                    return replace(node, axis=node.axis - len(access.indices))
            return node

        return ir.map_loops(derived, change)

    def _with_sizes(self, derived: ir.Loops) -> ir.Loops:
        sizes: dict[Expr, ir.SizeDeclaration] = {}
        used = set(_indices_in_use(derived))
        for name, value in self.fresh.declared.items():
            if name in used and name != ir.BATCH:
                sizes[ir.Size(name)] = ir.SizeDeclaration(ir.Size(name), value)
        for declaration in self.forward.sizes:
            subject = declaration.subject
            if subject.tensor in derived.written if isinstance(subject, ir.AxisSize) else subject.index in used:
                sizes.setdefault(subject, declaration)
        for declaration in self._derived_axes(derived):
            sizes.setdefault(declaration.subject, declaration)
        known = self._shown(derived)
        while True:
            asked = {n.index for d in sizes.values() for n in ir.walk(d.value) if isinstance(n, ir.Size)}
            asked |= used
            declared = {s.index for s in sizes if isinstance(s, ir.Size)}
            open_names = [i for i in (*derived.indices, *sorted(asked)) if i in asked and i not in known | declared]
            told = [i for i in dict.fromkeys(open_names) if self.rules.index.get(i, ir.Size(i)) != ir.Size(i)]
            new = [i for i in told if i != ir.BATCH]
            if not new:
                break
            for name in new:
                sizes[ir.Size(name)] = ir.SizeDeclaration(ir.Size(name), self.rules.index[name], inferred=True)
        closed = tuple(replace(d, value=self._close(d.value, derived)) for d in sizes.values())
        return replace(derived, sizes=closed)

    def _close(self, value: Expr, derived: ir.Loops) -> Expr:
        """Sizes of tensors that the derived program no longer has are replaced by what they were."""

        def change(node: Expr) -> Expr:
            if isinstance(node, ir.AxisSize) and node.tensor not in self._inputs and node.tensor not in derived.written:
                axis = node.axis if node.axis >= 0 else node.axis + self.forward.ranks.get(node.tensor, 0)
                formula = self.rules.axis.get((node.tensor, axis))
                if formula is not None:
                    return ir.transform(formula, change)
            return node

        return ir.transform(value, change)

    def _shown(self, derived: ir.Loops) -> set[str]:
        """Indices whose size the derived program's own inputs show, and show rightly."""
        inputs = set(derived.inputs)
        accesses = [*derived.header_accesses, *(a for s in derived.statements for a in s.reads)]
        return {
            e.name
            for a in accesses
            if a.tensor in inputs
            for k, e in enumerate(a.indices)
            if isinstance(e, ir.Index) and self.covers(a.tensor, k, e)
        }

    def _derived_axes(self, derived: ir.Loops) -> list[ir.SizeDeclaration]:
        """size(X.grad, 0) = size(X, 0) unless every statement shows it by writing a bare index of that range."""
        found = []
        header = {a.tensor for a in derived.header_accesses}
        for name in derived.written:
            if name not in self.base or name in header:
                continue
            targets = [s.target for s in derived.statements if s.target.tensor == name]
            for axis in range(len(targets[0].indices)):
                if all(self.covers(name, axis, t.indices[axis]) for t in targets):
                    continue
                found.append(ir.SizeDeclaration(ir.AxisSize(name, axis), self.extent(self.base[name], axis)))
        return found


def _indices_in_use(derived: ir.Loops) -> list[str]:
    """The indices of the statements, and of outputs that a header declares."""
    outputs = derived.header.outputs if derived.header else ()
    names: dict[str, None] = dict.fromkeys(i for a in outputs for i in ir.ordered_indices(a))
    for statement, blocks in derived.located:
        names |= dict.fromkeys(b.index for b in blocks)
        names |= dict.fromkeys(statement.indices)
        names |= dict.fromkeys(n.index for n in statement.nodes if isinstance(n, ir.Size))
    return list(names)
